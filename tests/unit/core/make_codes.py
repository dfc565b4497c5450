#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Write the types and subtypes of return codes that both generations name, for test_codes.c.

Usage: make_codes.py FACTS-1.2 FACTS-2.0
"""
import json
import sys


def values(path, kind):
    with open(path, encoding="utf-8") as facts:
        return {one["name"]: one["value"] for one in json.load(facts)["constants"]
                if one.get("type") == kind}


for name, kind in (("TYPES", "DAT_RETURN_TYPE"), ("SUBTYPES", "DAT_RETURN_SUBTYPE")):
    first, second = (values(path, kind) for path in sys.argv[1:3])
    print(f"#define {name}(CODE) \\")
    print(" \\\n".join(f"\tCODE({one}, {first[one]:#x}u, {second[one]:#x}u)" for one in first if one in second))
    print(f"#define ONLY_{name} {len(first.keys() - second.keys())}\n")
