#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""dat_info: why an adapter does not open and what to do; the members of the JSON of the tools."""
import json
import os
import pathlib
import re
import shutil
import tempfile

from testing import (ADAPTER, BUILD, DAT_INFO, DAT_PING, SOURCE, Skip, contains, equal, main,
                     ping, ping_server, registry_file, run)


def explained(adapter, env=None, before=()):
    """Reasons and advice for an adapter that does not open, which text and JSON must both give."""
    status, out, err = run(*before, DAT_INFO, "--json", "--adapter", adapter, env=env)
    equal(status, 1, out + err)
    found, = json.loads(out)["adapters"]
    for reason in found["reasons"]:
        contains(err, f"\n  why: {reason}\n")
    for advice in found["advice"]:
        contains(err, f"\n  what to do: {advice}\n")
    assert found["reasons"] and found["advice"], out
    contains(err, found["error"])
    return "\n".join(found["reasons"]), "\n".join(found["advice"])


def missing_interface__named():
    reasons, advice = explained("soft-nosuch0")
    contains(reasons, "no interface nosuch0")
    contains(advice, "ip link")


def missing_interface_in_dat_conf__named():
    with registry_file('mine u1.2 threadsafe default libdat-soft.so.1 v1 "nosuch0" ""\n') as (_, env):
        contains(explained("mine", env)[0], "nosuch0")


def interface_that_is_down__how_to_activate_it():
    before = ["unshare", "--map-root-user", "--net", "sh", "-c",
              'ip link add dat0 type veth peer name dat1 && exec "$@"', "sh"]
    if run(*before, "true")[0] != 0:
        raise Skip("no network namespace with an interface can be made here")
    reasons, advice = explained("soft-dat0", before=before)
    contains(reasons, "the interface dat0 is down")
    contains(advice, "ip link set dat0 up")


def interface_without_rdma_device__how_to_make_a_soft_one():
    if not (BUILD / "src" / "verbs" / "libdat-verbs.so.1").exists():
        raise Skip("built without the provider over rdma-core")
    if pathlib.Path("/sys/class/infiniband").is_dir():
        raise Skip("this host has RDMA devices")
    path = f"{os.environ['LD_LIBRARY_PATH']}:{BUILD}/src/verbs"
    reasons, advice = explained("verbs-lo", {"LD_LIBRARY_PATH": path})
    contains(reasons, "no RDMA device belongs to the interface lo")
    contains(advice, "rdma link add")


def missing_provider_library__its_file():
    entry = 'mine u1.2 threadsafe default /nowhere/libdat-soft.so.1 v1 "lo" ""\n'
    with registry_file(entry) as (_, env):
        reasons, advice = explained("mine", env)
    contains(reasons, "/nowhere/libdat-soft.so.1: cannot open shared object file")
    contains(advice, "LD_LIBRARY_PATH")


def missing_library_of_a_built_in_adapter__its_name():
    with tempfile.TemporaryDirectory() as folder:
        library = next((BUILD / "src" / "registry").glob("libdat.so.1.*.*"))
        shutil.copy(library, os.path.join(folder, "libdat.so.1"))
        reasons, advice = explained("soft-lo", {"LD_LIBRARY_PATH": folder})
    contains(reasons, "libdat-soft.so.1: cannot open shared object file")
    contains(advice, "install libdat-soft.so.1")


def library_that_is_no_provider__says_so():
    with registry_file('mine u1.2 threadsafe default libm.so.6 v1 "" ""\n') as (_, env):
        contains(explained("mine", env)[0], "libm.so.6 is no provider")


def bad_setting__name_value_and_choices():
    reasons, advice = explained(ADAPTER, {"DAT_COPY": "fast"})
    contains(reasons, 'DAT_COPY: "fast" is not auto, map, cma or ring')
    contains(advice, "opendat(7)")
    with registry_file('mine u1.2 threadsafe default libdat-soft.so.1 v1 "lo colour=red" ""\n') as (
            _, env):
        reasons, advice = explained("mine", env)
    contains(reasons, "colour=red")
    contains(advice, "its line of dat.conf")


def descriptor_limit__the_limit():
    # the loader needs two to start the program at all
    reasons, advice = explained(ADAPTER, before=["sh", "-c", 'ulimit -n 6; exec "$@"', "sh"])
    contains(reasons, "only 6 descriptors")
    contains(advice, "ulimit -n")


def override_without_the_adapter__the_file():
    with registry_file('mine u1.2 threadsafe default libdat-soft.so.1 v1 "lo" ""\n') as (name, env):
        reasons, advice = explained("soft-lo", env)
    contains(reasons, name)
    contains(advice, "unset DAT_OVERRIDE")


def unknown_name__where_the_names_are():
    reasons, advice = explained("no-such-adapter")
    contains(reasons, "has this name")
    equal(len(reasons.splitlines()), 1)
    contains(advice, "dat_info --list")
    status, _, err = run(DAT_INFO, "--adapter", "no-such-adapter", env={"DAT_DBG_TYPE": "0"})
    equal(status, 1)
    contains(err, "why: no line of dat.conf and no built-in adapter has this name")


def log_of_the_user__goes_to_stderr_as_requested():
    status, _, err = run(DAT_INFO, "--adapter", ADAPTER,
                         env={"DAT_COPY": "fast", "DAT_DBG_TYPE": "1"})
    equal(status, 1)
    assert re.search(r"opendat\[\d+\]: .*DAT_COPY", err), err


def dat_ping__adapter_does_not_open__where_to_look():
    status, _, err = run(DAT_PING, "--adapter", "soft-nosuch0", "--qual", "1")
    equal(status, 3)
    contains(err, "dat_info --adapter soft-nosuch0")


def several_lines_of_a_name__the_one_that_was_opened():
    """CONF-31 CONF-33: the library of the first line is missing, others have other versions."""
    with registry_file('mine u1.2 threadsafe default /nowhere/libdat-soft.so.1 v1 "none" ""\n'
                       'mine u1.2 nonthreadsafe default libdat-soft.so.1 v1 "unsafe" ""\n'
                       'mine u1.1 threadsafe default libdat-soft.so.1 v1 "old" ""\n'
                       'mine u1.2 threadsafe default libdat-soft.so.1 v1 "lo" ""\n'
                       'mine u1.2 threadsafe default libdat-soft.so.1 v1 "last" ""\n') as (
                           name, env):
        status, out, err = run(DAT_INFO, "--json", "--adapter", "mine", env=env)
    equal(status, 0, err)
    found, = json.loads(out)["adapters"]
    equal(found["source"], f"{name}:4")
    equal(found["instance_data"], "lo")
    contains(found["library"], "/libdat-soft.so.1")
    assert "nowhere" not in found["library"], found["library"]


# ---- JSON ----

def members(value):
    """All names of members of objects in a value, those of attribute structures excepted."""
    if isinstance(value, list):
        return set().union(*map(members, value)) if value else set()
    if isinstance(value, dict):
        found = set(value)
        for name, part in value.items():
            if name not in ("ia", "provider"):
                found |= members(part)
        return found
    return set()


def documented(tool):
    page = (SOURCE / "man" / f"{tool}.1").read_text(encoding="utf-8")
    section = page.split(".SS JSON", 1)[1].split(".SH ", 1)[0]
    return set(re.findall(r"^([a-z0-9_]+)\|", section, re.M))


def dat_info__json__members_as_in_the_manual_page():
    text = ('mine u1.2 threadsafe default libdat-soft.so.1 v1 "lo" ""\n'
            'bad u1.2 threadsafe default /nowhere/lib.so v1 "" ""\n'
            "not a line\n")
    with registry_file(text) as (_, env):
        status, out, err = run(DAT_INFO, "--json", env=env)
    equal(status, 1, err)
    result = json.loads(out)
    equal(members(result), documented("dat_info"))
    headers = "".join(path.read_text(encoding="utf-8")
                      for path in (SOURCE / "include" / "dat").glob("*.h"))
    for part in ("ia", "provider"):
        for name in result["adapters"][0][part]:
            assert re.search(rf"\b{name}\b", headers), name


def dat_ping__json__members_as_in_the_manual_page():
    with ping_server("--once") as (_, qualifier):
        status, out, err = ping(qualifier, "--json", "--size", "8", "--count", "3")
    equal(status, 0, err)
    equal(members(json.loads(out)), documented("dat_ping"))


if __name__ == "__main__":
    main(list(globals().items()))
