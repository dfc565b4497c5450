#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The maker of the manual pages: what it reads in a comment, what it refuses, what it writes."""
import pathlib
import subprocess
import sys
import tempfile

import call_comments
import call_pages
import make_man3
import type_comments
import type_pages
from call_comments import Code, Malformed
from page_text import Names
from testing import SOURCE, contains, equal, main, run

# Line 1 opens the comment, so that its first text stands in line 2.
COMMENT = """\
/*
 * Do a thing. There is more to it.
 *
 * A second paragraph.
 *
 * thing_handle [in]    the thing,
 *                      continued
 * result [out]         what came of it
 *
 * Returns DAT_SUCCESS, or
 *   DAT_INVALID_HANDLE / DAT_INVALID_HANDLE1: no live thing
 *   DAT_INVALID_PARAMETER, thing_handle:
 *     negative
 *   DAT_INVALID_PARAMETER, result: NULL
 *   DAT_QUEUE_EMPTY: none
 * Thread safe. Does not block. Specification: events.md, dat_evd_wait.
 */
extern DAT_RETURN dat_do_thing(DAT_HANDLE thing_handle,
\t\t\t       const int *result);
"""
CODES = {"type": {"DAT_INVALID_HANDLE", "DAT_INVALID_PARAMETER", "DAT_QUEUE_EMPTY"},
         "subtype": {"DAT_INVALID_HANDLE1", "DAT_INVALID_HANDLE_PZ", "DAT_INVALID_HANDLE_EP",
                     "DAT_INVALID_ARG1", "DAT_INVALID_ARG2", "DAT_INVALID_ARG3"}}


def changed(*pairs):
    text = COMMENT
    for before, after in pairs:
        contains(text, before)
        text = text.replace(before, after)
    return text


def calls_of(text):
    return call_comments.parse("a.h", text, CODES)[0]


def refused(text, place, why):
    """The text is malformed, in that line, and the message says why."""
    try:
        calls_of(text)
    except Malformed as fault:
        contains(str(fault), f"{place}: ")
        contains(str(fault), why)
        return
    raise AssertionError("not refused")


# ---- what is read ----

def comment__in_its_form__all_parts_read():
    call, = calls_of("/* ---- calls: things ---- */\n\n" + COMMENT)
    equal((call.name, call.group, call.line), ("dat_do_thing", "things", 4))
    equal(call.title, "Do a thing.")
    equal(call.paragraphs, ["Do a thing. There is more to it.", "A second paragraph."])
    equal([(p.name, p.direction, p.text, p.type) for p in call.parameters],
          [("thing_handle", "in", "the thing, continued", "DAT_HANDLE"),
           ("result", "out", "what came of it", "const int *")])
    equal(call.codes, [Code("DAT_INVALID_HANDLE", ["DAT_INVALID_HANDLE1"], "no live thing"),
                       Code("DAT_INVALID_PARAMETER", ["DAT_INVALID_ARG1"], "negative"),
                       Code("DAT_INVALID_PARAMETER", ["DAT_INVALID_ARG2"], "NULL"),
                       Code("DAT_QUEUE_EMPTY", [], "none")])
    equal((call.safety, call.chapter, call.section),
          ("Thread safe. Does not block.", "events.md", "dat_evd_wait"))


def codes__one_text_for_several__kept_together():
    call, = calls_of(changed(
        ("DAT_INVALID_HANDLE1: no", "DAT_INVALID_HANDLE_PZ, DAT_INVALID_HANDLE_EP: no"),
        ("PARAMETER, thing_handle:", "PARAMETER, thing_handle, result:")))
    equal([code.subtypes for code in call.codes[:2]],
          [["DAT_INVALID_HANDLE_PZ", "DAT_INVALID_HANDLE_EP"],
           ["DAT_INVALID_ARG1", "DAT_INVALID_ARG2"]])


def end__over_two_lines_or_without_chapter__read():
    call, = calls_of(changed(("events.md, dat", "events.md,\n * dat")))
    equal(call.section, "dat_evd_wait")
    call, = calls_of(changed(("Specification: events.md, dat_evd_wait.",
                              "No part of the specification.")))
    equal((call.safety, call.chapter), ("Thread safe. Does not block.", ""))


def function_as_a_type__named_by_its_section():
    text = ("/*\n * Do it.\n *\n * what [in]    it\n *\n * Calls are serialized. May block. "
            "Specification: registry.md, dat_provider_init.\n */\n"
            "typedef void (*DAT_PROVIDER_INIT_FUNC)(const char *what);\n")
    call, = calls_of(text)
    equal((call.name, call.returns, call.codes), ("dat_provider_init", "void", []))


def other_comments__passed_over():
    equal(calls_of("/*\n * A file.\n */\n#ifndef A_H\n\n/* A type. */\ntypedef int a;\n"
                   'extern "C" {\n'), [])


# ---- what is refused ----

def declaration__without_comment__refused():
    refused(COMMENT + "\nextern DAT_RETURN dat_other(int a);\n", "a.h:21", "without a comment")
    refused("/* Short. */\nextern DAT_RETURN dat_other(int a);\n", "a.h:2", "without a comment")
    refused(changed(("/*\n * Do", "/* Do")), "a.h:17", "without a comment")


def comment__without_declaration__refused():
    refused(COMMENT.split("extern")[0] + "\nint a;\n", "a.h:18", "neither a function")
    refused(changed(("extern DAT_RETURN", "extern int")), "a.h:18", "neither a function")


def title__missing_or_too_long__refused():
    refused(changed((" * Do a thing. There is more to it.\n *\n * A second paragraph.\n *\n", "")),
            "a.h:2", "no title")
    refused(changed(("Do a thing", "Do a thing" + " and another" * 7)), "a.h:2", "title")


def parameters__not_those_declared__refused():
    refused(changed(("thing_handle [in]", "other_handle [in]"),
                    ("PARAMETER, thing_handle", "PARAMETER, other_handle")), "a.h:2",
            "thing_handle, result")
    refused(changed((" * result [out]         what came of it\n", ""),
                    ("PARAMETER, result", "PARAMETER, thing_handle")), "a.h:2", "result")


def parameters__out_of_form__refused():
    refused(changed(("                     continued", "          continued")), "a.h:7", "continuation")
    refused(changed(("result [out] ", "result [exit]")), "a.h:8", "neither a parameter")
    refused(changed((" *\n * thing_handle", " * thing_handle")), "a.h:5", "no empty line")
    refused(changed(("it\n *\n * Returns", "it\n *\n * More text.\n *\n * Returns")), "a.h:10", "parameter")


def codes__out_of_form__refused():
    refused(changed(("DAT_SUCCESS, or", "DAT_SUCCESS or")), "a.h:10", "Returns")
    refused(changed(("   DAT_QUEUE_EMPTY", " DAT_QUEUE_EMPTY")), "a.h:15", "neither a return code")
    refused(changed(("DAT_QUEUE_EMPTY: none", "DAT_QUEUE_EMPTY none")), "a.h:15", "neither a return code")
    refused(changed(("EMPTY: none", "EMPTY:")), "a.h:15", "no text")
    refused(changed(("EMPTY: none", "EMPTY: none.")), "a.h:15", "full stop")


def codes__unknown__refused():
    refused(changed(("DAT_QUEUE_EMPTY", "DAT_QUEUE_EMTPY")), "a.h:15", "DAT_QUEUE_EMTPY")
    refused(changed(("HANDLE1", "HANDLE11")), "a.h:11", "DAT_INVALID_HANDLE11")


def codes__of_no_parameter_or_by_number__refused():
    refused(changed(("PARAMETER, result", "PARAMETER, other")), "a.h:14", "no parameter other")
    refused(changed(("PARAMETER, result", "PARAMETER / DAT_INVALID_ARG2")), "a.h:14", "by its number")


def codes__missing__refused():
    before, rest = COMMENT.split(" * Returns")
    refused(before + " *" + rest[rest.index(" Thread"):], "a.h:2", "return codes are missing")


def end__missing_or_in_another_form__refused():
    refused(changed((" * Thread safe. Does not block. Specification: events.md, dat_evd_wait.\n", "")),
            "a.h:15", "Thread safe")
    refused(changed(("Thread safe.", "Safe.")), "a.h:16", "Thread safe")
    refused(changed(("events.md, ", "events.md ")), "a.h:16", "Specification")


# ---- types and constants ----

TYPES = """\
/* The provider table. */
struct dat_provider {
	const char *device_name; /* a name */
};
typedef struct dat_provider DAT_PROVIDER;

/*
 * Colours. There are two.
 *
 * Specification: events.md, Event streams and delivery.
 */
typedef enum dat_colour {
	DAT_RED = 0, /* like blood */
	/* like the sky,
	 * see dat_do_thing */
	DAT_BLUE = 0x01,
} DAT_COLOUR;
#define DAT_BOTH (DAT_RED | DAT_BLUE) /* a mixture */

/* Names of earlier versions. */
#define DAT_AZURE DAT_BLUE

/* A thing, as it is. */
typedef struct dat_thing_param {
	DAT_COLOUR colour; /* its colour */
	int sizes[2];	   /* from
			    * the smallest */
} DAT_THING_PARAM;

/* Selects the members of DAT_THING_PARAM. */
typedef int DAT_THING_MASK; /* a sum */
#define DAT_THING_FIELD_COLOUR 1
#define DAT_THING_FIELD_SIZE 2 /* sizes */
#define DAT_THING_FIELD_ALL 3

/* ---- slots ---- */

typedef DAT_RETURN (*DAT_DO_THING_FUNC)(DAT_HANDLE thing_handle,
					int *result);
#define DAT_DO_THING(thing, result) \\
	(DAT_HANDLE_TO_PROVIDER(thing)->do_thing_func((thing), (result)))
"""


def types_of(*pairs):
    text = TYPES
    for before, after in pairs:
        contains(text, before)
        text = text.replace(before, after)
    call, = calls_of(COMMENT)
    return type_comments.complete(type_comments.read("a.h", text), {call.name: call})


def type_refused(place, why, *pairs):
    try:
        types_of(*pairs)
    except Malformed as fault:
        contains(str(fault), f"{place}: ")
        contains(str(fault), why)
        return
    raise AssertionError("not refused")


def types__in_their_form__all_parts_read():
    pages = types_of()
    equal(sorted(pages), ["DAT_COLOUR", "DAT_PROVIDER", "DAT_THING_MASK", "DAT_THING_PARAM"])
    colour = pages["DAT_COLOUR"]
    equal((colour.kind, colour.title, colour.chapter, colour.section),
          ("enum", "Colours.", "events.md", "Event streams and delivery"))
    equal([(item.name, item.value, item.text) for item in colour.items],
          [("DAT_RED", "0", "like blood"), ("DAT_BLUE", "0x01", "like the sky, see dat_do_thing"),
           ("DAT_BOTH", "(DAT_RED | DAT_BLUE)", "a mixture")])
    equal(colour.names(), ["DAT_COLOUR", "DAT_RED", "DAT_BLUE", "DAT_BOTH", "DAT_AZURE"])
    equal([(item.name, item.type, item.suffix, item.text) for item in pages["DAT_THING_PARAM"].items],
          [("colour", "DAT_COLOUR", "", "its colour"), ("sizes", "int", "[2]", "from the smallest")])
    equal([item.text for item in pages["DAT_THING_MASK"].items],
          ["a sum", "colour", "sizes", "every member"])
    equal((pages["DAT_PROVIDER"].slots, pages["DAT_PROVIDER"].direct),
          (["DAT_DO_THING_FUNC"], ["DAT_DO_THING"]))


def types__without_text_or_comment__refused():
    type_refused("a.h:13", "DAT_RED has no text", (" /* like blood */", ""))
    type_refused("a.h:25", "colour has no text", (" /* its colour */", ""))
    type_refused("a.h:33", "no member size", (" /* sizes */", ""))
    type_refused("a.h:13", "full stop", ("blood */", "blood. */"))
    type_refused("a.h:7", "a comment of its own",
                 (TYPES[TYPES.index("/*\n * Colours"):TYPES.index("typedef enum")], ""))
    type_refused("a.h:23", "no title", ("as it is. */", "as it is */"))


def types__of_what_is_not_there__refused():
    type_refused("a.h:21", "no page has DAT_GREEN", ("DAT_AZURE DAT_BLUE", "DAT_AZURE DAT_GREEN"))
    type_refused("a.h:1", "no call dat_other", ("DAT_DO_THING_FUNC", "DAT_OTHER_FUNC"))


def types__name_on_no_page__refused():
    for text, name in (("#define DAT_NEW 1\n", "DAT_NEW"), ("extern DAT_OLD x;\n", "DAT_OLD")):
        try:
            make_man3.check_names("a.h", "/* DAT_SAID */\n" + text, {"DAT_RED"})
        except Malformed as fault:
            equal(str(fault), f"a.h:2: {name} is on no page")
        else:
            raise AssertionError("not refused")


def type_page__written():
    call, = calls_of(COMMENT)
    names = Names({call.name: call}, types_of())
    page = type_pages.page_of(names.types["DAT_COLOUR"], names)
    contains(page, "\nDAT_COLOUR \\- colours\n")
    contains(page, '\n.BR DAT_BLUE " = 0x01"\nLike the sky, see \\fBdat_do_thing\\fR(3).\n')
    contains(page, "\n.B DAT_AZURE\nis \\fBDAT_BLUE\\fR.\n")
    contains(page, "\n.BR DAT_THING_PARAM (3),\n")
    page = type_pages.page_of(names.types["DAT_THING_PARAM"], names)
    contains(page, '\n.BI "    int " sizes [2];\n')
    contains(page, "\n.I sizes\nFrom the smallest.\n")
    pages = make_man3.pages_of(names, ["A rule."], [])
    equal(pages["DAT_AZURE"], ".so man3/DAT_COLOUR.3\n")
    contains(pages["opendat"], "\n.BR DAT_COLOUR (3)\ncolours\n")


# ---- what is written ----

def page__special_characters__escaped():
    text = changed(("There is", r"A \n, -v and it's .so:"), ("A second", "'A second' and DAT_ALL of"),
                   ("     negative", "     .begins with a dot"))
    call, = calls_of(text)
    page = call_pages.page_of(call, Names({call.name: call}, {}))
    contains(page, r"A \en, \-v and it's .so:")
    contains(page, "\n\\&'A second' and \\fBDAT_ALL\\fR of")
    contains(page, "\n\\&.begins with a dot")


def page__names__refer_to_pages_and_parameters():
    call, = calls_of(changed(("There is", "See dat_other of thing_handle:")))
    other, = calls_of(changed(("dat_do_thing", "dat_other")))
    page = call_pages.page_of(call, Names({call.name: call, other.name: other}, {}))
    contains(page, r"See \fBdat_other\fR(3) of \fIthing_handle\fR:")
    contains(page, 'DAT_INVALID_ARG2" " (\\fIresult\\fR)"\nNULL.\n')
    contains(page, "\n.BR dat_other (3),\n")
    contains(page, "\ndat_do_thing \\- do a thing\n")


def macro__of_a_function__takes_its_parameters():
    macro = ("/*\n * Do it simply.\n *\n * Thread safe. May block. Specification: events.md, dat_evd_wait.\n"
             " */\n#define dat_simply(result) dat_do_thing(0, (result))\n")
    calls = {call.name: call for call in calls_of(COMMENT + macro)}
    make_man3.complete_macro(calls["dat_simply"], calls)
    equal([p.name for p in calls["dat_simply"].parameters], ["result"])
    equal(calls["dat_simply"].codes, calls["dat_do_thing"].codes)


def make(headers, exports, *options):
    return run(sys.executable, str(SOURCE / "man" / "make_man3.py"), "--exports", str(exports),
               "--spec", str(SOURCE / "docs" / "spec"), *options, *map(str, headers))


def program__our_headers__writes_what_it_lists():
    headers = sorted((SOURCE / "include" / "dat").glob("*.h"))
    exports = SOURCE / "src" / "registry" / "libdat.map"
    with tempfile.TemporaryDirectory() as folder:
        status, out, err = make(headers, exports, "--list", "--output", folder)
        equal(status, 0, err)
        equal(sorted(out.split()), sorted(page.name for page in pathlib.Path(folder).iterdir()))
    for page in ("opendat.3", "dat_ia_open.3", "dat_strerror.3", "dat_opendat_cno_fd.3",
                 "DAT_EVENT.3", "DAT_DTO_ERR_REMOTE_ACCESS.3"):
        contains(out.split(), page)


def program__header_broken__says_where_and_fails():
    headers = sorted((SOURCE / "include" / "dat").glob("*.h"))
    exports = SOURCE / "src" / "registry" / "libdat.map"
    with tempfile.TemporaryDirectory() as folder:
        broken = pathlib.Path(folder) / "broken.h"
        broken.write_text(changed(("EMPTY: none", "EMPTY:")), encoding="utf-8")
        status, out, err = make([*headers, broken], exports, "--list")
        equal((status, out), (1, ""))
        contains(err, f"{broken}:15: no text")
        broken.write_text(COMMENT, encoding="utf-8")
        contains(make([*headers, broken], exports, "--list")[2], "dat_do_thing is not exported")
        broken.write_text(changed(("events.md, dat_evd_wait", "events.md, dat_no")), encoding="utf-8")
        contains(make([*headers, broken], exports, "--list")[2], "events.md has no section dat_no")


def program__call_without_comment__says_which():
    headers = sorted((SOURCE / "include" / "dat").glob("*.h"))
    with tempfile.TemporaryDirectory() as folder:
        exports = pathlib.Path(folder) / "libdat.map"
        text = (SOURCE / "src" / "registry" / "libdat.map").read_text(encoding="utf-8")
        exports.write_text(text.replace("\tdat_strerror;", "\tdat_strerror;\n\tdat_new_call;"),
                           encoding="utf-8")
        status, _, err = make(headers, exports, "--list")
        equal(status, 1)
        line = text.splitlines().index("\tdat_strerror;") + 2
        contains(err, f"{exports}:{line}: dat_new_call is exported")


if __name__ == "__main__":
    main(list(globals().items()))
