#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A binary linked with a stand-in for libdat.so.1, of the same symbols and version, starts with ours.

    check_standin.py --facts dat-1.2.json --include DIR --lib libdat.so.1 --cc CC

COMPAT-40 GEN-04: binaries exist that were linked with other libraries of this interface; the
loader gives them ours if the soname and the version node are right.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

PROGRAM = """
#include <dat/udat.h>
#include <string.h>
int main(void)
{
	const char *major, *minor;

	if (dat_strerror(DAT_CLASS_ERROR | DAT_ABORT, &major, &minor) != DAT_SUCCESS)
		return 1;
	return strcmp(major, "DAT_ABORT") != 0;
}
"""


def main():
    parser = argparse.ArgumentParser(description="Run a binary of a stand-in with libdat.so.1.")
    for name in ("facts", "include", "lib", "cc"):
        parser.add_argument("--" + name, required=True)
    args = parser.parse_args()
    with open(args.facts) as f:
        library = json.load(f)["library"]
    names = [symbol["name"] for symbol in library["symbols"]]

    with tempfile.TemporaryDirectory(prefix="check_standin.") as directory:
        def write(name, text):
            path = os.path.join(directory, name)
            with open(path, "w") as f:
                f.write(text)
            return path

        def run(command, **environment):
            return subprocess.run(command, env=dict(os.environ, **environment)).returncode

        # The stand-in's functions fail, so that it shows which library was taken.
        standin = os.path.join(directory, library["soname"])
        code = write("standin.c", "".join("int %s(void) { return 1; }\n" % n for n in names))
        nodes = write("standin.map", "%s { global: %s; local: *; };\n" % (
            library["version_node"], "; ".join(names)))
        program = os.path.join(directory, "program")
        cc = args.cc.split()
        if run(cc + ["-w", "-shared", "-fPIC", code, "-o", standin,
                     "-Wl,-soname," + library["soname"], "-Wl,--version-script=" + nodes]):
            return "the stand-in cannot be built"
        if run(cc + ["-I" + args.include, write("program.c", PROGRAM), standin, "-o", program]):
            return "the program cannot be built"
        if run([program], LD_LIBRARY_PATH=directory) != 1:
            return "the program does not use the stand-in"
        ours = os.path.dirname(os.path.abspath(args.lib))
        if run([program], LD_LIBRARY_PATH=ours, LD_BIND_NOW="1") != 0:
            return "the program does not run with " + args.lib
    return 0


if __name__ == "__main__":
    sys.exit(main())
