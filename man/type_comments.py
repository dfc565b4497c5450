# SPDX-License-Identifier: BSD-2-Clause
"""Parse the comments of the types, constants and macros in the public headers.

A comment in the first column documents the declarations after it, up to the next such comment. They
make one manual page. Its name is that of the enumeration, structure or union among them, of the
first type, or of the first macro. The comment has this form; anything else is an error with file and line:

    /*
     * Title, one sentence. More text.
     *
     * More paragraphs, if any.
     *
     * Specification: chapter.md, heading.
     */
    typedef enum dat_colour {
            DAT_RED = 0, /* text of one member *\\/
            /* text of a longer kind, on lines of its own before the member, or after it, as long as
             * it begins in its line *\\/
            DAT_BLUE = 1,
    } DAT_COLOUR;

A comment in the first column that begins in lower case is the text of the macro or type after it.
The last paragraph, which names a section of the specification, is optional. Each constant and each
member needs a text, with these exceptions. A declaration that is alone after its comment needs none.
"Selects the members of DAT_X" at the beginning of the comment means that DAT_Y_FIELD_NAME selects the
member that is called "name". A macro without a text that only renames a constant, a type or a member
joins the page of what it stands for. The type DAT_X_FUNC of a slot of the provider table, the slot, and the macro DAT_X
that calls it directly join the page of the table; all three belong to the call dat_x.
"""
import dataclasses
import re

from call_comments import (SECTION, FUNCTION, TYPE, Comment, Malformed, declaration, is_of_call,
                           paragraphs_of, sentences, MOST_TITLE)

NOT_OURS = {"UINT64_C"}  # of the C library, which a header may have to define
TABLE = "DAT_PROVIDER"  # the page of slot types and direct calls
SPECIFICATION = re.compile(r"Specification: (\w+\.md), (.*)\.")
SELECTS = re.compile(r"Selects the members of (DAT_\w+)")
MAIN = re.compile(r"(?:__extension__ )?(typedef )?(enum|struct|union) (\w+) \{")
NAMED_END = re.compile(r"\}(?: (\w+))?;")
FORWARD = re.compile(r"typedef (?:enum|struct|union) (dat_\w+) (DAT_\w+);")
ENUMERATOR = re.compile(r"(DAT_\w+) = (\w+),?")
MEMBER = re.compile(r"(.*\W)(\w+)((?:\[\w+\])*);")
PLAIN = re.compile(r"(?:__extension__ )?typedef (.*\W)(DAT_\w+);")
POINTER = re.compile(r"typedef (.*)\(\*(DAT_\w+)\)(.*);")
MACRO = re.compile(r"#define (\w+)(\([\w, ]*\))?(?: (.*))?")
SLOT = re.compile(r"DAT_(\w+)_FUNC")
RENAMED = re.compile(r"(?:DAT|max)_\w+")


@dataclasses.dataclass
class Item:
    """A member, a constant, a macro or a type name."""
    name: str
    line: int
    text: str
    value: str = ""      # of a constant or macro
    type: str = ""       # of a member, or what a name of a type stands for
    suffix: str = ""     # dimensions of an array, parameters of a macro
    kind: str = "constant"


@dataclasses.dataclass
class Page:
    name: str
    path: str
    line: int
    group: str
    paragraphs: list
    items: list
    kind: str = ""       # enum, struct, union or empty
    tag: str = ""
    chapter: str = ""
    section: str = ""
    also: list = dataclasses.field(default_factory=list)   # other names: Items
    slots: list = dataclasses.field(default_factory=list)  # names of slot types
    direct: list = dataclasses.field(default_factory=list) # macros that call a slot

    @property
    def title(self):
        return sentences(self.paragraphs[0])[0]

    @property
    def is_mask(self):
        return SELECTS.match(self.paragraphs[0]) is not None

    def names(self):
        """The names that lead to the page."""
        members = [] if self.kind in ("struct", "union") else self.items
        listed = [item.name for item in members + self.also] + self.slots
        listed += [item.name for item in self.items if item.name.startswith("DAT_")]
        return [self.name] + [name for name in dict.fromkeys(listed) if name != self.name]


@dataclasses.dataclass
class Block:
    path: str
    line: int        # of the first text of the comment
    text: list
    code: list       # (line number, text)
    group: str
    declaration: str

    def fault(self, line, what):
        return Malformed(self.path, line, what)


def blocks(path, source):
    """The comments that begin in the first column, each with all code up to the next one."""
    lines = source.splitlines()
    group, at = "", 0
    block = Block(path, 1, [], [], "", "")
    while at < len(lines):
        if not begins_block(lines, at):
            block.code.append((at + 1, lines[at]))
            at += 1
            continue
        yield block
        heading = SECTION.fullmatch(lines[at])
        group = heading.group(1) if heading else group
        end = next(i for i in range(at, len(lines)) if "*/" in lines[i])
        text = [] if heading else [cleaned(line) for line in lines[at:end + 1]]
        first = at + 1 + (lines[at] == "/*")
        block = Block(path, first, text[first - at - 1:], [], group, declaration(lines, end + 1))
        at = end + 1
    yield block


def begins_block(lines, at):
    """A comment in the first column, unless it begins in lower case: then it is the text of an item."""
    if not lines[at].startswith("/*"):
        return False
    first = cleaned(lines[at]) or cleaned(lines[at + 1])
    return not first[:1].islower()


def cleaned(line):
    """The text of one line of a comment."""
    return re.sub(r"^\s*(?:/\* ?|\*/| \* ?|\* )|\s*\*/$", "", line.rstrip()).rstrip()


def is_call(block):
    return is_of_call(Comment(block.path, block.line, block.text, block.declaration, block.group))


def read(path, source):
    """(pages, other names, names of slot types, macros of direct calls, names of calls' types)."""
    found = Found()
    for block in blocks(path, source):
        if block.text and is_call(block):
            match = TYPE.fullmatch(block.declaration)
            if match:
                found.of_calls.append(re.search(r"\(\*(\w+)\)", block.declaration).group(1))
        else:
            take_block(block, found)
    return found


@dataclasses.dataclass
class Found:
    pages: list = dataclasses.field(default_factory=list)
    renames: list = dataclasses.field(default_factory=list)   # (path, Item)
    forwards: dict = dataclasses.field(default_factory=dict)  # tag: name
    slots: list = dataclasses.field(default_factory=list)
    direct: list = dataclasses.field(default_factory=list)
    of_calls: list = dataclasses.field(default_factory=list)

    def add(self, other):
        for mine, theirs in ((self.pages, other.pages), (self.renames, other.renames),
                             (self.slots, other.slots), (self.direct, other.direct),
                             (self.of_calls, other.of_calls)):
            mine += theirs
        self.forwards.update(other.forwards)


def take_block(block, found):
    main, items = parse_code(block, found)
    if not main and not items:
        return
    line = items[0].line if items else block.line
    if not block.text:
        raise block.fault(line, "no comment before this declaration")
    paragraphs = paragraphs_of(block.text)
    first = next((item for item in items if item.kind == "type"), items[0] if items else None)
    page = main or Page(first.name, block.path, block.line, block.group, [], [])
    page.items += items
    if match := SPECIFICATION.fullmatch(paragraphs[-1]):
        page.chapter, page.section = match.groups()
        paragraphs.pop()
    page.paragraphs = paragraphs
    if not paragraphs or not re.search(r"[.:]$", page.title):
        raise block.fault(block.line, "no title sentence")
    if len(page.title) > MOST_TITLE:
        raise block.fault(block.line, f"the title sentence has more than {MOST_TITLE} characters")
    if len(page.items) == 1 and not main and not page.items[0].text:
        page.items[0].text = " "  # the comment says it
    found.pages.append(page)


# ---- code ----

def pieces(block):
    """(line, code, text) of each declaration or line of one; C++ variants are left out."""
    lines, at, above = list(block.code), 0, []
    is_cplusplus = False
    while at < len(lines):
        number, line = lines[at]
        code, comment = line.strip(), ""
        at += 1
        while code.endswith("\\"):
            code = code[:-1].rstrip() + " " + lines[at][1].strip()
            at += 1
        if code.startswith("#ifdef __cplusplus"):
            is_cplusplus = True
        elif re.match(r"#\s*(else|endif)", code):
            is_cplusplus = False
        if is_cplusplus or not code or re.match(r"#\s*(if|else|endif|include)", code):
            continue
        if "/*" in code:
            code, comment = code.split("/*", 1)
            text = [comment]
            while "*/" not in text[-1]:
                text.append(lines[at][1])
                at += 1
            comment = " ".join(re.sub(r"^\s*\* ?|\*/.*", "", part).strip() for part in text).strip()
        if not code.strip():
            above.append(comment)
            continue
        if not is_complete(code):
            rest = []
            while not re.search(r"[;{}]$", code + " ".join(rest)):
                rest.append(lines[at][1].strip())
                at += 1
            code = " ".join([code.strip()] + rest)
        yield number, " ".join(code.split()), " ".join(above + [comment]).strip()
        above = []


def is_complete(code):
    return (code.startswith("#") or re.search(r"[;{}]\s*$", code) is not None or
            ENUMERATOR.fullmatch(code.strip()) is not None)


def parse_code(block, found):
    """(the page of an enumeration, structure or union, or None; the other items)"""
    main, inside, items = None, None, []
    for line, code, text in pieces(block):
        if inside:
            end = NAMED_END.fullmatch(code)
            if end:
                inside.name = end.group(1) or inside.name
                inside = None
            else:
                inside.items.append(member_of(block, inside, line, code, text))
        elif match := MAIN.fullmatch(code):
            if main:
                raise block.fault(line, "a type needs a comment of its own")
            main = inside = Page("", block.path, block.line, block.group, [], [],
                                 kind=match.group(2), tag=match.group(3))
        elif match := FORWARD.fullmatch(code):
            found.forwards[match.group(1)] = match.group(2)
        else:
            item = item_of(block, line, code, text, found)
            if item:
                items.append(item)
    return main, items


def member_of(block, page, line, code, text):
    match = ENUMERATOR.fullmatch(code) if page.kind == "enum" else MEMBER.fullmatch(code)
    if not match:
        raise block.fault(line, f"neither a member nor a constant: {code}")
    if page.kind == "enum":
        return Item(match.group(1), line, text, value=match.group(2))
    return Item(match.group(2), line, text, type=match.group(1).strip(), suffix=match.group(3),
                kind="member")


def item_of(block, line, code, text, found):
    """A macro or a name of a type; None for what is no name of its own."""
    if match := MACRO.fullmatch(code):
        name, parameters, value = match.groups(default="")
        if name.startswith("_") or name in NOT_OURS:
            return None
        if "DAT_HANDLE_TO_PROVIDER(" in value:
            found.direct.append(name)
            return None
        item = Item(name, line, text, value=value, suffix=parameters, kind="macro")
        if not text and not parameters and RENAMED.fullmatch(value):
            found.renames.append((block.path, item))
            return None
        return item
    match = POINTER.fullmatch(code)
    if match:
        if SLOT.fullmatch(match.group(2)) and match.group(2) != "DAT_AGENT_FUNC":
            found.slots.append(match.group(2))
            return None
        return Item(match.group(2), line, text, type=f"{match.group(1)}(*", suffix=f"){match.group(3)}",
                    kind="type")
    match = PLAIN.fullmatch(code)
    if match:
        return Item(match.group(2), line, text, type=match.group(1).strip(), kind="type")
    if code.startswith(("extern", "}")) or FUNCTION.fullmatch(code):
        return None
    raise block.fault(line, f"no declaration that a page can show: {code}")


# ---- completion ----

def complete(found, calls):
    """{name: Page}, complete and consistent."""
    pages = {}
    for page in found.pages:
        page.name = page.name or found.forwards.get(page.tag, "")
        if not page.name.startswith("DAT_"):
            raise Malformed(page.path, page.line, f"{page.name or page.tag}: not the name of a page")
        if page.name in pages:
            raise Malformed(page.path, page.line, f"{page.name} has two comments")
        pages[page.name] = page
    for path, item in found.renames:
        join_rename(path, item, pages)
    join_table(found, pages, calls)
    for page in pages.values():
        complete_texts(page, pages, calls)
    return pages


def join_rename(path, item, pages):
    for page in pages.values():
        named = {one.name for one in page.items + page.also} | {page.name}
        if item.value in named:
            page.also.append(item)
            return
    raise Malformed(path, item.line, f"{item.name}: no page has {item.value}")


def join_table(found, pages, calls):
    table = pages.get(TABLE)
    if not table:
        raise Malformed("", 0, f"no page {TABLE}")
    for name in found.slots + [name + "_FUNC" for name in found.direct]:
        call = f"dat_{SLOT.fullmatch(name).group(1).lower()}"
        if call not in calls:
            raise Malformed(table.path, table.line, f"{name}: there is no call {call}")
    table.slots, table.direct = sorted(found.slots), sorted(found.direct)


def complete_texts(page, pages, calls):
    selects = SELECTS.match(page.paragraphs[0])
    for item in page.items:
        slot = SLOT.fullmatch(item.type) if item.kind == "member" else None
        if slot and not item.text:
            item.text = f"dat_{slot.group(1).lower()}"
            if item.text not in calls:
                raise Malformed(page.path, item.line, f"{item.name}: there is no call {item.text}")
        if selects and not item.text and item.kind != "type":
            item.text = selected(page, item, selects.group(1), pages)
        if not item.text:
            raise Malformed(page.path, item.line, f"{item.name} has no text")
        item.text = item.text.strip()
        if item.text.endswith("."):
            raise Malformed(page.path, item.line, f"{item.name}: a full stop at the end of the text")


def selected(page, item, owner, pages):
    """The text of a bit of a mask."""
    name = item.name.split("_FIELD_")[-1].lower()
    if name in ("all", "none"):
        return "every member" if name == "all" else "no member"
    members = {one.name: one for one in pages[owner].items} if owner in pages else {}
    for prefix in ("ep_attr_", "ia_"):
        inner = name.removeprefix(prefix)
        if prefix == "ep_attr_" and inner != name and inner in {
                one.name for one in pages["DAT_EP_ATTR"].items}:
            return f"ep_attr.{inner}"
        if name not in members and inner in members:
            return inner
    if name not in members:
        raise Malformed(page.path, item.line, f"{item.name} has no text, and {owner} no member {name}")
    return name
