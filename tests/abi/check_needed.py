#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares what shared libraries need with what they may need.

Usage: check_needed.py PROVIDER... [--registry LIBRARY]

A provider needs neither libdat.so.1 nor libdat2.so.2, because a machine may have one of them only;
so it takes no name of theirs either. A registry library needs the C library alone.
"""
import argparse
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


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("providers", nargs="+")
    ap.add_argument("--registry")
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
    print("\n".join(bad) or "passed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
