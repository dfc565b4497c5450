#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Check that the log can be right about every refused argument.

Each parameter that a comment in the headers lists with DAT_INVALID_PARAMETER has a case in
handle/refused_cases.h, whose program compares the line in the log. Each CORE_ARG in the core has the
name and the number that the header declares.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "man"))
import call_comments

# Refused in other ways than by a call with soft adapters in one process.
ELSEWHERE = {
    ("dat_ep_create_with_srq", "pz_handle"),   # where srq_ep_pz_difference_supported is false
    ("dat_opendat_mem_alloc", "length"), ("dat_opendat_mem_alloc", "flags"),
    ("dat_opendat_mem_alloc", "memory"), ("dat_opendat_mem_free", "memory"),   # test_mem_alloc.c
    ("dat_opendat_ep_attr_default", "ep_attr"),   # test_ep_attr_default.c
    ("dat_opendat_check_handler", "handler"),   # tests/check/test_rules.c
}


def declared():
    """{call: [parameter]} and {(call, parameter) that can be refused}."""
    folder = ROOT / "include" / "dat"
    codes = call_comments.return_codes((folder / "dat_error.h").read_text())
    parameters, refused = {}, set()
    for header in sorted(folder.glob("*.h")):
        for call in call_comments.parse(str(header), header.read_text(), codes)[0]:
            names = [parameter.name for parameter in call.parameters]
            parameters[call.name] = names
            refused |= {(call.name, call_comments.argument_of(call, subtype))
                        for code in call.codes if code.type == "DAT_INVALID_PARAMETER"
                        for subtype in code.subtypes}
    return parameters, refused


def main():
    parameters, refused = declared()
    faults = []
    cases = re.findall(r"^\tREFUSED\((\w+), (\d+), (\w+),",
                       (ROOT / "tests/conformance/handle/refused_cases.h").read_text(), re.M)
    covered = {("dat_" + call, name) for call, _, name in cases}
    for source in sorted((ROOT / "src" / "core").rglob("*.c")):
        uses = re.findall(r"\bCORE_ARG(?:_INIT)?\(\s*(\w+),\s*(\d+),\s*(\w+)\s*\)", source.read_text())
        # a macro with the parameter `call` is checked by its cases
        cases += [use for use in uses if use[0] != "call"]
    for call, number, name in cases:
        known = parameters.get("dat_" + call, [])
        if int(number) > len(known) or known[int(number) - 1] != name:
            faults.append(f"dat_{call}: parameter {number} is not {name}")
    faults += [f"{call}: no case for {name}" for call, name in sorted(refused - covered - ELSEWHERE)]
    print("\n".join(faults) if faults else f"{len(refused)} parameters are covered")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
