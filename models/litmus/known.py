# SPDX-License-Identifier: BSD-2-Clause
"""Programs whose outcome is known: the checker must allow and forbid the right ones."""
from check import F, HEAVY, LIGHT, If, R, W, X


def store_buffers(first, second, store="rlx", load="rlx"):
    return ([[W("x", 1, store), first, R("a", "y", load)],
             [W("y", 1, store), second, R("b", "x", load)]],
            {}, lambda r, last: r["a"] == 0 and r["b"] == 0)


def message(store, load):
    return ([[W("x", 1, "rlx"), W("y", 1, store)], [R("a", "y", load), R("b", "x", "rlx")]],
            {}, lambda r, last: r["a"] == 1 and r["b"] == 0)


def load_buffers(depends):
    first = If("a", 1, [W("y", 1, "rlx")]) if depends else W("y", 1, "rlx")
    second = If("b", 1, [W("x", 1, "rlx")]) if depends else W("x", 1, "rlx")
    return ([[R("a", "x", "rlx"), first], [R("b", "y", "rlx"), second]],
            {}, lambda r, last: r["a"] == 1 and r["b"] == 1)


def two_readers(store, load):
    return ([[W("x", 1, store)], [W("y", 1, store)],
             [R("a", "x", load), R("b", "y", load)], [R("c", "y", load), R("d", "x", load)]],
            {}, lambda r, last: (r["a"], r["b"], r["c"], r["d"]) == (1, 0, 1, 0))


def same_location():
    return ([[W("x", 1, "rlx")], [R("a", "x", "rlx"), R("b", "x", "rlx")]],
            {}, lambda r, last: r["a"] == 1 and r["b"] == 0)


def exchanges():
    return ([[X("a", "x", 1, "rlx")], [X("b", "x", 2, "rlx")]],
            {}, lambda r, last: r["a"] == 0 and r["b"] == 0)


PLAIN = If("none", 1, [])
# name, program, whether the outcome is allowed
KNOWN = [
    ("SB", store_buffers(PLAIN, PLAIN), True),
    ("SB-release", store_buffers(PLAIN, PLAIN, "rel", "acq"), True),
    ("SB-sc", store_buffers(PLAIN, PLAIN, "sc", "sc"), False),
    ("SB-fences", store_buffers(F, F), False),
    ("SB-one-fence", store_buffers(F, PLAIN), True),
    ("SB-heavy", store_buffers(LIGHT, HEAVY), False),
    ("SB-heavy-no-light", store_buffers(PLAIN, HEAVY), True),
    ("SB-light", store_buffers(LIGHT, LIGHT), True),
    ("MP", message("rlx", "rlx"), True),
    ("MP-release", message("rel", "acq"), False),
    ("MP-release-only", message("rel", "rlx"), True),
    ("LB", load_buffers(False), True),
    ("LB-control", load_buffers(True), False),
    ("IRIW", two_readers("rel", "acq"), True),
    ("IRIW-sc", two_readers("sc", "sc"), False),
    ("CoRR", same_location(), False),
    ("RMW", exchanges(), False),
]
