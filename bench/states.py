# SPDX-License-Identifier: BSD-2-Clause
"""How far apart the two processors are during a measurement.

A hypervisor may move its virtual processors every few seconds. Passing a cache line between two of
them then takes several times as long, or as short, and so does everything that consists of small
messages. A comparison says something only if both sides were measured in the same state. So each
measurement stands between two short ones of a cache line, and a row uses what was measured in one
state. What was measured in turn needs no comparison of states, and says so by its figure "state".
"""
TRIES = 3     # of a measurement during which the state has changed
CHANGE = 1.6  # two times of a cache line that differ by this factor are of two states
MIXED = "mixed"


def measure_steadily(measure, line, before):
    """A sample, with the times of a cache line before and after it as its figure "line"."""
    for _ in range(TRIES):
        sample = measure()
        after = line()
        sample["line"] = [before, after]
        if max(before, after) < CHANGE * min(before, after):
            break
        before = after
    return sample


def limit_of(samples):
    """The time of a cache line that separates the two states of a run; None: there is only one."""
    lines = sorted(line for sample in samples for line in sample.get("line", ()))
    gaps = [(after / before, (after * before) ** 0.5) for before, after in zip(lines, lines[1:])]
    factor, limit = max(gaps, default=(1, None))
    return limit if factor >= CHANGE else None


def state_of(sample, limit):
    """"close", "far", or MIXED; of a run with one state, "same"."""
    if limit is None or "state" in sample:
        return "same"
    far = [line > limit for line in sample["line"]]
    if all(far):
        return "far"
    return MIXED if any(far) else "close"


def comparable(groups, limit):
    """(state, groups): of each group of samples those that were made in one state.

    It is the state in which the group with the fewest samples has the most. If no state has any of
    each group, all samples are used, and the state is MIXED.
    """
    found = {}
    for state in ("same", "close", "far"):
        kept = [[sample for sample in group if state_of(sample, limit) == state]
                for group in groups]
        found[state] = (min(map(len, kept)), kept)
    state = max(found, key=lambda name: found[name][0])
    fewest, kept = found[state]
    return (state, kept) if fewest else (MIXED, groups)
