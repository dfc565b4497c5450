# SPDX-License-Identifier: BSD-2-Clause
"""The rows of the table that bench/compare prints: what is compared with what, and the goals.

They come in parts, which can be measured alone.
"""
KIB, MIB = 1 << 10, 1 << 20
RATE_SIZES = ((256, "256 B"), (512, "512 B"), (KIB, "1 KiB"), (2 * KIB, "2 KiB"), (4 * KIB, "4 KiB"),
              (5 * KIB, "5 KiB"), (8 * KIB, "8 KiB"), (16 * KIB, "16 KiB"))
# of the cells in which the chosen copy path is compared with the others
AUTO_SIZES = ((8, "8 B"), (256, "256 B"), (4 * KIB, "4 KiB"), (16 * KIB, "16 KiB"),
              (64 * KIB, "64 KiB"), (MIB, "1 MiB"))
AUTO_GOAL = 1.15
AUTO = "auto: "  # their titles begin with this
# of a ping-pong as in an MPI library, with the goals against plain shared memory, and over TCP
# against sockets
MPI_SIZES = ((8, "8 B", 2.0, 1.3), (4 * KIB, "4 KiB", 1.8, None), (64 * KIB, "64 KiB", 1.6, 1.1),
             (MIB, "1 MiB", 1.5, None), (4 * MIB, "4 MiB", 1.5, 1.0))
COMPUTE_US = 1000
VISIBLE_US = 100
SWEEP_SIZES = (8, 64, 512, 4 * KIB, 32 * KIB, 256 * KIB, MIB, 4 * MIB)
SWEEP_BYTES = 64 * MIB
IDLE = 1000
ACTIVE = 100
MAPPINGS = 10000
# libraries above uDAPL transfer messages in registered pieces of this size
FRAGMENT = 128 * KIB
COPY_PATHS = ("map", "cma", "ring")
RING = {"DAT_COPY": "ring"}
TCP = {"DAT_TRANSPORT": "tcp", "DAT_CRC": "off"}
ASLEEP = {"DAT_SPIN_US": "0"}
# a process that uses less than this per second counts as idle: the accounting of the kernel is not
# more precise
IDLE_US_PER_S = 1000


class Row:
    """One line of the table: a figure of ours, what it is compared with, and the goal."""

    def __init__(self, title, ours, theirs, goal, unit, peer, factor=1):
        self.title = title
        self.ours = ours      # (measurement, figure)
        self.theirs = theirs  # a list of the same, of which the best counts; or None
        self.goal = goal      # ("<=" or ">=", number); or None
        self.unit = unit
        self.peer = peer
        self.factor = factor  # applied to their figure; 2: one way to round trip

    def goal_text(self):
        if self.goal is None:
            return None
        relation, goal = self.goal
        return f"{relation} {goal:g}" if goal < 1000 else f"{relation} {goal:,.0f}".replace(",", " ")

    def is_lower_better(self):
        return self.goal[0] in ("<=", "<")

    def best(self, values):
        if self.goal is None:
            return values[0]
        return min(values) if self.is_lower_better() else max(values)

    def goodness(self, value):
        """1: the goal is just met; more is better; at most 1000, which stands for a value of 0."""
        if self.goal is None:
            return None
        if not self.is_lower_better():
            return value / self.goal[1]
        return min(self.goal[1] / value, 1000) if value > 0 else 1000

    def is_met(self, value):
        if self.goal is None:
            return None
        relation, goal = self.goal
        return {"<=": value <= goal, "<": value < goal, ">=": value >= goal}[relation]


def ring_rows():
    """DAT_COPY=ring: only rings in shared memory. UCX with posix only does the same."""
    found = []
    for size, label in (("64 KiB", "64k"), ("1 MiB", "1m")):
        for title, kind in (("send", "send"), ("RDMA write", "write"), ("RDMA read", "read")):
            found.append(Row(f"ring: {title} {size}, bandwidth",
                             (f"ring {kind} {label}, bandwidth", "mb_per_s"),
                             [(f"ucx ring {label}, bandwidth", "mb_per_s")], (">=", 1.0), "MB/s",
                             "UCX tag_bw, posix"))
    for size, label, theirs in (("8 B", "8", "ucx send 8"), ("64 KiB", "64k", "ucx ring 64k")):
        for title, kind in (("RDMA write", "write"), ("RDMA read", "read")):
            found.append(Row(f"ring: {title} {size}, to its completion",
                             (f"ring {kind} {label}", "p50"), [(theirs, "p50")], ("<=", 1.0), "us",
                             "UCX tag_lat, posix, there and back", 2))
    found.append(Row("ring: RDMA write 8 B, to its completion, both asleep",
                     ("ring write 8, asleep", "p50"), [("raw eventfd", "p50")], ("<=", 1.3), "us",
                     "two wake-ups by eventfd", 2))
    return found


def auto_rows(sizes=AUTO_SIZES):
    """Is the copy path that the library chooses the best? In private memory, map is cma."""
    found = []
    for op, name in (("send", "send"), ("write", "RDMA write"), ("read", "RDMA read")):
        for target in ("polls", "computes", "sleeps"):
            for figure, unit, goal in (("latency", "us", ("<=", AUTO_GOAL)),
                                       ("rate", "1/s", (">=", round(1 / AUTO_GOAL, 3)))):
                for size, text_of_size in sizes:
                    measured = f"matrix {op}"
                    cell = f"{op} {size} {target} {figure}"
                    found.append(Row(
                        f"{AUTO}{name}, target {target}, {figure}: {text_of_size}",
                        (measured, f"{cell} auto"),
                        [(measured, f"{cell} {path}") for path in ("cma", "ring")], goal, unit,
                        "the better of cma and ring"))
    return found


def mpi_rows(sizes=MPI_SIZES):
    """The traffic of an MPI library."""
    found = []
    for size, label, goal, _ in sizes:
        found.append(Row(f"MPI: ping-pong {label}", ("mpi pingpong", f"pingpong {size} auto p50"),
                         [("mpi pingpong", f"pingpong {size} memory p50")], ("<=", goal), "us",
                         "plain shared memory"))
    found.append(Row(f"MPI: target computes {COMPUTE_US} us, 8 B visible, 99th percentile",
                     ("mpi compute", "compute 8 auto p99"), None, ("<=", VISIBLE_US), "us", "-"))
    for size, label, _, goal in sizes:
        if goal:
            found.append(Row(f"MPI: ping-pong {label}, TCP",
                             ("mpi pingpong", f"pingpong {size} tcp p50"),
                             [("mpi pingpong", f"pingpong {size} sockets p50")], ("<=", goal),
                             "us", "TCP sockets"))
    for label, size, figure, unit in (("8 B", 8, "per_s", "1/s"), ("1 MiB", MIB, "mb_per_s", "MB/s")):
        for path in ("auto", *COPY_PATHS):
            found.append(Row(f"MPI: 8 processes, all to all, {label}, {path}",
                             ("mpi alltoall", f"alltoall {size} {path} {figure}"),
                             [("mpi alltoall", f"alltoall {size} memory {figure}")], None, unit,
                             "plain shared memory"))
    return found


def tcp_rows():
    """transport=tcp, on the loopback interface."""
    lat, rate, mb, avg = "p50", "per_s", "mb_per_s", "avg"
    found = [Row(title, (ours, figure), theirs, goal, unit, peer)
             for title, ours, figure, theirs, goal, unit, peer in (
        ("send/recv 64 B, one way", "tcp send 64", lat, [("raw tcp", lat)], ("<=", 1.15), "us",
         "TCP ping-pong that polls"),
        ("send/recv 64 B, one way", "tcp send 64", lat, [("ucx tcp send 64", lat)], ("<", 1.0),
         "us", "UCX tag_lat, tcp"),
        ("send/recv 64 B, one way, average", "tcp send 64", avg, [("fi tcp send 64", avg)],
         ("<", 1.0), "us", "libfabric tcp"),
        ("send 64 B, message rate", "tcp send 64, rate", rate, [("ucx tcp send 64, rate", rate)],
         (">=", 2.0), "1/s", "UCX tag_bw, tcp"),
        ("send 1 MiB, bandwidth", "tcp send 1m, bandwidth", mb, [("raw stream", mb)], (">=", 0.9),
         "MB/s", "TCP stream"),
        ("RDMA write 1 MiB, bandwidth", "tcp write 1m, bandwidth", mb, [("raw stream", mb)],
         (">=", 0.9), "MB/s", "TCP stream"),
        ("send/recv 1 MiB, one way, average", "tcp send 1m", avg,
         [("fi tcp send 1m", avg), ("ucx tcp send 1m", avg)], ("<=", 1.0), "us",
         "libfabric or UCX, tcp"),
        ("send 1 MiB, bandwidth, CRC", "tcp send 1m, bandwidth, CRC", mb,
         [("tcp send 1m, bandwidth", mb)], (">=", 0.8), "MB/s", "the same without CRC"),
        (f"processor time, {IDLE} idle connections", "tcp cpu idle", "us_per_s", None,
         ("<=", IDLE_US_PER_S), "us/s", "-"),
        ("memory per connection, one side", "tcp memory", "side_bytes", None, ("<=", 64 * KIB),
         "bytes", "-"))]
    for row in found:
        row.title = f"TCP: {row.title}"
    return found


def memory_rows():
    found = [Row("register 128 KiB, written once, free", ("reg", "p50"), [("reg kept", "p50")],
                 ("<=", 1.3), "us", "the same, stays registered")]
    for title, ours, theirs in (
            ("register and free 128 KiB", "reg free", "raw syscall"),
            (f"the same, {MAPPINGS} mappings", "reg free, mappings", "raw syscall"),
            ("the same, without PROCMAP_QUERY", "reg free, no query", "raw syscall, no query")):
        found.append(Row(title, (ours, "p50"), [(theirs, "p50")], ("<=", 10), "us",
                         "empty system call"))
    return found


def message_rows():
    """Sends and RDMA Writes through shared memory."""
    lat, rate, mb = "p50", "per_s", "mb_per_s"
    return [
        Row("send/recv 8 B, one way, polled", ("send 8", lat), [("ucx send 8", lat)],
            ("<=", 1.0), "us", "UCX tag_lat, posix"),
        Row("the same, shared memory", ("send 8, shared", lat), [("ucx send 8", lat)],
            ("<=", 0.85), "us", "UCX tag_lat, posix"),
        Row("send/recv 4 KiB, one way, polled", ("send 4k", lat), [("ucx send 4k", lat)],
            ("<=", 0.8), "us", "UCX tag_lat, posix,cma"),
        Row("the same, shared memory", ("send 4k, shared", lat), [("ucx send 4k", lat)],
            ("<=", 0.8), "us", "UCX tag_lat, posix,cma"),
        Row("RDMA write 8 B, shared memory, one way", ("write 8, shared", lat),
            [("ucx write 8", lat)], ("<=", 1.1), "us", "UCX ucp_put_lat, posix"),
        Row("RDMA write 8 B, private memory, one way", ("write 8, private", lat),
            [("raw writev", lat)], ("<=", 1.2), "us", "process_vm_writev"),
        Row("send 8 B, message rate", ("send 8, rate", rate), [("ucx send 8, rate", rate)],
            (">=", 2.0), "1/s", "UCX tag_bw, posix"),
        Row("the same, shared memory", ("send 8, rate, shared", rate),
            [("ucx send 8, rate", rate)], (">=", 2.0), "1/s", "UCX tag_bw, posix"),
        *(Row(f"send {text}, message rate", (f"send {size}, rate", rate),
              [(f"ucx send {size}, rate", rate)], (">=", 1.0), "1/s", "UCX tag_bw, posix")
          for size, text in RATE_SIZES),
        Row("RDMA write 8 B, rate", ("write 8, rate", rate), [("ucx write 8, rate", rate)],
            (">=", 0.5), "1/s", "UCX ucp_put_bw, posix"),
        Row("send 1 MiB, bandwidth", ("send 1m, bandwidth", mb),
            [("ucx send 1m, bandwidth", mb)], (">=", 1.0), "MB/s", "UCX tag_bw, posix,cma"),
        Row("RDMA write 1 MiB, shared memory, bandwidth", ("write 1m, bandwidth", mb),
            [("raw memcpy", mb)], (">=", 0.95), "MB/s", "memcpy"),
        Row("send/recv 8 B, one way, average", ("send 8", "avg"), [("fi send 8", "avg")],
            ("<", 1.0), "us", "libfabric shm"),
        Row("the same, shared memory", ("send 8, shared", "avg"), [("fi send 8", "avg")],
            ("<", 1.0), "us", "libfabric shm"),
        Row("send/recv 4 KiB, one way, average", ("send 4k", "avg"), [("fi send 4k", "avg")],
            ("<", 1.0), "us", "libfabric shm"),
        Row("the same, shared memory", ("send 4k, shared", "avg"), [("fi send 4k", "avg")],
            ("<", 1.0), "us", "libfabric shm"),
        Row("send/recv 1 MiB, one way, average", ("send 1m", "avg"), [("fi send 1m", "avg")],
            ("<", 1.0), "us", "libfabric shm"),
        Row("blocking wait, wake-up, one way", ("wake", lat),
            [("raw eventfd", lat), ("raw futex", lat)], ("<=", 1.3), "us", "eventfd or futex"),
        Row("RDMA write 8 B, private memory, target dequeues", ("write 8, private, dequeued", lat),
            [("send 8", lat)], ("<=", 1.5), "us", "send 8 B"),
    ]


def many_rows():
    """Many connections."""
    lat, rate = "p50", "per_s"
    return [
        Row(f"send 8 B beside {IDLE} idle connections", ("send 8, idle", lat), [("send 8", lat)],
            ("<=", 1.2), "us", "the same alone"),
        Row(f"send 8 B, {ACTIVE} connections of {IDLE} in turn", ("send 8, active", lat),
            [("send 8", lat)], ("<=", 2.5), "us", "one connection"),
        Row("connect + disconnect", ("connect", rate), None, (">=", 3000), "1/s", "-"),
        Row("memory per connection, both sides", ("memory", "bytes"), None, ("<=", 64 * KIB),
            "bytes", "-"),
        Row("address space per connection, one side", ("memory", "side_space_bytes"), None,
            ("<=", 64 * KIB), "bytes", "-"),
        Row("address space of an open adapter", ("space", "client_bytes"), None,
            ("<=", 32e6), "bytes", "-"),
        Row(f"processor time, {IDLE} idle connections", ("cpu idle", "us_per_s"), None,
            ("<=", IDLE_US_PER_S), "us/s", "-"),
    ]


# parts of the rows that can be measured alone, each in less than 90 s
PARTS = {
    "auto": auto_rows,
    "mpi": mpi_rows,
    "messages": message_rows,
    "ring": ring_rows,
    "registration": memory_rows,
    "many": many_rows,
    "tcp": tcp_rows,
}


def rows_of(parts, is_quick):
    """The rows of some parts; a trial has one size of those with many."""
    found = []
    for part, make in PARTS.items():
        if parts and part not in parts:
            continue
        if is_quick and part in ("auto", "mpi"):
            found += auto_rows(AUTO_SIZES[:1]) if part == "auto" else mpi_rows(MPI_SIZES[:1])
        else:
            found += make()
    return found
