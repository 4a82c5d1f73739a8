"""Rules for names (misspelled, undeclared, duplicate, undefined, not C) and for syntax."""

import re
from collections.abc import Sequence
from difflib import get_close_matches

from mpilab.diagnosis.compiler.rules import (
    C_TYPES,
    GRAVE,
    Explanation,
    Parameter,
    Source,
    Spot,
    functions,
    kernel_prototype,
    names,
    own_names,
    parse_parameters,
    plain_type,
    rule,
)
from mpilab.diagnosis.compiler.values import DATATYPES

# Header → names that students use from it.
HEADERS = {
    "string.h": "memcpy memmove memset memcmp strlen strcmp strcpy",
    "stdlib.h": "malloc calloc realloc free abs exit abort qsort rand srand atoi getenv",
    "stdio.h": "printf fprintf sprintf snprintf puts putchar perror fflush stdout stderr FILE",
    "math.h": "sqrt pow log log2 log10 exp floor ceil fabs fmax fmin round",
    "stdbool.h": "bool true false",
    "stdint.h": "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uintptr_t "
    "intptr_t",
    "limits.h": "INT_MAX INT_MIN LONG_MAX CHAR_BIT UINT_MAX",
    "assert.h": "assert",
    "unistd.h": "usleep sleep getpid write",
    "time.h": "clock_gettime time clock CLOCK_MONOTONIC",
    "stddef.h": "NULL size_t ptrdiff_t offsetof",
}
HEADER_OF = {name: header for header, listed in HEADERS.items() for name in listed.split()}

# Words of other languages → (language, what to write in C).
HABITS = {
    "nullptr": ("C++", "In C it is NULL."),
    "new": (
        "C++",
        "In C, allocate memory with malloc(bytes) of <stdlib.h>, and release it with free.",
    ),
    "delete": ("C++", "In C, release memory with free(pointer)."),
    "cout": ("C++", "In C write printf(...) of <stdio.h>."),
    "endl": ("C++", "In C write printf(...) of <stdio.h>, with \\n at the end of a line."),
    "std": ("C++", "C lacks the C++ standard library: use arrays, printf and malloc."),
    "using": ("C++", "C has no namespaces."),
    "namespace": ("C++", "C has no namespaces."),
    "template": ("C++", "C has no templates."),
    "class": ("C++", "C has struct, without methods."),
    "vector": ("C++", "In C use an array, or malloc and free of <stdlib.h>."),
    "string": ("C++", "In C, a string is a char array or a const char *."),
    "call": ("Fortran", "In C, call a function by its name alone: MPI_Barrier(comm);"),
    "CALL": ("Fortran", "In C, call a function by its name alone: MPI_Barrier(comm);"),
    "ierr": ("Fortran", "In C the error code is what the function returns: int err = MPI_...;"),
    "ierror": ("Fortran", "In C the error code is what the function returns: int err = MPI_...;"),
    "integer": ("Fortran", "In C it is int."),
    "then": ("Fortran", "In C: if (condition) { ... }"),
    "endif": ("Fortran", "In C a block ends with }."),
    "mod": ("Fortran", "In C, the remainder operator is %: (rank + 1) % size."),
    "elif": ("Python", "In C: else if (condition) { ... }"),
    "range": ("Python", "In C: for (int i = 0; i < n; i++) { ... }"),
    "True": ("Python", "In C write 1, or include <stdbool.h> and write true."),
    "False": ("Python", "In C write 0, or include <stdbool.h> and write false."),
    "None": ("Python", "In C it is NULL (pointers) or MPI_..._NULL (handles)."),
    "def": ("Python", "In C a function begins with the type that it returns."),
    "print": ("Python", "In C write printf(...) of <stdio.h>."),
    "len": ("Python", "A C array does not know its length: pass the length separately."),
    "pass": ("Python", "In C an empty block is { }."),
    "and": ("Python", "In C it is &&."),
    "or": ("Python", "In C it is ||."),
    "not": ("Python", "In C it is !."),
}
# Wrong MPI names, too different from the correct ones for a spelling comparison.
ALIASES = {
    "MPI_ADD": "MPI_SUM",
    "MPI_INTEGER_T": "MPI_INT",
    "MPI_INTS": "MPI_INT",
    "MPI_NULL_STATUS": "MPI_STATUS_IGNORE",
    "MPI_IGNORE": "MPI_STATUS_IGNORE",
    "MPI_STATUS_NULL": "MPI_STATUS_IGNORE",
    "MPI_ANY": "MPI_ANY_SOURCE",
    "MPI_WORLD": "MPI_COMM_WORLD",
    "COMM_WORLD": "MPI_COMM_WORLD",
    "MPI_STRING": "MPI_CHAR",
    "MPI_Rank": "MPI_Comm_rank",
    "MPI_Size": "MPI_Comm_size",
}


@rule(
    r"(?P<name>)implicit(?:ly)? declar(?:ation of|ing library) function '(?P<function>\w+)'",
    r"use of undeclared identifier '(?P<name>\w+)'",
    r"'(?P<name>\w+)' undeclared",
    r"unknown type name '(?P<name>\w+)'",
    r"'(?P<name>\w+)' was not declared",
)
def undeclared(spot: Spot, match: re.Match[str]) -> Explanation:
    """A name that is not declared."""
    name = match["name"] or match["function"]
    is_function = not match["name"]
    is_type = "type name" in match[0]
    label = f"'{name}' is not declared"
    subject = f"name {name}"
    offset = _offset_of(spot, name)
    if name in names() | own_names():
        hint = 'Put #include "mpilab.h" at the top of the cell.'
        return Explanation(label, hint, "missing #include", "header mpilab.h", GRAVE, offset)
    if name in HABITS and not (is_function and name in spot.source.identifiers() and name == "len"):
        language, hint = HABITS[name]
        label = f"'{name}' is {language}, not C"
        return Explanation(label, hint, "another language", f"language {name}", GRAVE, offset)
    if name in HEADER_OF:
        header = HEADER_OF[name]
        hint = f"Put #include <{header}> at the top of the cell."
        return Explanation(label, hint, "missing #include", f"header {header}", GRAVE, offset)
    if meant := suggestion(name, spot.source, spot.diagnostic.text, is_function):
        return Explanation(
            label, f"Did you mean {meant}?", "misspelled name", subject, GRAVE, offset
        )
    if is_function:
        hint = (
            f"No function {name} is known here: check the spelling, or define it above the kernel "
            "in this cell."
        )
        return Explanation(label, hint, "unknown function", subject, GRAVE, offset)
    if is_type:
        return Explanation(
            f"'{name}' is not a type",
            "Check the spelling of the type.",
            "unknown type",
            subject,
            GRAVE,
            offset,
        )
    hint = f"Declare it before its first use, e.g. int {name} = 0;"
    if re.search(rf"\bfor\s*\(\s*{re.escape(name)}\s*=", spot.line):
        hint = f"Declare it in the loop: for (int {name} = ...)."
    return Explanation(label, hint, "not declared", subject, GRAVE, offset)


def suggestion(name: str, source: Source, said: str = "", is_function: bool = False) -> str:
    """The name of MPI or of the source that was probably meant by `name`, or ''."""
    if name in ALIASES:
        return ALIASES[name]
    if name.upper().startswith("MPI"):
        for word in (_same_letters(name), _nearest(name)):
            if word:
                return word
    elif is_function:
        known = {*HEADER_OF, *own_names(), *(c.function for c in source.calls)}
        near = get_close_matches(name, sorted(known - {name}), 1, 0.8)
        return near[0] if near else ""
    if compilers := re.search(r"did you mean '(\w+)'", said):
        own = source.identifiers() | own_names()
        return compilers[1] if compilers[1] in own else ""
    declared = [w for w in sorted(source.identifiers()) if w != name and source.declared(w)[0]]
    near = get_close_matches(name, declared, 1, 0.7)
    return near[0] if near and len(name) > 1 else ""


@rule(r"undefined reference to [`'](?P<name>\w+)'")
def undefined_reference(spot: Spot, match: re.Match[str]) -> Explanation:
    """A name that is declared but never defined: the linker's message."""
    name = match["name"]
    calls = [call for call in spot.source.calls if call.function == name]
    here = [c for c in calls if spot.source.place(c.begin)[0] == spot.diagnostic.line]
    # If the linker gives no line, use the last call, since a declaration precedes it.
    offset = (here or calls)[-1].begin if calls else None
    meant = suggestion(name, spot.source, is_function=True) if name.startswith("MPI") else ""
    hint = f"{name} is declared but has no body: define it in this cell, or check the spelling."
    if meant:
        hint = f"Did you mean {meant}?"
    return Explanation(
        f"'{name}' is not defined", hint, "not defined", f"name {name}", GRAVE, offset
    )


@rule(r"multiple definition of [`'](?P<name>\w+)'")
def multiple_definition(spot: Spot, match: re.Match[str]) -> Explanation:
    """A name of the kit or of MPI that the cell also defines."""
    name = match["name"]
    return Explanation(
        f"'{name}' is already defined elsewhere",
        "Call your function something else.",
        "defined twice",
        f"name {name}",
        GRAVE,
    )


@rule(r"^'?(?P<file>[^\s:']+)'?:? (?:No such file or directory|file not found)")
def no_such_file(spot: Spot, match: re.Match[str]) -> Explanation:
    """An #include of a file that does not exist."""
    file = match["file"]
    known = ["mpilab.h", "mpi.h", *HEADERS]
    near = get_close_matches(file, known, 1, 0.6)
    if near:
        hint = f"Did you mean {near[0]}?"
    elif "." not in file:
        hint = "That is a C++ header; C headers end in .h."
    else:
        hint = 'A kernel needs #include "mpilab.h"; standard C headers go in <>.'
    return Explanation(
        f"there is no file '{file}' to include", hint, "unknown #include", f"file {file}", GRAVE
    )


@rule(
    r"redefinition of '(?P<name>\w+)'",
    r"redeclaration of '(?P<name>\w+)' with no linkage",
    r"'(?P<name>\w+)' redeclared as different kind",
)
def declared_twice(spot: Spot, match: re.Match[str]) -> Explanation:
    """The same name declared twice in one block."""
    name = match["name"]
    first, _ = spot.note(r"previous (?:definition|declaration)|^in expansion of macro")
    where = f" (first in line {first.line})" if first and first.line else ""
    hint = "Remove the second type to assign to the first variable, or use another name."
    if spot.word.startswith("MPILAB_") or any(c.function == name for c in spot.source.calls):
        hint = "Keep one of the two functions."
    elif name in ("comm", "sendbuf", "recvbuf", "sendcount", "recvcount", "sendtype", "recvtype"):
        hint = f"{name} is an argument of the kernel: use it without declaring it."
    return Explanation(
        f"'{name}' is declared twice{where}", hint, "declared twice", f"name {name}", GRAVE
    )


@rule(r"conflicting types for '(?P<name>\w+)'")
def other_prototype(spot: Spot, match: re.Match[str]) -> Explanation:
    """A function whose head differs from its prototype."""
    name = match["name"]
    right = kernel_prototype(name)
    if not right:
        if name in names() | own_names():
            hint = "Call your function something else: this name belongs to a header."
        else:
            hint = "Declaration and definition must match, and a function must precede its calls."
        return Explanation(
            f"'{name}' is already declared differently",
            hint,
            "mismatched prototype",
            f"name {name}",
            GRAVE,
        )
    _, _, listed = right.partition("(")
    wanted = parse_parameters(listed.rstrip(") "))
    head = re.search(rf"(\w[\w\s*]*?)\b{name}\s*\(([^()]*)\)", spot.source.code)
    difference = _difference(head, wanted) if head else ""
    hint = f"{difference}Write: {right}".strip()
    return Explanation(
        f"the declaration of '{name}' differs from its prototype in mpilab.h",
        hint,
        "mismatched prototype",
        f"name {name}",
        GRAVE,
    )


def _difference(head: re.Match[str], wanted: Sequence[Parameter]) -> str:
    got = parse_parameters(head[2])
    if plain_type(head[1]) != "int":
        return "It must return int. "
    if len(got) != len(wanted):
        return f"It has {len(wanted)} arguments, yours {len(got)}. "
    for number, (one, other) in enumerate(zip(got, wanted, strict=True), 1):
        given, right = one.text.replace(one.name, ""), other.text.replace(other.name, "")
        if given.replace(" ", "") != right.replace(" ", ""):
            return f"Argument {number} is '{other.text}', yours '{one.text}'. "
    return ""


def _same_letters(name: str) -> str:
    """The MPI name with the same letters: most mistakes are in case and underscores."""

    def letters(word: str) -> str:
        return word.replace("_", "").lower()

    same = sorted(word for word in names() if letters(word) == letters(name))
    return same[0] if same else ""


def _nearest(name: str) -> str:
    """The most similar MPI name among those of the same case (constants or others)."""
    is_constant = name == name.upper()
    alike = sorted(word for word in names() if (word == word.upper()) == is_constant)
    near = get_close_matches(name, alike, 1, 0.75)
    return near[0] if near else ""


def _offset_of(spot: Spot, name: str) -> int | None:
    """The offset of the name in its line; None if the message points to it, or it is not there."""
    if spot.word == name:
        return None
    match = re.search(rf"\b{re.escape(name)}\b", spot.line)
    return spot.source.offset(spot.diagnostic.line, 1) + match.start() if match else None


# Rules for syntax: missing or surplus tokens, and code of other languages.

SYNTAX = "syntax"


@rule(r"^expected|^unknown type name|stray|extraneous|unexpected character|^'else' without")
def other_language(spot: Spot, match: re.Match[str]) -> Explanation | None:
    """A line of C++, Fortran or Python, for which the compiler's message is of little help."""
    code = _code_line(spot)
    if re.search(r"\w::\w|\b\w+<\w+>\s+\w+\s*[(;=]", code):
        return Explanation(
            "this line is C++, not C",
            "C has no :: and no templates: the C functions of MPI are named MPI_...",
            "another language",
            _line(spot),
            GRAVE,
        )
    if re.search(r"^\s*(?:for\s+\w+\s+in\b|(?:if|while|else|elif|def)\b[^;{]*:\s*$)", code):
        return Explanation(
            "this line is Python, not C",
            "In C: for (int i = 0; i < n; i++) { ... } and if (condition) { ... }",
            "another language",
            _line(spot),
            GRAVE,
        )
    if (
        spot.source.code[spot.offset - 1 : spot.offset + 1].count("&") == 1
        and re.search(r"\w\s*&\s*\w+\s*[=;,)]", code)
        and "identifier" in spot.diagnostic.text
    ):
        return Explanation(
            "references are C++, not C",
            "In C use a pointer: T *name = &variable.",
            "another language",
            _line(spot),
            GRAVE,
        )
    if "expected" in match[0]:
        for word in re.findall(r"\b[A-Za-z]\w*", code):
            # Names that C programs also use do not count here.
            if word in HABITS and word not in ("string", "vector", "len", "range", "call", "print"):
                language, hint = HABITS[word]
                return Explanation(
                    f"'{word}' is {language}, not C",
                    hint,
                    "another language",
                    f"language {word}",
                    GRAVE,
                )
    return None


@rule(r"expected expression")
def c_type_as_value(spot: Spot, match: re.Match[str]) -> Explanation | None:
    """A C type instead of a value: usually an MPI datatype was meant."""
    if spot.word == "else":
        return else_without_if(spot, match)
    for other in spot.others:
        if other.line == spot.diagnostic.line and (
            missing := re.match(r"missing terminating", other.text)
        ):
            return unterminated(spot, missing)
    if spot.word not in C_TYPES:
        return None
    named = DATATYPES.get(spot.word)
    call = spot.source.call_at(spot.offset)
    prototype = functions().get(call.function) if call else None
    hint = f"The MPI name for {spot.word} is {named}." if named else "Write a value here."
    label = f"'{spot.word}' is a C type, not a value"
    if call and prototype and named:
        index = call.index_at(spot.offset) or 0
        if index < len(prototype.parameters):
            parameter = prototype.parameters[index]
            label = (
                f"argument {index + 1} of {call.function} is the {parameter.name}, but "
                f"'{spot.word}' is a C type"
            )
        hint = f"Write {named}. The prototype: {prototype}."
    subject = f"call {call.begin}" if call else _line(spot)
    return Explanation(label, hint, "C type for a datatype", subject, GRAVE)


@rule(r"expected '?\(?'?.* (?:before|after) .*|expected '[()]'")
def missing_bracket(spot: Spot, match: re.Match[str]) -> Explanation | None:
    """A missing parenthesis."""
    text = spot.diagnostic.text
    if outside := outside_of_functions(spot, match):
        return outside
    if re.search(r"expected '\('", text) and (
        after := re.search(r"\b(if|for|while)\b", _code_line(spot))
    ):
        return Explanation(
            f"'(' is missing after {after[1]}",
            f"In C: {after[1]} (...) {{ ... }}",
            "missing bracket",
            _line(spot),
            GRAVE,
        )
    if re.search(r"expected '\)'", text):
        return Explanation(
            "a ')' is missing", "Every ( needs a ).", "missing bracket", _line(spot), GRAVE
        )
    return None


@rule(r"expected '[;,]'|expected ',' or ';'|expected '=', ',', ';'")
def missing_semicolon(spot: Spot, match: re.Match[str]) -> Explanation:
    """A statement without its semicolon."""
    before = spot.source.code[: spot.offset].rstrip()
    function = re.search(r"(\w+)$", before)
    if function and function[1] in functions():
        return Explanation(
            f"'(' is missing after {function[1]}",
            f"A function call needs parentheses around its arguments: {functions()[function[1]]};",
            "missing bracket",
            _line(spot),
            GRAVE,
        )
    line, _ = spot.source.place(max(len(before) - 1, 0))
    where = "at the end of this line" if _ends(spot.source, line, before) else "here"
    offset = len(before) - 1 if line != spot.diagnostic.line else None
    return Explanation(
        f"a ';' is missing {where}",
        "End every statement with ;.",
        "missing ;",
        f"line {line}",
        GRAVE,
        offset,
    )


@rule(r"expected declaration or statement at end of input", r"expected '}'")
def missing_brace(spot: Spot, match: re.Match[str]) -> Explanation | None:
    """A block that is never closed."""
    begin = unclosed(spot.source)
    if begin is None:
        return None
    line, _ = spot.source.place(begin)
    return Explanation(
        f"the block that begins in line {line} is never closed",
        "A '}' is missing.",
        "missing }",
        SYNTAX,
        GRAVE,
        begin,
    )


@rule(
    r"extraneous closing brace",
    r"expected identifier or '\('",
    r"^data definition has no type",
    r"expected parameter declarator",
    r"type defaults to 'int'",
    r"expected declaration specifiers",
)
def outside_of_functions(spot: Spot, match: re.Match[str]) -> Explanation | None:
    """Code outside every function: a surplus '}', or a ';' after the head."""
    code = spot.source.code
    if _depth(code, spot.offset) > 0:
        return None
    before = code[: spot.offset].rstrip()
    if code[spot.offset :].startswith("{") and before.endswith(";"):
        return Explanation(
            "the function's body follows a ';'",
            "Remove the ; between the function's declaration and its {.",
            "an extra ;",
            SYNTAX,
            GRAVE,
            len(before) - 1,
        )
    end = before.rfind("}")
    closes = end >= 0 and _depth(code, end + 1) <= 0
    is_inside = spot.word in ("return", "if", "for", "while", "else")
    if closes and (is_inside or code[spot.offset :].startswith("}")):
        line, _ = spot.source.place(end)
        return Explanation(
            f"the function ends in line {line}, before this",
            f"There is an extra '}}' above, or a missing '{{': line {line} closes the function.",
            "an extra }",
            SYNTAX,
            GRAVE,
        )
    call = spot.source.call_at(spot.offset)
    if call and call.function in functions():
        return Explanation(
            f"{call.function} is called outside any function",
            "Calls belong between the { and } of a function; check the } above.",
            "outside a function",
            SYNTAX,
            GRAVE,
        )
    return None


@rule(r"^'else' without a previous 'if'")
def else_without_if(spot: Spot, match: re.Match[str]) -> Explanation:
    """An else whose if has ended."""
    return Explanation(
        "this else has no if",
        "Put { } around several statements after if, and no ; after if (...).",
        "else without if",
        _line(spot),
        GRAVE,
    )


@rule(r"^expected expression|expected identifier$")
def value_missing(spot: Spot, match: re.Match[str]) -> Explanation:
    """An operator, a comma or a bracket where a value is expected."""
    here = spot.source.code[spot.offset : spot.offset + 1].strip()
    before = f" before '{here}'" if here and here in ",;)]}=*/%<>|&" else ""
    return Explanation(
        f"a value is missing{before or ' here'}",
        "Look for an extra comma, operator or parenthesis, or for a missing name.",
        "a missing value",
        _line(spot),
        GRAVE,
    )


@rule(r"type defaults to 'int'|type specifier missing")
def type_left_out(spot: Spot, match: re.Match[str]) -> Explanation | None:
    """The auto of C++ instead of a type."""
    if not re.search(r"\bauto\b", spot.line):
        return None
    return Explanation(
        "auto is C++, not C",
        "In C a declaration names its type.",
        "another language",
        _line(spot),
        GRAVE,
    )


@rule(r"multi-character character constant")
def text_in_single_quotes(spot: Spot, match: re.Match[str]) -> Explanation:
    """'abc' instead of "abc"."""
    return Explanation(
        "'...' holds one character",
        'Write a string in double quotes: "...".',
        "single quotes",
        f"type {spot.diagnostic.line}",
        GRAVE,
    )


@rule(r"missing terminating (?P<mark>.)", r"unterminated /\*|unterminated comment")
def unterminated(spot: Spot, match: re.Match[str]) -> Explanation:
    """An unterminated string or comment."""
    what = "this comment" if "comment" in match[0] or "/*" in match[0] else "this string"
    mark = "*/" if what == "this comment" else '"'
    return Explanation(
        f"{what} is never closed", f"Its {mark} is missing.", "unterminated", _line(spot), GRAVE
    )


@rule(r"stray '[^']*' in program", r"unexpected character <", r"non-ASCII")
def foreign_character(spot: Spot, match: re.Match[str]) -> Explanation:
    """Typographic quotes, dashes or spaces, mostly from copied text."""
    odd = next((c for c in spot.line[spot.offset_in_line :] if not c.isascii()), "")
    odd = odd or next((c for c in spot.line if not c.isascii()), "") or spot.word
    shown = f"'{odd}'" if odd else "a character here"
    return Explanation(
        f"{shown} is not a valid character in C",
        "Copied text may contain “quotes”, – dashes and special spaces: retype them.",
        "an invalid character",
        _line(spot),
        GRAVE,
    )


def unclosed(source: Source) -> int | None:
    """The offset of the '{' that most likely lacks its '}': one whose '}' is less indented, else
    the last unclosed one; None if all are closed."""
    stack, suspect = [], None
    for match in re.finditer(r"[{}]", source.code):
        if match[0] == "{":
            stack.append(match.start())
        elif stack:
            begin = stack.pop()
            is_first = _first_of_line(source, match.start()) and suspect is None
            if is_first and _indent(source, begin) > _indent(source, match.start()):
                suspect = begin
    if not stack:
        return None
    return suspect if suspect is not None else stack[-1]


def _indent(source: Source, offset: int) -> int:
    line, _ = source.place(offset)
    text = source.line(line).expandtabs(4)
    return len(text) - len(text.lstrip())


def _first_of_line(source: Source, offset: int) -> bool:
    line, column = source.place(offset)
    return not source.line(line)[: column - 1].strip()


def _ends(source: Source, line: int, before: str) -> bool:
    begin = source.offset(line, 1)
    end = begin + len(source.line(line))
    return not source.code[len(before) : end].strip()


def _depth(code: str, offset: int) -> int:
    return code.count("{", 0, offset) - code.count("}", 0, offset)


def _code_line(spot: Spot) -> str:
    begin = spot.source.offset(spot.diagnostic.line, 1)
    return spot.source.code[begin : begin + len(spot.line)]


def _line(spot: Spot) -> str:
    return f"line {spot.diagnostic.line}"
