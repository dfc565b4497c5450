#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
#
# Runs conformance programs one after the other (inside the virtual machine, or anywhere) and
# compares what fails with the list of tests that a device cannot pass:
#
#   run_suite.py --build FOLDER --expected FILE --link LINK [--logs FOLDER] [NAME...]
#
# NAME is a program without its prefix, "evd_wait". A line of the expected file is
#   LINK PROGRAM TEST REASON...
# LINK is rxe, siw, rxe-window or rxe-fast (the lines of rxe count for both too), or any; several
# files may be given. TEST may
# have * in it. A TEST with a - in front is not run, because it takes long to fail; - alone is the
# whole program. The last line is `N passed, N failed, N skipped, N as expected`. The status is 0
# when every failed test is listed. A listed test that passes is reported, and is no failure,
# because some depend on timing.

import argparse
import concurrent.futures
import fnmatch
import os
import re
import subprocess
import sys
import time

# variables of the environment that are passed on
KEPT = ("DAT_TEST_ADAPTER", "DAT_DBG_TYPE", "DAT_CHECK", "DAT_RMR_BIND", "DAT_CANCELLATION",
        "DAT_TRACE", "DAT_TRACE_FILE", "DAT_TRACE_WIRE", "DAT_TRANSPORT")

# ERROR is what cmocka says of a test whose teardown failed too
RESULT = re.compile(r"\[\s+(OK|FAILED|SKIPPED|ERROR)\s+\]\s+([A-Za-z0-9_]+)")


def read_expected(path, link):
    """(program, test pattern) -> reason, for that link."""
    expected = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            words = line.split(None, 3)
            if not words or words[0].startswith("#"):
                continue
            if len(words) != 4:
                sys.exit(f"{path}: no reason in: {line.strip()}")
            if words[0] in (link, link.split("-")[0], "any"):
                expected[words[1], words[2]] = words[3].strip()
    return expected


def reason_of(expected, program, test):
    for (name, pattern), reason in expected.items():
        if name == program and fnmatch.fnmatchcase(test, pattern):
            return reason
    return None


def not_run(expected, program):
    """The patterns of that program's tests that are left out."""
    return [test[1:] for name, test in expected if name == program and test[0] == "-"]


def run(path, environment, limit):
    """Results of one program by test, how it ended, and its output."""
    try:
        done = subprocess.run([path], env=environment, stdin=subprocess.DEVNULL, timeout=limit,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        status = done.returncode
        text, end = done.stdout, "" if status >= 0 else f"signal {-status}"
    except subprocess.TimeoutExpired as expired:
        status, text, end = 0, expired.stdout or b"", f"no end within {limit} s"
    text = text.decode(errors="replace")
    results = {}
    started = re.findall(r"\[ RUN\s+\] ([A-Za-z0-9_]+)", text)
    for verdict, name in RESULT.findall(text):
        if name in started and results.get(name) != "FAILED":
            results[name] = "FAILED" if verdict == "ERROR" else verdict
    unfinished = [name for name in started if name not in results]
    # a sanitizer has found something, perhaps as the program ended
    if status > 0 and not unfinished and "FAILED" not in results.values():
        end = f"status {status}"
    if end and not unfinished:
        unfinished = ["-"]
    results.update((name, "FAILED") for name in unfinished)
    return results, end, text


def report(name, results, end, took, expected, count):
    bad = []
    for test, verdict in results.items():
        reason = reason_of(expected, name, test)
        if verdict == "FAILED" and reason:
            count["expected"] += 1
            continue
        if verdict == "OK" and reason:
            print(f"note: {name} {test} passes although listed", flush=True)
        count[verdict] += 1
        if verdict == "FAILED":
            bad.append(test)
    if not results and not not_run(expected, name):
        count["FAILED"] += 1
        bad.append("no test ran")
    print(f"{name}: {'FAILED: ' + ' '.join(bad) if bad else 'ok'}"
          f"{' (' + end + ')' if end else ''} [{took:.1f} s]", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--expected", required=True, action="append")
    parser.add_argument("--link", required=True)
    parser.add_argument("--logs")
    parser.add_argument("--timeout", type=int, default=120, help="seconds for each program")
    parser.add_argument("--jobs", type=int, default=2, help="programs at once")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    folder = os.path.join(args.build, "tests/conformance")
    names = args.names or sorted(
        name[len("conformance_test_"):] for name in os.listdir(folder)
        if name.startswith("conformance_test_") and not name.endswith(".p"))
    expected = {}
    for path in args.expected:
        expected.update(read_expected(path, args.link))
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith("DAT_") or key in KEPT}
    environment["LD_LIBRARY_PATH"] = ":".join(
        os.path.join(args.build, "src", part) for part in ("registry", "soft", "verbs", "check"))
    count = {"OK": 0, "FAILED": 0, "SKIPPED": 0, "expected": 0}
    chosen = []
    for name in names:
        if (name, "-") in expected:
            print(f"{name}: not run: {expected[name, '-']}", flush=True)
            count["expected"] += 1
        else:
            chosen.append(name)

    def work(name):
        begin = time.monotonic()
        skipped = not_run(expected, name)
        own = dict(environment)
        if skipped:
            own["LD_PRELOAD"] = os.path.join(args.build, "tests/vm/libskip.so")
            own["SKIP_TESTS"] = " ".join(skipped)
        results, end, text = run(os.path.join(folder, "conformance_test_" + name), own,
                                 args.timeout)
        return name, results, end, text, time.monotonic() - begin

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for name, results, end, text, took in pool.map(work, chosen):
            count["expected"] += len(not_run(expected, name))
            report(name, results, end, took, expected, count)
            if args.logs:
                path = os.path.join(args.logs, name + ".log")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
    print(f"{count['OK']} passed, {count['FAILED']} failed, {count['SKIPPED']} skipped, "
          f"{count['expected']} as expected")
    return 1 if count["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())
