#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""dat_trace: lines, JSON, filters, the summary, and the file for Wireshark."""
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile

from testing import BUILD, DAT_PING, DAT_TRACE, Skip, contains, equal, main, run, started

FAULTS = str(BUILD / "examples" / "faults")
WIRE_OPS = str(BUILD / "tests" / "system" / "wire_ops")

LINE = re.compile(r"\d\d:\d\d:\d\d\.\d{6} \[\d+\] (dat_\w+)\((.*)\) = (DAT_\w+)(.*) <\d+\.\d{6}>")

# opcodes of RDMAP
WRITE, READ_REQUEST, RESPONSE, SEND, SOLICITED = 0, 1, 2, 3, 5


def traced(*arguments, status=0):
    """Traces a run of the example; returns what dat_trace has written, without stdout."""
    done = run(DAT_TRACE, *arguments, FAULTS)
    equal(done[:2], (status, "done\n"), done[2])
    return done[2]


def calls_of(text):
    """(name, arguments, result, what it wrote) of each line, those of waits that began left out."""
    lines = [line for line in text.splitlines() if not line.endswith("<unfinished ...>")]
    found = [LINE.fullmatch(line) for line in lines]
    assert all(found), lines
    return [match.groups() for match in found]


# CHECK-TRACE-01 CHECK-TRACE-02 CHECK-TRACE-03
def text__each_call__arguments_and_result():
    calls = calls_of(traced())
    names = [call[0] for call in calls]
    equal((names[0], names[-1]), ("dat_ia_open", "dat_ia_close"))
    equal(names.count("dat_ep_post_send"), 2)
    equal(calls[0][1], '"soft-lo", asynch_evd_min_qlen=8')
    send = next(call for call in calls if call[0] == "dat_ep_post_send")
    assert re.fullmatch(r"ep 7, \[\{0x[0-9a-f]+, 0x[0-9a-f]+, 64\}\], user_cookie=0x0, "
                        "DAT_COMPLETION_DEFAULT_FLAG", send[1]), send
    equal([call[2:] for call in calls if call[0] == "dat_ep_free"][-1],
          ("DAT_INVALID_HANDLE", " DAT_INVALID_HANDLE_EP"))
    events = [call[3] for call in calls if call[0] == "dat_evd_wait"]
    contains(events[0], "{DAT_CONNECTION_REQUEST_EVENT cr 10, qualifier ")
    contains("".join(events),
             "{DAT_DTO_COMPLETION_EVENT ep 7, cookie 0x1, DAT_DTO_SUCCESS, 64 bytes}")
    region = next(call for call in calls if call[0] == "dat_lmr_create")
    contains(region[1], "DAT_MEM_TYPE_VIRTUAL")
    contains(region[1], "DAT_MEM_PRIV_LOCAL_READ_FLAG")


# CHECK-TRACE-01: nothing is reported, unless DAT_CHECK asks for that, too
def text__faults__reported_with_dat_check_only():
    assert "libdat-check" not in traced()
    done = run(DAT_TRACE, FAULTS, env={"DAT_CHECK": "1"})
    contains(done[2], "error: send-changed:")
    contains(done[2], " dat_ep_post_send(ep 7")


# CHECK-TRACE-02: its line has no end before the call has one
def text__wait_that_blocks__its_beginning_is_shown():
    with started(DAT_TRACE, "-e", "evd_wait", DAT_PING, "--server") as process:
        for line in process.stderr:
            if line.endswith(", threshold=1 <unfinished ...>\n"):
                break
        process.send_signal(signal.SIGTERM)
        assert "<unfinished ...>" in line


# CHECK-TRACE-04
def json__each_line__an_object():
    objects = [json.loads(line) for line in traced("--json").splitlines()]
    send = next(one for one in objects if one["call"] == "dat_ep_post_send")
    equal(send["arguments"]["ep_handle"], "ep 7")
    equal([segment["length"] for segment in send["arguments"]["local_iov"]], [64])
    equal((send["result"], send["results"]), ("DAT_SUCCESS", {}))
    assert send["ns"] >= 0 and re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]{8}\.\d{6}Z", send["time"]), send
    failed = objects[-2]
    equal((failed["call"], failed["subtype"]), ("dat_ep_free", "DAT_INVALID_HANDLE_EP"))
    events = [one["results"]["event"] for one in objects if one["call"] == "dat_evd_wait"]
    assert {"event": "DAT_DTO_COMPLETION_EVENT", "ep": "ep 7", "cookie": 1,
            "status": "DAT_DTO_SUCCESS", "length": 64} in events, events


# CHECK-TRACE-05
def calls__names_and_patterns__these_only():
    names = [call[0] for call in calls_of(traced("--calls", "ep_post_*,dat_lmr_free"))]
    equal(names, ["dat_ep_post_recv"] * 3 + ["dat_ep_post_send"] * 2 + ["dat_lmr_free"])
    status, out, err = run(DAT_TRACE, "--calls", "ep_post_*,no_such_call", FAULTS)
    equal((status, out), (2, ""))
    contains(err, "--calls ep_post_*,no_such_call: invalid value")


# CHECK-TRACE-05
def ep__number__its_calls_and_events_only():
    calls = calls_of(traced("--ep", "8"))
    equal(len(calls), 10)
    for call in calls:
        contains(call[1] + call[3], "ep 8")


# CHECK-TRACE-06
def count__summary__by_call_and_endpoint():
    text = traced("--count")
    counts = {words[5]: (int(words[3]), int(words[4]))
              for words in (line.split() for line in text.splitlines()[1:])
              if words and words[-1].startswith("dat_")}
    equal(counts["dat_ep_post_send"], (2, 0))
    equal(counts["dat_ep_free"], (3, 1))
    eps = [line.split()[2:] for line in text.splitlines() if " ep " in line]
    equal(eps, [["7", "2", "0", "0", "0", "0", "128", "0", "0"],
                ["8", "0", "0", "0", "0", "2", "0", "128", "0"]])


# CHECK-TRACE-06: also if the program is ended by a signal
def count__program_killed__summary_and_status():
    with started(DAT_TRACE, "-c", "sh", "-c", f"{FAULTS}; kill -KILL $$") as process:
        _, err = process.communicate(timeout=60)
    equal(process.returncode, 128 + signal.SIGKILL)
    contains(err, " dat_ia_close\n")


def status__of_the_program__passed_on():
    for form in ([], ["-c"]):
        equal(run(DAT_TRACE, *form, "sh", "-c", "exit 7")[0], 7)
        status, _, err = run(DAT_TRACE, *form, "/no/such/program")
        equal(status, 127)
        contains(err, "/no/such/program: No such file")
    equal(run(DAT_TRACE)[0], 2)
    equal(run(DAT_TRACE, "--output", "/no/such/folder/file", FAULTS)[0], 3)


# CHECK-TRACE-03
def output__file__gets_the_lines():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace")
        equal(run(DAT_TRACE, "--output", path, FAULTS), (0, "done\n", ""))
        with open(path, encoding="utf-8") as file:
            equal(len([1 for call in calls_of(file.read()) if call[0] == "dat_ep_create"]), 2)
        equal(run(DAT_TRACE, "--count", "--output", path, FAULTS), (0, "done\n", ""))
        with open(path, encoding="utf-8") as file:
            contains(file.read(), "100.00")


# ---- the file for Wireshark ----

def blocks_of(data):
    while data:
        kind, length = struct.unpack("<II", data[:8])
        equal(struct.unpack("<I", data[length - 4:length])[0], length)
        yield kind, data[8:length - 4]
        data = data[length:]


def packets_of(path):
    """(connection, is it ours, payload of TCP) of each packet, in order; each byte is there once."""
    with open(path, "rb") as file:
        blocks = list(blocks_of(file.read()))
    equal([kind for kind, _ in blocks[:2]], [0x0A0D0D0A, 1])
    equal({kind for kind, _ in blocks[2:]}, {6})
    expected = {}
    packets = []
    for _, body in blocks[2:]:
        size = struct.unpack("<I", body[12:16])[0]
        packet = body[20:20 + size]
        equal((packet[0], struct.unpack(">H", packet[2:4])[0]), (0x45, size))
        from_port, to_port, sequence = struct.unpack(">HHI", packet[20:28])
        is_ours = packet[12] == 10
        key = (from_port if is_ours else to_port, is_ours)
        equal(sequence, expected.get(key, 0), key)
        flags, payload = packet[33], packet[40:]
        expected[key] = sequence + len(payload) + (1 if flags & 3 else 0)
        if payload:
            packets.append((*key, payload))
    return packets


def tally_of(packets):
    """{(opcode, is it ours): (messages, bytes)}"""
    tally = {}
    for _, is_ours, payload in packets:
        if payload.startswith(b"MPA ID Re"):
            continue
        length, ddp, rdmap = struct.unpack(">HBB", payload[:4])
        equal(len(payload), (2 + length + 3) // 4 * 4 + 4)
        size = length - (14 if ddp & 0x80 else 18)
        messages, sizes = tally.get((rdmap & 15, is_ours), (0, 0))
        tally[rdmap & 15, is_ours] = (messages + (1 if ddp & 0x40 else 0), sizes + size)
    return tally


def written_run(folder):
    """A run of wire_ops: the path of its file, and {kind: (count, bytes)} as it prints them."""
    path = os.path.join(folder, "transfers.pcapng")
    status, out, err = run(DAT_TRACE, "--quiet", "--write", path, WIRE_OPS)
    equal((status, [line for line in err.splitlines() if LINE.match(line)]), (0, []), err)
    words = [line.split() for line in out.splitlines() if line.startswith("tally ")]
    return path, {word[1]: (int(word[2]), int(word[3])) for word in words}


# CHECK-TRACE-07
def write__all_operations__as_the_program_counts_them():
    with tempfile.TemporaryDirectory() as folder:
        path, expected = written_run(folder)
        packets = packets_of(path)
        tally = tally_of(packets)
        equal(tally[SEND, True], expected["send"])
        equal(tally[SOLICITED, True], expected["solicited"])
        equal(tally[RESPONSE, False], expected["read"])
        # the one that the peer refuses is written, too
        equal(tally[WRITE, True][0], expected["write"][0])
        equal(tally[READ_REQUEST, True][0], expected["read"][0])
        # the peer of the program is the program itself, at another endpoint
        both = [expected["send"][i] + expected["solicited"][i] for i in range(2)]
        equal(list(tally[SEND, False]), both)
        sent = b"".join(load[20:] for _, is_ours, load in packets if is_ours and load[3] & 15 == SEND)
        assert sent.strip(b"\0")


# CHECK-TRACE-07
def write__tshark__decodes_each_packet():
    if not shutil.which("tshark"):
        raise Skip("tshark is not installed")
    with tempfile.TemporaryDirectory() as folder:
        path, _ = written_run(folder)
        guesses = [word for name in ("rpcordma", "smb_direct", "iser", "openflow")
                   for word in ("--disable-protocol", name)]
        done = subprocess.run(["tshark", "-n", "-o", "tcp.try_heuristic_first:TRUE",
                               "-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE",
                               *guesses, "-r", path, "-T", "fields", "-e", "iwarp_rdma.opcode",
                               "-e", "_ws.malformed", "-e", "_ws.expert.message"],
                              capture_output=True, text=True, timeout=60, check=False)
        equal(done.returncode, 0, done.stderr)
        rows = [line.split("\t") for line in done.stdout.splitlines()]
        messages = [load for _, _, load in packets_of(path) if not load.startswith(b"MPA ID Re")]
        equal([int(row[0], 0) for row in rows if row[0]], [load[3] & 15 for load in messages])
        bad = [row for row in rows if row[1] or "hecksum" in row[2] or "etransmission" in row[2]]
        equal(bad, [])


if __name__ == "__main__":
    main(list(globals().items()))
