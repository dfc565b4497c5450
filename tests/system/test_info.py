#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""dat_info: why an adapter does not open and what to do; the members of the JSON of the tools."""
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

from testing import (ADAPTER, BUILD, DAT_INFO, DAT_PING, SOURCE, Skip, contains, equal, main,
                     ping, ping_server, registry_file, run)


def explained(adapter, env=None, before=(), count=1):
    """Reasons and advice for an adapter that does not open, which text and JSON must both give."""
    status, out, err = run(*before, DAT_INFO, "--json", "--adapter", adapter, env=env)
    equal(status, 1, out + err)
    found, = json.loads(out)["adapters"]
    for reason in found["reasons"]:
        contains(err, f"\n  why: {reason}\n")
    for advice in found["advice"]:
        contains(err, f"\n  what to do: {advice}\n")
    assert found["reasons"] and found["advice"], out
    # each reason once: one of the host, or of the library, which are not the same in other words
    equal(len(found["reasons"]), count, out)
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
    reasons, advice = explained("soft-dat0", before=before, count=2)
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
    for library, reason in (("libm.so.6", "libm.so.6 is no provider"),
                            (__file__, f"{__file__}: invalid ELF header")):
        with registry_file(f'mine u1.2 threadsafe default {library} v1 "lo" ""\n') as (_, env):
            reasons, advice = explained("mine", env)
        contains(reasons, reason)
        contains(advice, "libdat-soft.so.1 for an interface, libdat-verbs.so.1 for an RDMA device")


def denied_system_call__named():
    for call in ("memfd_create", "epoll_create1", "eventfd2"):
        before = [sys.executable, str(SOURCE / "tests" / "system" / "deny_call.py"), call]
        if run(*before, shutil.which("true"))[0] != 0:
            raise Skip("no seccomp filter can be set here")
        reasons, advice = explained(ADAPTER, before=before)
        equal(reasons, f"the system call {call} is refused: Operation not permitted")
        contains(advice, f"seccomp filter of this process permit {call}")


def socket_dir_that_is_missing_or_open_to_all__directory_and_mode():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "names")
        reasons, advice = explained(ADAPTER, {"DAT_SOCKET_DIR": path})
        equal(reasons, f"socket_dir={path} cannot be used: No such file or directory")
        contains(advice, f"install -d -m 1777 {path}")
        os.mkdir(path)
        os.chmod(path, 0o777)
        reasons, advice = explained(ADAPTER, {"DAT_SOCKET_DIR": path})
        contains(reasons, f"socket_dir={path} cannot be used: others can write to it")
        contains(advice, f"its mode is 0777: chmod 1777 {path}")
        equal(run("sh", "-c", advice.split(": ")[1].split(",")[0])[0], 0)
        equal(run(DAT_INFO, "--adapter", ADAPTER, env={"DAT_SOCKET_DIR": path})[0], 0)


def rdma_device_that_is_none__those_of_this_host():
    if not (BUILD / "src" / "verbs" / "libdat-verbs.so.1").exists():
        raise Skip("built without the provider over rdma-core")
    path = f"{os.environ['LD_LIBRARY_PATH']}:{BUILD}/src/verbs"
    with registry_file('mine u1.2 threadsafe default libdat-verbs.so.1 v1 "nosuch5_0 1" ""\n') as (
            _, env):
        reasons, advice = explained("mine", {**env, "LD_LIBRARY_PATH": path})
    contains(reasons, "nosuch5_0")
    contains(advice, "devices of this host: ")


def address_of_another_host__where_ours_are():
    with registry_file('mine u1.2 threadsafe default libdat-soft.so.1 v1 "192.0.2.99" ""\n') as (
            _, env):
        reasons, advice = explained("mine", env)
    contains(reasons, "address 192.0.2.99: no interface of this host has it")
    contains(advice, "ip address")


# ---- what an adapter is ----

def settings__value_and_origin():
    with registry_file('mine u1.2 threadsafe default libdat-soft.so.1 v1 '
                       '"lo spin_us=7 copy=ring" ""\n') as (name, env):
        status, out, err = run(DAT_INFO, "--json", env={**env, "DAT_COPY": "cma"})
        equal(status, 0, err)
        adapter, = json.loads(out)["adapters"]
        found = {setting["name"]: (setting["value"], setting["origin"])
                 for setting in adapter["settings"]}
        equal(found["spin_us"], ("7", f"{name}:1"))
        equal(found["copy"], ("cma", "DAT_COPY"))
        equal(found["transport"], ("auto", "default"))
        equal(found["socket_dir"], ("none", "default"))
        text = run(DAT_INFO, "--verbose", env={**env, "DAT_COPY": "cma"})[1]
    assert re.search(rf"^ +spin_us +7 us \({name}:1\)$", text, re.M), text
    assert re.search(r"^ +copy +cma \(DAT_COPY\)$", text, re.M), text


def verbose__sums_of_bits__names():
    out = run(DAT_INFO, "--verbose", "--adapter", ADAPTER)[1]
    for name, text in (("lmr_mem_types_supported", "virtual, lmr, shared_virtual, so_virtual"),
                       ("srq_watermarks_supported", "low, soft high, hard high"),
                       ("srq_info_supported", "available_dto_count, outstanding_dto_count"),
                       ("ep_recv_info_supported", "nbufs_allocated, bufs_alloc_span")):
        assert re.search(rf"^ +{name} +{text}$", out, re.M), out


def list__long_cells__columns_in_line():
    name = "a-name-that-is-longer-than-the-head-of-its-column"
    with registry_file(f'{name} u1.2 threadsafe default libdat-soft.so.1 v1 "lo" ""\n'
                       'v6 u1.2 threadsafe default libdat-soft.so.1 v1 "::1" ""\n') as (_, env):
        lines = run(DAT_INFO, env=env)[1].splitlines()
    for word in ("address", "thread safe", "source", "library"):
        column = lines[0].index(word)
        for line in lines:
            assert line[column - 2:column] == "  " and line[column] != " ", lines


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


def line_of_the_reference__the_library_that_serves_it():
    """CONF-45 CONF-47"""
    text = 'OpenIB-cma u1.2 nonthreadsafe default libdaplcma.so.1 dapl.1.2 "lo 0" ""\n'
    with registry_file(text) as (name, env):
        status, out, err = run(DAT_INFO, env=env)
        equal(status, 0, err)
        assert re.search(r"^OpenIB-cma .*:1 .*/libdat-soft\.so\.1 instead of libdaplcma\.so\.1$",
                         out, re.M), out
        status, out, err = run(DAT_INFO, "--verbose", env=env)
        assert re.search(r"^  instead of +libdaplcma\.so\.1, which is missing$", out, re.M), out
        reasons, advice = explained("OpenIB-cma", {**env, "DAT_OPENDAT_REPLACE": "off"})
    contains(reasons, "libdaplcma.so.1: cannot open shared object file")
    contains(advice, "DAT_OPENDAT_REPLACE=off")


def undefined_name__the_adapter_of_the_environment():
    """CONF-46"""
    status, out, err = run(DAT_INFO, "--json", "--adapter", "ib0",
                           env={"DAT_OPENDAT_DEFAULT": ADAPTER})
    equal(status, 0, err)
    found, = json.loads(out)["adapters"]
    equal(found["name"], "ib0")
    equal(found["source"], f"DAT_OPENDAT_DEFAULT={ADAPTER}")
    equal(found["ia"]["adapter_name"], ADAPTER)
    contains(found["library"], "/libdat-soft.so.1")


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
            'old u1.2 threadsafe default libdaplcma.so.1 v1 "lo" ""\n'
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
