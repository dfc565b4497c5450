#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compiles a C++ program as each standard with each C++ compiler, and runs it.

Usage: check_cxx.py --include DIR PROGRAM.cc COMPILER...

Compilers that are not installed are named and left out. Exit: 0 all work, 1 one does not, 77 there is
no compiler.
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

STANDARDS = {"c++98": [], "c++11": ["-pedantic"], "c++14": ["-pedantic"], "c++17": ["-pedantic"],
             "c++20": ["-pedantic"]}
WARNINGS = ["-Wall", "-Wextra", "-Wundef", "-Wconversion", "-Werror"]


def works(command, program):
    compiled = subprocess.run(command + ["-o", program], capture_output=True, text=True, check=False)
    if compiled.returncode != 0:
        print(" ".join(command), compiled.stderr, sep="\n")
        return False
    return subprocess.run([program], check=False).returncode == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--include", required=True)
    parser.add_argument("source")
    parser.add_argument("compilers", nargs="+")
    args = parser.parse_args()
    found = [name for name in args.compilers if shutil.which(name)]
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        for compiler in found:
            for standard, more in STANDARDS.items():
                command = [compiler, f"-std={standard}", *more, *WARNINGS, f"-I{args.include}", args.source]
                if not works(command, str(pathlib.Path(folder) / "program")):
                    bad.append(f"{compiler} {standard}")
    print("compilers:", *found, "not installed:", *(set(args.compilers) - set(found)))
    print("failed:", *bad)
    return 77 if not found else bool(bad)


sys.exit(main())
