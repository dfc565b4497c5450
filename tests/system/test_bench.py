#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The programs of bench/ at tiny counts: each measurement must run; results are not checked."""
import errno
import json
import os
import pathlib
import signal
import sys
import tempfile

from testing import (ADAPTER, BUILD, SOURCE, Skip, WAIT_S, contains, equal, main, run, shared_names,
                     started)

sys.path.insert(0, str(SOURCE / "bench"))
# pylint: disable=wrong-import-position
import states  # noqa: E402

COMPARE = str(SOURCE / "bench" / "compare")
ALLTOALL = str(BUILD / "bench" / "alltoall")
RAW = str(BUILD / "bench" / "raw")
TURNS = str(BUILD / "bench" / "turns")
REFUSE = str(BUILD / "bench" / "refuse")
# of one trial, which starts some 200 processes: half a minute with the thread sanitizer alone on the
# machine, more than two minutes beside its other tests
TRIAL_S = 600
# queries the unmapped address 0; the exit status is errno
QUERY = """
import array, fcntl, sys
query = array.array("Q", [104] + [0] * 12)
try:
    with open("/proc/self/maps") as maps:
        fcntl.ioctl(maps, 0xC0686611, query)
except OSError as error:
    sys.exit(error.errno)
"""


def children_of(pid):
    text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(word) for word in text.split()]


def quick(*options):
    """(report, stdout, stderr) of a trial that needs no optional program."""
    if len(os.sched_getaffinity(0)) < 2:
        raise Skip("two processors are needed")
    with tempfile.TemporaryDirectory() as folder:
        status, out, err = run(COMPARE, "--quick", "--no-peers", "--no-instructions", "--output",
                               folder, *options, str(BUILD), limit_s=TRIAL_S)
        equal(status, 0, err)
        report = json.loads((pathlib.Path(folder) / "results.json").read_text(encoding="utf-8"))
        contains((pathlib.Path(folder) / "table.md").read_text(encoding="utf-8"), "Commands")
    return report, out, err


# COMPAT-46 COMPAT-47
def compare__quick__every_measurement_of_ours_comes_about():
    before = shared_names()
    report, out, err = quick()
    equal(err, "", out)
    assert len(report["rows"]) > 40, out
    for row in report["rows"]:
        # whether the processors are close together is not ours to say
        if "close together" not in row["title"]:
            assert row["ours"] is not None and row["ours"] >= 0, row
        # these comparisons need no other library
        if row["goal"] and "UCX" not in row["peer"] and "libfabric" not in row["peer"]:
            assert row["is_met"] is not None, row
    for name, rounds in report["samples"].items():
        equal(len(rounds), 1, name)
    equal(shared_names() - before, set())


def compare__only__the_rows_with_that_title():
    report, _, err = quick("--only", "ring: RDMA write 8 B, to its completion, both")
    equal(err, "")
    row, = report["rows"]
    eventfd, = report["samples"]["raw eventfd"]
    equal(row["theirs"], 2 * eventfd["p50"])
    equal(row["ours"], report["samples"]["ring write 8, asleep"][0]["p50"])


def at(*lines):
    """A sample with the times of a cache line before and after it."""
    return {"line": list(lines)}


def limit_of__times_of_a_run__between_the_states():
    near, far = at(0.05, 0.07), at(0.25, 0.27)
    limit = states.limit_of([near, far, at(0.06, 0.26)])
    assert 0.07 < limit < 0.25, limit
    equal([states.state_of(sample, limit) for sample in (near, far, at(0.06, 0.26), at(0.26, 0.06))],
          ["close", "far", "mixed", "mixed"])
    equal(states.limit_of([near, at(0.08, 0.1)]), None)
    equal(states.limit_of([]), None)
    equal(states.state_of(far, None), "same")


def comparable__two_states__the_one_that_both_sides_share():
    near, far, changed = at(0.05, 0.05), at(0.25, 0.25), at(0.05, 0.25)
    equal(states.comparable([[near, near, far], [far, near, near]], 0.1),
          ("close", [[near, near], [near, near]]))
    equal(states.comparable([[near, far, far], [far, near, near]], 0.1),
          ("close", [[near], [near, near]]))
    equal(states.comparable([[near, near, far], [far, far, changed]], 0.1),
          ("far", [[far], [far, far]]))
    equal(states.comparable([[near], [changed, far]], 0.1), ("mixed", [[near], [changed, far]]))
    equal(states.comparable([[near, far]], None), ("same", [[near, far]]))


def comparable__state_is_known__no_lines_needed():
    known, far = {"state": "close"}, at(0.25, 0.3)
    equal(states.limit_of([known, far]), None)
    equal([states.state_of(known, limit) for limit in (None, 0.1)], ["close", "close"])
    equal(states.comparable([[known, known], [known]], 0.1), ("close", [[known, known], [known]]))


def measure_steadily__state_changes__measured_again():
    lines = iter([0.05, 0.25, 0.25])
    numbers = iter(range(9))
    equal(states.measure_steadily(lambda: {"p50": next(numbers)}, lambda: next(lines), next(lines)),
          {"p50": 1, "line": [0.25, 0.25]})
    lines = iter([0.05, 0.25] * 9)
    equal(states.measure_steadily(lambda: {"p50": next(numbers)}, lambda: next(lines),
                                  next(lines))["p50"], 1 + states.TRIES)


def compare__no_build_folder__status_2():
    equal(run(COMPARE)[0], 2)


# COMPAT-02 COMPAT-03 COMPAT-47
def alltoall__every_copy_path__every_byte_verified():
    before = shared_names()
    for copy, memory in (("map", ("-s",)), ("cma", ()), ("ring", ()), ("auto", ("-s",))):
        for size, rounds, messages in (("1", "40", 16), ("9", "5", 16), ("4096", "3", 16),
                                       ("4097", "3", 1), ("300001", "2", 1)):
            status, out, err = run(ALLTOALL, "-c", "-a", ADAPTER, *memory, size, rounds,
                                   env={"DAT_COPY": copy})
            equal((status, err), (0, ""), (copy, size, out))
            result = json.loads(out)
            equal((result["wrong"], result["messages"]), (0, 8 * 7 * int(rounds) * messages))
            assert result["per_s"] > 0, out
    equal(shared_names() - before, set())


def alltoall__one_process_dies__the_others_are_ended():
    with started(ALLTOALL, "-p", "4", "-a", ADAPTER, "8", "10000000") as parent:
        children = []
        while len(children) < 4:
            equal(parent.poll(), None)
            children = children_of(parent.pid)
        os.kill(children[1], signal.SIGKILL)
        equal(parent.wait(WAIT_S), 3)
    equal([pid for pid in children if os.path.exists(f"/proc/{pid}")], [])


def alltoall__bad_usage__status_2():
    for options in ((), ("8",), ("0", "1"), ("17m", "1"), ("8", "0"), ("-p", "1", "8", "1"),
                    ("-p", "17", "8", "1"), ("-x", "8", "1")):
        equal(run(ALLTOALL, *options)[0], 2, options)


def raw__every_test__figures():
    cpus = [str(cpu) for cpu in sorted(os.sched_getaffinity(0))[:2]]
    bandwidths = ("memcpy", "stream")
    for test in ("line", "writev", "eventfd", "futex", "syscall", "tcp", *bandwidths):
        status, out, err = run(RAW, test, "8", "20", cpus[0], cpus[-1])
        equal(status, 0, err)
        assert json.loads(out)["mb_per_s" if test in bandwidths else "p50"] > 0, out


def turns__a_second__as_many_times_of_both():
    cpus = [str(cpu) for cpu in sorted(os.sched_getaffinity(0))[:2]]
    if not os.path.exists(TURNS) or len(cpus) < 2:
        return
    status, out, err = run(TURNS, "1", "10", *cpus)
    equal(status, 0, err)
    times = json.loads(out)
    equal(sorted(times), ["dat", "ucx"])
    equal(len(times["dat"]), len(times["ucx"]))
    equal([time for time in times["dat"] + times["ucx"] if time <= 0], [])


def turns__bad_usage__status_2():
    if os.path.exists(TURNS):
        equal(run(TURNS)[0], 2)
        equal(run(TURNS, "1", "0", "0", "1")[0], 2)
        equal(run(TURNS, "1", "1", "0", "0")[0], 2)


def turns__one_side_fails__the_other_ends():
    cpu = str(min(os.sched_getaffinity(0)))
    if os.path.exists(TURNS):
        for cpus in (("999", cpu), (cpu, "999")):
            equal(run(TURNS, "1", "10", *cpus)[0], 3, cpus)


def refuse__query_of_a_mapping__as_an_old_kernel_answers():
    # ENOENT: the kernel supports the query; ENOTTY: it does not, or a sandbox forbids it
    free = run(sys.executable, "-c", QUERY)[0]
    assert free in (errno.ENOENT, errno.ENOTTY), free
    equal(run(REFUSE, sys.executable, "-c", QUERY)[0], errno.ENOTTY)


def refuse__no_program__says_so():
    equal(run(REFUSE)[0], 2)
    status, _, err = run(REFUSE, "/nowhere/program")
    equal(status, 3)
    contains(err, "/nowhere/program")


if __name__ == "__main__":
    main(list(globals().items()))
