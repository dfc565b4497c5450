# SPDX-License-Identifier: BSD-2-Clause
"""Parse the comments of the calls in the public headers.

The comment before each call has this form; anything else is an error with file and line:

    /*
     * Title, one sentence. More text.
     *
     * More paragraphs, if any.
     *
     * name [in]       description; [out] or [inout]; in the order of the declaration
     *                 continuation lines start in the column of the text
     *
     * Returns DAT_SUCCESS, or
     *   TYPE: when
     *   TYPE / SUBTYPE, SUBTYPE: when,
     *     continuation lines are indented by four columns
     *   DAT_INVALID_PARAMETER, name: what is wrong with it; the subtype is DAT_INVALID_ARGn
     * Thread safe. Whether it blocks. Specification: chapter.md, section.
     */
    extern DAT_RETURN dat_object_verb(DAT_OBJECT_HANDLE name);

The last line of an extension ends with "No part of the specification." A line such as
"---- calls: endpoints ----" starts the calls of one kind of object. A macro that adds arguments to a
call has no parameters and codes of its own. A function that the header declares as a type need not
return a code.
"""
import dataclasses
import re

SECTION = re.compile(r"/\* ---- (?:calls: )?(.*) ---- \*/")
PARAMETER = re.compile(r"((\w+) \[(in|out|inout)\] +)(\S.*)")
CODE = re.compile(r"  (DAT_\w+)(?:(?: / ([\w, ]+))|(?:, ([\w, ]+)))?:(?: (\S.*))?")
END = re.compile(r"(?:Thread safe|Calls are serialized)\.")
WHOLE_END = re.compile(r"(?P<safety>.*?\.) (?:Specification: (?P<chapter>\w+\.md), (?P<section>\w+)"
                       r"|No part of the specification)\.")
FUNCTION = re.compile(r"extern (DAT_RETURN |const char \*)(\w+)\((.*)\);")
TYPE = re.compile(r"typedef (\w+) \(\*\w+\)\((.*)\);")
MACRO = re.compile(r"#define (\w+)\(([\w, ]*)\) (\w+)\(.*\)")
DECLARED = re.compile(r"(.*\W)(\w+)")
ENUMERATORS = re.compile(r"enum dat_return_(type|subtype) \{(.*?)\}", re.S)
RULES = "Rules for every call."
MOST_TITLE = 85  # characters: NAME sections are lists of one-liners


class Malformed(Exception):
    def __init__(self, path, line, what):
        super().__init__(f"{path}:{line}: {what}")


@dataclasses.dataclass
class Parameter:
    name: str
    direction: str = ""
    text: str = ""
    type: str = ""


@dataclasses.dataclass
class Code:
    """A return code: the type, its subtypes, and the condition."""
    type: str
    subtypes: list
    text: str


@dataclasses.dataclass
class Call:
    name: str
    path: str
    line: int
    group: str
    paragraphs: list
    parameters: list
    codes: list
    safety: str
    chapter: str
    section: str
    returns: str = "DAT_RETURN"
    expands_to: str = ""

    @property
    def title(self):
        return sentences(self.paragraphs[0])[0]


@dataclasses.dataclass
class Comment:
    path: str
    line: int   # of its first text
    lines: list
    declaration: str
    group: str

    def fault(self, offset, what):
        return Malformed(self.path, self.line + offset, what)


def sentences(text):
    return re.split(r'(?<=[.!?]) +(?=["A-Z]|dat_)', text)


def comments(path, source):
    """The comments that begin in the first column, each with the declaration after it."""
    lines = source.splitlines()
    group, at, end = "", 0, -1
    while at < len(lines):
        heading = SECTION.fullmatch(lines[at])
        group = heading.group(1) if heading else group
        if lines[at] == "/*":
            end = lines.index(" */", at)
            text = [line[3:] for line in lines[at + 1:end]]
            yield Comment(path, at + 2, text, declaration(lines, end + 1), group)
            at = end
        elif re.match(r'extern (?!"C")', lines[at]) and end != at - 1:
            raise Malformed(path, at + 1, "a declaration without a comment in the form of the calls")
        at += 1


def declaration(lines, at):
    """The declaration that begins in a line, as one line without runs of blanks."""
    whole = ""
    for line in lines[at:]:
        if not line or line.startswith("/*"):
            break
        whole += " " + line.rstrip("\\")
        if not line.endswith("\\") and (line.startswith("#") or line.endswith(";")):
            break
    return " ".join(whole.split())


def is_of_call(comment):
    return (FUNCTION.fullmatch(comment.declaration) is not None or
            any(PARAMETER.fullmatch(line) or line.startswith("Returns ") or END.match(line)
                for line in comment.lines))


def parse(path, source, codes_known):
    """(calls, paragraphs of the rules for all calls) of one header."""
    calls, rules = [], []
    for comment in comments(path, source):
        if is_of_call(comment):
            calls.append(call_of(comment, codes_known))
        elif comment.lines[0] == RULES:
            rules += paragraphs_of(comment.lines[1:])
    return calls, rules


def return_codes(source):
    """{"type": names, "subtype": names} that a header defines."""
    return {kind: set(re.findall(r"\bDAT_\w+(?= =)", body))
            for kind, body in ENUMERATORS.findall(source)}


def paragraphs_of(lines):
    return [" ".join(part.split()) for part in "\n".join(lines).split("\n\n") if part.strip()]


def call_of(comment, codes_known):
    parts = parts_of(comment)
    end = WHOLE_END.fullmatch(" ".join(line.strip() for _, line in parts["end"]))
    if not end:
        raise comment.fault(len(comment.lines) - 1, "no 'Thread safe. ... Specification: chapter.md, "
                            "section.' at the end")
    parameters = parameters_of(comment, parts["parameters"])
    call = Call(name="", path=comment.path, line=comment.line, group=comment.group,
                paragraphs=paragraphs_of(line for _, line in parts["text"]),
                parameters=parameters,
                codes=codes_of(comment, parts["codes"], parameters, codes_known), **end.groupdict(default=""))
    if not call.paragraphs or not call.title.endswith("."):
        raise comment.fault(0, "no title sentence")
    if len(call.title) > MOST_TITLE:
        raise comment.fault(0, f"the title sentence has more than {MOST_TITLE} characters")
    declare(comment, call)
    check_arguments(comment, call)
    return call


def parts_of(comment):
    """{part: [(offset, line)]}; a part begins at the first line of its form."""
    order = ["text", "parameters", "codes", "end"]
    parts = {part: [] for part in order}
    now = "text"
    for offset, line in enumerate(comment.lines):
        begins = ("parameters" if PARAMETER.fullmatch(line) else
                  "codes" if line.startswith("Returns ") else "end" if END.match(line) else now)
        if order.index(begins) < order.index(now):
            raise comment.fault(offset, f"{begins} after {now}")
        if begins == "parameters" and now == "text" and offset and comment.lines[offset - 1]:
            raise comment.fault(offset, "no empty line before the parameters")
        now = begins
        parts[now].append((offset, line))
    return parts


def parameters_of(comment, lines):
    found, column = [], 0
    for offset, line in lines:
        match = PARAMETER.fullmatch(line)
        if match:
            column = len(match.group(1))
            found.append(Parameter(match.group(2), match.group(3), match.group(4)))
        elif line and (line[:column].strip() or line[column:column + 1] in ("", " ")):
            raise comment.fault(offset, "neither a parameter nor the continuation of one")
        elif line:
            found[-1].text += " " + line.strip()
    return found


def codes_of(comment, lines, parameters, codes_known):
    """The codes, one entry for each text."""
    if lines and lines[0][1] != "Returns DAT_SUCCESS, or":
        raise comment.fault(lines[0][0], "not 'Returns DAT_SUCCESS, or'")
    found = []
    for offset, line in lines[1:]:
        match = CODE.fullmatch(line)
        if match:
            kind, subtypes, arguments, text = match.groups(default="")
            code = Code(kind, listed(subtypes), text)
            code.subtypes += [argument_code(comment, offset, name, parameters)
                              for name in listed(arguments)]
            check_code(comment, offset, code, codes_known)
            found.append((offset, code))
        elif not found or not re.match(r"    \S", line):
            raise comment.fault(offset, "neither a return code nor the continuation of one")
        else:
            found[-1][1].text = f"{found[-1][1].text} {line.strip()}".strip()
    if lines and not found:
        raise comment.fault(lines[0][0], "no return code follows")
    for offset, code in found:
        if not code.text or code.text.endswith("."):
            raise comment.fault(offset, "no text, or a full stop at its end")
    return [code for _, code in found]


def listed(names):
    return [name for name in names.replace(" ", "").split(",") if name]


def argument_code(comment, offset, name, parameters):
    """The subtype for a parameter."""
    known = [parameter.name for parameter in parameters]
    if name not in known:
        raise comment.fault(offset, f"there is no parameter {name}")
    return f"DAT_INVALID_ARG{known.index(name) + 1}"


def check_code(comment, offset, code, codes_known):
    unknown = ({code.type} - codes_known["type"]) | (set(code.subtypes) - codes_known["subtype"])
    if unknown:
        raise comment.fault(offset, f"no such return code: {', '.join(sorted(unknown))}")
    if re.search(r"DAT_INVALID_ARG\d", comment.lines[offset]):
        raise comment.fault(offset, "a parameter by its number, not its name")


def declare(comment, call):
    """Takes the name and types from the declaration, which must agree with the comment."""
    function, macro = FUNCTION.fullmatch(comment.declaration), MACRO.fullmatch(comment.declaration)
    kind = TYPE.fullmatch(comment.declaration)
    if macro:
        call.name, arguments, call.expands_to = macro.groups()
        if call.parameters or call.codes:
            raise comment.fault(0, f"{call.name}: parameters of a macro stand with the function")
        call.parameters = [Parameter(name) for name in arguments.split(", ")]
        return
    if not function and not kind:
        raise comment.fault(len(comment.lines) + 1, "neither a function nor a macro is declared here")
    call.returns, call.name, arguments = function.groups() if function else (
        kind.group(1), call.section, kind.group(2))
    call.returns = call.returns.strip()
    if not call.name.startswith("dat_"):
        raise comment.fault(0, f"{call.name or 'a type'}: not the name of a call")
    declared = [DECLARED.fullmatch(argument).groups() for argument in arguments.split(", ")]
    if [name for _, name in declared] != [parameter.name for parameter in call.parameters]:
        raise comment.fault(0, f"{call.name}: parameters are not those of the declaration: "
                            + ", ".join(name for _, name in declared))
    for parameter, (kind, _) in zip(call.parameters, declared):
        parameter.type = kind.strip()
    if bool(call.codes) != (call.returns == "DAT_RETURN"):
        raise comment.fault(0, f"{call.name}: return codes are missing, or there should be none")


def argument_of(call, subtype):
    """The parameter that DAT_INVALID_ARGn or DAT_INVALID_HANDLEn means."""
    match = re.fullmatch(r"DAT_INVALID_(?:ARG|HANDLE)(\d+)", subtype)
    if not match:
        return None
    number = int(match.group(1))
    return call.parameters[number - 1].name if number <= len(call.parameters) else ""


def check_arguments(comment, call):
    for code in call.codes:
        for subtype in code.subtypes:
            if argument_of(call, subtype) == "":
                raise comment.fault(0, f"{call.name}: {subtype}, but it has no such parameter")
