#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The maker of the manual pages of DAT 2.0: which pages there are, and what differs from DAT 1.2."""
import pathlib
import re
import sys
import tempfile

from testing import SOURCE, contains, equal, main, run

sys.path.insert(0, str(SOURCE / "man"))
import make_dat2

HEADERS = sorted((SOURCE / "include").glob("dat*/*.h"))


def make(folder, pages=SOURCE / "man" / "dat2"):
    return run(sys.executable, str(SOURCE / "man" / "make_dat2.py"), "--exports",
               str(SOURCE / "src" / "registry" / "libdat.map"), "--spec", str(SOURCE / "docs" / "spec"),
               "--pages", str(pages), "--output", str(folder), *map(str, HEADERS))


def made():
    """{name: text}"""
    with tempfile.TemporaryDirectory() as folder:
        equal(make(folder)[0], 0)
        return {path.stem: path.read_text(encoding="utf-8")
                for path in pathlib.Path(folder).glob("*.3dat2")}


def names__of_library_and_macros__all_have_pages():
    # D2-GEN-22
    pages = made()
    maps = [(SOURCE / "src" / "registry" / name).read_text(encoding="utf-8")
            for name in ("libdat.map", "libdat2.map.in")]
    names = set(re.findall(r"^\t(dats?_\w+);", "".join(maps), re.M)) - make_dat2.ONLY_1_2
    source = (SOURCE / "include" / "dat2" / "dat_ib_extensions.h").read_text(encoding="utf-8")
    macros = set(re.findall(r"^#define (dat_\w+)", source, re.M))
    equal(len(macros) > 30 and len(names) > 90, True)
    equal((names | macros) - set(pages), set())
    for text in pages.values():
        if text.startswith(".so ") and "3dat2" in text:
            contains(pages, re.fullmatch(r"\.so man3/(\w+)\.3dat2\n", text).group(1))


def page__parameters_more__numbers_and_text_of_dat_2_0():
    # D2-RMR-01 has the numbers
    page = made()["dat_rmr_bind"]
    contains(page, ".TH dat_rmr_bind 3dat2 ")
    contains(page, ".B #include <dat2/udat.h>")
    contains(page, '"                        DAT_LMR_HANDLE " lmr_handle ,')
    for number, name in ((3, "lmr_triplet"), (5, "va_type"), (9, "context")):
        contains(page, f'DAT_INVALID_PARAMETER / DAT_INVALID_ARG{number}" " (\\fI{name}\\fR)"')
    contains(page, "libs dat2")


def program__call_without_page__says_which():
    with tempfile.TemporaryDirectory() as folder:
        status, _, err = make(folder, folder)
        equal(status, 1)
        contains(err, "there is no page of dat_")


if __name__ == "__main__":
    main(list(globals().items()))
