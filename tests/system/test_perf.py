#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""dat_perf: measuring by the clock, both directions, batches, pictures, what its JSON says."""
import datetime
import json
import os
import pathlib
import re
import signal
import socket
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
    equal(set(result["intervals"][0]), {"at_s", "elapsed_s", "count", "per_s", "mb_per_s"})
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
    # only with --infinite, and only with --batch
    members |= {"intervals", "at_s", "runs"}
    equal(documented, members)


if __name__ == "__main__":
    main(list(globals().items()))
