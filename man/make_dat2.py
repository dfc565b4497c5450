#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Generate the manual pages of the calls of DAT 2.0, in section 3 with the suffix dat2.

    make_dat2.py --exports LIBDAT.MAP --spec DIR --pages DIR (--list | --output DIR) HEADER...

HEADER are the headers of both generations. The page of a call is that of DAT 1.2 with the declaration of
DAT 2.0 and with what dat2_differences.py says. Calls that DAT 1.2 does not have are in the pages of DIR;
a page has an alias for each further name in its section NAME. The macros of dat_ib_extensions.h that
no page names are on one page: OpenDAT does not have them. Fails if a call has no page, or has other
parameters than in DAT 1.2 that dat2_differences.py does not describe.
"""
import argparse
import dataclasses
import pathlib
import re
import sys

sys.dont_write_bytecode = True  # a build writes nothing into the source
import call_comments
import call_pages
from call_comments import DECLARED, Malformed, Parameter
from dat2_differences import DIFFERENCES, PARAMETERS, CODES
from make_man3 import COMMENT, read_calls, run
from page_text import COMPILE, Names, escaped, filled, head, joined, one_line, paragraphs, see_also

SUFFIX = "3dat2"
DECLARATION = re.compile(r"^extern (?:DAT_RETURN\s|const char \*)(dat_\w+)\((.*?)\);", re.M | re.S)
MACRO = re.compile(r"^#define (dat_\w+)(?:\(([\w, ]*)\))? (\w+)", re.M)
UNSUPPORTED = "dat_ib_unsupported"
NAME = re.compile(r"^\.SH NAME\n(.*) \\- ", re.M)
# they need libdat.so.1; for all but the first DAT 2.0 has calls of its own
ONLY_1_2 = {"dat_opendat_check_handler", "dat_opendat_ep_take_immediate",
            "dat_opendat_ep_post_rdma_write_immed", "dat_opendat_ep_post_fetch_and_add",
            "dat_opendat_ep_post_cmp_and_swap", "dat_opendat_ep_post_send_invalidate",
            "dat_opendat_dto_data"}


def declarations(headers):
    """{call: (header, [(type, parameter)])} of the functions that the headers declare."""
    found = {}
    for path in headers:
        for name, arguments in DECLARATION.findall(COMMENT.sub("", path.read_text(encoding="utf-8"))):
            arguments = " ".join(arguments.split()).removesuffix(", ...")
            found[name] = (path, [tuple(part.strip() for part in DECLARED.fullmatch(one).groups())
                                  for one in arguments.split(", ")])
    return found


def macros(headers):
    """{macro: (parameters or None, what it expands to)}"""
    found = {}
    for path in headers:
        source = COMMENT.sub("", path.read_text(encoding="utf-8")).replace("\\\n", " ")
        source = re.sub(r"[ \t]+", " ", source)
        found.update((name, (arguments, target)) for name, arguments, target in MACRO.findall(source))
    return found


# ---- the pages of calls that DAT 1.2 has, too ----

def converted(call, declared):
    """The call with the parameters of DAT 2.0."""
    path, arguments = declared
    old = {parameter.name: parameter for parameter in call.parameters}
    new = PARAMETERS.get(call.name, {})
    for _, name in arguments:
        if name not in old and name not in new:
            raise Malformed(path, 1, f"dat2_differences.py does not describe {name} of {call.name}")
    parameters = []
    for kind, name in arguments:
        direction, text = new.get(name) or (old[name].direction, old[name].text)
        parameters.append(Parameter(name, direction, text, kind))
    names = [parameter.name for parameter in parameters]
    codes = [dataclasses.replace(code, subtypes=[renumbered(call, one, names) for one in code.subtypes])
             for code in call.codes]
    codes += [call_comments.Code("DAT_INVALID_PARAMETER" if name in names else name,
                                 [f"DAT_INVALID_ARG{names.index(name) + 1}"] if name in names else [], text)
              for name, text in CODES.get(call.name, [])]
    return dataclasses.replace(call, parameters=parameters, codes=codes)


def renumbered(call, subtype, names):
    argument = call_comments.argument_of(call, subtype)
    return re.sub(r"\d+$", str(names.index(argument) + 1), subtype) if argument else subtype


def include_of(call):
    return call_pages.include_of(call).replace("dat/", "dat2/", 1)


def synopsis(call):
    lines = call_pages.synopsis(call)
    lines[1] = f".B #include <{include_of(call)}>"
    return lines[:-1] + [compile_line()]


def compile_line():
    return COMPILE.replace("libs opendat", "libs dat2")


def differences(call, names):
    texts = DIFFERENCES.get(call.name, [])
    texts = texts + ["Return codes have the numbers of DAT 2.0."] if call.codes else texts
    return paragraphs(texts or ["None."], names, call.name, call_pages.italics(call))


def specification(call):
    lines = call_pages.specification(call)
    return lines[:-1] + ["and", ".IR docs/spec/dat2.md ,", lines[-1]] if call.chapter else lines


def page_of(call, names):
    return joined([
        ("", header(call.name, f"include/{include_of(call)}")
         + [rf"{call.name} \- {escaped(one_line(call.title))}"]),
        ("SYNOPSIS", synopsis(call)),
        ("DESCRIPTION", paragraphs(call.paragraphs, names, call.name, call_pages.italics(call))),
        ("PARAMETERS", call_pages.parameters(call, names)),
        ("RETURN VALUE", [line.replace(", see \\fBDAT_RETURN\\fR(3)", "")
                          for line in call_pages.return_value(call)]),
        ("ERRORS", call_pages.errors(call, names) if call.codes else []),
        ("DIFFERENCES FROM DAT 1.2", differences(call, names)),
        ("THREAD SAFETY", filled(call.safety, names, call.name, call_pages.italics(call))),
        ("SPECIFICATION", specification(call)),
        ("SEE ALSO", seen(call_pages.neighbours(call, names) & names.calls.keys())),
    ])


def header(name, source):
    lines = head(name, source)
    lines[1] = rf'.\" Generated by man/make_dat2.py from {source} and the page of DAT 1.2.'
    lines[2] = lines[2].replace(f" {name} 3 ", f" {name} {SUFFIX} ").replace("uDAPL 1.2", "uDAPL 2.0")
    return lines


def seen(calls):
    """The section SEE ALSO; there is no opendat(3) of DAT 2.0."""
    return [line.replace(" (3)", f" ({SUFFIX})") for line in see_also(calls) if "opendat (3)" not in line]


# ---- the rest ----

def written(folder):
    """({page: text}, {further name: page}) of the pages that are written by hand."""
    pages, aliases = {}, {}
    for path in sorted(folder.glob(f"*.{SUFFIX}")):
        text = path.read_text(encoding="utf-8")
        names = NAME.search(text).group(1).split(", ")
        pages[path.stem] = text
        aliases.update((name, path.stem) for name in names if name != path.stem)
    return pages, aliases


def unsupported(lacked):
    """The page of the macros without a page."""
    lines = [line for name in sorted(lacked) for line in
             (".TP", f'.BI {name}( "{lacked[name][0]}" )',
              rf"\fB{lacked[name][1]}\fR")]
    return joined([
        ("", header(UNSUPPORTED, "include/dat2/dat_ib_extensions.h")
         + [rf"{UNSUPPORTED} \- operations of the InfiniBand extensions that OpenDAT lacks"]),
        ("SYNOPSIS", [".nf", ".B #include <dat2/udat.h>", ".B #include <dat2/dat_ib_extensions.h>", ".fi",
                      compile_line()]),
        ("DESCRIPTION", [
            "These are macros over", rf"\fBdat_extension_op\fR({SUFFIX}),",
            r"each with an operation of its own, for unreliable datagrams and collective operations.",
            r"For adapters of OpenDAT they return \fBDAT_NOT_IMPLEMENTED\fR and do not look at their arguments.",
            "An adapter of another project may have them; then what they do is its own."]),
        ("MACROS", lines),
        ("RETURN VALUE", [r"\fBDAT_NOT_IMPLEMENTED\fR, or an error of the handle or of the name of the adapter."]),
        ("SPECIFICATION", [".I docs/spec/dat2.md", "in the source of OpenDAT."]),
        ("SEE ALSO", [f".BR dat_extension_op ({SUFFIX}),", f".BR dat_ia_query ({SUFFIX}),", ".BR opendat (7)"]),
    ])


def all_pages(args):
    """{file name without suffix: text}"""
    first = [path for path in args.headers if path.parent.name == "dat"]
    second = [path for path in args.headers if path.parent.name == "dat2"]
    calls, _ = read_calls(first, args.exports, args.spec)
    pages, aliases = written(args.pages)
    own = {name: one for name, one in declarations(second).items() if name not in set(pages) | set(aliases)}
    old = declarations(first)
    own.update((name, old[name]) for name in calls if name.startswith("dat_opendat_")
               and name not in ONLY_1_2)
    found = {name: converted(calls[name], own[name]) for name in own if name in calls}
    for name in own.keys() - found.keys():
        raise Malformed(own[name][0], 1, f"there is no page of {name} in {args.pages}")
    of_macro = macros(second)
    for name in ("dat_ia_open", "dat_provider_init", "dat_provider_fini"):
        found[name] = calls[name]
    names = Names(found, {}, SUFFIX)
    pages.update((name, page_of(call, names)) for name, call in found.items())
    lacked = {}
    for name, (arguments, target) in of_macro.items():
        if not arguments and target != "dat_extension_op":
            aliases[name] = target
        elif name not in set(pages) | set(aliases):
            lacked[name] = (arguments, operation_of(second, name))
            aliases[name] = UNSUPPORTED
    pages[UNSUPPORTED] = unsupported(lacked)
    for name in sorted(aliases):
        target = aliases[name]
        pages[name] = f".so man3/{aliases.get(target, target)}.{SUFFIX}\n"
    pages["dats_get_ia_handle"] = ".so man3/dats_get_ia_handle.3\n"
    return pages


def operation_of(headers, macro):
    """The number of the operation of a macro, by its name."""
    for path in headers:
        found = re.search(rf"#define {macro}\(.*?(DAT_IB_\w+_OP)\b", path.read_text(encoding="utf-8"), re.S)
        if found:
            return found.group(1)
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=pathlib.Path, required=True)
    return run(parser, SUFFIX, all_pages)


if __name__ == "__main__":
    sys.exit(main())
