#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""dat_stat as a program: options, output formats, permission, processes that stop or lie."""
import contextlib
import ctypes
import json
import mmap
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from testing import ADAPTER, DAT_PING, DAT_STAT, Skip, WAIT_S, contains, equal, is_sanitized, \
    main, ping_server, run, started


def stat(*options, env=None):
    """Runs dat_stat: (exit status, stdout, stderr)."""
    return run(DAT_STAT, *options, env=env)


def state_of(pid):
    """The adapters of a process, from --json."""
    status, out, err = stat("--json", "--pid", str(pid))
    equal(status, 0, err)
    processes = json.loads(out)["processes"]
    equal([p["pid"] for p in processes], [pid])
    return processes[0]["adapters"]


@contextlib.contextmanager
def traffic():
    """A server and a client that transfer until the end: (server, client)."""
    with ping_server() as (server, qualifier):
        with started(DAT_PING, "--adapter", ADAPTER, "--qual", qualifier, "--op", "send",
                     "--size", "64", "--count", "50000000") as client:
            # the head of the table is printed when the connection is established
            contains(client.stdout.readline(), "adapter")
            if stat("--pid", str(server.pid))[2].find("permission") >= 0:
                raise Skip("no permission to read other processes (kernel.yama.ptrace_scope)")
            # the server's endpoint is connected a little later than the client's
            await_more(server.pid, "receive", 0)
            yield server, client


def operations(pid):
    """The operations of the only endpoint of the process."""
    (adapter,) = state_of(pid)
    (endpoint,) = adapter["endpoints"]
    return endpoint["operations"]


def await_more(pid, operation, before):
    """Waits until the process has done more such operations than that."""
    deadline = time.monotonic() + WAIT_S
    while operations(pid)[operation] <= before:
        assert time.monotonic() < deadline, "the counter stands still"


# ---- what is shown ----

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"

# Opens an adapter in a thread, and ends the main thread.
WITHOUT_MAIN = """
import ctypes, sys, threading
def serve():
    dat = ctypes.CDLL("libdat.so.1")
    evd, ia = ctypes.c_void_p(), ctypes.c_void_p()
    code = dat.dat_ia_openv(sys.argv[1].encode(), 8, ctypes.byref(evd), ctypes.byref(ia), 1, 2, 1)
    ended.acquire()
    try:
        while open("/proc/self/maps").read(1):
            pass
    except OSError:
        pass
    print(code, flush=True)
    threading.Event().wait()
ended = threading.Lock()
ended.acquire()
threading.Thread(target=serve).start()
ended.release()
ctypes.CDLL(None).syscall(int(sys.argv[2]), 0)
"""
SYS_EXIT = {"x86_64": 60}.get(os.uname().machine, 93)


def dat_stat__main_thread_has_ended__shown():
    if is_sanitized():
        raise Skip("an interpreter without the sanitizer cannot load the library")
    with started(sys.executable, "-c", WITHOUT_MAIN, ADAPTER, str(SYS_EXIT)) as process:
        equal(process.stdout.readline(), "0\n")
        if stat("--pid", str(process.pid))[2].find("permission") >= 0:
            raise Skip("no permission to read other processes (kernel.yama.ptrace_scope)")
        equal([adapter["name"] for adapter in state_of(process.pid)], [ADAPTER])
        contains(stat()[1], str(process.pid))


def dat_stat__traffic__counters_grow():
    with traffic() as (_, client):
        await_more(client.pid, "send", operations(client.pid)["send"])


def dat_stat__json__both_ends_agree():
    with traffic() as (server, client):
        client.send_signal(signal.SIGSTOP)
        (far,), (near,) = state_of(server.pid), state_of(client.pid)
        equal(near["name"], ADAPTER)
        (endpoint,), (listener,) = near["endpoints"], far["listeners"]
        equal(endpoint["state"], "connected")
        equal(endpoint["peer_port"], listener["qualifier"])
        assert far["endpoints"][0]["operations"]["receive"] > 0, far
        evds = {evd["number"] for evd in near["evds"]}
        for use in ("receive_evd", "request_evd", "connect_evd"):
            assert endpoint[use] in evds, endpoint
        equal(near["objects"]["evd"], len(evds))
        equal(near["registered_bytes"], sum(region["bytes"] for region in near["regions"]))


def dat_stat__text__tables():
    with traffic() as (server, client):
        status, out, err = stat("--pid", str(client.pid))
        equal(status, 0, err)
        contains(out, f"process {client.pid} (dat_ping)")
        contains(out, f"adapter {ADAPTER} (ia 1)")
        contains(out, "connected")
        status, out, err = stat("--pid", str(server.pid))
        contains(out, "psp on ")


def dat_stat__no_pid__lists_processes():
    with traffic() as (server, client):
        _, out, err = stat()
        pids = {line.split()[0] for line in out.splitlines()[1:]}
        assert {str(server.pid), str(client.pid)} <= pids, out + err
        _, out, err = stat("-a", "no-such-adapter")
        equal(len(out.splitlines()), 1, out)


def dat_stat__other_adapter__says_so():
    with traffic() as (_, client):
        status, out, err = stat("--pid", str(client.pid), "--adapter", "soft-nothing")
        equal((status, out), (3, ""))
        contains(err, "has not opened soft-nothing")


def dat_stat__watch__rates_until_interrupted():
    with traffic() as (_, client):
        with started(DAT_STAT, "--watch", "0.05", "--pid", str(client.pid)) as watcher:
            assert re.fullmatch(TIME + "\n", watcher.stdout.readline())
            while "per second" not in watcher.stdout.readline():
                assert watcher.poll() is None, watcher.stderr.read()
            watcher.send_signal(signal.SIGINT)
            equal(watcher.wait(WAIT_S), 130)


def dat_stat__watch_json__a_line_for_each_look():
    with traffic() as (_, client):
        with started(DAT_STAT, "-j", "-w0.05", "-p", str(client.pid)) as watcher:
            times = []
            for _ in range(3):
                state = json.loads(watcher.stdout.readline())
                equal(state["processes"][0]["pid"], client.pid)
                assert re.fullmatch(TIME, state["time"]), state["time"]
                times.append(state["time"])
            # a look each 50 ms, so no two have the same millisecond
            equal(times, sorted(set(times)))


def dat_stat__watched_process_ends__fails():
    with traffic() as (_, client):
        with started(DAT_STAT, "-w0.05", "-p", str(client.pid)) as watcher:
            watcher.stdout.readline()
            client.kill()
            client.wait(WAIT_S)
            equal(watcher.wait(WAIT_S), 3)


SAMPLE = re.compile(r'(opendat_[a-z_]+)\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)+)\} \d+$')


def dat_stat__metrics__is_well_formed():
    with traffic() as (_, client):
        status, out, err = stat("--metrics", "-p", str(client.pid))
    equal(status, 0, err)
    family, seen = None, set()
    for line in out.splitlines():
        if line.startswith("# HELP "):
            family = line.split()[2]
            assert family not in seen, f"{family} is not in one piece"
            seen.add(family)
        elif line.startswith("# TYPE "):
            name, kind = line.split()[2:]
            # node_exporter refuses the whole file for any other kind
            assert name == family and kind in ("counter", "gauge"), line
            equal(kind == "counter", name.endswith("_total"), line)
        else:
            found = SAMPLE.match(line)
            assert found and found.group(1) == family, line
    contains(out, 'operation="send"} ')
    contains(out, f'adapter="{ADAPTER}"')


def dat_stat__metrics__promtool_accepts_them():
    promtool = shutil.which(os.environ.get("PROMTOOL", "promtool"))
    if not promtool:
        raise Skip("there is no promtool (Debian: prometheus)")
    with traffic() as (_, client):
        text = stat("--metrics", "-p", str(client.pid))[1]
    contains(text, "opendat_endpoint_info{")
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True,
                          text=True, timeout=WAIT_S, check=False)
    equal((done.returncode, done.stdout + done.stderr), (0, ""))


def observing_recipe():
    """The command of docs/observing.md that writes the file for node_exporter."""
    page = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "observing.md")
    with open(page, encoding="utf-8") as file:
        (block,) = [part for part in file.read().split("\n\n") if "node_exporter/" in part
                    and part.startswith("    ")]
    return block


def dat_stat__recipe_for_node_exporter__writes_the_file():
    with traffic() as (_, client), tempfile.TemporaryDirectory() as folder:
        recipe = observing_recipe().replace("/var/lib/node_exporter", folder)
        path = os.path.dirname(DAT_STAT) + ":" + os.environ["PATH"]
        status, out, err = run("sh", "-c", recipe, env={"PATH": path})
        equal((status, out), (0, ""), err)
        equal(os.listdir(folder), ["opendat.prom"])
        with open(os.path.join(folder, "opendat.prom"), encoding="utf-8") as file:
            contains(file.read(), f'opendat_endpoint_info{{pid="{client.pid}",')


# ---- usage ----

def dat_stat__wrong_options__usage_error():
    for options in (("--pid", "x"), ("--pid", "0"), ("-p", "-1"), ("--watch=0",), ("-w", "soon"),
                    ("--json", "--metrics"), ("word",), ("-j", "-w", "1", "2")):
        status, out, err = stat(*options)
        equal((status, out), (2, ""), options)
        contains(err, "dat_stat: ")


def dat_stat__quiet__status_only():
    with traffic() as (_, client):
        equal(stat("--quiet", "--pid", str(client.pid)), (0, "", ""))
        status, out, err = stat("-q", "--pid", str(client.pid), "--adapter", "soft-nothing")
        equal((status, out), (3, ""))
        contains(err, "has not opened soft-nothing")


def dat_stat__process_without_library__reason():
    with started("sleep", str(WAIT_S)) as sleeper:
        status, out, err = stat("--pid", str(sleeper.pid))
    equal((status, out), (3, ""))
    contains(err, "has not loaded a provider library")


def dat_stat__no_such_process__reason():
    status, _, err = stat("--pid", "2147483647")
    equal(status, 3)
    contains(err, "No such process")


# ---- who may look ----

def dat_stat__another_user__sees_nothing():
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    with traffic() as (_, client):
        def become_nobody():
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        done = subprocess.run([DAT_STAT, "--pid", str(client.pid)], preexec_fn=become_nobody,
                              capture_output=True, text=True, timeout=WAIT_S, check=False)
        equal((done.returncode, done.stdout), (3, ""), done.stderr)
        contains(done.stderr, "permission")
        done = subprocess.run([DAT_STAT], preexec_fn=become_nobody, capture_output=True,
                              text=True, timeout=WAIT_S, check=False)
        assert str(client.pid) not in done.stdout, done.stdout


def dat_stat__stopped_process__is_read():
    with traffic() as (server, client):
        for process in (server, client):
            process.send_signal(signal.SIGSTOP)
            equal(state_of(process.pid)[0]["endpoints"][0]["state"], "connected")


# ---- processes that lie ----

NOTE_AT, TABLE_AT, TABLE_SIZE = 0x100, 0x200, 0x200


def fake_library(arena, cells, members=b""):
    """The start of an ELF file with a note that names a table."""
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 64, 0, 0, 64, 56,
                       1, 0, 0, 0)
    head += struct.pack("<IIQQQQQQ", 4, 4, NOTE_AT, NOTE_AT, 0, 28, 28, 4)
    note = struct.pack("<III8sq", 8, 8, 0x0da7, b"OpenDAT", TABLE_AT - NOTE_AT - 20)
    table = struct.pack("<QII16sQQ", 0x5441545354414430, TABLE_SIZE, 128, b"9.9.9\x1b[31m", arena,
                        cells) + members
    return (head.ljust(NOTE_AT, b"\0") + note).ljust(TABLE_AT, b"\0") + table.ljust(4096, b"\0")


def map_fake_library(folder, content):
    """Maps it in this process as such a library is mapped. The mapping is never removed."""
    path = os.path.join(folder, "libdat-fake.so.1")
    with open(path, "wb") as file:
        file.write(content)
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ)


@contextlib.contextmanager
def liar(action):
    """A child that runs action(folder) and then waits; its process number."""
    with tempfile.TemporaryDirectory() as folder:
        ready, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                kept = action(folder)  # what it has mapped
                os.write(tell, b"x" if kept else b"-")
                signal.pause()
                status = 0
            finally:
                os._exit(status)
        os.close(tell)
        try:
            answer = os.read(ready, 1)
            yield pid if answer == b"x" else None
        finally:
            os.close(ready)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def dat_stat__garbage_table__refused():
    tables = {
        "no arena": fake_library(0x10, 0x10),
        "kernel addresses": fake_library(2**64 - 8, 2**63),
        "not ELF": b"x" * 4096,
        "headers only": fake_library(0, 0)[:64].ljust(4096, b"\xff"),
        "short note": fake_library(0, 0)[:NOTE_AT + 20].ljust(4096, b"\xff"),
        "all ones behind the note": fake_library(0, 0)[:TABLE_AT + 16].ljust(4096, b"\xff"),
    }
    for name, content in tables.items():
        with liar(lambda folder, content=content: map_fake_library(folder, content)) as pid:
            for options in ((), ("--json",), ("--metrics",)):
                status, _, err = stat("--pid", str(pid), *options)
                equal(status, 3, name + err)
                contains(err, f"process {pid}: ")


UFFD_API = struct.pack("<QQQ", 0xAA, 0, 0)


def hang_action(folder):
    """The address of the arena is memory whose first access waits for this process, which stops."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(323 if os.uname().machine == "x86_64" else 282, os.O_CLOEXEC)
    if fd < 0:
        return None
    area = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    api = ctypes.create_string_buffer(UFFD_API)
    register = ctypes.create_string_buffer(struct.pack("<QQQQ", address, 4096, 1, 0))
    if libc.ioctl(fd, ctypes.c_ulong(0xC018AA3F), api) or \
            libc.ioctl(fd, ctypes.c_ulong(0xC020AA00), register):
        return None
    return map_fake_library(folder, fake_library(address, address)), area


def dat_stat__memory_that_blocks__given_up():
    with liar(hang_action) as pid:
        if not pid:
            raise Skip("userfaultfd is not permitted here")
        # the leak checker stops all threads first, and this one cannot be stopped
        options = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        status, _, err = stat("--pid", str(pid), env={"ASAN_OPTIONS": options})
        equal(status, 3, err)
        contains(err, "could not be read within")


def dat_stat__several_block__one_time_limit_for_all():
    count, limit_s = 6, 20  # a limit for each of them would be 30 s
    with contextlib.ExitStack() as stack, traffic() as (_, client):
        pids = [stack.enter_context(liar(hang_action)) for _ in range(count)]
        if None in pids:
            raise Skip("userfaultfd is not permitted here")
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        options = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        start = time.monotonic()
        status, out, err = stat(env={"ASAN_OPTIONS": options})
        assert time.monotonic() - start < limit_s, err
        equal(status, 3, err)
        for pid in pids:
            contains(err, f"process {pid}: could not be read within 5 s")
        assert any(line.split()[0] == str(client.pid) for line in out.splitlines()), out


def dat_stat__watch_memory_that_blocks__no_thread_for_each_look():
    looks = 6
    with liar(hang_action) as pid:
        if not pid:
            raise Skip("userfaultfd is not permitted here")
        with started(DAT_STAT, "-j", "-w0.05") as watcher:
            for _ in range(looks):
                watcher.stdout.readline()
            threads = len(os.listdir(f"/proc/{watcher.pid}/task"))
            # one waits for this process, and perhaps one each for others of the machine
            assert threads < looks, threads
            watcher.kill()


if __name__ == "__main__":
    main(list(globals().items()))
