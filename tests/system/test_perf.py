#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""dat_perf: measuring by the clock, both directions, batches, pictures, what its JSON says."""
import contextlib
import csv
import datetime
import json
import os
import pathlib
import pty
import re
import signal
import socket
import subprocess
import tempfile
import xml.etree.ElementTree

from testing import (ADAPTER, DAT_PERF, WAIT_S, Skip, contains, equal, main, perf, perf_server,
                     registry_file, run, started)

LATENCY = ("send-lat", "write-lat", "write-comp-lat", "read-lat", "wake-lat", "poll-lat", "reg",
           "reg-kept", "reg-free")
BANDWIDTH = ("send-bw", "write-bw", "read-bw")
FOLLOWED = ("send-lat", "write-lat", "wake-lat", "poll-lat", "reg", "send-bw")


def measured(qualifier, *options):
    """The JSON of one client that must succeed."""
    status, out, err = perf(qualifier, "--json", *options)
    equal(status, 0, out + err)
    result = json.loads(out)
    equal((result["is_complete"], result["wrong"]), (True, 0))
    return result


# ---- by the clock ----

def duration__every_test__not_shorter_and_every_sample_counted():
    with perf_server("--once") as (_, qualifier):
        rows = measured(qualifier, "--test", ",".join(LATENCY + BANDWIDTH + ("connect",)), "--size",
                        "8,64k", "--duration", "0.05")["results"]
    equal(len(rows), 2 * len(LATENCY + BANDWIDTH) + 1)
    for row in rows:
        # the clocks of both sides may differ by a few parts per million
        assert row["elapsed_s"] >= 0.0499, row
        rate = row["count"] / row["elapsed_s"]
        ways = 2 if row["test"] in ("send-lat", "write-lat", "wake-lat", "poll-lat") else 1
        assert abs(row["per_s"] / (rate * ways) - 1) < 0.001, row
        if "samples" in row:
            equal(row["samples"], row["count"], row)


def duration__endpoints_threads_and_checked_data__nothing_wrong():
    with perf_server() as (server, qualifier):
        for options in ((), ("--wait",), ("--endpoints", "3", "--signal", "4", "--wait"),
                        ("--endpoints", "3", "--threads", "2", "--signal", "3", "--wait"),
                        ("--window", "1", "--buffer", "shared", "--wait")):
            measured(qualifier, "--check", "--test", ",".join(LATENCY + BANDWIDTH), "--size",
                     "1,4097", "--duration", "0.01", "--window", "8", *options)
        equal(server.poll(), None)


def duration__client_dies_in_the_middle__next_one_is_served():
    with perf_server() as (server, qualifier):
        for options in ((), ("--threads", "2", "--wait")):
            for test in FOLLOWED:
                with started(DAT_PERF, "--adapter", ADAPTER, "--qual", qualifier, "--test", test,
                             "--size", "64", "--duration", "3600", *options) as client:
                    contains(client.stdout.readline(), "adapter")
                    client.kill()
                    client.wait(WAIT_S)
                measured(qualifier, "--test", test, "--size", "8", "--count", "2")
        equal(server.poll(), None)


def duration__interrupted__ends_with_130():
    with perf_server() as (_, qualifier):
        # often: the signal must not be missed between two waits
        for test in (*FOLLOWED, *["wake-lat"] * 20):
            with started(DAT_PERF, "--adapter", ADAPTER, "--qual", qualifier, "--test", test,
                         "--size", "64", "--duration", "3600") as client:
                contains(client.stdout.readline(), "adapter")
                client.send_signal(signal.SIGINT)
                equal(client.wait(WAIT_S), 130)


def few_samples__reported_and_marked():
    with perf_server() as (_, qualifier):
        status, out, err = perf(qualifier, "--test", "send-lat", "--size", "8", "--count", "25")
        equal(status, 0, err)
        contains(err, "send-lat has 25, but p90 needs 30")
        contains(out, "few samples")
        status, _, err = perf(qualifier, "--test", "write-bw", "--size", "8", "--count", "9")
        contains(err, "write-bw has 9, but a bandwidth needs 10")
        rows = measured(qualifier, "--test", "read-lat,write-bw", "--size", "8", "--count",
                        "1000")["results"]
        equal([row["is_too_few"] for row in rows], [False, False])
        equal(perf(qualifier, "--quiet", "--test", "read-lat", "--size", "8", "--count", "9"),
              (0, "", ""))


def processor_time__of_both_sides__a_share_of_all_processors():
    with perf_server("--once") as (_, qualifier):
        rows = measured(qualifier, "--test", "lat,bw", "--size", "8", "--duration",
                        "0.02")["results"]
    for row in rows:
        for side in ("client", "server"):
            # the kernel counts some times by ticks
            assert 0 <= row[f"{side}_cpu_percent"] < 100 * (os.cpu_count() + 2), row
        assert row["client_cpu_percent"] > 0, row


# ---- until the user ends it ----

def infinite__interrupted__intervals_then_the_result():
    with perf_server() as (_, qualifier):
        for test in ("send-lat", "write-bw"):
            with started(DAT_PERF, "--adapter", ADAPTER, "--qual", qualifier, "--infinite",
                         "--test", test, "--size", "8") as client:
                contains(client.stdout.readline(), "adapter")
                contains(client.stdout.readline(), "seconds")
                for _ in range(2):
                    name, size, seconds, count = client.stdout.readline().split()[:4]
                    equal((name, size), (test, "8"))
                    assert float(seconds) > 0 and int(count) >= 0
                client.send_signal(signal.SIGINT)
                equal(client.wait(WAIT_S), 0)
                equal(client.stdout.read().splitlines()[-1].split()[0], test)


def infinite__json__intervals_before_results():
    with perf_server() as (_, qualifier):
        with started(DAT_PERF, "--adapter", ADAPTER, "--qual", qualifier, "--infinite", "--json",
                     "--test", "send-bw", "--size", "64") as client:
            lines = [client.stdout.readline() for _ in range(4)]
            contains(lines[3], "at_s")
            client.send_signal(signal.SIGINT)
            equal(client.wait(WAIT_S), 0)
            result = json.loads("".join(lines) + client.stdout.read())
    assert len(result["intervals"]) >= 1, result
    equal(set(result["intervals"][0]),
          {"time", "at_s", "elapsed_s", "count", "per_s", "mb_per_s", "gbit_per_s"})
    assert result["results"][0]["count"] >= result["intervals"][0]["count"]


def infinite__with_what_excludes_it__status_2():
    for options in (["--size", "8,16", "--test", "read-lat"], ["--test", "lat", "--size", "8"],
                    ["--test", "connect", "--size", "8"],
                    ["--test", "read-lat", "--size", "8", "--count", "5"],
                    ["--test", "read-bw", "--size", "8", "--bidirectional"],
                    ["--test", "read-lat", "--size", "8", "--csv"]):
        status, _, err = run(DAT_PERF, "--qual", "1", "--infinite", *options)
        equal(status, 2, options)
        contains(err, "--infinite")


def interval__each_run__lines_before_its_result():
    with perf_server() as (_, qualifier):
        options = ("--interval", "0.1", "--duration", "0.5", "--test", "send-lat,write-bw",
                   "--size", "8,64")
        status, out, err = perf(qualifier, *options)
        equal(status, 0, err)
        runs = measured(qualifier, *options)["results"]
    equal(len(runs), 4)
    for run_of in runs:
        intervals = run_of["intervals"]
        assert 1 <= len(intervals) <= 10, run_of
        times = [interval["at_s"] for interval in intervals]
        equal(times, sorted(times))
        # the last one ends before the run does
        assert sum(interval["count"] for interval in intervals) > 0, run_of
    # each result has a head of its own, below the lines of its run
    rows = [line.split()[0] for line in out.splitlines()[1:]]
    equal(rows.count("send-lat") + rows.count("write-bw"),
          len(rows) - rows.count("us") - rows.count("bytes"), out)
    assert rows.count("send-lat") > 3 and rows.count("us") == 2, out
    for excluded in (("--csv",), ("--interval=0.01",)):
        equal(run(DAT_PERF, "--qual", "1", "--interval", *excluded)[0], 2)


def terminal__long_run__bar_with_the_time_left():
    ours, theirs = pty.openpty()
    with perf_server("--once") as (_, qualifier):
        client = subprocess.Popen([DAT_PERF, "--adapter", ADAPTER, "--qual", qualifier, "--test",
                                   "send-bw", "--size", "8", "--duration", "3"],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=theirs)
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the client has closed its end
                break
            if not part:
                break
            shown += part
        equal(client.wait(WAIT_S), 0)
    os.close(ours)
    found = re.search(rb"send-bw of 8 bytes \[(#+)( *)\] +(\d+) %, (\d+) s left", shown)
    assert found, shown
    equal(len(found.group(1)) + len(found.group(2)), 40)
    assert 0 < int(found.group(3)) < 100 and int(found.group(4)) <= 3, shown


def unit__text__as_asked_for():
    with perf_server() as (_, qualifier):
        common = ("--test", "write-bw", "--size", "4k", "--count", "2000")
        for unit, factor in (("MB", 1e6), ("GB", 1e9), ("MiB", 2**20), ("GiB", 2**30),
                             ("Mbit", 1e6 / 8), ("Gbit", 1e9 / 8)):
            out = perf(qualifier, "--unit", unit, *common)[1].splitlines()
            contains(out[1], f" {unit}/s ")
            _, size, _, bandwidth, rate = out[2].split()[:5]
            expected = float(rate) * int(size) / factor
            assert abs(float(bandwidth) - expected) <= max(0.06, expected * 0.001), out
        row, = measured(qualifier, *common)["results"]
        assert abs(row["gbit_per_s"] * 125 / row["mb_per_s"] - 1) < 0.001, row
    equal(run(DAT_PERF, "--qual", "1", "--unit", "furlong")[0], 2)


TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def timestamps__each_line__its_time():
    with perf_server() as (_, qualifier):
        options = ("--test", "send-lat,write-bw", "--size", "8", "--count", "100")
        lines = perf(qualifier, "--timestamps", *options)[1].splitlines()[1:]
        equal([bool(re.match(TIME, line)) for line in lines], [False, True, False, True])
        # head and rows are aligned
        equal({line.index(word) for line, word in zip(lines, ("us ", "send-lat"))}, {26})
        rows = list(csv.DictReader(perf(qualifier, "--csv", "--timestamps",
                                        *options)[1].splitlines()))
        equal([bool(re.fullmatch(TIME, row["time"])) for row in rows], [True, True])
        for row in measured(qualifier, *options)["results"]:
            assert re.fullmatch(TIME, row["time"]), row


# ---- several clients ----

def clients__at_once__runs_begin_together_and_are_added_up():
    count = 3
    options = ("--test", "send-lat,send-bw,write-bw", "--size", "8,4k", "--duration", "0.3")
    with perf_server("--clients", str(count), "--once") as (server, qualifier):
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(started(DAT_PERF, "--adapter", ADAPTER, "--json",
                                                   "--timeout", "60", "--qual", qualifier,
                                                   *options))
                       for _ in range(count)]
            results = []
            for client in clients:
                client.wait(WAIT_S)
                equal(client.returncode, 0, client.stderr.read())
                results.append(json.loads(client.stdout.read())["results"])
        equal(server.wait(WAIT_S), 0)
        lines = server.stdout.read().splitlines()
    equal(len(lines), 6, lines)
    for line, rows in zip(lines, zip(*results)):
        found = re.fullmatch(rf"dat_perf: {count} clients together: (\S+) of (\d+) bytes: "
                             r"([\d.]+) MB/s, (\d+) transfers/s in ([\d.]+) s", line)
        assert found, line
        equal((found.group(1), int(found.group(2))), (rows[0]["test"], rows[0]["bytes"]))
        ways = 2 if rows[0]["test"] == "send-lat" else 1
        # what the clients counted, and their warm-up; the time has three digits
        assert (float(found.group(4)) + 1) * (float(found.group(5)) + 0.001) >= \
            sum(row["count"] for row in rows) * ways, (line, rows)


def clients__too_many_or_too_few__said():
    options = ("--test", "send-lat", "--size", "8", "--count", "5")
    with perf_server("--clients", "2", "--timeout", "2") as (server, qualifier):
        # the second seat stays empty
        status, _, err = perf(qualifier, "--timeout", "20", *options)
        equal(status, 3, err)
        equal(server.wait(WAIT_S), 0)
        contains(server.stderr.read(), "not all of the clients asked for the run in 2000 ms")
    status, _, err = run(DAT_PERF, "--server", "--adapter", ADAPTER, "--clients", "2",
                         "--timeout", "1")
    equal((status, err), (3, "dat_perf: no client in 1 s\n"))
    status, _, err = run(DAT_PERF, "--qual", "1", "--clients", "2")
    equal(status, 2)
    contains(err, "--clients is for a server")


def clients__server_stopped__no_process_left():
    with perf_server("--clients", "4") as (server, _):
        with open(f"/proc/{server.pid}/task/{server.pid}/children", encoding="ascii") as file:
            seats = [int(word) for word in file.read().split()]
        equal(len(seats), 4)
        server.send_signal(signal.SIGTERM)
        equal(server.wait(WAIT_S), 0)
        for seat in seats:
            assert not os.path.exists(f"/proc/{seat}"), seat


# ---- a given load ----

def rate__bandwidth_tests__kept_with_the_times_under_it():
    with perf_server() as (_, qualifier):
        for options in ((), ("--endpoints", "3", "--threads", "2", "--check")):
            result = measured(qualifier, "--rate", "1k", "--test", "bw", "--size", "8",
                              "--duration", "0.5", *options)
            equal(result["rate"], 1000)
            for row in result["results"]:
                # never more than is due; fewer if the processors are busy
                assert row["count"] <= 1000 * row["elapsed_s"] + 6, row
                equal(row["samples"], row["count"])
                assert 0 < row["min"] <= row["p50"] <= row["p99"] <= row["max"], row
        status, out, err = perf(qualifier, "--rate", "500", "--test", "send-bw", "--size", "8",
                                "--count", "100")
        equal(status, 0, err)
        equal(out.splitlines()[1].split()[-7:], ["us", "avg", "p50", "p90", "p99", "p99.9", "max"])
        # 100 requests at 500 per second take a fifth of a second
        assert float(out.splitlines()[2].split()[5]) >= 0.19, out
        status, out, err = perf(qualifier, "--rate", "1000m", "--window", "1", "--test", "read-bw",
                                "--size", "64k", "--count", "50")
        equal(status, 0)
        assert re.search(r"read-bw of 65536 bytes: \d+ requests per second instead of 1000000000",
                         err), err
    for excluded in (("--wait",), ("--signal", "2"), ("--bidirectional",), ("--rate", "0")):
        equal(run(DAT_PERF, "--qual", "1", "--rate", "5", *excluded)[0], 2)


# ---- how bytes are posted ----

def segments__checked_data__nothing_wrong():
    with perf_server() as (_, qualifier):
        for count in ("3", "16"):
            result = measured(qualifier, "--check", "--segments", count, "--test",
                              ",".join(LATENCY + BANDWIDTH), "--size", "1,4097",
                              "--count", "20", "--window", "8")
            equal(result["segments"], int(count))
        for wrong in ("0", "17"):
            equal(perf(qualifier, "--segments", wrong)[0], 2)


def srq__messages_of_many_endpoints__all_received():
    tests = ("send-lat", "wake-lat", "send-bw", "write-bw", "read-lat")
    with perf_server() as (server, qualifier):
        for options in ((), ("--endpoints", "5", "--threads", "2"),
                        ("--endpoints", "3", "--wait", "--segments", "2")):
            result = measured(qualifier, "--srq", "--test", ",".join(tests), "--size", "8,4k",
                              "--count", "100", *options)
            equal(result["is_srq"], True)
        equal(server.poll(), None)
        for excluded in (("--check",), ("--bidirectional",), ("--test", "poll-lat"),
                         ("--test", "reg")):
            status, _, err = perf(qualifier, "--srq", *excluded)
            equal(status, 2)
            contains(err, "--srq")


def buffer_huge__reserved_pages_or_how_to_reserve_them():
    with open("/proc/meminfo", encoding="ascii") as file:
        found = re.search(r"^HugePages_Free: +(\d+)$", file.read(), re.M)
    free = int(found.group(1)) if found else 0
    with perf_server() as (_, qualifier):
        options = ("--buffer", "huge", "--test", "send-lat,write-bw", "--size", "8", "--count",
                   "50")
        if free >= 4:
            equal(measured(qualifier, *options)["buffer"], "huge")
        else:
            status, _, err = perf(qualifier, *options)
            equal(status, 3)
            contains(err, "no huge pages for a buffer of ")
            contains(err, "vm.nr_hugepages")


def samples__every_time__in_the_file():
    with tempfile.TemporaryDirectory() as folder, perf_server() as (_, qualifier):
        path = os.path.join(folder, "samples.csv")
        results = measured(qualifier, "--samples", path, "--test", "send-lat,read-lat,reg-free,write-bw",
                           "--size", "8,64", "--count", "200", "--endpoints", "4", "--threads",
                           "2")["results"]
        with open(path, encoding="ascii") as file:
            rows = list(csv.DictReader(file))
        for result in results:
            times = [float(row["us"]) for row in rows if row["test"] == result["test"]
                     and int(row["bytes"]) == result["bytes"]]
            equal(len(times), result.get("samples", 0), result["test"])
            if times:
                for found, figure in ((min(times), "min"), (max(times), "max"),
                                      (sum(times) / len(times), "avg")):
                    # four digits are written, and the rate of the clock becomes more exact
                    expected = result[figure]
                    assert abs(found - expected) <= 0.001 + expected * 0.001, result
        equal({row["thread"] for row in rows}, {"0", "1"})
        status, _, err = perf(qualifier, "--samples", "/nowhere/samples")
        equal(status, 3)
        contains(err, "/nowhere/samples")


# ---- both directions ----

def bidirectional__checked_data__figures_of_both_sides():
    with perf_server() as (server, qualifier):
        for options in (("--count", "40"), ("--duration", "0.02"),
                        ("--count", "7", "--endpoints", "3", "--threads", "2", "--signal", "3"),
                        ("--duration", "0.02", "--window", "1"),
                        ("--duration", "0.02", "--buffer", "shared", "--endpoints", "2")):
            rows = measured(qualifier, "--bidirectional", "--check", "--test", "bw", "--size",
                            "1,4097,100k", "--window", "8", *options)["results"]
            equal([row["test"] for row in rows], [test for test in BANDWIDTH for _ in range(3)])
            for row in rows:
                assert row["reverse_count"] > 0 and row["reverse_elapsed_s"] > 0, row
                rate = (row["count"] / row["elapsed_s"] +
                        row["reverse_count"] / row["reverse_elapsed_s"])
                assert abs(row["per_s"] / rate - 1) < 0.01, row
                if "--count" in options:
                    equal(row["reverse_count"], row["count"], row)
        equal(server.poll(), None)


def bidirectional__other_tests__as_without():
    with perf_server("--once") as (_, qualifier):
        row, = measured(qualifier, "--bidirectional", "--test", "send-lat", "--size", "8",
                        "--count", "5")["results"]
    equal(row["count"], 5)
    assert "reverse_count" not in row, row


def bidirectional__waiting__status_2():
    status, _, err = run(DAT_PERF, "--qual", "1", "--bidirectional", "--wait")
    equal(status, 2)
    contains(err, "--wait")


# ---- formats ----

def histogram__json__all_samples_in_ascending_classes():
    with perf_server("--once") as (_, qualifier):
        rows = measured(qualifier, "--histogram", "--test", "send-lat,read-lat,connect", "--size",
                        "8", "--count", "500")["results"]
    for row in rows:
        classes = row["histogram"]
        equal(sum(part["count"] for part in classes), row["samples"], row)
        bounds = [bound for part in classes for bound in (part["from"], part["to"])]
        equal(bounds, sorted(bounds))
        assert bounds[0] <= row["min"] and row["max"] <= bounds[-1], row


def histogram__text__a_bar_for_the_most():
    with perf_server("--once") as (_, qualifier):
        status, out, err = perf(qualifier, "--histogram", "--test", "read-lat", "--size", "8",
                                "--count", "1000")
    equal(status, 0, err)
    bars = re.findall(r"^ +[\d.]+ to +[\d.]+ us +(\d+) (#*)$", out, re.M)
    equal(sum(int(count) for count, _ in bars), 1000, out)
    equal(max(len(bar) for _, bar in bars), 50)


def plot__tests_of_both_kinds__a_line_for_each():
    with tempfile.TemporaryDirectory() as folder:
        picture = os.path.join(folder, "picture.svg")
        with perf_server() as (_, qualifier):
            equal(perf(qualifier, "--plot", picture, "--test", "send-lat,read-lat,write-bw",
                       "--size", "8:1k", "--count", "50")[0], 0)
            root = xml.etree.ElementTree.parse(picture).getroot()
            name = "{http://www.w3.org/2000/svg}"
            texts = [text.text for text in root.iter(name + "text")]
            equal({"send-lat", "read-lat", "write-bw", "bytes"} - set(texts), set())
            equal(root.find(name + "title").text, "dat_perf: send-lat, read-lat, write-bw")
            head = " ".join(texts[:3])
            for part in (f"adapter {ADAPTER}, path ", "polling", f"host {socket.gethostname()}",
                         "50 to 50 samples", datetime.datetime.utcnow().strftime("%Y-%m-")):
                contains(head, part)
            assert any(re.fullmatch("10+ (ns|us|ms)", text) for text in texts), texts
            # median and 99th percentile of two tests, and one bandwidth
            lines = [line.get("points").split() for line in root.iter(name + "polyline")]
            equal([len(points) for points in lines], [8] * 5)
            width, height = int(root.get("width")), int(root.get("height"))
            for point in sum(lines, []):
                x, y = map(float, point.split(","))
                assert 0 < x < width and 0 < y < height, point
            status, _, err = perf(qualifier, "--plot", picture, "--test", "connect", "--count", "2")
            equal(status, 3)
            contains(err, "no test of latency or bandwidth")
        status, _, err = run(DAT_PERF, "--qual", "1", "--plot", "/nowhere/picture.svg")
        equal(status, 3)
        contains(err, "/nowhere/picture.svg")


def json__where_and_with_what__this_host():
    with perf_server("--once") as (_, qualifier):
        result = measured(qualifier, "--test", "read-lat", "--size", "8", "--count", "5")
    equal(result["host"], socket.gethostname())
    contains(result["kernel"], os.uname().release)
    equal(result["processors"], os.cpu_count())
    date = datetime.datetime.strptime(result["date"], "%Y-%m-%dT%H:%M:%SZ")
    assert abs(datetime.datetime.utcnow() - date) < datetime.timedelta(seconds=WAIT_S), date
    equal(run(DAT_PERF, "--version")[1].split()[-1], result["version"])
    assert re.search(r"/libdat\.so\.1\.\d", result["library"]), result["library"]
    for name in ("processor", "provider", "address", "adapter"):
        assert result[name], name


def json__path__as_the_adapter_connects():
    if ADAPTER != "soft-lo":
        raise Skip("the path of another adapter is not known")
    entry = 'over-tcp u1.2 threadsafe default libdat-soft.so.1 ri.1.2 "lo transport=tcp" ""\n'
    with registry_file(entry) as (_, env):
        for adapter, path, conf in (("soft-lo", "shm", {}), ("over-tcp", "tcp", env)):
            with started("env", *(f"{name}={value}" for name, value in conf.items()), DAT_PERF,
                         "--server", "--once", "--adapter", adapter) as server:
                qualifier = server.stdout.readline().split("=")[-1].strip()
                status, out, err = run(DAT_PERF, "--adapter", adapter, "--qual", qualifier,
                                       "--json", "--test", "send-lat", "--size", "8", "--count",
                                       "3", env=conf)
                equal(status, 0, out + err)
                equal(json.loads(out)["path"], path)
                equal(server.wait(WAIT_S), 0)


# ---- batches ----

def batch__lines_with_options__a_run_for_each():
    lines = ("# a comment\n"
             "--test send-lat --size 8 --count 100 --wait\n"
             "\n"
             "--test write-bw --size 4k,8k --count 20 --window 8 # two sizes\n"
             "--test connect --count 3\n")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(lines)
        file.flush()
        with perf_server() as (_, qualifier):
            status, out, err = perf(qualifier, "--json", "--batch", file.name)
            equal(status, 0, err)
            runs = json.loads(out)["runs"]
            equal([[row["test"] for row in one["results"]] for one in runs],
                  [["send-lat"], ["write-bw", "write-bw"], ["connect"]])
            equal([one["window"] for one in runs], [64, 8, 64])
            equal([one["mode"] for one in runs], ["wait", "poll", "poll"])
            status, out, err = perf(qualifier, "--csv", "--batch", file.name)
            equal(status, 0, err)
            equal([line.split(",")[0] for line in out.splitlines()],
                  ["test", "send-lat", "write-bw", "write-bw", "connect"])


def batch__wrong_lines__all_reported_with_file_and_line():
    lines = ("--test send-lat\n"
             "--size 0\n"
             "--no-such-option\n"
             "--test lat --server\n"
             "--window 4 --signal 5\n"
             "--json\n" + "-W " * 100 + "\n")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(lines)
        file.flush()
        status, out, err = run(DAT_PERF, "--qual", "1", "--batch", file.name)
        equal((status, out), (2, ""))
        found = [int(number) for number in re.findall(rf"^dat_perf: {file.name}:(\d+): ", err, re.M)]
        equal(found, [2, 3, 4, 5, 6, 7], err)
        contains(err, "--size 0: invalid value")
        file.truncate(0)
        status, _, err = run(DAT_PERF, "--qual", "1", "--batch", file.name)
        equal(status, 2)
        contains(err, f"{file.name}: no line has options")
    status, _, err = run(DAT_PERF, "--qual", "1", "--batch", "/nowhere/batch")
    equal(status, 2)
    contains(err, "/nowhere/batch: No such file")


# ---- documentation ----

def manual_page__json__lists_every_member():
    page = pathlib.Path(os.environ["OPENDAT_SOURCE"], "man", "dat_perf.1").read_text("utf-8")
    section = page.split(".SS JSON", 1)[1].split(".SH ", 1)[0]
    documented = set(re.findall(r"^([a-z0-9_]+)\|", section, re.M))
    with perf_server() as (_, qualifier):
        result = measured(qualifier, "--histogram", "--bidirectional", "--test", "all", "--size",
                          "8", "--count", "3", "--idle", "2")
    members = set(result) | {name for row in result["results"] for name in row}
    for row in result["results"]:
        for part in row.get("histogram", []):
            members |= set(part)
    # only with --interval or --infinite, and only with --batch
    members |= {"intervals", "at_s", "runs"}
    equal(documented, members)


if __name__ == "__main__":
    main(list(globals().items()))
