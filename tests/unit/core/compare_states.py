#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares the endpoint's state machine in the code with the chapter of the specification.

    compare_states.py PRINT_STATES ENDPOINTS.md

Verifies EP-STATE-16 to EP-STATE-27, EP-STATE-29, EP-STATE-31 to EP-STATE-42, EP-STATE-44,
EP-STATE-45, EP-STATE-49 and EP-STATE-80 (the table has each transition with its event, and no
others), and the matrix of legal calls: EP-STATE-56 to EP-STATE-65.
"""
import os
import re
import shlex
import subprocess
import sys

EVENTS = {
    "ESTABLISHED": 0x4001, "PEER_REJECTED": 0x4002, "NON_PEER_REJECTED": 0x4003,
    "ACCEPT_COMPLETION_ERROR": 0x4004, "DISCONNECTED": 0x4005, "BROKEN": 0x4006,
    "TIMED_OUT": 0x4007, "UNREACHABLE": 0x4008,
}
STATES = {
    "UNCONNECTED", "RESERVED", "PASSIVE_CONNECTION_PENDING", "ACTIVE_CONNECTION_PENDING",
    "TENTATIVE_CONNECTION_PENDING", "CONNECTED", "DISCONNECT_PENDING", "DISCONNECTED",
    "COMPLETION_PENDING",
}
# first words of each row of the specification's matrix, and the name of the row in the code
ROWS = {
    "connect, dup_connect": "connect", "rsp_create with": "rsp_create",
    "dup_connect with": "dup_connect source", "cr_accept naming": "cr_accept naming it",
    "cr_accept, EP taken": "cr_accept by the CR", "disconnect abrupt": "disconnect abrupt",
    "disconnect graceful": "disconnect graceful", "reset": "reset", "free": "free",
    "post_recv": "post_recv", "post_send": "post request", "modify PZ": "modify PZ",
    "modify EVDs": "modify EVDs, attributes", "modify named": "modify named attributes",
}
LETTERS = {"ok": "o", "nop": "n", "fl": "f", "-": "-", "n/a": "-"}


def wanted(text):
    """Returns the transitions (from, to, event) and the matrix rows of the specification."""
    transitions, matrix = set(), {}
    for line in text.splitlines():
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if len(cells) == 3 and re.match(r"EP-STATE-\d+$", cells[0]):
            m = re.match(r"([A-Z_]+) -> ([A-Z_]+):", cells[1])
            if m and {m[1], m[2]} <= STATES:
                event = re.search(r"DAT_CONNECTION_EVENT_([A-Z_]+)", cells[2])
                # EP-STATE-38 has two steps: DISCONNECT_PENDING, then DISCONNECTED
                if cells[0] == "EP-STATE-38":
                    transitions.add(("CONNECTED", "DISCONNECT_PENDING", 0))
                transitions.add((m[1], m[2], EVENTS[event[1]] if event else 0))
        elif len(cells) == 10 and set(cells[1:]) <= set(LETTERS):
            name = next((ROWS[k] for k in ROWS if cells[0].startswith(k)), None)
            if name:
                matrix[name] = "".join(LETTERS[c] for c in cells[1:])
    return transitions, matrix


def found(text):
    """Returns the same of the code, as print_states prints it."""
    transitions, matrix = set(), {}
    for line in text.splitlines():
        m = re.match(r"\S+: DAT_EP_STATE_(\S+) -> DAT_EP_STATE_(\S+) 0x([0-9a-f]+)$", line)
        if m:
            transitions.add((m[1], m[2], int(m[3], 16)))
        else:
            verdicts, _, name = line.partition(" ")
            matrix[name] = verdicts
    return transitions, matrix


def main():
    program, page = sys.argv[1:]
    # of a build for another machine
    wrapper = shlex.split(os.environ.get("MESON_EXE_WRAPPER", ""))
    printed = subprocess.run([*wrapper, program], check=True, capture_output=True, text=True).stdout
    want, have = wanted(open(page, encoding="utf-8").read()), found(printed)
    bad = 0
    for t in sorted(want[0] - have[0]):
        print("the code lacks the transition", t)
        bad += 1
    for t in sorted(have[0] - want[0]):
        print("the specification lacks the transition", t)
        bad += 1
    for name in sorted(set(ROWS.values())):
        if want[1].get(name) != have[1].get(name):
            print(f"{name}: specification {want[1].get(name)}, code {have[1].get(name)}")
            bad += 1
    print(f"{len(want[0])} transitions and {len(want[1])} calls compared, {bad} differ")
    return 1 if bad or len(want[0]) < 20 or len(want[1]) < 14 else 0


if __name__ == "__main__":
    sys.exit(main())
