#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What tshark makes of a run with all operations over TCP (wire_ops.c).

The run is captured in a network namespace of its own, by a packet socket, so that nothing else is
in the capture. tshark decodes it as MPA, DDP and RDMAP.
"""
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading

from testing import BUILD, Skip, equal, main

WIRE_OPS = str(BUILD / "tests" / "system" / "wire_ops")
INSIDE = "WIRE_INSIDE"  # set in the process that is in the namespace

ETH_P_ALL = 3
PACKET_OUTGOING = 4
SO_RCVBUFFORCE = 33
SOL_PACKET = 263
PACKET_STATISTICS = 6

# opcodes of RDMAP
WRITE, READ_REQUEST, RESPONSE, SEND, SOLICITED, TERMINATE = 0, 1, 2, 3, 5, 7
# STags of what the engine sends of its own: RTR, question, answer, announcement (src/soft/iwarp/transfer/tx.h)
OWN_STAGS = (1, 2, 3, 4)


class Capture:
    """Packets of the loopback interface, in a file of libpcap's format."""

    def __init__(self, path):
        self.file = open(path, "wb")
        # time stamps of microseconds, packets of any length, Ethernet
        self.file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 0x40000, 1))
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.bind(("lo", 0))
        self.socket.settimeout(0.2)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self.is_over = threading.Event()
        self.count = 0
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while True:
            try:
                packet, address = self.socket.recvfrom(0x40000)
            except TimeoutError:
                if self.is_over.is_set():
                    return
                continue
            # each packet is seen when it goes out and when it comes in
            if address[2] == PACKET_OUTGOING:
                continue
            self.count += 1
            self.file.write(struct.pack("<IIII", self.count, 0, len(packet), len(packet)))
            self.file.write(packet)

    def end(self):
        self.is_over.set()
        self.thread.join()
        self.file.close()
        dropped = struct.unpack("II", self.socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]
        self.socket.close()
        assert dropped == 0, f"{dropped} packets are missing in the capture"


def run_captured(path, crc):
    """Runs the program under a capture: {kind: (count, bytes)} as it prints them."""
    # segments as on Ethernet
    subprocess.run(["ip", "link", "set", "lo", "mtu", "1500", "up"], check=True)
    capture = Capture(path)
    try:
        done = subprocess.run([WIRE_OPS], env={**os.environ, "DAT_TRANSPORT": "tcp",
                                               "DAT_CRC": crc},
                              capture_output=True, text=True, timeout=60, check=False)
    finally:
        capture.end()
    assert done.returncode == 0, done.stdout + done.stderr
    tally = {}
    for line in done.stdout.splitlines():
        words = line.split()
        if words and words[0] == "tally":
            tally[words[1]] = (int(words[2]), int(words[3]))
    return tally


# what tshark would take payloads for, because they are of no protocol that it knows, or because of
# their port
GUESSES = ("rpcordma", "smb_direct", "iser", "openflow")


def tshark(path, *arguments):
    # the ports are any, and some belong to a protocol: tshark looks at the payload first
    guesses = [word for name in GUESSES for word in ("--disable-protocol", name)]
    done = subprocess.run(["tshark", "-n", "-o", "tcp.try_heuristic_first:TRUE", *guesses, "-r",
                           path, *arguments], capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


# of an FPDU, of which a packet may have several
FPDU_FIELDS = ("iwarp_mpa.ulpdulength", "iwarp_rdma.opcode", "iwarp_ddp.tagged_flag",
               "iwarp_ddp.last_flag", "iwarp_ddp.stag")
FIELDS = FPDU_FIELDS + (
    "_ws.malformed", "tcp.stream", "tcp.srcport", "tcp.flags.fin", "tcp.flags.reset",
    "iwarp_mpa.rev", "iwarp_mpa.crc_flag", "iwarp_mpa.marker_flag", "iwarp_mpa.rej_flag",
    "iwarp_mpa.privatedata", "iwarp_rdma.term_layer", "iwarp_rdma.term_etype_ddp",
    "iwarp_rdma.term_errcode_ddp_tagged")


def packets_of(path):
    """The fields of each packet, by their names without the protocol's."""
    names = [word for name in FIELDS for word in ("-e", name)]
    text = tshark(path, "-T", "fields", *names)
    packets = [dict(zip(FIELDS, line.split("\t"))) for line in text.splitlines()]
    malformed = [packet for packet in packets if packet["_ws.malformed"]]
    assert not malformed, malformed
    return packets


class Fpdu:
    """One FPDU as tshark shows it."""

    def __init__(self, stream, ulpdu, opcode, is_tagged, is_last, stag):
        self.stream = stream
        self.opcode = opcode
        self.is_last = is_last
        self.size = ulpdu - (14 if is_tagged else 18)
        # the engine's own: RTR, questions about the placement of Writes, and answers
        self.is_own = opcode == WRITE and not self.size and stag in OWN_STAGS


def fpdus_of(packets):
    fpdus = []
    for packet in packets:
        sizes, opcodes, tagged, last, stags = (
            [int(word, 0) for word in packet[name].split(",") if word] for name in FPDU_FIELDS)
        assert len(sizes) == len(opcodes) == len(tagged) == len(last), packet
        assert len(stags) == sum(tagged), packet
        for i, size in enumerate(sizes):
            fpdus.append(Fpdu(packet["tcp.stream"], size, opcodes[i], tagged[i], last[i],
                              stags.pop(0) if tagged[i] else None))
    return fpdus


def tally_of(fpdus, opcode):
    """Messages and payload bytes of that opcode, without the engine's own."""
    chosen = [fpdu for fpdu in fpdus if fpdu.opcode == opcode and not fpdu.is_own]
    return sum(fpdu.is_last for fpdu in chosen), sum(fpdu.size for fpdu in chosen)


def check_frames(packets, crc):
    """The frames of the set-up: two connections, with our header and the wanted CRC."""
    frames = [packet for packet in packets if packet["iwarp_mpa.rev"]]
    assert len(frames) == 4, frames
    for frame in frames:
        assert frame["iwarp_mpa.rev"] == "2", frame
        assert frame["iwarp_mpa.marker_flag"] == frame["iwarp_mpa.rej_flag"] == "0", frame
        assert int(frame["iwarp_mpa.crc_flag"]) == crc, frame
        # "oDAT" behind the enhanced data
        assert frame["iwarp_mpa.privatedata"][8:16] == "6f444154", frame


def check_crcs(path, count):
    """The CRC of each of that many FPDUs is good."""
    text = tshark(path, "-Y", "iwarp_ddp_rdmap", "-O", "iwarp_mpa")
    assert text.count("Good CRC32") == count, (count, text[-2000:])
    assert "Bad CRC32" not in text


def check_end(packets, fpdus):
    """One Terminate of a bad STag; the other connection ends in order on both sides."""
    terminates = [packet for packet in packets if packet["iwarp_rdma.term_layer"]]
    assert len(terminates) == 1, terminates
    assert [int(terminates[0]["iwarp_rdma." + name], 0) for name in (
        "term_layer", "term_etype_ddp", "term_errcode_ddp_tagged")] == [1, 1, 0], terminates
    stream = next(fpdu.stream for fpdu in fpdus if fpdu.opcode == SEND)
    mine = [packet for packet in packets if packet["tcp.stream"] == stream]
    assert len({packet["tcp.srcport"] for packet in mine if packet["tcp.flags.fin"] == "1"}) == 2
    assert all(packet["tcp.flags.reset"] == "0" for packet in mine)


# TCP may send a segment again, and a busy machine may capture packets in another order. tshark does
# not find the FPDUs in such packets, so that there is nothing to compare.
DISORDER = " || ".join("tcp.analysis." + name for name in (
    "retransmission", "out_of_order", "lost_segment"))
CAPTURES = 20


def capture_in_order(path, crc):
    """The tally of a run whose capture has each byte once, in order."""
    for _ in range(CAPTURES):
        tally = run_captured(path, crc)
        disorder = tshark(path, "-Y", DISORDER)
        if not disorder:
            return tally
    raise AssertionError(f"in each of {CAPTURES} captures TCP repeats a segment: {disorder}")


def check_run(crc):
    for program in ("tshark", "unshare", "ip"):
        if not shutil.which(program):
            raise Skip(f"{program} is not installed")
    if INSIDE not in os.environ:
        raise Skip("no network namespace can be made here")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "wire.pcap")
        tally = capture_in_order(path, "on" if crc else "off")
        packets = packets_of(path)
        fpdus = fpdus_of(packets)
        for kind, opcode in (("send", SEND), ("solicited", SOLICITED), ("write", WRITE),
                             ("read", RESPONSE)):
            equal(tally_of(fpdus, opcode), tally[kind],
                  f"{kind}: {[(fpdu.opcode, fpdu.size) for fpdu in fpdus]}")
        equal(tally_of(fpdus, READ_REQUEST)[0], tally["read"][0])
        assert {fpdu.opcode for fpdu in fpdus} == {WRITE, READ_REQUEST, RESPONSE, SEND, SOLICITED,
                                                   TERMINATE}
        check_frames(packets, crc)
        if crc:
            check_crcs(path, len(fpdus))
        check_end(packets, fpdus)


# IWCM-53 IWCM-10 IWCM-27 MPA-01 TERM-01
def capture__without_crc__tshark_agrees():
    check_run(0)


# IWCM-53 MPA-23 MPA-49
def capture__with_crc__tshark_agrees_and_crcs_are_good():
    check_run(1)


def namespace():
    """The command that runs another one in a network namespace; None: there can be none."""
    for command in (["unshare", "--net"], ["unshare", "--user", "--map-root-user", "--net"]):
        if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
            return command
    return None


def enter_namespace():
    """Starts this program again in the namespace; returns if that is done, or not possible."""
    command = namespace() if shutil.which("unshare") and INSIDE not in os.environ else None
    if command:
        os.execvpe(command[0], [*command, sys.executable, *sys.argv], {**os.environ, INSIDE: "1"})


if __name__ == "__main__":
    enter_namespace()
    main(list(globals().items()))
