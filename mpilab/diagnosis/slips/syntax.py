"""Rules about the form of C: what is missing or too much, and what belongs to another language."""

import re

from mpilab.diagnosis import prototypes
from mpilab.diagnosis.slips.arguments import DATATYPES
from mpilab.diagnosis.slips.names import HABITS
from mpilab.diagnosis.slips.rules import GRAVE, Slip, rule
from mpilab.diagnosis.slips.source import C_TYPES

SYNTAX = "syntax"


@rule(r"^expected|^unknown type name|stray|extraneous|unexpected character|^'else' without")
def other_language(spot, match):
    """A line of C++, Fortran or Python: what the compiler stumbles over says little then."""
    code = _code_line(spot)
    if re.search(r"\w::\w|\b\w+<\w+>\s+\w+\s*[(;=]", code):
        return Slip("this line is C++, not C", "C has no :: and no templates: MPI's C functions "
                    "are called MPI_...", "another language", _line(spot), GRAVE)  # fmt: skip
    if re.search(r"^\s*(?:for\s+\w+\s+in\b|(?:if|while|else|elif|def)\b[^;{]*:\s*$)", code):
        return Slip("this line is Python, not C", "In C: for (int i = 0; i < n; i++) { ... } and "
                    "if (condition) { ... }", "another language", _line(spot), GRAVE)  # fmt: skip
    if spot.source.code[spot.offset - 1 : spot.offset + 1].count("&") == 1 and re.search(
        r"\w\s*&\s*\w+\s*[=;,)]", code
    ) and "identifier" in spot.diagnostic.text:  # fmt: skip
        return Slip("references are C++, not C", "In C use a pointer: T *name = &variable.",
                    "another language", _line(spot), GRAVE)  # fmt: skip
    if "expected" in match[0]:
        for word in re.findall(r"\b[A-Za-z]\w*", code):
            # Names that C programs use too count only where they cannot be ones of theirs.
            if word in HABITS and word not in ("string", "vector", "len", "range", "call", "print"):
                language, hint = HABITS[word]
                return Slip(f"'{word}' is {language}, not C", hint, "another language",
                            f"language {word}", GRAVE)  # fmt: skip
    return None


@rule(r"expected expression")
def c_type_as_value(spot, match):
    """A C type where a value stands: most often meant as MPI's datatype."""
    if spot.word == "else":
        return else_without_if(spot, match)
    for other in spot.others:
        if other.line == spot.diagnostic.line and other.text.startswith("missing terminating"):
            return unterminated(spot, re.search(r"missing terminating", other.text))
    if spot.word not in C_TYPES:
        return None
    named = DATATYPES.get(spot.word)
    call = spot.source.call_at(spot.offset)
    prototype = prototypes.functions().get(call.function) if call else None
    hint = f"MPI's name for {spot.word} is {named}." if named else "Give a value here."
    label = f"'{spot.word}' is a C type, no value"
    if prototype and named:
        index = call.index_at(spot.offset) or 0
        if index < len(prototype.parameters):
            parameter = prototype.parameters[index]
            label = (f"argument {index + 1} of {call.function} is the {parameter.name}, but "
                     f"'{spot.word}' is a C type")  # fmt: skip
        hint = f"Write {named}. The prototype: {prototype}."
    subject = f"call {call.begin}" if call else _line(spot)
    return Slip(label, hint, "C type for a datatype", subject, GRAVE)


@rule(r"expected '?\(?'?.* (?:before|after) .*|expected '[()]'")
def missing_bracket(spot, match):
    """A round bracket that is not there."""
    text = spot.diagnostic.text
    if outside := outside_of_functions(spot, match):
        return outside
    if re.search(r"expected '\('", text) and (after := re.search(r"\b(if|for|while)\b",
                                                                 _code_line(spot))):  # fmt: skip
        return Slip(f"'(' is missing after {after[1]}", f"In C: {after[1]} (...) {{ ... }}",
                    "missing bracket", _line(spot), GRAVE)  # fmt: skip
    if re.search(r"expected '\)'", text):
        return Slip("a ')' is missing", "Every ( needs its ).", "missing bracket", _line(spot),
                    GRAVE)  # fmt: skip
    return None


@rule(r"expected '[;,]'|expected ',' or ';'|expected '=', ',', ';'")
def missing_semicolon(spot, match):
    """A statement without its end."""
    before = spot.source.code[: spot.offset].rstrip()
    function = re.search(r"(\w+)$", before)
    if function and function[1] in prototypes.functions():
        return Slip(f"'(' is missing after {function[1]}", "A function is called with brackets "
                    f"around its arguments: {prototypes.functions()[function[1]]};",
                    "missing bracket", _line(spot), GRAVE)  # fmt: skip
    line, _ = spot.source.place(max(len(before) - 1, 0))
    where = "at the end of this line" if _ends(spot.source, line, before) else "here"
    offset = len(before) - 1 if line != spot.diagnostic.line else None
    return Slip(f"a ';' is missing {where}", "Every statement ends with ;.", "missing ;",
                f"line {line}", GRAVE, offset)  # fmt: skip


@rule(r"expected declaration or statement at end of input", r"expected '}'")
def missing_brace(spot, match):
    """A block that is never closed."""
    begin = unclosed(spot.source)
    if begin is None:
        return None
    line, _ = spot.source.place(begin)
    return Slip(f"the block that begins in line {line} is never closed", "A '}' is missing.",
                "missing }", SYNTAX, GRAVE, begin)  # fmt: skip


@rule(r"extraneous closing brace", r"expected identifier or '\('", r"^data definition has no type",
      r"expected parameter declarator", r"type defaults to 'int'",
      r"expected declaration specifiers")  # fmt: skip
def outside_of_functions(spot, match):
    """Code that stands outside of every function: a '}' too many, or a ';' after the head."""
    code = spot.source.code
    if _depth(code, spot.offset) > 0:
        return None
    before = code[: spot.offset].rstrip()
    if code[spot.offset :].startswith("{") and before.endswith(";"):
        return Slip("the function's body follows a ';'",
                    "No ; between the head of a function and its {.", "a ; too many", SYNTAX, GRAVE,
                    len(before) - 1)  # fmt: skip
    end = before.rfind("}")
    closes = end >= 0 and _depth(code, end + 1) <= 0
    if spot.word in ("return", "if", "for", "while", "else") or code[spot.offset :].startswith("}"):
        if closes:
            line, _ = spot.source.place(end)
            return Slip(f"the function ends in line {line}, before this",
                        f"A '}}' too many above, or a '{{' missing: line {line} closes the "
                        "function.", "a } too many", SYNTAX, GRAVE)  # fmt: skip
    call = spot.source.call_at(spot.offset)
    if call and call.function in prototypes.functions():
        return Slip(f"{call.function} is called outside of every function", "Calls belong between "
                    "the { and } of a function; mind the } above.", "outside of functions", SYNTAX,
                    GRAVE)  # fmt: skip
    return None


@rule(r"^'else' without a previous 'if'")
def else_without_if(spot, match):
    """An else whose if has ended."""
    return Slip("this else has no if", "More than one statement after if needs { }; no ; after "
                "if (...).", "else without if", _line(spot), GRAVE)  # fmt: skip


@rule(r"^expected expression|expected identifier$")
def value_missing(spot, match):
    """An operator, a comma or a bracket where a value has to stand."""
    here = spot.source.code[spot.offset : spot.offset + 1].strip()
    before = f" before '{here}'" if here and here in ",;)]}=*/%<>|&" else ""
    return Slip(f"a value is missing{before or ' here'}", "Look for a comma, an operator or a "
                "bracket too many, or for a name that was left out.", "a value missing",
                _line(spot), GRAVE)  # fmt: skip


@rule(r"type defaults to 'int'|type specifier missing")
def type_left_out(spot, match):
    """auto of C++, or a declaration without a type."""
    if not re.search(r"\bauto\b", spot.line):
        return None
    return Slip("auto is C++, not C", "In C a declaration names its type.", "another language",
                _line(spot), GRAVE)  # fmt: skip


@rule(r"multi-character character constant")
def text_in_single_quotes(spot, match):
    """'abc' for "abc"."""
    return Slip("'...' holds one character", 'A text stands in double quotes: "...".',
                "single quotes", f"type {spot.diagnostic.line}", GRAVE)  # fmt: skip


@rule(r"missing terminating (?P<mark>.)", r"unterminated /\*|unterminated comment")
def unterminated(spot, match):
    """A text or a comment without end."""
    what = "this comment" if "comment" in match[0] or "/*" in match[0] else "this text"
    mark = "*/" if what == "this comment" else '"'
    return Slip(f"{what} is never closed", f"Its {mark} is missing.", "unterminated", _line(spot),
                GRAVE)  # fmt: skip


@rule(r"stray '[^']*' in program", r"unexpected character <", r"non-ASCII")
def foreign_character(spot, match):
    """Typographic quotes, dashes or blanks, mostly from a copied text."""
    odd = next((c for c in spot.line[spot.offset_in_line :] if not c.isascii()), "")
    odd = odd or next((c for c in spot.line if not c.isascii()), "") or spot.word
    shown = f"'{odd}'" if odd else "a character here"
    return Slip(f"{shown} is no character of C", "Copied texts bring “quotes”, – dashes and odd "
                "blanks: type them anew.", "a foreign character", _line(spot), GRAVE)  # fmt: skip


def unclosed(source):
    """The offset of the '{' that most likely lacks its '}': one whose '}' stands at another
    indentation, else the last that has none; None if all are closed."""
    stack, suspect = [], None
    for match in re.finditer(r"[{}]", source.code):
        if match[0] == "{":
            stack.append(match.start())
        elif stack:
            begin = stack.pop()
            if _first_of_line(source, match.start()) and suspect is None:
                if _indent(source, begin) > _indent(source, match.start()):
                    suspect = begin
    if not stack:
        return None
    return suspect if suspect is not None else stack[-1]


def _indent(source, offset):
    line, _ = source.place(offset)
    text = source.line(line).expandtabs(4)
    return len(text) - len(text.lstrip())


def _first_of_line(source, offset):
    line, column = source.place(offset)
    return not source.line(line)[: column - 1].strip()


def _ends(source, line, before):
    begin = source.offset(line, 1)
    end = begin + len(source.line(line))
    return not source.code[len(before) : end].strip()


def _depth(code, offset):
    return code.count("{", 0, offset) - code.count("}", 0, offset)


def _code_line(spot):
    begin = spot.source.offset(spot.diagnostic.line, 1)
    return spot.source.code[begin : begin + len(spot.line)]


def _line(spot):
    return f"line {spot.diagnostic.line}"
