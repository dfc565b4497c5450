# SPDX-License-Identifier: BSD-2-Clause
"""What the system tests share: running programs of the build folder, and a runner.

A test is a function named <what>__<situation>__<outcome>. The runner prints one line per test in
the form that cmocka uses, so that scripts/count-tests counts them alike.
"""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback

BUILD = pathlib.Path(os.environ["OPENDAT_BUILD"])
SOURCE = pathlib.Path(os.environ["OPENDAT_SOURCE"])
ADAPTER = os.environ.get("DAT_TEST_ADAPTER", "soft-lo")

# long enough for sanitizers and loaded machines; passing tests take far less
WAIT_S = 120

DAT_PING = str(BUILD / "tools" / "dat_ping")
DAT_PERF = str(BUILD / "tools" / "dat_perf")
DAT_INFO = str(BUILD / "tools" / "dat_info")
DAT_STAT = str(BUILD / "tools" / "dat_stat")
DAT_TRACE = str(BUILD / "tools" / "dat_trace")
HELLO_DAT = str(BUILD / "examples" / "hello_dat")
SOAK = str(BUILD / "bench" / "soak")


def is_sanitized():
    """Is this a build with a sanitizer, which uses more memory?"""
    program = pathlib.Path(DAT_PERF).read_bytes()
    return b"__asan_init" in program or b"__tsan_init" in program


class Skip(Exception):
    """The test cannot run here; the text says why."""


def run(*command, env=None, limit_s=WAIT_S):
    """Runs a program to its end: (exit status, stdout, stderr)."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=limit_s, env={**os.environ, **(env or {})}, check=False)
    return done.returncode, done.stdout, done.stderr


@contextlib.contextmanager
def started(*command):
    """A running program; killed and reaped at the end, if it still runs. No sanitizer may complain."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        _, err = process.communicate()
        assert "Sanitizer: " not in err, err


@contextlib.contextmanager
def tool_server(tool, *options):
    """A server of dat_ping or dat_perf and the qualifier that it listens on."""
    with started(tool, "--server", "--adapter", ADAPTER, *options) as server:
        line = server.stdout.readline()
        found = re.search(r"qualifier=(\d+)$", line.strip())
        assert found, f"server said {line!r}, {server.stderr.read()!r}"
        yield server, found.group(1)


def ping_server(*options):
    return tool_server(DAT_PING, *options)


def ping(qualifier, *options, env=None):
    return run(DAT_PING, "--adapter", ADAPTER, "--qual", qualifier, *options, env=env)


def perf_server(*options):
    return tool_server(DAT_PERF, *options)


def perf(qualifier, *options):
    return run(DAT_PERF, "--adapter", ADAPTER, "--qual", qualifier, *options)


@contextlib.contextmanager
def environment(variables):
    """Sets them in this process, and so in those that it starts."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def registry_file(text):
    """An environment with a registry file of that text."""
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write(text)
        file.flush()
        yield file.name, {"DAT_OVERRIDE": file.name}


def equal(found, expected, context=""):
    assert found == expected, f"{found!r} instead of {expected!r} {context}"


def contains(text, part):
    assert part in text, f"no {part!r} in {text!r}"


def shared_names():
    """Names of this user in /dev/shm that can only be ours. Other tests run as other users."""
    names = set()
    with contextlib.suppress(OSError):
        for name in os.listdir("/dev/shm"):
            with contextlib.suppress(FileNotFoundError):
                if (re.search("dat|soft", name, re.I)
                        and os.lstat(f"/dev/shm/{name}").st_uid == os.geteuid()):
                    names.add(name)
    return names


def main(tests):
    """Runs (name, function) pairs; those named on the command line only, if any are."""
    wanted = sys.argv[1:]
    failed = 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for name, test in tests:
        if "__" not in name or not callable(test) or (wanted and name not in wanted):
            continue
        print(f"[ RUN      ] {name}", flush=True)
        start = time.monotonic()
        try:
            test()
            print(f"[       OK ] {name}", flush=True)
        except Skip as why:
            print(f"{why}\n[  SKIPPED ] {name}", flush=True)
        except Exception:  # report any failure and continue with the next test
            failed += 1
            traceback.print_exc(file=sys.stdout)
            print(f"[  FAILED  ] {name}", flush=True)
        if time.monotonic() - start > 10:
            print(f"  took {time.monotonic() - start:.1f} s")
    sys.exit(1 if failed else 0)
