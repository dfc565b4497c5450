#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compile each public header alone, in C and C++, without a warning, and link with the library.

    check_headers.py --include DIR --headers dat --lib libdat.so.1 --cc CC --cxx CXX
    check_headers.py --include DIR --headers dat2 --lib libdat2.so.2 --cc CC --cxx CXX

GEN-01 D2-GEN-01: udat.h alone declares everything. GEN-02: the library resolves every function that
the headers declare. GEN-31: C++ programs can include the headers. D2-GEN-10 D2-GEN-11 D2-GEN-12
D2-GEN-13: thread safety and extensions that were defined before, system headers, dat_ib_extensions.h
alone. D2-GEN-02 D2-IW-01: every header. D2-GEN-03: a file that includes both versions.
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
#include <HEADERS/udat.h>
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

# The same with what dat2/udat.h brings along, and with choices of the program.
USE_OF_DAT2 = """
#define DAT_THREADSAFE DAT_TRUE
#define DAT_EXTENSIONS 0
#include <dat2/udat.h>
#include <dat2/dat_ib_extensions.h>
extern int (*const choices)(FILE *, const char *, va_list);
int (*const choices)(FILE *, const char *, va_list) = vfprintf;
static DAT_IB_EXTENSION_EVENT_DATA data;
static DAT_SOCK_ADDR address;
int main(void)
{
	const char *text = NULL;
	DAT_RETURN ret = dat_strerror_extension(DAT_IB_ERR, &text);

	(void)data, (void)address, (void)offsetof(DAT_EVENT, event_data);
	ret |= dat_strerror_ext_status(DAT_IB_OP_ERR, &text);
	return ret == DAT_SUCCESS && text && DAT_THREADSAFE == DAT_TRUE && DAT_VERSION_MAJOR == 2 ? 0 : 1;
}
"""


def run(command):
    result = subprocess.run(command, universal_newlines=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)
    return result.returncode, result.stdout


def declared_functions(folder):
    names = set()
    for header in os.listdir(folder):
        with open(os.path.join(folder, header)) as f:
            names |= set(re.findall(r"^extern DAT_RETURN\s+(dat_\w+)\(", f.read(), re.M))
    return sorted(names)


def sources(folder, front):
    """(what, text) of programs that must compile."""
    include = "#include <%s/%%s>\n" % front
    for header in sorted(os.listdir(folder)):
        yield header, include % header * 2 + "extern int unused;\n"
    yield "dat_registry.h after udat.h", include % "udat.h" + include % "dat_registry.h"
    other = "dat" if front == "dat2" else "dat2"
    yield "udat.h of both versions", include % "udat.h" + "#include <%s/udat.h>\n" % other + (
        "extern int major[DAT_VERSION_MAJOR == %d ? 1 : -1];\n" % (2 if front == "dat2" else 1))


def main():
    parser = argparse.ArgumentParser(description="Check that the public headers compile alone.")
    for name in ("include", "headers", "lib", "cc", "cxx"):
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
        folder = os.path.join(args.include, args.headers)
        names = declared_functions(folder)
        table = "".join("#include <%s/%s>\n" % (args.headers, h) for h in sorted(os.listdir(folder)))
        table += "typedef void (*any)(void);\n"
        table += "any table[] = {%s};\n" % ", ".join("(any)%s" % n for n in names)
        table += "int main(void) { return table[0] == 0; }\n"
        if len(names) < 72:
            failures.append("only %d functions are declared" % len(names))
        for compiler, language, standards in languages:
            for standard in standards:
                for what, text in sources(folder, args.headers):
                    build(what, compiler, language, standard, text, ["-fsyntax-only"])
            build("every function", compiler, language, standards[-1], table,
                  ["-Wno-cast-function-type"] + link)
            programs = [USE_OF_EVERYTHING.replace("HEADERS", args.headers)]
            if args.headers == "dat2":
                programs.append(USE_OF_DAT2)
            for text in programs:
                if build("a program", compiler, language, standards[-1], text, link):
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
