#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The tools, the example and the soak as people start them: output, exit status, no leftovers."""
import json
import signal

from testing import (ADAPTER, DAT_INFO, DAT_PING, HELLO_DAT, SOAK, SOURCE, WAIT_S, contains, equal,
                     main, ping, ping_server, registry_file, run, shared_names, started)


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
def dat_ping__nobody_listens__says_so_at_once():
    with ping_server("--once") as (server, qualifier):
        ping(qualifier, "--op", "send", "--size", "1", "--count", "1")
        equal(server.wait(WAIT_S), 0)
    status, _, err = ping(qualifier, "--timeout", "60")
    equal(status, 3, err)
    contains(err, "nobody listens")


def dat_ping__server_dies__client_fails_with_reason():
    with ping_server() as (server, qualifier):
        with started(DAT_PING, "--adapter", ADAPTER, "--qual", qualifier, "--op", "send",
                     "--size", "64", "--count", "50000000") as client:
            # the head of the table is printed once the connection stands
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
        # the server goes on
        equal(ping(qualifier, "--op", "read", "--size", "5", "--count", "2")[0], 0)
        equal(server.poll(), None)


def dat_ping__unknown_adapter__decoded_code_and_status_3():
    status, _, err = run(DAT_PING, "--adapter", "no-such-adapter", "--qual", "1")
    equal(status, 3)
    contains(err, "DAT_PROVIDER_NOT_FOUND DAT_NAME_NOT_REGISTERED")


def dat_ping__bad_usage__status_2():
    for options in (["--size", "0"], ["--size", "4:2"], ["--op", "fetch"], ["--count", "0"],
                    ["--qual", "x"], ["--no-such-option"], ["a", "b"], ["--timeout", "0"]):
        equal(run(DAT_PING, "--qual", "1", *options)[0], 2, options)
    equal(run(DAT_PING)[0], 2)


# ---- dat_info ----

def dat_info__adapter__address_and_library():
    status, out, err = run(DAT_INFO, "--device", ADAPTER)
    equal(status, 0, err)
    contains(out, ADAPTER)
    contains(out, "libdat-soft.so.1")


# IA-QUERY-12 IA-QUERY-39 IA-QUERY-40 IA-QUERY-53
def dat_info__json__attributes_of_the_adapter():
    status, out, err = run(DAT_INFO, "--json", "--device", ADAPTER)
    equal(status, 0, err)
    adapter, = json.loads(out)["adapters"]
    equal(adapter["name"], ADAPTER)
    equal(adapter["ia"]["adapter_name"], ADAPTER)
    equal(adapter["provider"]["dapl_version_major"], 1)
    equal(adapter["provider"]["dapl_version_minor"], 2)
    equal(adapter["provider"]["lmr_mem_types_supported"], "virtual, lmr, shared_virtual")
    assert adapter["provider"]["max_private_data_size"] >= 64
    equal(adapter["provider"]["evd_stream_merging_supported"], [[True] * 6] * 6)


def dat_info__verbose__every_attribute_named():
    status, out, err = run(DAT_INFO, "--verbose", "--device", ADAPTER)
    equal(status, 0, err)
    for name in ("max_message_size", "ia_address_ptr", "completion_flags_supported", "srq_supported",
                 "max_rdma_read_per_ep_in", "evd_stream_merging_supported"):
        contains(out, name)


# CONF-29 CONF-30
def dat_info__bad_lines__told_with_file_line_and_reason():
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


def dat_info__sample_file__at_most_8_adapters():
    sample = SOURCE / "packaging" / "dat.conf"
    status, out, err = run(DAT_INFO, "--json", env={"DAT_OVERRIDE": str(sample)})
    equal(status, 0, err)
    found = json.loads(out)
    equal(found["skipped"], [])
    names = [adapter["name"] for adapter in found["adapters"]]
    assert "soft-lo" in names, names
    # both thread safeties of a name are entries of their own
    assert 2 * len(names) <= 8, names


# ---- example and soak ----

def hello_dat__server_and_client__message_and_memory_arrive():
    with started(HELLO_DAT) as server:
        qualifier = server.stdout.readline().split()[-1]
        status, out, err = run(HELLO_DAT, qualifier)
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
