#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The tools, the example and the soak as programs: output, exit status, nothing left behind."""
import contextlib
import csv
import json
import os
import signal
import tempfile
import time

from testing import (ADAPTER, DAT_INFO, DAT_PERF, DAT_PING, HELLO_DAT, SOAK, SOURCE, Skip, WAIT_S,
                     contains, environment, equal, is_sanitized, main, perf, perf_server, ping,
                     ping_server, registry_file, run, shared_names, started, tool_server)


# ---- dat_ping ----

def dat_ping__all_operations__every_byte_verified():
    with ping_server("--once") as (server, qualifier):
        status, out, err = ping(qualifier, "--size", "1:64k", "--count", "20")
        equal(status, 0, out + err)
        for op in ("send", "write", "read"):
            equal(sum(line.startswith(op + " ") for line in out.splitlines()), 9, out)
        contains(out, "every byte of every transfer verified")
        equal(server.wait(WAIT_S), 0)


def dat_ping__odd_sizes_and_polling__verified():
    with ping_server("--poll") as (_, qualifier):
        for size in ("3", "4097", "1000003"):
            status, out, err = ping(qualifier, "--poll", "--size", size, "--count", "3")
            equal(status, 0, out + err)


def dat_ping__client_after_client__both_served():
    with ping_server() as (server, qualifier):
        for _ in range(2):
            equal(ping(qualifier, "--op", "send", "--size", "8", "--count", "2")[0], 0)
        server.send_signal(signal.SIGINT)
        equal(server.wait(WAIT_S), 0)


def dat_ping__json__figures_of_each_size():
    with ping_server("--once") as (_, qualifier):
        status, out, err = ping(qualifier, "--json", "--op", "write", "--size", "1:16",
                                "--count", "10")
    equal(status, 0, err)
    result = json.loads(out)
    equal([r["bytes"] for r in result["results"]], [1, 4, 16])
    equal(result["is_complete"], True)
    for row in result["results"]:
        assert 0 < row["min"] <= row["p50"] <= row["p99_9"] <= row["max"], row
        equal(row["count"], 10)


# EP-CONNECT-20
def dat_ping__no_listener__reported_at_once():
    with ping_server("--once") as (server, qualifier):
        ping(qualifier, "--op", "send", "--size", "1", "--count", "1")
        equal(server.wait(WAIT_S), 0)
    status, _, err = ping(qualifier, "--timeout", "60")
    equal(status, 3, err)
    contains(err, "no listener")


def dat_ping__server_dies__client_fails_with_reason():
    with ping_server() as (server, qualifier):
        with started(DAT_PING, "--adapter", ADAPTER, "--qual", qualifier, "--op", "send",
                     "--size", "64", "--count", "50000000") as client:
            # the head of the table is printed when the connection is established
            contains(client.stdout.readline(), "adapter")
            server.kill()
            equal(client.wait(WAIT_S), 3)
            assert client.stderr.read(), "no reason given"


def dat_ping__interrupted__ends_with_130():
    with ping_server() as (server, qualifier):
        with started(DAT_PING, "--adapter", ADAPTER, "--qual", qualifier, "--op", "write",
                     "--size", "64", "--count", "50000000") as client:
            contains(client.stdout.readline(), "adapter")
            client.send_signal(signal.SIGINT)
            equal(client.wait(WAIT_S), 130)
        # the server keeps running
        equal(ping(qualifier, "--op", "read", "--size", "5", "--count", "2")[0], 0)
        equal(server.poll(), None)


def dat_ping__path__as_the_adapter_connects():
    for transport, path in (("auto", "shm"), ("tcp", "tcp")):
        with environment({"DAT_TRANSPORT": transport}), ping_server() as (_, qualifier):
            options = ("--size", "1", "--count", "1")
            status, out, err = ping(qualifier, *options)
            equal(status, 0, err)
            contains(out.splitlines()[0], f", path {path}, ")
            equal(json.loads(ping(qualifier, "--json", *options)[1])["path"], path)


def servers__no_client_comes__give_up_if_told_when():
    for tool, client in ((DAT_PING, ping), (DAT_PERF, perf)):
        name = os.path.basename(tool)
        for once in ((), ("--once",)):
            status, out, err = run(tool, "--server", "--adapter", ADAPTER, "--timeout", "1", *once)
            equal((status, err), (3, f"{name}: no client in 1 s\n"))
            contains(out, "listening")
        with tool_server(tool, "--timeout", "1") as (server, qualifier):
            equal(client(qualifier, "--size", "8", "--count", "3")[0], 0)
            equal(server.wait(WAIT_S), 0)


def is_running(pid):
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    return False


def servers__daemon__listens_when_the_command_ends():
    for tool, client in ((DAT_PING, ping), (DAT_PERF, perf)):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "pid")
            status, out, err = run(tool, "--server", "--adapter", ADAPTER, "--daemon", "--pid-file",
                                   path)
            equal((status, err), (0, ""))
            qualifier = out.strip().split("qualifier=")[1]
            with open(path, encoding="ascii") as file:
                pid = int(file.read())
            try:
                assert is_running(pid), pid
                equal(client(qualifier, "--size", "8", "--count", "3")[0], 0)
            finally:
                os.kill(pid, signal.SIGTERM)
            deadline = time.monotonic() + WAIT_S
            while is_running(pid):
                assert time.monotonic() < deadline, "the daemon does not end"
                time.sleep(0.01)
            equal(os.listdir(folder), [])


def servers__daemon_that_cannot_listen__fails_with_its_message():
    for tool in (DAT_PING, DAT_PERF):
        for options, message in ((("--adapter", "soft-nosuch0"), "cannot open adapter soft-nosuch0"),
                                 (("--adapter", ADAPTER, "--pid-file", "/nowhere/pid"),
                                  "--pid-file /nowhere/pid: No such file or directory")):
            status, _, err = run(tool, "--server", "--daemon", *options)
            equal(status, 3, err)
            contains(err, message)
        status, _, err = run(tool, "--qual", "1", "--daemon")
        equal(status, 2)
        contains(err, "--daemon and --pid-file are for a server")


def dat_ping__unknown_adapter__decoded_code_and_status_3():
    status, _, err = run(DAT_PING, "--adapter", "no-such-adapter", "--qual", "1")
    equal(status, 3)
    contains(err, "DAT_PROVIDER_NOT_FOUND DAT_NAME_NOT_REGISTERED")


def dat_ping__bad_usage__status_2():
    for options in (["--size", "0"], ["--size", "4:2"], ["--op", "fetch"], ["--count", "0"],
                    ["--qual", "x"], ["--no-such-option"], ["a", "b"], ["--timeout", "0"]):
        equal(run(DAT_PING, "--qual", "1", *options)[0], 2, options)
    equal(run(DAT_PING)[0], 2)


# ---- dat_perf ----

PERF_LAT = ["send-lat", "write-lat", "write-comp-lat", "read-lat", "wake-lat", "poll-lat", "reg",
            "reg-kept", "reg-free"]
PERF_BW = ["send-bw", "write-bw", "read-bw"]


def perf_json(qualifier, *options):
    """The rows of one run that must succeed."""
    status, out, err = perf(qualifier, "--json", *options)
    equal(status, 0, out + err)
    result = json.loads(out)
    equal((result["is_complete"], result["wrong"]), (True, 0))
    return result["results"]


def dat_perf__all_tests__figures_that_fit_together():
    with perf_server("--once") as (server, qualifier):
        rows = perf_json(qualifier, "--test", "all", "--size", "1,100", "--count", "7",
                         "--idle", "40")
        equal(server.wait(WAIT_S), 0)
    equal([row["test"] for row in rows if "bytes" in row],
          [test for test in PERF_LAT + PERF_BW for _ in range(2)])
    equal([row["test"] for row in rows if "bytes" not in row],
          ["connect", "memory", "cpu-idle", "space"])
    for row in rows:
        if row["test"] in PERF_LAT + ["connect"]:
            times = [row[name] for name in ("min", "p50", "p90", "p99", "p99_9", "max")]
            equal(times, sorted(times))
            assert 0 < row["min"] <= row["avg"] <= row["max"], row
        if "per_s" in row:
            equal(row["count"], 7, row)
            assert row["per_s"] > 0, row
        if "bytes" in row:
            # printed to three digits
            difference = abs(row["mb_per_s"] - row["per_s"] * row["bytes"] / 1e6)
            assert difference < 0.002, row
    memory, idle, space = rows[-3:]
    equal((memory["count"], idle["count"]), (40, 40))
    for side in ("client", "server"):
        assert memory[f"{side}_bytes"] > 0 and memory[f"{side}_space_bytes"] > 0, memory
    # More than the library's text, less than if the library's thread had an arena of malloc (64
    # MiB). The key table of the server (16 MiB) may still be mapped.
    assert 1 << 17 < space["client_bytes"] < (1 << 28 if is_sanitized() else 56 << 20), space


def dat_perf__check__every_way_of_transfer_verified():
    with perf_server() as (server, qualifier):
        # waiting is the default: polling needs a processor for each process
        for options in ((), ("--buffer", "shared"), ("--endpoints", "3", "--signal", "2", "--wait"),
                        ("--endpoints", "3", "--threads", "2", "--wait"),
                        ("--window", "1", "--wait")):
            rows = perf_json(qualifier, "--check", "--test", "lat,bw", "--size", "1,7,4097,100k",
                             "--count", "17", "--window", "4", *options)
            equal({row["wrong"] for row in rows}, {0}, options)
            endpoints = 3 if "--endpoints" in options else 1
            equal({row["count"] for row in rows}, {17 * endpoints}, options)
        equal(server.poll(), None)


# COMPAT-46 COMPAT-47
def dat_perf__polled_memory_and_fragments__every_byte_verified():
    with perf_server() as (server, qualifier):
        for options in ((), ("--buffer", "shared"), ("--endpoints", "3", "--threads", "2"),
                        ("--window", "1", "--mappings", "500")):
            rows = perf_json(qualifier, "--check", "--test", "poll-lat,reg,reg-kept,send-bw",
                             "--size", "1,8,4097,100k", "--count", "17", "--window", "4", *options)
            equal({row["wrong"] for row in rows}, {0}, options)
        equal(server.poll(), None)


def dat_perf__target_polls__every_byte_verified():
    with perf_server() as (server, qualifier):
        for copy in ("map", "cma", "ring"):
            status, out, err = run(DAT_PERF, "--adapter", ADAPTER, "--qual", qualifier, "--json",
                                   "--check", "--target", "poll", "--test", "lat,write-bw,read-bw",
                                   "--size", "1,4097", "--count", "17", "--window", "4",
                                   env={"DAT_COPY": copy})
            equal(status, 0, out + err)
            result = json.loads(out)
            equal((result["wrong"], result["target"]), (0, "poll"))
        equal(server.poll(), None)


def dat_perf__more_mappings_than_allowed__says_so():
    status, _, err = run(DAT_PERF, "--adapter", ADAPTER, "--qual", "1", "--mappings", "1000000")
    if "AddressSanitizer" in err:
        raise Skip("the sanitizer needs mappings of its own")
    if status == 3 and "cannot connect" in err:
        raise Skip("this kernel allows a million mappings")
    equal(status, 3, err)
    contains(err, "mappings")


def dat_perf__sizes__lists_and_powers_of_two():
    with perf_server("--once") as (_, qualifier):
        rows = perf_json(qualifier, "--test", "send-lat,write-bw", "--size", "3,8:40,1m",
                         "--count", "2")
    equal([row["bytes"] for row in rows], [3, 8, 16, 32, 40, 1 << 20] * 2)


def dat_perf__duration__as_many_as_fit():
    with perf_server("--once") as (_, qualifier):
        rows = perf_json(qualifier, "--test", "send-lat,read-bw,connect", "--size", "8",
                         "--duration", "0.05")
    equal([row["test"] for row in rows], ["send-lat", "read-bw", "connect"])
    for row in rows:
        assert row["count"] > 0 and row["elapsed_s"] > 0, row


def dat_perf__csv__one_line_per_test_and_size():
    with perf_server("--once") as (_, qualifier):
        status, out, err = perf(qualifier, "--csv", "--test", "all", "--size", "8,16",
                                "--count", "3", "--idle", "2", "--window", "5", "--signal", "2")
    equal(status, 0, err)
    rows = list(csv.DictReader(out.splitlines()))
    equal(len(rows), 2 * len(PERF_LAT + PERF_BW) + 4)
    for row in rows:
        assert None not in row and None not in row.values(), row
        equal((row["window"], row["signal"], row["mode"], row["target"], row["buffer"],
               row["endpoints"]), ("5", "2", "poll", "sleep", "private", "1"))
        equal(bool(row["p99_9_us"]), row["test"] in PERF_LAT + ["connect"], row)
        equal(bool(row["client"]), row["test"] in ("memory", "cpu-idle", "space"), row)


def dat_perf__text__a_table_per_kind():
    with perf_server("--once") as (_, qualifier):
        status, out, err = perf(qualifier, "--test", "all", "--size", "8", "--count", "3",
                                "--idle", "2", "--wait")
    equal(status, 0, err)
    contains(err, "too few samples")
    for word in (*PERF_LAT, *PERF_BW, "connect", "memory", "cpu-idle", "space", "p99.9", "MB/s",
                 "waiting"):
        contains(out, word)


def dat_perf__cpu__bound_with_all_its_threads():
    cpu = str(min(os.sched_getaffinity(0)))
    with perf_server("--cpu", cpu) as (server, qualifier):
        equal(os.sched_getaffinity(server.pid), {int(cpu)})
        equal({frozenset(os.sched_getaffinity(int(thread)))
               for thread in os.listdir(f"/proc/{server.pid}/task")}, {frozenset({int(cpu)})})
        perf_json(qualifier, "--cpu", cpu, "--wait", "--test", "send-lat", "--size", "8",
                  "--count", "3")


def dat_perf__idle_connections__beside_transfers():
    with perf_server("--once") as (_, qualifier):
        rows = perf_json(qualifier, "--idle", "40", "--test", "send-lat,send-bw", "--size", "8",
                         "--count", "5")
    equal(len(rows), 2)


def dat_perf__server_dies__client_fails_with_reason():
    for test in ("send-lat", "write-lat", "write-bw", "wake-lat", "poll-lat", "reg"):
        with perf_server() as (server, qualifier):
            with started(DAT_PERF, "--adapter", ADAPTER, "--qual", qualifier, "--test", test,
                         "--size", "64", "--count", "50000000000") as client:
                # the head is printed when the connections are established
                contains(client.stdout.readline(), "adapter")
                server.kill()
                equal(client.wait(WAIT_S), 3, test)
                assert client.stderr.read(), "no reason given"


def dat_perf__client_dies__next_one_is_served():
    with perf_server() as (server, qualifier):
        for test in ("send-lat", "write-lat", "read-bw", "wake-lat", "poll-lat", "reg"):
            with started(DAT_PERF, "--adapter", ADAPTER, "--qual", qualifier, "--test", test,
                         "--size", "64", "--count", "50000000000") as client:
                contains(client.stdout.readline(), "adapter")
                client.kill()
                client.wait(WAIT_S)
            equal(len(perf_json(qualifier, "--test", test, "--size", "8", "--count", "2")), 1)
        equal(server.poll(), None)


def dat_perf__interrupted__ends_with_130():
    with perf_server() as (server, qualifier):
        for test in ("write-lat", "write-bw", "poll-lat", "reg", "reg-free"):
            with started(DAT_PERF, "--adapter", ADAPTER, "--qual", qualifier, "--test", test,
                         "--size", "64", "--count", "50000000000") as client:
                contains(client.stdout.readline(), "adapter")
                client.send_signal(signal.SIGINT)
                equal(client.wait(WAIT_S), 130)
        # the server keeps running until it is stopped
        perf_json(qualifier, "--test", "send-lat", "--size", "8", "--count", "2")
        server.send_signal(signal.SIGTERM)
        equal(server.wait(WAIT_S), 0)


def dat_perf__no_listener__reported_at_once():
    with perf_server("--once") as (server, qualifier):
        perf_json(qualifier, "--test", "read-lat", "--size", "1", "--count", "1")
        equal(server.wait(WAIT_S), 0)
    status, _, err = perf(qualifier, "--timeout", "60")
    equal(status, 3, err)
    contains(err, "no listener")


def dat_perf__a_dat_ping_server__no_partner():
    with ping_server() as (_, qualifier):
        status, _, err = perf(qualifier, "--test", "send-lat", "--count", "1")
    equal(status, 3, err)
    contains(err, "rejected by the peer")


def dat_perf__bad_usage__status_2():
    for options in (["--size", "0"], ["--size", "4:2"], ["--size", "65m"], ["--size", ""],
                    ["--test", "fetch"], ["--test", ""], ["--count", "0"], ["--duration", "0"],
                    ["--duration", "nan"], ["--qual", "x"], ["--no-such-option"], ["a", "b"],
                    ["--timeout", "0"], ["--window", "0"], ["--signal", "0"], ["--buffer", "big"],
                    ["--window", "4", "--signal", "5"], ["--endpoints", "0"], ["--threads", "0"],
                    ["--target", "wait"], ["--mappings", "x"], ["--mappings", "1000001"],
                    ["--cpu", "x"], ["--cpu", "1-"], ["--cpu", "99999"], ["--idle", "x"],
                    ["--check", "--size", "64m", "--window", "64"]):
        status, _, err = run(DAT_PERF, "--qual", "1", *options)
        equal(status, 2, options)
        contains(err, "dat_perf --help")
    equal(run(DAT_PERF)[0], 2)
    equal(run(DAT_PERF, "--help")[0], 0)


# ---- dat_info ----

def dat_info__adapter__address_and_library():
    status, out, err = run(DAT_INFO, "--adapter", ADAPTER)
    equal(status, 0, err)
    contains(out, ADAPTER)
    contains(out, "libdat-soft.so.1")


# IA-QUERY-12 IA-QUERY-39 IA-QUERY-40 IA-QUERY-53
def dat_info__json__attributes_of_the_adapter():
    status, out, err = run(DAT_INFO, "--json", "--adapter", ADAPTER)
    equal(status, 0, err)
    adapter, = json.loads(out)["adapters"]
    equal(adapter["name"], ADAPTER)
    equal(adapter["ia"]["adapter_name"], ADAPTER)
    equal(adapter["provider"]["dapl_version_major"], 1)
    equal(adapter["provider"]["dapl_version_minor"], 2)
    equal(adapter["provider"]["lmr_mem_types_supported"], "virtual, lmr, shared_virtual, so_virtual")
    assert adapter["provider"]["max_private_data_size"] >= 64
    equal(adapter["provider"]["evd_stream_merging_supported"], [[True] * 6] * 6)


def dat_info__verbose__every_attribute_named():
    status, out, err = run(DAT_INFO, "--verbose", "--adapter", ADAPTER)
    equal(status, 0, err)
    for name in ("max_message_size", "ia_address_ptr", "completion_flags_supported", "srq_supported",
                 "max_rdma_read_per_ep_in", "evd_stream_merging_supported"):
        contains(out, name)


# CONF-29 CONF-30
def dat_info__bad_lines__reported_with_file_line_and_reason():
    text = ("first u1.2 threadsafe default /nowhere/lib.so v1 \"\" \"\"\n"
            "short u1.2 threadsafe\n"
            "# comment\n"
            "other u1.2 sometimes default /nowhere/lib.so v1 \"\" \"\"\n"
            "last u1.2 threadsafe default /nowhere/lib.so v1 \"\" \"\"\n")
    with registry_file(text) as (name, env):
        status, out, err = run(DAT_INFO, env=env)
        equal(run(DAT_INFO, "--list", env=env)[1].split(), ["first", "last"])
    equal(status, 1, err)
    contains(out, f"{name}:1")
    contains(out, f"{name}:5")
    contains(err, f"{name}:2: line skipped: ")
    contains(err, f"{name}:4: line skipped: ")


# CONF-44 CONF-36
def dat_info__empty_registry_file__no_adapter():
    status, out, err = run(DAT_INFO, env={"DAT_OVERRIDE": "/dev/null"})
    equal((status, out), (3, ""))
    contains(err, "no adapter")


# CONF-04
def dat_info__registry_file_missing__names_it():
    status, out, err = run(DAT_INFO, env={"DAT_OVERRIDE": "/nowhere/dat.conf"})
    equal((status, out), (3, ""))
    contains(err, "/nowhere/dat.conf")


# GEN-30
def dat_info__misspelt_variable__reported_once_on_request():
    status, out, err = run(DAT_INFO, "--adapter", ADAPTER,
                           env={"DAT_COPPY": "cma", "DAT_DBG_TYPE": "1"})
    equal(status, 0, out + err)
    equal((out + err).count("DAT_COPPY: no setting has that name"), 1, err)
    status, out, err = run(DAT_INFO, "--adapter", ADAPTER, env={"DAT_COPPY": "cma"})
    equal(status, 0, out + err)
    equal((out + err).count("DAT_COPPY"), 0, err)


def dat_info__sample_file__at_most_8_adapters():
    sample = SOURCE / "packaging" / "dat.conf"
    status, out, err = run(DAT_INFO, "--json", env={"DAT_OVERRIDE": str(sample)})
    equal(status, 0, err)
    found = json.loads(out)
    equal(found["skipped"], [])
    names = [adapter["name"] for adapter in found["adapters"]]
    assert "soft-lo" in names, names
    # each thread safety of a name is a separate entry
    assert 2 * len(names) <= 8, names


# ---- example and soak ----

def hello_dat__server_and_client__message_and_memory_arrive():
    for adapter, host in ([], []), (["-a", ADAPTER], ["127.0.0.1"]):
        with started(HELLO_DAT, *adapter) as server:
            qualifier = server.stdout.readline().split()[-1]
            status, out, err = run(HELLO_DAT, *adapter, qualifier, *host)
            equal((status, out), (0, "done\n"), err)
            equal(server.wait(WAIT_S), 0)
            contains(server.stdout.read(), 'client sent "hello, process" and wrote "hello, memory"')


def soak__some_hundred_connections__nothing_grows():
    status, out, err = run(SOAK, "600", ADAPTER)
    equal(status, 0, out + err)
    contains(out, "600 connections")


def tools__all_ended__nothing_left_in_shared_memory():
    before = shared_names()
    with ping_server("--once") as (_, qualifier):
        ping(qualifier, "--size", "1:4k", "--count", "5")
    with ping_server() as (server, qualifier):
        server.kill()
        server.wait(WAIT_S)
    equal(shared_names() - before, set())


if __name__ == "__main__":
    main(list(globals().items()))
