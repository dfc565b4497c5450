#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What memcheck reports of reads.c with the provider that checks (CHECK-READ-01 to -05)."""
import os
import re
import tempfile
import xml.etree.ElementTree as ElementTree

from testing import BUILD, SOURCE, equal, main, run

READS = str(BUILD / "tests" / "system" / "reads")
VALGRIND = os.environ["VALGRIND"]
# the call which made the bytes unknown, by the beginning of the test's name
CALLS = {
    "recv__before": "check_ep_post_recv",
    "recv__behind": "check_evd_",
    "recv__flushed": "check_evd_",
    "rdma_read__before": "check_ep_post_rdma_read",
    "srq__before": "check_srq_post_recv",
}


def functions(stack):
    return [frame.findtext("fn", "") for frame in stack.iter("frame")]


def reports(**settings):
    """The stacks of each report: that of the use, and that of the call that made the bytes unknown."""
    with tempfile.NamedTemporaryFile(suffix=".xml") as file:
        status, out, err = run(VALGRIND, "--xml=yes", "--xml-file=" + file.name,
                               "--track-origins=yes", "--fair-sched=try", READS, env=settings)
        equal(status, 0, out + err)
        return [[functions(stack) for stack in error.iter("stack")]
                for error in ElementTree.parse(file).getroot().iter("error")]


def faults():
    """The tests of the program that read what they must not."""
    text = (SOURCE / "tests/system/reads.c").read_text(encoding="utf-8")
    return set(re.findall(r"rig_test(?:_bare)?\((\w+__reported)\)", text))


def expect_faults(**settings):
    """Each fault is reported where it is, with the call that explains it; nothing else is."""
    seen = set()
    for use, *origin in reports(DAT_CHECK="1", **settings):
        equal(use[0], "look", f"at the top of {use}")
        test = next(name for name in use if name.endswith(("__reported", "__silent")))
        assert test.endswith("__reported"), use
        equal(len(origin), 1, test)
        call = next(call for name, call in CALLS.items() if test.startswith(name))
        assert any(name.startswith(call) for name in origin[0]), (test, origin[0])
        assert test in origin[0], (test, origin[0])
        seen.add(test)
    equal(seen, faults())


def shared_memory__faults__reported_with_their_calls():
    expect_faults()


def tcp__faults__reported_with_their_calls():
    expect_faults(DAT_TRANSPORT="tcp")


if __name__ == "__main__":
    main(list(globals().items()))
