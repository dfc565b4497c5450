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
MATRIX = str(BUILD / "bench" / "matrix")
MPI = str(BUILD / "bench" / "mpi")
RAW = str(BUILD / "bench" / "raw")
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
        assert row["ours"] is not None and row["ours"] >= 0, row
        # these comparisons need no other library
        if row["goal"] and "UCX" not in row["peer"] and "libfabric" not in row["peer"]:
            assert row["is_met"] is not None, row
    for name, rounds in report["samples"].items():
        equal(len(rounds), 1, name)
    auto, = [row for row in report["rows"]
             if row["title"] == "auto: RDMA write, target polls, latency: 8 B"]
    matrix, = report["samples"]["matrix write"]
    equal(auto["ours"], matrix["write 8 polls latency auto"])
    equal(auto["theirs"], min(matrix[f"write 8 polls latency {path}"] for path in ("cma", "ring")))
    contains(out, "| RDMA write, target polls, latency |")
    equal(shared_names() - before, set())


def compare__only__the_rows_with_that_title():
    report, _, err = quick("--only", "ring: RDMA write 8 B, to its completion, both")
    equal(err, "")
    row, = report["rows"]
    eventfd, = report["samples"]["raw eventfd"]
    equal(row["theirs"], 2 * eventfd["p50"])
    equal(row["ours"], report["samples"]["ring write 8, asleep"][0]["p50"])


def compare__rows__that_part_alone():
    report, _, err = quick("--rows", "registration")
    equal(err, "")
    equal([row["title"] for row in report["rows"] if "regist" not in row["title"]
           and "the same" not in row["title"]], [])


def compare__unknown_part__status_2():
    equal(run(COMPARE, "--rows", "everything", str(BUILD))[0], 2)


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


def comparable__measured_in_turn__no_state():
    near, far, turned = at(0.05, 0.05), at(0.25, 0.3), {"state": "same"}
    limit = states.limit_of([near, far, turned])
    equal(states.state_of(turned, limit), "same")
    equal(states.comparable([[turned, turned], [turned]], limit),
          ("same", [[turned, turned], [turned]]))


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


# COMPAT-46 COMPAT-47
def matrix__every_cell__figures_of_each_copy_path():
    before = shared_names()
    # three operations, three states of the target, two figures
    for options, count in (((), 3 * 3 * 2), (("-s", "-o", "write"), 3 * 2)):
        status, out, err = run(MATRIX, "-j", "-r", "1", "-m", "1", "-b", "4k", *options)
        equal((status, err), (0, ""), out)
        cells = [json.loads(line) for line in out.splitlines()]
        equal(len(cells), count, out)
        for cell in cells:
            assert all(cell[mode] > 0 for mode in ("auto", "map", "cma", "ring", "ratio")), cell
            assert options or cell["best"] != "map", cell
    equal(shared_names() - before, set())


def matrix__one_cell__one_line():
    status, out, err = run(MATRIX, "-r", "2", "-m", "1", "-b", "8", "-o", "write", "-t", "polls",
                           "-f", "latency")
    equal((status, err), (0, ""), out)
    head, line = out.splitlines()
    equal(head.split()[4:8], ["auto", "map", "cma", "ring"])
    equal(line.split()[:4], ["write", "8", "polls", "latency"])


def matrix__bad_usage__status_2():
    for options in (("8",), ("-b", "0"), ("-b", "2m"), ("-b", "8,"), ("-o", "sends"), ("-t", ""),
                    ("-r", "0"), ("-r", "33"), ("-m", "0"), ("-x",)):
        equal(run(MATRIX, *options)[0], 2, options)


# COMPAT-02 COMPAT-03 COMPAT-46 COMPAT-47
def mpi__two_processes__every_byte_verified():
    before = shared_names()
    overs = ("auto", "map", "cma", "ring", "tcp", "memory", "sockets")
    status, out, err = run(MPI, "-c", "-j", "-r", "1", "-m", "1", "-w", "0,10", "-b", "1,300001")
    equal((status, err), (0, ""), out)
    results = [json.loads(line) for line in out.splitlines()]
    equal([result for result in results if result["wrong"]], [])
    for test, sizes, times in (("pingpong", 2, 1), ("stream", 2, 1), ("compute", 1, 2)):
        found = [result for result in results if result["test"] == test]
        equal(len(found), sizes * times * (len(overs) - (test == "compute")), test)
        figure = "per_s" if test == "stream" else "p50"
        equal([result for result in found if result[figure] <= 0], [])
    equal({result["over"] for result in results}, set(overs))
    equal(shared_names() - before, set())


# COMPAT-02 COMPAT-03 COMPAT-47
def mpi__eight_processes__every_byte_verified():
    before = shared_names()
    for over in ("auto", "map", "ring"):
        status, out, err = run(MPI, "-c", "-j", "-p", "8", "-o", over, "-r", "1", "-m", "1", "-b",
                               "9,8193")
        equal((status, err), (0, ""), out)
        for line in out.splitlines():
            result = json.loads(line)
            equal((result["test"], result["over"], result["processes"], result["wrong"]),
                  ("alltoall", over, 8, 0))
            assert result["per_s"] > 0, out
    equal(shared_names() - before, set())


def mpi__one_process_dies__the_others_are_ended():
    with started(MPI, "-t", "compute", "-o", "auto,memory", "-b", "8", "-w", "1000000",
                 "-m", "1000") as parent:
        children = []
        while len(children) < 4:
            equal(parent.poll(), None)
            children = children_of(parent.pid)
        os.kill(children[1], signal.SIGKILL)
        equal(parent.wait(WAIT_S), 3)
    equal([pid for pid in children if os.path.exists(f"/proc/{pid}")], [])


def mpi__bad_usage__status_2():
    for options in (("8",), ("-b", "0"), ("-b", "5m"), ("-o", "uct"), ("-t", "bcast"), ("-p", "1"),
                    ("-p", "17"), ("-w", "2m"), ("-r", "0"), ("-m", "0"), ("-x",)):
        equal(run(MPI, *options)[0], 2, options)


def raw__every_test__figures():
    cpus = [str(cpu) for cpu in sorted(os.sched_getaffinity(0))[:2]]
    bandwidths = ("memcpy", "stream")
    for test in ("line", "writev", "eventfd", "futex", "syscall", "tcp", *bandwidths):
        status, out, err = run(RAW, test, "8", "20", cpus[0], cpus[-1])
        equal(status, 0, err)
        assert json.loads(out)["mb_per_s" if test in bandwidths else "p50"] > 0, out


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
