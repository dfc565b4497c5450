# SPDX-License-Identifier: BSD-2-Clause
"""Enumerates all executions of a small program that the C11 memory model allows.

The model is RC11 (Lahav, Vafeiadis, Kang, Hur, Dreyer: Repairing sequential consistency in C/C++11)
with two changes. A load may be reordered with a later store, as on ARM, unless the store depends on
the load. And a release sequence contains read-modify-writes only, as in C20. Both allow more.

A program is a list of threads, a thread a list of operations:

  W(location, value, order)         store
  R(register, location, order)      load
  X(register, location, value, order)  exchange
  F                                 sequentially consistent fence
  LIGHT                             light fence: keeps the compiler from reordering
  HEAVY                             heavy fence: a fence in each other thread, between two fences
  If(register, value, [operations]) if the register has that value

An order is one of rlx, acq, rel, sc. The heavy fence falls between any two operations of another
thread, in an order in which a compiler may have placed them.
"""
import collections
import itertools

F, LIGHT, HEAVY = ("F",), ("LIGHT",), ("HEAVY",)
RELEASE, ACQUIRE = ("rel", "sc"), ("acq", "sc")


def W(loc, value, order):
    return "W", loc, value, order


def R(register, loc, order):
    return "R", register, loc, order


def X(register, loc, value, order):
    return "X", register, loc, value, order


def If(register, value, body):
    return "IF", register, value, body


class Event:
    """One access or fence. `reads` and `writes` are values, or None."""

    def __init__(self, kind, thread, loc=None, order="sc", reads=None, writes=None, control=()):
        self.kind, self.thread, self.loc, self.order = kind, thread, loc, order
        self.reads, self.writes, self.control = reads, writes, control


def values(threads):
    """The values that each location may have."""
    found = collections.defaultdict(lambda: {0})

    def visit(ops):
        for op in ops:
            if op[0] == "W":
                found[op[1]].add(op[2])
            elif op[0] == "X":
                found[op[2]].add(op[3])
            elif op[0] == "IF":
                visit(op[3])
    for ops in threads:
        visit(ops)
    return found


def traces(ops, thread, domain, regs=None, control=()):
    """All (events, registers) of a thread, whatever its loads return."""
    regs = regs or {}
    if not ops:
        yield [], regs
        return
    op, rest = ops[0], ops[1:]
    if op[0] == "IF":
        body = op[3] if regs.get(op[1]) == op[2] else []
        for head, regs1 in traces(body, thread, domain, regs, control + (op[1],)):
            for tail, regs2 in traces(rest, thread, domain, regs1, control):
                yield head + tail, regs2
        return
    if op[0] in ("R", "X"):
        for value in domain[op[2]]:
            event = Event(op[0], thread, op[2], op[-1], value, op[3] if op[0] == "X" else None,
                          control)
            event.register = op[1]
            for tail, regs1 in traces(rest, thread, domain, {**regs, op[1]: value}, control):
                yield [event] + tail, regs1
        return
    event = (Event("W", thread, op[1], op[3], writes=op[2], control=control) if op[0] == "W"
             else Event(op[0], thread, control=control))
    for tail, regs1 in traces(rest, thread, domain, regs, control):
        yield [event] + tail, regs1


def is_kept(events, i, j):
    """Does a compiler keep these two events of a thread in order?"""
    a, b = events[i], events[j]
    return (any(e.loc is None for e in events[i:j + 1]) or a.loc == b.loc or
            (a.reads is not None and (a.order in ACQUIRE or a.register in b.control)) or
            (b.writes is not None and b.order in RELEASE))


def cuts(events):
    """The sets of events of a thread that may be before a fence that another thread causes."""
    for size in range(len(events) + 1):
        for before in itertools.combinations(range(len(events)), size):
            if all(i in before for j in before for i in range(j) if is_kept(events, i, j)):
                yield before


def closure(pairs):
    after = collections.defaultdict(set)
    for a, b in pairs:
        after[a].add(b)
    done = set()
    for start in list(after):
        todo, seen = list(after[start]), set()
        while todo:
            node = todo.pop()
            if node not in seen:
                seen.add(node)
                todo.extend(after.get(node, ()))
        done.update((start, node) for node in seen)
    return done


def join(*relations):
    result = relations[0]
    for right in relations[1:]:
        after = collections.defaultdict(set)
        for a, b in right:
            after[a].add(b)
        result = {(a, c) for a, b in result for c in after[b]}
    return result


def is_cyclic(pairs):
    return any(a == b for a, b in closure(pairs))


def synchronizes(events, sb, rf, rmw):
    """Release operations and fences, and the acquire operations and fences that they order."""
    reach = collections.defaultdict(set)
    for w in (i for i, e in enumerate(events) if e.writes is not None):
        todo = [w]
        while todo:
            for a, b in rf:
                if a == todo[-1] and b in rmw and b not in reach[w]:
                    todo.insert(0, b)
                if a == todo[-1]:
                    reach[w].add(b)
            todo.pop()
    fences = {i for i, e in enumerate(events) if e.kind == "F"}
    for w, readers in reach.items():
        sources_of = {a for a, b in sb if b == w and a in fences}
        if events[w].order in RELEASE:
            sources_of.add(w)
        for r in readers:
            targets = {b for a, b in sb if a == r and b in fences}
            if events[r].order in ACQUIRE:
                targets.add(r)
            yield from itertools.product(sources_of, targets)


def is_allowed(events, sb, rf, mo, heavy):
    """The axioms of RC11, and that no value comes from a store that depends on it."""
    writer = {r: w for w, r in rf}
    rmw = {i for i, e in enumerate(events) if e.kind == "X"}
    fr = {(r, b) for r, w in writer.items() for a, b in mo if a == w and b != r}
    if any((r, x) in fr and (x, r) in mo for r in rmw for x in range(len(events))):
        return False
    hb = closure(sb | heavy | set(synchronizes(events, sb, rf, rmw)))
    eco = closure(rf | mo | fr)
    if any(a == b or (b, a) in eco for a, b in hb):
        return False
    depends = {(a, b) for a, b in sb if events[a].reads is not None and
               events[a].register in events[b].control and events[b].writes is not None}
    if is_cyclic(depends | rf):
        return False
    sc = {i for i, e in enumerate(events) if e.order == "sc" and e.loc is not None}
    fences = {i for i, e in enumerate(events) if e.kind == "F"}
    same = {(a, b) for a, b in hb if events[a].loc and events[a].loc == events[b].loc}
    other = {(a, b) for a, b in sb if not events[a].loc or events[a].loc != events[b].loc}
    scb = sb | join(other, hb, other) | same | mo | fr
    one = {(i, i) for i in sc}
    left = one | {(i, i) for i in fences} | {(a, b) for a, b in hb if a in fences}
    right = one | {(i, i) for i in fences} | {(a, b) for a, b in hb if b in fences}
    psc = join(left, scb, right)
    psc |= {(a, b) for a, b in hb | join(hb, eco, hb) if a in fences and b in fences}
    return not is_cyclic(psc)


def with_heavy(threads):
    """All ways to place the fences of heavy fences: (events, sb, edges of the heavy fences)."""
    callers = [(t, i) for t, events in enumerate(threads)
               for i, e in enumerate(events) if e.kind == "HEAVY"]
    assert len(callers) <= 1
    others = [t for t in range(len(threads)) if callers and t != callers[0][0]]
    for placed in itertools.product(*(cuts(threads[t]) for t in others)):
        events, sb, edges, remote, at = [], set(), set(), [], None
        for t, trace in enumerate(threads):
            first = len(events)
            for e in trace:
                if e.kind == "HEAVY":
                    at = len(events)
                    events += [Event("F", t), Event("F", t)]
                else:
                    events.append(e)
            order = list(range(first, len(events)))
            if t in others:
                before = [first + i for i in placed[others.index(t)]]
                fence = len(events)
                events.append(Event("F", t))
                order = before + [fence] + [i for i in order if i not in before]
                remote.append(fence)
            sb |= set(itertools.combinations(order, 2))
        for fence in remote:
            edges |= {(at, fence), (fence, at + 1)}
        yield events, sb, edges


def executions(threads, init):
    """All executions: (registers, last value of each location)."""
    domain = values(threads + [[W(loc, value, "rlx") for loc, value in init.items()]])
    starts = [Event("W", -1, loc, "rlx", writes=init.get(loc, 0)) for loc in sorted(domain)]
    for chosen in itertools.product(*(list(traces(ops, t, domain))
                                      for t, ops in enumerate(threads))):
        regs = {name: value for _, some in chosen for name, value in some.items()}
        yield regs, ([trace for trace, _ in chosen], starts)


def results(traces_of, starts):
    for events, sb, edges in with_heavy(traces_of):
        first = len(events)
        events = events + starts
        sb = sb | {(first + i, j) for i in range(len(starts)) for j in range(first)}
        writes = collections.defaultdict(list)
        for i, e in enumerate(events):
            if e.writes is not None:
                writes[e.loc].append(i)
        readers = [i for i, e in enumerate(events) if e.reads is not None]
        sources = [[w for w in writes[events[r].loc] if w != r and
                    events[w].writes == events[r].reads] for r in readers]
        orders = [[(w[-1], *rest) for rest in itertools.permutations(w[:-1])]
                  for w in writes.values()]
        for picked in itertools.product(*sources):
            rf = set(zip(picked, readers))
            for order in itertools.product(*orders):
                mo = {pair for one in order for pair in itertools.combinations(one, 2)}
                last = {events[one[-1]].loc: events[one[-1]].writes for one in order}
                yield last, (events, sb, rf, mo, edges)


def find(threads, init, is_bad):
    """The first allowed execution that is bad, as (registers, last values), and how many were
    examined."""
    count = 0
    for regs, (chosen, starts) in executions(threads, init):
        for last, execution in results(chosen, starts):
            count += 1
            if is_bad(regs, last) and is_allowed(*execution):
                return (regs, last), count
    return None, count
