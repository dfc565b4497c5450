# SPDX-License-Identifier: BSD-2-Clause
"""The manual pages of types, constants and macros."""
import pathlib
import re

from page_text import escaped, filled, head, joined, one_line, paragraphs, see_also, sentence

MOST_CALLS = 30  # a type that more calls use refers to opendat(3) only
BASIC = {"DAT_UINT32", "DAT_HANDLE", "DAT_BOOLEAN", "DAT_RETURN"}
# what a section of the page is called
HEADINGS = {"enum": "VALUES", "struct": "MEMBERS", "union": "MEMBERS", "": "DEFINITIONS"}
DIRECT = ("Each of these macros calls the slot of the same name directly. "
          "Its handles are those of a provider.")
SLOTS = ("A slot has the type of the call of the same name, except ia_open_func. "
         "DAT_IA_OPENV_FUNC is the type of dat_ia_openv.")


def page_of(page, names):
    source = pathlib.Path("include/dat") / pathlib.Path(page.path).name
    return joined([
        ("", head(page.name, source) + [rf"{page.name} \- {escaped(one_line(page.title))}"]),
        ("SYNOPSIS", [".nf", f".B #include <{include_of(page)}>"] + definition(page) + [".fi"]),
        ("DESCRIPTION", description(page, names)),
        (HEADINGS[page.kind], items_of(page, names)),
        ("OTHER NAMES", other_names(page)),
        ("SLOT TYPES", filled(SLOTS, names) + listed(page.slots) if page.slots else []),
        ("DIRECT CALLS", filled(DIRECT, names) + listed(page.direct) if page.direct else []),
        ("SPECIFICATION", specification(page)),
        ("SEE ALSO", see_also(related(page, names))),
    ])


def include_of(page):
    name = pathlib.Path(page.path).name
    return f"dat/{name}" if name in ("dat_registry.h", "opendat.h") else "dat/udat.h"


def definition(page):
    """The declaration of a type, as a compiler sees it."""
    if not page.kind:
        is_one = len(page.items) == 1 and not page.items[0].text
        return [".PP", one_definition(page.items[0])] if is_one else []
    if page.kind == "enum":
        return [".PP", f'.B "typedef enum {page.tag} {{ ... }} {page.name};"']
    lines = [".PP", f'.B "typedef {page.kind} {page.tag} {{"']
    for item in page.items:
        if item.kind == "member":
            gap = "" if item.type.endswith("*") else " "
            lines.append(f'.BI "    {item.type}{gap}" {item.name} {item.suffix};')
    return lines + [f'.B "}} {page.name};"']


def description(page, names):
    members = [item.name for item in page.items]
    return paragraphs(page.paragraphs, names, page.name, members)


def one_definition(item):
    if item.kind == "type":
        gap = "" if item.type.endswith("*") else " "
        return f'.B "typedef {item.type}{gap}{item.name}{item.suffix};"'
    return f'.B "#define {item.name}{item.suffix} {item.value}"'


def items_of(page, names):
    if len(page.items) == 1 and not page.items[0].text:
        return []
    italic = [item.name for item in page.items]
    if page.is_mask:  # the texts are names of members
        italic += re.findall(r"\w+", " ".join(item.text for item in page.items))
    lines = []
    for item in page.items:
        lines += [".TP", tag_of(item)] + filled(sentence(item.text), names, page.name, italic)
    return lines


def tag_of(item):
    if item.kind == "member":
        return f".I {item.name}"
    if item.kind == "type":
        return f'.BR {item.name} " ({escaped(item.type + item.suffix)})"'
    value = re.fullmatch(r"UINT64_C\((\w+)\)", item.value)
    value = value.group(1) if value else item.value
    if item.suffix or not value or len(value) > 40:
        return f'.B "{item.name}{item.suffix}"'
    return f'.BR {item.name} " = {escaped(value)}"'


def other_names(page):
    lines = []
    for item in page.also:
        lines += [".TP", f".B {item.name}", rf"is \fB{item.value}\fR."]
    return lines


def listed(words):
    lines = [".PP", ".nf"]
    return lines + [f".B {word}" for word in words] + [".fi"]


def specification(page):
    if not page.chapter:
        return []
    return [f'"{page.section}" in', rf".I docs/spec/{page.chapter}", "in the source of OpenDAT."]


def words_in(text):
    return set(re.findall(r"\b(?:dat|DAT)_\w+", text))


def types_in(page):
    """The names of types in the definition."""
    text = " ".join(f"{item.type} {item.suffix}" for item in page.items if item.kind != "constant")
    return words_in(text)


def related(page, names):
    """The calls with the type, the types of and around it, and what the text mentions."""
    found = set()
    owner = {name: one.name for one in names.types.values() for name in one.names()}
    mine = {page.name} | {item.name for item in page.items if item.kind == "type"}
    users = {call.name for call in names.calls.values()
             if any(words_in(parameter.type) & mine for parameter in call.parameters)}
    found |= users if len(users) <= MOST_CALLS else set()
    found |= {owner[word] for word in types_in(page) if word in owner}
    found |= {other.name for other in names.types.values()
              if page.name not in BASIC and types_in(other) & mine and not other.slots}
    text = " ".join(page.paragraphs + ([] if page.slots else [item.text for item in page.items]))
    found |= {owner.get(word, word) for word in words_in(text)
              if word in owner or word in names.calls}
    return {name for name in found if names.is_page(name)} - BASIC - {page.name}
