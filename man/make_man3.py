#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Generate the manual pages of section 3 from the public headers.

    make_man3.py --exports LIBDAT.MAP --spec DIR (--list | --output DIR) HEADER...

There is one page per call, one per type or group of constants, an alias of it per constant, and
opendat(3). Fails, with file and line, if a comment does not have the form of call_comments.py or
type_comments.py, if a name in the headers is on no page, if a call with a comment is not exported, and
if a comment names a chapter or a section that the specification lacks.
"""
import argparse
import pathlib
import re
import sys

sys.dont_write_bytecode = True  # a build writes nothing into the source
import call_comments
import call_pages
import type_comments
import type_pages
from call_comments import Malformed
from page_text import Names

CALL_HEADING = re.compile(r"^## (dat_\w+)$", re.M)
HEADING = re.compile(r"^##+ (?:Chapter: )?(.+)$", re.M)
EXPORTED = re.compile(r"\t(dat_\w+);")
COMMENT = re.compile(r"/\*.*?\*/", re.S)

# ---- the calls ----

def read_calls(headers, exports, spec):
    """({name: call}, the rules for all of them), complete and consistent."""
    sources = {str(path): path.read_text(encoding="utf-8") for path in headers}
    known = {"type": set(), "subtype": set()}
    for source in sources.values():
        for kind, names in call_comments.return_codes(source).items():
            known[kind] |= names
    calls, rules = {}, []
    for path, source in sources.items():
        found, more = call_comments.parse(path, source, known)
        calls.update((call.name, call) for call in found)
        rules += more
    if not rules:
        raise Malformed(headers[0], 1, f"no header has a comment '{call_comments.RULES}'")
    for call in calls.values():
        complete_macro(call, calls)
        check_section(call, spec)
    check_exports(calls, exports)
    return calls, rules


def complete_macro(call, calls):
    """A macro takes its parameters and codes from the function that it expands to."""
    if not call.expands_to:
        return
    function = calls.get(call.expands_to)
    of_function = {parameter.name: parameter for parameter in function.parameters} if function else {}
    for parameter in call.parameters:
        if parameter.name not in of_function:
            raise Malformed(call.path, call.line, f"{call.name}: {call.expands_to} has no parameter "
                            f"{parameter.name}")
    call.parameters = [of_function[parameter.name] for parameter in call.parameters]
    call.codes = function.codes


def check_section(call, spec):
    if not call.chapter:
        return
    chapter = spec / call.chapter
    if not chapter.is_file():
        raise Malformed(call.path, call.line, f"{call.name}: no chapter {call.chapter}")
    if call.section not in CALL_HEADING.findall(chapter.read_text(encoding="utf-8")):
        raise Malformed(call.path, call.line, f"{call.name}: {call.chapter} has no section {call.section}")


def check_exports(calls, exports):
    lines = exports.read_text(encoding="utf-8").splitlines()
    exported = {match.group(1): at + 1 for at, line in enumerate(lines)
                if (match := EXPORTED.fullmatch(line))}
    for name, line in exported.items():
        if name not in calls:
            raise Malformed(exports, line, f"{name} is exported, but no header describes it")
    for call in calls.values():
        is_function = call.returns == "DAT_RETURN" and not call.expands_to
        if is_function and call.name not in exported:
            raise Malformed(call.path, call.line, f"{call.name} is not exported by {exports}")


# ---- the types ----

def read_types(headers, calls, spec):
    """{name: page}, with every name of the headers on one page."""
    found, sources = type_comments.Found(), {}
    for path in headers:
        sources[path] = path.read_text(encoding="utf-8")
        found.add(type_comments.read(str(path), sources[path]))
    pages = type_comments.complete(found, calls)
    for page in pages.values():
        check_type_section(page, spec)
    covered = {name for page in pages.values() for name in page.names() + page.direct}
    covered |= {item.name for page in pages.values() for item in page.items + page.also}
    for path, source in sources.items():
        check_names(path, source, covered | set(found.of_calls) | set(calls) | type_comments.NOT_OURS)
    return pages, found.of_calls


def check_type_section(page, spec):
    chapter = spec / page.chapter
    if page.chapter and (not chapter.is_file() or page.section not in HEADING.findall(
            chapter.read_text(encoding="utf-8"))):
        raise Malformed(page.path, page.line, f"{page.name}: no section '{page.section}' in {chapter}")


def check_names(path, source, covered):
    """Every name that a program can use is on a page."""
    code = COMMENT.sub(lambda comment: "\n" * comment.group().count("\n"), source)
    for number, line in enumerate(code.splitlines(), 1):
        names = re.findall(r"\bDAT_\w+", re.sub(r'".*?"', "", line))
        names += re.findall(r"^#define ([A-Za-z]\w*)", line)
        for name in names:
            if name not in covered:
                raise Malformed(path, number, f"{name} is on no page")


def pages_of(names, rules, of_calls):
    """{file name without .3: text}"""
    pages = {"opendat": call_pages.overview(names, rules)}
    pages.update((name, call_pages.page_of(call, names)) for name, call in names.calls.items())
    aliases = {name: f"dat_{type_comments.SLOT.fullmatch(name).group(1).lower()}"
               for name in of_calls}
    for page in names.types.values():
        pages[page.name] = type_pages.page_of(page, names)
        aliases.update((name, page.name) for name in page.names() if name.startswith("DAT_"))
    for name, page in aliases.items():
        if name != page:
            pages[name] = f".so man3/{page}.3\n"
    return pages



def all_pages(args):
    """{file name without suffix: text}"""
    calls, rules = read_calls(args.headers, args.exports, args.spec)
    types, of_calls = read_types(args.headers, calls, args.spec)
    return pages_of(Names(calls, types), rules, of_calls)


def run(parser, suffix, make):
    """The program: lists or writes the pages that make(arguments) returns. The exit status."""
    parser.add_argument("--exports", type=pathlib.Path, required=True)
    parser.add_argument("--spec", type=pathlib.Path, required=True)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("headers", type=pathlib.Path, nargs="+")
    args = parser.parse_args()
    try:
        pages = make(args)
    except Malformed as fault:
        print(fault, file=sys.stderr)
        return 1
    if args.list:
        print("\n".join(f"{name}.{suffix}" for name in sorted(pages)))
    if args.output:
        args.output.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            (args.output / f"{name}.{suffix}").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(run(argparse.ArgumentParser(), "3", all_pages))
