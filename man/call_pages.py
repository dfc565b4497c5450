# SPDX-License-Identifier: BSD-2-Clause
"""The manual pages of the calls, and the overview opendat(3)."""
import pathlib
import re

import call_comments
from page_text import COMPILE, escaped, filled, head, joined, one_line, paragraphs, see_also, sentence

# Related calls that are not neighbours by the kind of object.
RELATED = [
    ("dat_ep_connect", "dat_psp_create", "dat_rsp_create", "dat_cr_accept"),
    ("dat_evd_dequeue", "dat_evd_wait", "dat_cno_wait", "dat_opendat_cno_fd"),
    ("dat_cr_query", "dat_cr_accept", "dat_ep_query", "dat_opendat_peer"),
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
# Masks that are integers, not enumerations.
MASKS = {"DAT_IA_ATTR_MASK", "DAT_PROVIDER_ATTR_MASK", "DAT_EP_PARAM_MASK"}
MOST_PROTOTYPE = 72  # columns that a terminal of 80 leaves


def italics(call):
    return {parameter.name for parameter in call.parameters}


def include_of(call):
    name = pathlib.Path(call.path).name
    return "dat/udat.h" if name in ("dat.h", "udat.h") else f"dat/{name}"


def synopsis(call):
    """The prototype, one parameter per line, aligned to the bracket or, if too wide, indented."""
    begin = f"{call.returns}{'' if call.returns.endswith('*') else ' '}{call.name}("
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


def parameters(call, names):
    lines = []
    for parameter in call.parameters:
        lines += [".TP", f'.IR {parameter.name} " [{parameter.direction}]"']
        lines += filled(sentence(parameter.text), names, call.name, italics(call))
    return lines


def return_value(call):
    if not call.codes:
        return ["The name, a constant text." if call.returns == "const char *" else "None."]
    return [r"\fBDAT_SUCCESS\fR, or one of the codes below: a type and, after the slash, a subtype.",
            r"\fBDAT_GET_TYPE\fR() and \fBDAT_GET_SUBTYPE\fR() extract them, see \fBDAT_RETURN\fR(3).",
            "A call that fails changes nothing, unless this page says otherwise."]


def errors(call, names):
    lines = []
    for code in call.codes:
        tag = ".TP"
        for subtype in code.subtypes or [None]:
            lines += [tag, error_tag(call, code.type, subtype)]
            tag = ".TQ"
        lines += filled(sentence(code.text), names, call.name, italics(call))
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


def neighbours(call, known):
    """The calls for the same kind of object, what the comment mentions, what makes the handles, and
    the structures and enumerations of the parameters."""
    calls, types = known.calls, known.types
    names = {other.name for other in calls.values()
             if other.group == call.group and other.chapter in (call.chapter, "")}
    text = " ".join(call.paragraphs + [one.text for one in call.parameters + call.codes])
    names |= {word for word in re.findall(r"\b(?:dat|DAT)_\w+", text) if known.is_page(word)}
    names |= {word for parameter in call.parameters for word in re.findall(r"\w+", parameter.type)
              if word in types and (types[word].kind or word in MASKS)}
    for parameter in call.parameters:
        kind = parameter.type.removeprefix("const ")
        if parameter.direction != "out":
            names |= set(MAKERS.get(kind, []))
    for related in RELATED:
        names |= set(related) if call.name in related else set()
    names |= {"dat_strerror", "DAT_RETURN"} if call.codes else set()
    return names - {call.name}


def page_of(call, names):
    sections = [
        ("", head(call.name, f"include/{pathlib.Path('dat') / pathlib.Path(call.path).name}")
         + [rf"{call.name} \- {escaped(one_line(call.title))}"]),
        ("SYNOPSIS", synopsis(call)),
        ("DESCRIPTION", paragraphs(call.paragraphs, names, call.name, italics(call))),
        ("PARAMETERS", parameters(call, names)),
        ("RETURN VALUE", return_value(call)),
        ("ERRORS", errors(call, names) if call.codes else []),
        ("THREAD SAFETY", filled(call.safety, names, call.name, italics(call))),
        ("SPECIFICATION", specification(call)),
        ("SEE ALSO", see_also(neighbours(call, names))),
    ]
    return joined(sections)


def overview(names, rules):
    """opendat(3): the rules for all calls, a list of them, and a list of the types."""
    groups = {}
    for call in names.calls.values():
        groups.setdefault(call.group, []).append(call)
    listed = []
    for group in sorted(groups):
        listed.append(f".SS {group.capitalize()}")
        for call in sorted(groups[group], key=lambda call: call.name):
            listed += [".TP", f".BR {call.name} (3)", *filled(one_line(call.title), names)]
    types = []
    for page in sorted(names.types.values(), key=lambda page: page.name):
        types += [".TP", f".BR {page.name} (3)", *filled(one_line(page.title), names)]
    return joined([
        ("", head("opendat", "the headers in include/dat") + [r"opendat \- the calls and types of uDAPL 1.2"]),
        ("SYNOPSIS", [".B #include <dat/udat.h>", COMPILE]),
        ("DESCRIPTION", paragraphs(rules, names)),
        ("CALLS", listed),
        ("TYPES AND CONSTANTS",
         ["Each constant has a page of its own name, which is that of its type.", *types]),
        ("SEE ALSO", [".BR dat_ia_open (3),", ".BR dat_strerror (3),", ".BR opendat (7)"]),
    ])
