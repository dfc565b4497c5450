#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares what shared libraries need and export with what they may.

Usage: check_needed.py PROVIDER... [--registry LIBRARY --facts dat-2.0.json]

A provider needs neither libdat.so.1 nor libdat2.so.2, because a machine may have one of them only;
so it takes no name of theirs either. A registry library needs the C library alone, and exports the names of the facts and some of OpenDAT.
"""
import argparse
import json
import re
import subprocess
import sys

# the names by which the C library and its loader are needed, with glibc and with musl
OF_LIBC = re.compile(r"(libc|libm|libdl|libpthread|ld-linux[\w-]*|libc\.musl[\w-]*)\.so(\.\d+)?")


def readelf(option, library):
    return subprocess.run(["readelf", "-W", option, library], check=True, capture_output=True,
                          text=True).stdout


def needed(library):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", library))


def undefined(library):
    """The names that the library takes from others, without versions."""
    return re.findall(r" UND (\w+)", readelf("--dyn-syms", library))


# D2-LIB-05
OF_OPENDAT = {
    "dat_cno_fd_create", "dat_cno_trigger", "dat_csp_create", "dat_csp_free", "dat_csp_query",
    "dat_ep_common_connect", "dat_ep_post_rdma_read_to_rmr", "dat_ep_post_send_with_invalidate",
    "dat_registry_providers_related", "dat_rmr_create_for_ep"}


def check_exports(library, facts):
    """D2-LIB-05 D2-LIB-06: which names a library has under which version node."""
    with open(facts, encoding="utf-8") as file:
        expected = {symbol["name"] for symbol in json.load(file)["library"]["symbols"]}
    found = {}
    for name, node in re.findall(r" (?:FUNC|OBJECT|IFUNC) +(?:GLOBAL|WEAK) +DEFAULT +\w+ (\w+)@+([\w.]+)",
                                 readelf("--dyn-syms", library)):
        if not node.startswith("GLIBC"):
            found.setdefault(node, set()).add(name)
    own = {name for name in found.get("OPENDAT_2.0", ()) if not name.startswith("dat_opendat_")}
    for node, wanted in (("DAT_2.0", expected), ("OPENDAT_2.0", OF_OPENDAT)):
        names = own if node == "OPENDAT_2.0" else found.pop(node, set())
        yield from (f"{library}: {name} is in {node}" for name in sorted(names - wanted))
        yield from (f"{library}: {name} is not in {node}" for name in sorted(wanted - names))
    yield from (f"{library}: another node {node}" for node in found if node != "OPENDAT_2.0")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("providers", nargs="+")
    ap.add_argument("--registry")
    ap.add_argument("--facts")
    args = ap.parse_args()
    bad = []
    # D2-REG-05
    for library in args.providers:
        if not needed(library):
            bad.append(f"{library} needs nothing")
        bad += [f"{library} needs {name}" for name in needed(library) if name.startswith("libdat")]
        bad += [f"{library} takes {name}" for name in undefined(library)
                if name.startswith(("dat_", "dats_"))]
    # D2-LIB-08
    if args.registry:
        bad += [f"{args.registry} needs {name}" for name in needed(args.registry)
                if not OF_LIBC.fullmatch(name)]
        bad += check_exports(args.registry, args.facts)
    print("\n".join(bad) or "passed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
