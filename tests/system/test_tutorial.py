#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The programs of docs/tutorial.md: each does what the page says, and the page quotes them rightly."""
import contextlib
import re
import subprocess

from testing import ADAPTER, BUILD, SOURCE, WAIT_S, contains, equal, main, run, started


def program(name):
    return str(BUILD / "examples" / f"tutorial_{name}")


@contextlib.contextmanager
def server(name):
    """A running server and its qualifier."""
    with started(program(name)) as process:
        found = re.fullmatch(r"qualifier (\d+)\n", process.stdout.readline())
        assert found, process.stderr.read()
        yield process, found.group(1)


def hello__text__printed_by_the_server():
    with server("1_hello") as (process, qualifier):
        equal(run(program("1_hello"), qualifier, "hello, world"), (0, "", ""))
        equal(process.wait(WAIT_S), 0)
        equal(process.stdout.read(), "13 bytes: hello, world\n")


def write__text__on_the_board():
    with server("2_write") as (process, qualifier):
        equal(run(program("2_write"), qualifier, "hello, memory"), (0, "", ""))
        equal(process.wait(WAIT_S), 0)
        equal(process.stdout.read(), "on the board: hello, memory\n")


# DTO-91
def write__beyond_the_offer__remote_access_and_broken():
    with server("2_write") as (process, qualifier):
        equal(run(program("2_write"), qualifier), (0, "completion status 6\n", ""))
        equal(process.wait(WAIT_S), 0)
        equal(process.stdout.read(), "event 0x4006\n")


def srq__three_clients__all_texts_read():
    with server("3_srq") as (process, qualifier):
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(started(program("3_srq"), qualifier, text))
                       for text in ("one", "two", "three")]
            for client in clients:
                equal(client.wait(WAIT_S), 0)
        equal(process.wait(WAIT_S), 0)
        equal(sorted(process.stdout.read().splitlines()),
              ['read "one"', 'read "three"', 'read "two"'])


def epoll__clients_then_end_of_input__messages_printed():
    with subprocess.Popen([program("4_epoll")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:
        try:
            qualifier = process.stdout.readline().split()[1]
            for text in ("one", "two"):
                equal(run(program("1_hello"), qualifier, text), (0, "", ""))
                equal(process.stdout.readline(), f"{text}\n")
            process.stdin.close()
            equal(process.wait(WAIT_S), 0)
        finally:
            process.kill()


def hosts__numbers__echoed():
    with started(program("5_hosts"), "-a", ADAPTER, "listen") as process:
        qualifier = process.stdout.readline().split()[1]
        status, out, err = run(program("5_hosts"), "-a", ADAPTER, "-s", "127.0.0.1", "connect", qualifier, "3")
        equal((status, out), (0, "connected\n3 echoes\n"), err)
        equal(process.wait(WAIT_S), 0)


def hosts__server_killed_and_started_again__client_connects_again():
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(started(program("5_hosts"), "listen"))
        qualifier = process.stdout.readline().split()[1]
        client = stack.enter_context(started(program("5_hosts"), "connect", qualifier, "1000000000"))
        equal(client.stdout.readline(), "connected\n")
        process.kill()
        contains(client.stdout.readline(), "connection lost: ")
        equal(client.stdout.readline(), "not connected: nobody listens there\n")
        process = stack.enter_context(started(program("5_hosts"), "listen", qualifier))
        equal(process.stdout.readline(), f"qualifier {qualifier}\n")
        for line in client.stdout:
            if line == "connected\n":
                break
            equal(line, "not connected: nobody listens there\n")


def hosts__unknown_host__named():
    status, _, err = run(program("5_hosts"), "-s", "nosuch.invalid", "connect", "1", "1")
    equal(status, 1)
    contains(err, "nosuch.invalid: ")


def page__code_blocks__stand_in_the_programs():
    page = (SOURCE / "docs" / "tutorial.md").read_text(encoding="utf-8")
    sources = [path.read_text(encoding="utf-8") for path in (SOURCE / "examples").iterdir()]
    quoted = re.findall(r"```c\n(.*?)```", page, re.S)
    assert quoted, "the page quotes nothing"
    lines = {line.strip() for source in sources for line in source.splitlines()}
    for block in quoted:
        for line in block.splitlines():
            assert line.strip() in lines or line.strip() == "...", f"no line {line!r}"
    for name in ("1_hello", "2_write", "3_srq", "4_epoll"):
        contains(page, f"examples/tutorial_{name}.c")


if __name__ == "__main__":
    main(list(globals().items()))
