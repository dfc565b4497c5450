#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Refused connections: dat_ping and dat_perf give the right cause, and say what to do."""
from testing import (ADAPTER, DAT_PERF, DAT_PING, Skip, WAIT_S, contains, equal, main, perf,
                     perf_server, ping, ping_server, run, started)

FEW = ["sh", "-c", 'ulimit -n 24; exec "$@"', "sh"]
MANY = ["--idle", "100", "--test", "send-lat", "--size", "8", "--count", "3"]


# EP-CONNECT-20
def no_listener__qualifier_and_how_to_start_one():
    with ping_server("--once") as (server, qualifier):
        ping(qualifier, "--op", "send", "--size", "1", "--count", "1")
        equal(server.wait(WAIT_S), 0)
    for tool, name in ((DAT_PING, "dat_ping"), (DAT_PERF, "dat_perf")):
        status, _, err = run(tool, "--adapter", ADAPTER, "--qual", qualifier)
        equal(status, 3, err)
        contains(err, f"refused, no listener on qualifier {qualifier} at ")
        contains(err, f"start `{name} --server`")
        assert "descriptors" not in err, err


def rejected_by_the_program__its_messages_say_why():
    with perf_server() as (server, qualifier):
        status, _, err = ping(qualifier)
        equal(status, 3, err)
        contains(err, "rejected by the peer")
        contains(err, "must be a `dat_ping --server`")
        server.kill()
        contains(server.stderr.read(), "rejected a client that is not dat_perf")


def qualifier_in_use__how_to_choose_another():
    with ping_server() as (_, qualifier):
        status, out, err = run(DAT_PING, "--server", "--adapter", ADAPTER, "--qual", qualifier)
    equal((status, out), (3, ""))
    contains(err, "DAT_CONN_QUAL_IN_USE")
    contains(err, f"another program has the qualifier {qualifier} at this address")
    contains(err, "leave --qual out")


def unknown_host__says_so():
    status, out, err = run(DAT_PING, "--adapter", ADAPTER, "--qual", "1", "nosuchhost.invalid")
    equal((status, out), (3, ""))
    contains(err, "nosuchhost.invalid")
    contains(err, "this host does not know the name")


def unreachable_host__says_so():
    if ADAPTER != "soft-lo":
        raise Skip("another adapter may reach it")
    # a documentation address, which no host has (RFC 5737)
    for tool in (DAT_PING, DAT_PERF):
        status, _, err = run(tool, "--adapter", ADAPTER, "--qual", "77", "192.0.2.1")
        equal(status, 3, err)
        contains(err, "unreachable, the adapter has no way to 192.0.2.1")
        contains(err, "reaches this host only")


def descriptors_of_the_client__limit_and_how_to_raise_it():
    with perf_server() as (server, qualifier):
        status, _, err = run(*FEW, DAT_PERF, "--adapter", ADAPTER, "--qual", qualifier, *MANY)
        equal(status, 3, err)
        contains(err, "descriptors exhausted: this process may open 24")
        contains(err, "ulimit -n")
        assert "no listener" not in err, err
        # the server is not the one that is short of them
        equal(perf(qualifier, *MANY)[0], 0)
        equal(server.poll(), None)


# CR-ACCEPT-28
def descriptors_of_the_server__it_says_so_and_rejects():
    with started(*FEW, DAT_PERF, "--server", "--once", "--adapter", ADAPTER) as server:
        qualifier = server.stdout.readline().split("=")[-1].strip()
        # a timeout that the test never reaches: the client is answered, or the test is too slow
        status, _, err = perf(qualifier, "--timeout", str(WAIT_S), *MANY)
        equal(status, 3, err)
        contains(err, "rejected by the peer")
        equal(server.wait(WAIT_S), 3)
        contains(server.stderr.read(), "descriptors exhausted: this process may open 24")


if __name__ == "__main__":
    main(list(globals().items()))
