#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compile each public header alone, in C and C++, without a warning, and link with the library.

    check_headers.py --include DIR --lib libdat.so.1 --cc CC --cxx CXX

GEN-01: <dat/udat.h> alone declares everything. GEN-02: -ldat resolves every function that the
headers declare. GEN-31: C++ programs can include the headers.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Wundef", "-pedantic", "-Werror"]
C_STANDARDS = ["gnu90", "c99", "c11", "gnu11"]
CXX_STANDARDS = ["c++98", "c++11", "c++17"]
# Before C99 and C++11 long long and commas at the end of enumerations are extensions.
OLD_WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Wundef", "-Werror"]

# What one include declares (GEN-01). Types that only a provider needs are in dat_registry.h.
USE_OF_EVERYTHING = """
#include <dat/udat.h>
static DAT_IA_ATTR ia_attr;
static DAT_PROVIDER_ATTR *provider_attr;
static DAT_EVENT event;
static DAT_EP_PARAM ep_param;
int main(void)
{
	DAT_OS_WAIT_PROXY_AGENT agent = DAT_OS_WAIT_PROXY_AGENT_NULL;
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;
	char name[] = "no such adapter";
	DAT_RETURN ret = dat_ia_open(name, 8, &evd, &ia);

	(void)ia_attr, (void)provider_attr, (void)event, (void)ep_param, (void)agent;
	return DAT_GET_TYPE(ret) == DAT_PROVIDER_NOT_FOUND ? 0 : 1;
}
"""


def run(command):
    result = subprocess.run(command, universal_newlines=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)
    return result.returncode, result.stdout


def declared_functions(include):
    names = set()
    for header in os.listdir(os.path.join(include, "dat")):
        with open(os.path.join(include, "dat", header)) as f:
            names |= set(re.findall(r"^extern DAT_RETURN\s+(dat_\w+)\(", f.read(), re.M))
    return sorted(names)


def sources(include):
    """(what, text) of programs that must compile."""
    for header in sorted(os.listdir(os.path.join(include, "dat"))):
        yield header, "#include <dat/%s>\n#include <dat/%s>\nextern int unused;\n" % (header, header)
    yield "dat_registry.h after udat.h", "#include <dat/udat.h>\n#include <dat/dat_registry.h>\n"


def main():
    parser = argparse.ArgumentParser(description="Check that the public headers compile alone.")
    for name in ("include", "lib", "cc", "cxx"):
        parser.add_argument("--" + name, required=True)
    args = parser.parse_args()
    failures = []

    with tempfile.TemporaryDirectory(prefix="check_headers.") as directory:
        source = os.path.join(directory, "probe")

        def build(what, compiler, language, standard, text, extra):
            with open(source, "w") as f:
                f.write(text)
            warnings = OLD_WARNINGS if standard in ("gnu90", "c++98") else WARNINGS
            status, output = run(compiler.split() + ["-x", language, "-std=" + standard] + warnings +
                                 ["-I" + args.include, source] + extra)
            if status:
                failures.append("%s as %s:\n%s" % (what, standard, output))
            return status == 0

        languages = [(args.cc, "c", C_STANDARDS)]
        if args.cxx:
            languages.append((args.cxx, "c++", CXX_STANDARDS))
        program = os.path.join(directory, "program")
        link = ["-x", "none", args.lib, "-Wl,-rpath," + os.path.dirname(os.path.abspath(args.lib)),
                "-o", program]
        names = declared_functions(args.include)
        table = "#include <dat/udat.h>\n#include <dat/dat_registry.h>\n#include <dat/opendat.h>\ntypedef void (*any)(void);\n"
        table += "any table[] = {%s};\n" % ", ".join("(any)%s" % n for n in names)
        table += "int main(void) { return table[0] == 0; }\n"
        if len(names) < 72:
            failures.append("only %d functions are declared" % len(names))
        for compiler, language, standards in languages:
            for standard in standards:
                for what, text in sources(args.include):
                    build(what, compiler, language, standard, text, ["-fsyntax-only"])
            build("every function", compiler, language, standards[-1], table,
                  ["-Wno-cast-function-type"] + link)
            if build("a program", compiler, language, standards[-1], USE_OF_EVERYTHING, link):
                os.environ["DAT_OVERRIDE"] = "/dev/null"
                status, _ = run([program])
                if status:
                    failures.append("the program built as %s fails" % language)

    for failure in failures:
        print("FAIL", failure)
    print("%d failed" % len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
