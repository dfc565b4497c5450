#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The static probes of the provider libraries are those that docs/observing.md lists."""
import re

from testing import BUILD, SOURCE, equal, main, run

# the provider over rdma-core is not built everywhere
LIBRARIES = [BUILD / "src" / "soft" / "libdat-soft.so.1",
             *(BUILD / "src" / "verbs").glob("libdat-verbs.so.1")]


def documented():
    """The probes of the table in docs/observing.md: {name: number of arguments}."""
    text = (SOURCE / "docs" / "observing.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)\(([^)]*)\)` \|", text, re.M)
    return {name: len(arguments.split(",")) for name, arguments in rows}


def found(library):
    """The probes in the notes of a library: {name: numbers of arguments}."""
    status, out, err = run("readelf", "--wide", "--notes", str(library))
    equal(status, 0, err)
    probes = {}
    for provider, name, arguments in re.findall(
            r"Provider: (\S+)\s+Name: (\S+)\s+Location:[^\n]*\s+Arguments: ([^\n]*)", out):
        equal(provider, "opendat")
        # "8@%rax -4@$1 8@[sp, 16]": each has its size, negative if signed
        probes.setdefault(name, set()).add(len(re.findall(r"-?\d+@", arguments)))
    return probes


def every_library__probes__those_of_the_documentation():
    expected = {name: {count} for name, count in documented().items()}
    assert len(expected) > 5, expected
    for library in LIBRARIES:
        equal(found(library), expected, library.name)


if __name__ == "__main__":
    main(list(globals().items()))
