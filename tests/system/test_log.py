#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the log says about an open that fails (DAT_DBG_TYPE=1): the cause, in the words of the system."""
import re

from testing import DAT_INFO, DAT_PING, contains, equal, main, registry_file, run

SOFT = "libdat-soft.so.1"
USAGE = 2  # exit status: an option that does not exist
STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z (?:libdat|opendat)\[\d+\]: "


def failed_open(name, env):
    """The lines of the log of a failed open, without their stamps."""
    status, _, err = run(DAT_INFO, "--adapter", name, env={"DAT_DBG_TYPE": "1", **env})
    assert status not in (0, USAGE), err
    stamped = [line for line in err.splitlines() if "dat[" in line]
    for line in stamped:
        assert re.match(STAMP, line), line
    return "\n".join(re.sub(STAMP, "", line) for line in stamped)


def open_line(library, data, env=None):
    """The log of the failed open of adapter `a`, whose line in dat.conf has that library and data."""
    line = f'a u1.2 threadsafe default {library} opendat.0.1 "{data}" ""\n'
    with registry_file(line) as (_, override):
        return failed_open("a", {**override, **(env or {})})


# GEN-30
def log__open_without_variable__silent():
    line = f'a u1.2 threadsafe default {SOFT} opendat.0.1 "absent0" ""\n'
    with registry_file(line) as (_, override):
        status, _, err = run(DAT_INFO, "--adapter", "a", env=override)
    assert status not in (0, USAGE), err
    equal([text for text in err.splitlines() if "dat[" in text], [], err)


# GEN-30
def log__no_such_interface__named_with_the_text_of_the_system():
    text = failed_open("soft-absent0", {})
    contains(text, "soft-absent0: no line of dat.conf, registration or built-in has")
    contains(text, "soft-absent0: interface absent0: No such device")
    contains(text, "soft-absent0: not opened: DAT_PROVIDER_NOT_FOUND DAT_NAME_NOT_REGISTERED")
    text = open_line(SOFT, "absent0")
    contains(text, "interface absent0: No such device")
    contains(text, "adapter a, device absent0: cannot be opened: No such device")


# GEN-30
def log__address_of_another_host__named():
    text = open_line(SOFT, "192.0.2.1")
    contains(text, "address 192.0.2.1: no interface of this host has it")
    text = open_line(SOFT, "fe80::ffff:1")
    contains(text, "address fe80::ffff:1: no interface of this host has it")


# GEN-30 IWCM-67
def log__interface_of_an_address__named():
    text = open_line(SOFT, "fe80::1%absent0")
    contains(text, "address fe80::1%absent0: interface absent0: No such device")
    text = open_line(SOFT, "::1%lo")
    contains(text, "address ::1%lo: only a link-local address has an interface")


# GEN-30
def log__library_that_does_not_load__text_of_dlopen_and_hint():
    text = open_line("libabsent.so.1", "lo")
    contains(text, "a: cannot load: libabsent.so.1: cannot open shared object file")
    assert "libdat-verbs.so.1" not in text, text
    text = open_line("libdaplcma.so.1", "ib0 0")
    contains(text, "a: cannot load: libdaplcma.so.1: cannot open shared object file")
    contains(text, "write libdat-verbs.so.1 (an RDMA device) or libdat-soft.so.1 (an interface) "
             "and opendat.0.1 in its line of dat.conf")


# GEN-30
def log__setting_that_is_none__named():
    text = open_line(SOFT, "lo colour=red")
    contains(text, 'adapter a, instance data "lo colour=red": "colour=red": there is no such setting')
    text = open_line(SOFT, "lo", env={"DAT_COPY": "fast"})
    contains(text, 'DAT_COPY: "fast" is not auto, map, cma or ring')


# GEN-30
def log__no_descriptor_left__limit_named():
    # the shell lowers the limit so far that the libraries load but an instance cannot be made
    for limit in range(6, 16):
        shell = ("sh", "-c", f'ulimit -n {limit}; exec "$0" "$@"', DAT_INFO)
        line = f'a u1.2 threadsafe default {SOFT} opendat.0.1 "lo" ""\n'
        with registry_file(line) as (_, override):
            _, _, err = run(*shell, "--adapter", "a", env={"DAT_DBG_TYPE": "1", **override})
        if "cannot be opened: Too many open files" in err:
            contains(err, f"the limit is {limit} descriptors")
            return
    raise AssertionError("no limit made the open of the instance fail")


# GEN-30
def log__wrong_version_or_missing_file__named():
    with registry_file(f'a u2.0 threadsafe default {SOFT} opendat.0.1 "lo" ""\n') as (_, override):
        contains(failed_open("a", override), "a: dat.conf has it for other major versions of the API")
    _, _, err = run(DAT_PING, "--adapter", "a", "--qual", "1",
                    env={"DAT_DBG_TYPE": "1", "DAT_OVERRIDE": "/absent/dat.conf"})
    contains(err, "/absent/dat.conf: cannot be read: No such file or directory")


if __name__ == "__main__":
    main(list(globals().items()))
