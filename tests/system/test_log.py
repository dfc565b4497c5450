#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the log says about an open that fails (DAT_DBG_TYPE=1): the cause, in the words of the system."""
import contextlib
import json
import os
import re
import signal
import tempfile
import time

from testing import DAT_INFO, DAT_PING, SOURCE, WAIT_S, contains, environment, equal, main, ping, \
    registry_file, run, started, tool_server

SOFT = "libdat-soft.so.1"
USAGE = 2  # exit status: an option that does not exist
STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z (?:libdat|opendat)\[\d+\]: (?:error: |warning: )?"


def failed_open(name, env):
    """The lines of the log of a failed open, without their stamps."""
    status, _, err = run(DAT_INFO, "--adapter", name, env={"DAT_DBG_TYPE": "1", **env})
    assert status not in (0, USAGE), err
    stamped = [line for line in err.splitlines() if "dat[" in line]
    for line in stamped:
        assert re.match(STAMP, line), line
    return "\n".join(re.sub(STAMP, "", line) for line in stamped)


def open_line(library, data, env=None):
    """The log of the failed open of adapter `a`, whose line in dat.conf has that library and data."""
    line = f'a u1.2 threadsafe default {library} opendat.0.1 "{data}" ""\n'
    with registry_file(line) as (_, override):
        return failed_open("a", {**override, **(env or {})})


# GEN-30
def log__open_without_variable__silent():
    line = f'a u1.2 threadsafe default {SOFT} opendat.0.1 "absent0" ""\n'
    with registry_file(line) as (_, override):
        status, _, err = run(DAT_INFO, "--adapter", "a", env=override)
    assert status not in (0, USAGE), err
    equal([text for text in err.splitlines() if "dat[" in text], [], err)


# GEN-30
def log__value_without_a_meaning__reported_and_the_rest_used():
    cases = (({"DAT_DBG_TYPE": "errors"}, "DAT_DBG_TYPE=errors: not a sum of 1, 2, 4, 8, 16 and 32"),
             ({"DAT_DBG_TYPE": "0x41"}, "DAT_DBG_TYPE=0x41: not a sum of 1, 2, 4, 8, 16 and 32"),
             ({"DAT_DBG_TYPE": "1", "DAT_DBG_DEST": "file.log"},
              "DAT_DBG_DEST=file.log: not 1, 2, 3 or an absolute path; 1 is used"))
    for env, expected in cases:
        text = failed_open("soft-absent0", env)
        contains(text, "environment: " + expected)
        equal(text.count("environment: "), 1, text)
        equal("soft-absent0: interface absent0" in text, env["DAT_DBG_TYPE"] != "errors", text)


# GEN-30
def log__file__lines_of_both_libraries_and_none_on_stderr():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log")
        env = {"DAT_DBG_TYPE": "63", "DAT_DBG_DEST": path}
        status, _, err = run(DAT_INFO, "--adapter", "soft-lo", env=env)
        equal((status, err), (0, ""))
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        for line in lines:
            assert re.match(STAMP, line), line
        contains("\n".join(lines), "soft-lo: opened as")


# GEN-30
def log__no_such_interface__named_with_the_text_of_the_system():
    text = failed_open("soft-absent0", {})
    contains(text, "soft-absent0: no line of dat.conf, registration or built-in has")
    contains(text, "soft-absent0: interface absent0: No such device")
    contains(text, "soft-absent0: not opened: DAT_PROVIDER_NOT_FOUND DAT_NAME_NOT_REGISTERED")
    text = open_line(SOFT, "absent0")
    contains(text, "interface absent0: No such device")
    contains(text, "adapter a, device absent0: cannot be opened: No such device")


# GEN-30
def log__address_of_another_host__named():
    text = open_line(SOFT, "192.0.2.1")
    contains(text, "address 192.0.2.1: no interface of this host has it")
    text = open_line(SOFT, "fe80::ffff:1")
    contains(text, "address fe80::ffff:1: no interface of this host has it")


# GEN-30 IWCM-67
def log__interface_of_an_address__named():
    text = open_line(SOFT, "fe80::1%absent0")
    contains(text, "address fe80::1%absent0: interface absent0: No such device")
    text = open_line(SOFT, "::1%lo")
    contains(text, "address ::1%lo: only a link-local address has an interface")


# GEN-30 CONF-44
def log__built_in_adapter_with_override__the_file_named():
    with registry_file("") as (_, override):
        text = failed_open("soft-lo", override)
    contains(text, "soft-lo: the file that DAT_OVERRIDE names has no such line, and there are no "
             "built-in adapters then")
    assert "is down" not in text, text


# CONF-45 D2-CONF-12
def log__host_name_of_this_host__its_interface_is_used():
    line = 'a u1.2 threadsafe default libdaplcma.so.1 dapl.1.2 "LocalHost 0" ""\n'
    with registry_file(line) as (_, override):
        status, out, err = run(DAT_INFO, "--json", "--adapter", "a",
                               env={**override, "DAT_DBG_TYPE": "1"})
    equal(status, 0, err)
    contains(err, '"LocalHost 0" instead of libdaplcma.so.1')
    assert json.loads(out)["adapters"][0]["ia"]["ia_address_ptr"] in ("127.0.0.1", "::1"), out
    # a word that is no name of this host is not looked up
    contains(open_line(SOFT, "absent.invalid"), "interface absent.invalid: No such device")


# GEN-30
def log__library_that_does_not_load__text_of_dlopen_and_hint():
    text = open_line("libabsent.so.1", "lo")
    contains(text, "a: cannot load: libabsent.so.1: cannot open shared object file")
    assert "libdat-verbs.so.1" not in text, text
    text = open_line("libdaplcma.so.1", "ib0 0")
    contains(text, "a: cannot load: libdaplcma.so.1: cannot open shared object file")
    contains(text, "a: nothing to use instead of libdaplcma.so.1: this host has neither an RDMA "
             "device nor an interface that is up with the name, address or host name ib0")


# GEN-30 CONF-45 CONF-46
def log__library_or_adapter_opened_instead__named():
    line = 'a u1.2 threadsafe default libdaplcma.so.1 dapl.1.2 "lo 0" ""\n'
    with registry_file(line) as (_, override):
        status, _, err = run(DAT_INFO, "--adapter", "a", env={**override, "DAT_DBG_TYPE": "1"})
        equal(status, 0, err)
        assert re.search(r'a: uses \S*libdat-soft\.so\.1 "lo 0" instead of libdaplcma\.so\.1 '
                         r"\(DAT_OPENDAT_REPLACE=off prevents it\)", err), err
        status, _, err = run(DAT_INFO, "--adapter", "b", env={
            **override, "DAT_DBG_TYPE": "1", "DAT_OPENDAT_DEFAULT": "a"})
    equal(status, 0, err)
    contains(err, "b: opens a, by DAT_OPENDAT_DEFAULT")


# GEN-30
def log__setting_that_is_none__named():
    text = open_line(SOFT, "lo colour=red")
    contains(text, 'adapter a, instance data "lo colour=red": "colour=red": there is no such setting')
    text = open_line(SOFT, "lo", env={"DAT_COPY": "fast"})
    contains(text, 'DAT_COPY: "fast" is not auto, map, cma or ring')


# GEN-30
def log__no_descriptor_left__limit_named():
    # the shell lowers the limit so far that the libraries load but an instance cannot be made
    for limit in range(6, 16):
        shell = ("sh", "-c", f'ulimit -n {limit}; exec "$0" "$@"', DAT_INFO)
        line = f'a u1.2 threadsafe default {SOFT} opendat.0.1 "lo" ""\n'
        with registry_file(line) as (_, override):
            _, _, err = run(*shell, "--adapter", "a", env={"DAT_DBG_TYPE": "1", **override})
        if "cannot be opened: Too many open files" in err:
            contains(err, f"the limit is {limit} descriptors")
            return
    raise AssertionError("no limit made the open of the instance fail")


def log__pattern_of_the_page_for_the_system_log__finds_all_libraries():
    page = (SOURCE / "docs" / "observing.md").read_text(encoding="utf-8")
    pattern, = re.findall(r"journalctl .*--grep '(.*)'", page)
    for library in ("libdat", "libdat2", "opendat"):
        assert re.search(pattern, f"{library}[1]: text"), pattern


# GEN-30
def log__wrong_version_or_missing_file__named():
    with registry_file(f'a u2.0 threadsafe default {SOFT} opendat.0.1 "lo" ""\n') as (_, override):
        contains(failed_open("a", override), "a: dat.conf has it for other major versions of the API")
    _, _, err = run(DAT_PING, "--adapter", "a", "--qual", "1",
                    env={"DAT_DBG_TYPE": "1", "DAT_OVERRIDE": "/absent/dat.conf"})
    contains(err, "/absent/dat.conf: cannot be read: No such file or directory")


# ---- connections ----

@contextlib.contextmanager
def logged_server(folder, transport, *options):
    """A server of dat_ping with DAT_DBG_TYPE=17: (process, qualifier, function that reads its log)."""
    path = os.path.join(folder, "server")
    env = {"DAT_DBG_TYPE": "17", "DAT_DBG_DEST": path, "DAT_TRANSPORT": transport}
    with environment(env), tool_server(DAT_PING, *options) as (server, qualifier):
        def lines():
            with open(path, encoding="utf-8") as file:
                return [re.sub(STAMP, "", line) for line in file.read().splitlines()]
        yield server, qualifier, lines


def steps(lines, path):
    """The steps of the only connection, without numbers of objects, processes and ports."""
    text = "\n".join(lines)
    assert path in text, text
    return [re.sub(r"\d+", "N", line) for line in lines]


# GEN-30: the same steps on each path, with names and addresses
def log__connection__steps_on_both_sides_of_each_path():
    for transport, path in (("auto", "over shared memory: process "), ("tcp", "over TCP: peer ")):
        with tempfile.TemporaryDirectory() as folder:
            with logged_server(folder, transport, "--once") as (server, qualifier, lines):
                client = os.path.join(folder, "client")
                status, _, err = ping(qualifier, "--op", "send", "--count", "1", "--size", "1", env={
                    "DAT_DBG_TYPE": "17", "DAT_DBG_DEST": client, "DAT_TRANSPORT": transport})
                equal(status, 0, err)
                server.wait(WAIT_S)
                found = steps(lines(), path)
            with open(client, encoding="utf-8") as file:
                ours = steps([re.sub(STAMP, "", line) for line in file.read().splitlines()], path)
        ends = "ep N: end of the connection with N.N.N.N:N: DAT_CONNECTION_EVENT_DISCONNECTED"
        for step in ("psp N on N: request cr N from N.N.N.N:N", "cr N: accepted by ep N",
                     "ep N: connected with N.N.N.N:N", ends):
            equal(found.count(step), 1, found)
        for step in ("ep N: connects to N.N.N.N:N", "ep N: connected with N.N.N.N:N", ends):
            equal(ours.count(step), 1, ours)


# GEN-30
def log__no_peer_with_peers_user__setting_named_by_the_side_that_asks():
    status, _, err = run(DAT_PING, "--qual", "65535", "--timeout", "20",
                         env={"DAT_DBG_TYPE": "1", "DAT_PEERS": "user"})
    equal(status, 3, err)
    contains(err, "no process of this user listens there, and peers=user excludes all others")
    status, _, err = run(DAT_PING, "--qual", "65535", "--timeout", "20", env={"DAT_DBG_TYPE": "1"})
    equal(status, 3, err)
    contains(err, "one of another user with transport=shm would not be seen")


# GEN-30: the folder of names of another user is as closed as one of another socket_dir
def log__refused_by_peers_user__named_for_sure_by_the_side_that_asks():
    user = {"DAT_PEERS": "user", "DAT_DBG_TYPE": "1"}
    for theirs, ours, reason in (
            ({"DAT_PEERS": "user"}, {"DAT_DBG_TYPE": "1"}, "refused by peers=user: the process"),
            ({}, user, "excluded by peers=user: the process that listens there"),
            ({"DAT_PEERS": "user"}, user, "excluded by peers=user: the process")):
        with tempfile.TemporaryDirectory() as folder:
            with contextlib.ExitStack() as stack:
                with environment({**theirs, "DAT_SOCKET_DIR": folder}):
                    _, qualifier = stack.enter_context(tool_server(DAT_PING))
                status, _, err = ping(qualifier, "--timeout", "20", env=ours)
                equal(status, 3, err)
                contains(err, reason)
            # the claim ends with its service point
            _, _, err = ping(qualifier, "--timeout", "20", env=ours)
            assert "the process that listens there" not in err, err


def unread(port):
    """Has a socket that is connected to that port of this host bytes which nobody has read?"""
    with open("/proc/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in file.read().splitlines()[1:]]
    return any(int(row[2].split(":")[1], 16) == port and int(row[4].split(":")[1], 16)
               for row in rows)


def stop(process):
    """Stops a process. When this returns, none of its threads runs."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)


# GEN-30: the end of TCP in the words of the system
def log__reset_over_tcp__words_of_the_system():
    with tempfile.TemporaryDirectory() as folder, \
            logged_server(folder, "tcp", "--once") as (server, qualifier, lines), \
            environment({"DAT_TRANSPORT": "tcp"}), \
            started(DAT_PING, "--qual", qualifier, "--op", "read", "--size", "4m",
                    "--count", "100000") as client:
        contains(client.stdout.readline(), "adapter")
        deadline = time.monotonic() + WAIT_S
        # a process that dies with bytes unread resets its connection
        stop(client)
        while not unread(int(qualifier)):
            assert time.monotonic() < deadline, "never stopped in the middle of an RDMA Read"
            client.send_signal(signal.SIGCONT)
            time.sleep(0.01)
            stop(client)
        client.kill()
        server.wait(WAIT_S)
        text = "\n".join(lines())
    contains(text, ": the TCP connection ends: DAT_CONNECTION_EVENT_BROKEN, TCP has failed: "
             "Connection reset by peer")


if __name__ == "__main__":
    main(list(globals().items()))
