#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Generate the manual pages of section 3, one per call and opendat(3), from the public headers.

    make_man3.py --exports LIBDAT.MAP --spec DIR (--list | --output DIR) HEADER...

Fails, with file and line, if a comment does not have the form of call_comments.py, if an exported
call has no comment, if a call with a comment is not exported, and if a comment names a chapter or a
section that the specification lacks.
"""
import argparse
import pathlib
import re
import sys
import textwrap

sys.dont_write_bytecode = True  # a build writes nothing into the source
import call_comments
from call_comments import Malformed

# Related calls that are not neighbours by the kind of object.
RELATED = [
    ("dat_ep_connect", "dat_psp_create", "dat_rsp_create", "dat_cr_accept"),
    ("dat_evd_dequeue", "dat_evd_wait", "dat_cno_wait", "dat_opendat_cno_fd"),
    ("dat_ep_post_recv", "dat_srq_post_recv"),
    ("dat_ep_create_with_srq", "dat_srq_create"),
    ("dat_ia_open", "dat_ia_query", "dat_registry_list_providers"),
    ("dat_registry_add_provider", "dat_registry_remove_provider", "dat_provider_init",
     "dat_provider_fini"),
]
# The call that makes the object of an argument.
MAKERS = {
    "DAT_IA_HANDLE": ["dat_ia_open"], "DAT_EP_HANDLE": ["dat_ep_create"],
    "DAT_EVD_HANDLE": ["dat_evd_create"], "DAT_CNO_HANDLE": ["dat_cno_create"],
    "DAT_PZ_HANDLE": ["dat_pz_create"], "DAT_RMR_HANDLE": ["dat_rmr_create"],
    "DAT_LMR_HANDLE": ["dat_lmr_create"], "DAT_LMR_TRIPLET *": ["dat_lmr_create"],
    "DAT_PSP_HANDLE": ["dat_psp_create"], "DAT_RSP_HANDLE": ["dat_rsp_create"],
    "DAT_SRQ_HANDLE": ["dat_srq_create"], "DAT_CR_HANDLE": ["dat_evd_dequeue"],
    # the calls that return the completion
    "DAT_DTO_COOKIE": ["dat_evd_dequeue", "dat_evd_wait"],
    "DAT_RMR_COOKIE": ["dat_evd_dequeue", "dat_evd_wait"],
}
WIDTH = 80
MOST_PROTOTYPE = 72  # columns that a terminal of 80 leaves
SPEC_HEADING = re.compile(r"^## (dat_\w+)$", re.M)
EXPORTED = re.compile(r"\t(dat_\w+);")
COMPILE = r""".PP
.B cc
.I program.c
.B $(pkg\-config \-\-cflags \-\-libs opendat)"""


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
    if call.section not in SPEC_HEADING.findall(chapter.read_text(encoding="utf-8")):
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


# ---- text ----

def escaped(text):
    """Plain text for the middle of a line."""
    text = text.replace("\\", r"\e")
    return re.sub(r"(?<![\w)])-", r"\\-", text)


def marked(text, call, calls):
    """Text with references to the pages of calls, bold constants and italic parameters."""
    names = {parameter.name for parameter in call.parameters} if call else set()

    def mark(match):
        word = match.group()
        if call and word == call.name:
            return rf"\fB{word}\fR"
        if word in calls:
            return rf"\fB{word}\fR(3)"
        if word.startswith(("DAT_", "RO_AWARE_")):
            return rf"\fB{word}\fR"
        # a parameter of one plain word may be that word
        return rf"\fI{word}\fR" if word in names and "_" in word else word

    return re.sub(r"\b[A-Za-z]\w*_\w*", mark, escaped(text))


def filled(text, call, calls):
    """Lines of a page. Each sentence begins a line; no line looks like a request."""
    lines = []
    for sentence in call_comments.sentences(text):
        lines += textwrap.wrap(marked(sentence, call, calls), WIDTH, break_long_words=False,
                               break_on_hyphens=False)
    return [r"\&" + line if line[0] in ".'" else line for line in lines]


def paragraphs(texts, call, calls):
    lines = []
    for text in texts:
        lines += [".PP"] * bool(lines) + filled(text, call, calls)
    return lines


# ---- sections of a page ----

def head(name, source):
    return [r'.\" SPDX-License-Identifier: BSD-2-Clause',
            rf'.\" Generated by man/make_man3.py from {source}; edit that.',
            f'.TH {name.upper()} 3 "" "OpenDAT" "uDAPL 1.2"', ".nh", ".ad l", ".SH NAME"]


def one_line(call):
    """The title without its capital and its full stop."""
    title = call.title[:-1]
    return title if title[:2].isupper() else title[0].lower() + title[1:]


def include_of(call):
    name = pathlib.Path(call.path).name
    return "dat/udat.h" if name in ("dat.h", "udat.h") else f"dat/{name}"


def synopsis(call):
    """The prototype, one parameter per line, aligned to the bracket or, if too wide, indented."""
    begin = f"{call.returns} {call.name}("
    types = [parameter.type + ("" if parameter.type.endswith("*") else " ")
             for parameter in call.parameters]
    widest = max(len(kind + parameter.name) for kind, parameter in zip(types, call.parameters)) + 2
    indent = " " * len(begin)
    lines = [".nf", f".B #include <{include_of(call)}>", ".PP"]
    if len(begin) + widest > MOST_PROTOTYPE:
        lines.append(f'.B "{begin}"')
        begin = indent = " " * 8
    for at, (kind, parameter) in enumerate(zip(types, call.parameters)):
        close = ");" if at == len(types) - 1 else ","
        lines.append(f'.BI "{indent if at else begin}{kind}" {parameter.name} {close}')
    return lines + [".fi", COMPILE]


def parameters(call, calls):
    lines = []
    for parameter in call.parameters:
        lines += [".TP", f'.IR {parameter.name} " [{parameter.direction}]"']
        lines += filled(parameter.text, call, calls)
    return lines


def return_value(call):
    if not call.codes:
        return ["None."]
    return [r"\fBDAT_SUCCESS\fR, or one of the codes below: a type and, after the slash, a subtype.",
            r"\fBDAT_GET_TYPE\fR() and \fBDAT_GET_SUBTYPE\fR() extract them from the code.",
            "A call that fails changes nothing, unless this page says otherwise."]


def errors(call, calls):
    lines = []
    for code in call.codes:
        tag = ".TP"
        for subtype in code.subtypes or [None]:
            lines += [tag, error_tag(call, code.type, subtype)]
            tag = ".TQ"
        lines += filled(code.text, call, calls)
    return lines + [".PP", r"Any call may return \fBDAT_INTERNAL_ERROR\fR if the provider "
                    "detects an internal error."]


def error_tag(call, kind, subtype):
    if not subtype:
        return f".B {kind}"
    argument = call_comments.argument_of(call, subtype)
    return (f'.BR "{kind} / {subtype}" " (\\fI{argument}\\fR)"' if argument else
            f'.B "{kind} / {subtype}"')


def specification(call):
    if not call.chapter:
        return ["None. This is an extension of OpenDAT."]
    return [rf"Section \fB{call.section}\fR of", rf".I docs/spec/{call.chapter}",
            "in the source of OpenDAT."]


def neighbours(call, calls):
    """The calls for the same kind of object, those in the comment, and those that make the handles."""
    names = {other.name for other in calls.values()
             if other.group == call.group and other.chapter in (call.chapter, "")}
    text = " ".join(call.paragraphs + [one.text for one in call.parameters + call.codes])
    names |= {word for word in re.findall(r"\bdat_\w+", text) if word in calls}
    for parameter in call.parameters:
        kind = parameter.type.removeprefix("const ")
        if parameter.direction != "out":
            names |= set(MAKERS.get(kind, []))
    for related in RELATED:
        names |= set(related) if call.name in related else set()
    names |= {"dat_strerror"} if call.codes else set()
    return names - {call.name}


def see_also(names):
    pages = [f"{name} (3)" for name in sorted(names)] + ["opendat (3)", "opendat (7)"]
    return [f".BR {page}," for page in pages[:-1]] + [f".BR {pages[-1]}"]


def page_of(call, calls):
    sections = [
        ("", head(call.name, f"include/{pathlib.Path('dat') / pathlib.Path(call.path).name}")
         + [rf"{call.name} \- {escaped(one_line(call))}"]),
        ("SYNOPSIS", synopsis(call)),
        ("DESCRIPTION", paragraphs(call.paragraphs, call, calls)),
        ("PARAMETERS", parameters(call, calls)),
        ("RETURN VALUE", return_value(call)),
        ("ERRORS", errors(call, calls) if call.codes else []),
        ("THREAD SAFETY", filled(call.safety, call, calls)),
        ("SPECIFICATION", specification(call)),
        ("SEE ALSO", see_also(neighbours(call, calls))),
    ]
    return joined(sections)


def joined(sections):
    lines = []
    for title, text in sections:
        lines += ([f".SH {title}"] if title else []) + text if text else []
    return "\n".join(lines) + "\n"


def overview(calls, rules):
    """opendat(3): the rules for all calls, and a list of them."""
    groups = {}
    for call in calls.values():
        groups.setdefault(call.group, []).append(call)
    listed = []
    for group in sorted(groups):
        listed.append(f".SS {group.capitalize()}")
        for call in sorted(groups[group], key=lambda call: call.name):
            listed += [".TP", f".BR {call.name} (3)", *filled(one_line(call), None, calls)]
    return joined([
        ("", head("opendat", "the headers in include/dat") + [r"opendat \- the calls of uDAPL 1.2"]),
        ("SYNOPSIS", [".B #include <dat/udat.h>", COMPILE]),
        ("DESCRIPTION", paragraphs(rules, None, calls)),
        ("CALLS", listed),
        ("SEE ALSO", [".BR dat_ia_open (3),", ".BR dat_strerror (3),", ".BR opendat (7)"]),
    ])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--exports", type=pathlib.Path, required=True)
    parser.add_argument("--spec", type=pathlib.Path, required=True)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("headers", type=pathlib.Path, nargs="+")
    args = parser.parse_args()
    try:
        calls, rules = read_calls(args.headers, args.exports, args.spec)
    except Malformed as fault:
        print(fault, file=sys.stderr)
        return 1
    pages = {"opendat": overview(calls, rules)}
    pages.update((name, page_of(call, calls)) for name, call in calls.items())
    if args.list:
        print("\n".join(f"{name}.3" for name in sorted(pages)))
    if args.output:
        args.output.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            (args.output / f"{name}.3").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
