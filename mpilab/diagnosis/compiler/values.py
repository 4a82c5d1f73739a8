"""Rules for calls (wrong, swapped, missing or surplus arguments) and for values."""

import re
from collections.abc import Sequence
from itertools import combinations

from mpilab.diagnosis.compiler import rules
from mpilab.diagnosis.compiler.rules import (
    DOUBTFUL,
    GRAVE,
    HARMLESS,
    INTEGERS,
    Argument,
    Call,
    Explanation,
    Parameter,
    Prototype,
    Source,
    Spot,
    a,
    functions,
    plain,
    plain_type,
    pointer_to,
    rule,
)

HANDLES = (
    "MPI_Comm",
    "MPI_Datatype",
    "MPI_Request",
    "MPI_Op",
    "MPI_Group",
    "MPI_Win",
    "MPI_File",
    "MPI_Info",
    "MPI_Errhandler",
    "MPI_Message",
)
DATATYPES = {
    "char": "MPI_CHAR",
    "short": "MPI_SHORT",
    "int": "MPI_INT",
    "long": "MPI_LONG",
    "unsigned": "MPI_UNSIGNED",
    "float": "MPI_FLOAT",
    "double": "MPI_DOUBLE",
    "size_t": "MPI_UNSIGNED_LONG",
    "bool": "MPI_C_BOOL",
    "_Bool": "MPI_C_BOOL",
    "int8_t": "MPI_INT8_T",
    "int16_t": "MPI_INT16_T",
    "int32_t": "MPI_INT32_T",
    "int64_t": "MPI_INT64_T",
    "uint8_t": "MPI_UINT8_T",
    "uint16_t": "MPI_UINT16_T",
    "uint32_t": "MPI_UINT32_T",
    "uint64_t": "MPI_UINT64_T",
}
_ADVICE = {
    "MPI_Comm": "A communicator is not a number: pass the kernel's comm.",
    "MPI_Datatype": "A datatype describes the elements: pass, e.g., the kernel's recvtype, or "
    "MPI_INT for int.",
    "MPI_Op": "An operation is one of MPI's names: MPI_SUM, MPI_MAX, ...",
    "MPI_Status *": "Pass the address of an MPI_Status, or MPI_STATUS_IGNORE if you do not "
    "need it.",
}


@rule(
    r"passing argument (?P<number>\d+) of '(?P<function>\w+)' "
    r"(?:makes|from incompatible|with different)",
    r"incompatible type for argument (?P<number>\d+) of '(?P<function>\w+)'",
    r"passing '(?P<given>[^']*)'(?: \(aka '[^']*'\))? to parameter of (?:incompatible )?type"
    r"(?!.* discards )",
)
def wrong_argument(spot: Spot, match: re.Match[str]) -> Explanation | None:
    """An argument of a type other than the prototype's."""
    call, number = _locate(spot, match)
    if call is None:
        return None
    prototype = functions().get(call.function)
    if prototype is None or number >= min(len(prototype.parameters), len(call.arguments)):
        return None
    parameter, argument = prototype.parameters[number], call.arguments[number]
    given = spot.source.type_of(argument.text, argument.begin) or _given(match)
    wanted = a(parameter.type)
    if parameter.is_array:
        wanted = f"an array of {parameter.type.removesuffix('*').rstrip()}"
    label = (
        f"argument {number + 1} of {call.function} is the {parameter.name} ({wanted}), "
        f"but {_quote(argument.text)} is {a(given) if given else 'not'}"
    )
    pattern, advice = _advice(spot.source, call, prototype, number, given)
    # A variable passed without & is also reported as uninitialized: the cause is the same.
    follows = (f"value {argument.text}",) if pattern == "missing &" else ()
    return Explanation(
        label,
        f"{advice} The prototype: {prototype}.".strip(),
        pattern,
        f"call {call.begin}",
        GRAVE,
        argument.begin,
        follows,
    )


@rule(
    r"passing argument (?P<number>\d+) of '(?P<function>\w+)' discards 'const'",
    r"passing '(?P<given>[^']*)'(?: \(aka '[^']*'\))? to parameter of type .* discards qualifiers",
)
def read_only_argument(spot: Spot, match: re.Match[str]) -> Explanation | None:
    """A const argument to which the function writes."""
    call, number = _locate(spot, match)
    if call is None or number >= len(call.arguments):
        return None
    argument = call.arguments[number]
    hint = "Const data may only be read."
    if argument.text == "sendbuf":
        hint = "The send buffer may only be read; received data belongs in recvbuf."
    return Explanation(
        f"{call.function} would write into {_quote(argument.text)}, which is const",
        hint,
        "writing const data",
        f"call {call.begin}.{number}",
        GRAVE,
        argument.begin,
    )


@rule(r"too (?P<amount>few|many) arguments to function(?: call|)(?: '(?P<function>\w+)')?")
def number_of_arguments(spot: Spot, match: re.Match[str]) -> Explanation | None:
    """A call with too few or too many arguments."""
    call = _call_of(spot, match["function"] or "")
    if call is None:
        return None
    prototype = functions().get(call.function)
    pattern = f"too {match['amount']} arguments"
    if prototype is None:
        return Explanation(
            f"{call.function} is called with too {match['amount']} arguments",
            "",
            pattern,
            f"call {call.begin}",
            GRAVE,
            call.begin,
        )
    wanted, got = len(prototype.parameters), len(call.arguments)
    label = f"{call.function} takes {_arguments(wanted)}, but got {got}"
    if match["amount"] == "few":
        missing = [parameter.name for parameter in missing_parameters(spot.source, call, prototype)]
        label += f": the {' and the '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
    else:
        surplus = surplus_argument(spot.source, call, prototype)
        label += f": {_quote(surplus.text)} is one too many"
    hint = f"The prototype: {prototype}."
    if call.arguments and call.arguments[-1].text in ("ierr", "ierror", "err"):
        hint = f"In C the error code is what the function returns: int err = ... {hint}"
    return Explanation(label, hint, pattern, f"call {call.begin}", GRAVE, call.begin)


def fits(parameter: str, given: str) -> bool:
    """Whether an expression of type `given` can be passed for `parameter`; unknown ones can."""
    if not given or parameter in ("...", given):
        return True
    if parameter == "void *":
        return given.endswith(("*", "[]"))
    if parameter in INTEGERS:
        return given in INTEGERS or given in ("float", "double")
    return given == "void *" and parameter.endswith("*")


def missing_parameters(source: Source, call: Call, prototype: Prototype) -> Sequence[Parameter]:
    """The parameters that are most likely missing from a call with too few arguments."""
    kinds = [source.type_of(argument.text, argument.begin) for argument in call.arguments]
    parameters = prototype.parameters
    lacking = len(parameters) - len(kinds)

    def fitting(left_out: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        kept = [p for index, p in enumerate(parameters) if index not in left_out]
        known = [(p.type, kind) for p, kind in zip(kept, kinds, strict=True) if kind]
        # Later parameters are forgotten more often.
        return sum(fits(*pair) for pair in known), left_out

    if lacking > 3:
        return parameters[len(kinds) :]
    best = max(combinations(range(len(parameters)), lacking), key=fitting)
    return [parameters[index] for index in best]


def surplus_argument(source: Source, call: Call, prototype: Prototype) -> Argument:
    """The argument that is most likely surplus in a call with too many."""
    kinds = [source.type_of(argument.text, argument.begin) for argument in call.arguments]

    def fitting(index: int) -> tuple[int, int]:
        kept = kinds[:index] + kinds[index + 1 :]
        pairs = zip(prototype.parameters, kept, strict=False)
        return sum(fits(parameter.type, kind) for parameter, kind in pairs), index

    return call.arguments[max(range(len(kinds)), key=fitting)]


def _advice(
    source: Source, call: Call, prototype: Prototype, number: int, given: str
) -> tuple[str, str]:
    """(pattern, advice) for an argument of the wrong type."""
    parameter, argument = prototype.parameters[number], call.arguments[number]
    wanted, text = parameter.type, argument.text
    if given == f"{wanted} (*)[]" or given == f"{wanted.removesuffix('*').rstrip()} (*)[]":
        return "an extra &", f"An array is already an address: write {text.lstrip('& ')}."
    if text.startswith("&") and given == pointer_to(wanted):
        return "an extra &", f"Remove the &: write {text[1:].strip()}."
    if given and wanted == pointer_to(given):
        if re.fullmatch(r"[\w\[\]. ]+", text) and not text.isdigit():
            return "missing &", f"{call.function} needs the address: write &{text}."
        return "missing &", f"{call.function} needs the address of {a(given)}."
    if partner := _exchanged(source, call, prototype, number):
        first, second = sorted((number + 1, partner + 1))
        return (
            "arguments in the wrong order",
            f"Arguments {first} and {second} appear to be swapped.",
        )
    if len(call.arguments) != len(prototype.parameters):
        return "wrong argument", ""
    if given.startswith("type ") and wanted == "MPI_Datatype":
        named = DATATYPES.get(given.removeprefix("type "))
        return "C type for a datatype", f"Write {named}." if named else _ADVICE[wanted]
    handle = wanted.rstrip(" *")
    if handle in (*HANDLES, "MPI_Status"):
        advice = _ADVICE.get(wanted, "")
        if text.startswith("&") and wanted.endswith("*") and re.fullmatch(r"&\s*\w+", text):
            advice = f"Declare it as {handle} {text[1:].strip()}; {advice}".strip()
        return "wrong handle type", advice
    if given.rstrip(" *") in HANDLES:
        return "wrong handle type", "" if wanted == "void *" else f"It must be {a(wanted)}."
    return "wrong argument", ""


def _exchanged(source: Source, call: Call, prototype: Prototype, number: int) -> int | None:
    """The index of the argument that this one must be swapped with, or None."""
    kinds = [source.type_of(argument.text, argument.begin) for argument in call.arguments]
    parameters = [parameter.type for parameter in prototype.parameters]
    mine = kinds[number] if number < len(kinds) else ""
    for other, (kind, wanted) in enumerate(zip(kinds, parameters, strict=False)):
        if other == number or not kind or not mine or fits(wanted, kind):
            continue
        if fits(parameters[number], kind) and fits(wanted, mine):
            return other
    return None


def _locate(spot: Spot, match: re.Match[str]) -> tuple[Call | None, int]:
    """(Call, index of the argument) that a message is about; (None, 0) if unknown.

    gcc gives function and number, and points into the argument; clang points to its beginning.
    """
    groups = match.groupdict()
    if groups.get("function"):
        call = _call_of(spot, groups["function"])
        return call, int(groups["number"]) - 1
    call = spot.source.call_at(spot.offset)
    while call is not None:
        index = call.index_at(spot.offset)
        if index is not None:
            return call, index
        outer = [c for c in spot.source.calls if c.begin < call.begin and spot.offset < c.end]
        call = max(outer, key=lambda c: c.begin, default=None)
    return None, 0


def _call_of(spot: Spot, function: str) -> Call | None:
    call = spot.source.call_at(spot.offset, function)
    if call is None and function:
        line = spot.diagnostic.line
        same = [c for c in spot.source.calls if c.function == function]
        call = next((c for c in same if spot.source.place(c.begin)[0] == line), None)
    return call


def _given(match: re.Match[str]) -> str:
    given = match.groupdict().get("given")
    return plain_type(given) if given and "(" not in given else ""


def _quote(text: str) -> str:
    """An expression in quotes, on one line, cut if it is long."""
    line = " ".join(text.split())
    return f"'{line if len(line) <= 40 else line[:37] + '...'}'"


def _arguments(count: int) -> str:
    return "1 argument" if count == 1 else f"{count} arguments"


# Rules for values: uninitialized, unused, of the wrong type, not returned.


@rule(
    r"'(?P<name>\w+)' (?:is|may be) used uninitialized",
    r"variable '(?P<name>\w+)' is (?:used )?uninitialized",
    r"variable '(?P<name>\w+)' may be uninitialized",
)
def uninitialized(spot: Spot, match: re.Match[str]) -> Explanation:
    """A variable that is read before it has a value."""
    name = match["name"]
    kind, _ = spot.source.declared(name)
    sometimes = "whenever" in spot.diagnostic.text or "may be" in spot.diagnostic.text
    label = f"'{name}' {'may be' if sometimes else 'is'} used before it has a value"
    if kind == "MPI_Request":
        hint = (
            "MPI_Isend, MPI_Irecv, ... set a request: pass them its address. "
            f"If none is started: MPI_Request {name} = MPI_REQUEST_NULL;"
        )
    elif kind in HANDLES:
        hint = f"Give {name} a value first, e.g. {kind} {name} = {_null(kind)};"
    elif kind.endswith("*"):
        hint = (
            f"{name} points nowhere yet: allocate memory for it (malloc), or declare the object "
            f"itself and pass its address, &{name}."
        )
    elif sometimes:
        hint = f"Not every path to this line sets {name}: initialize it where it is declared."
    else:
        hint = f"Give {name} a value before this line."
    use, _ = spot.note(r"uninitialized use occurs here")
    offset = spot.source.offset(use.line, use.column) if use else None
    return Explanation(label, hint, "an uninitialized variable", f"value {name}", GRAVE, offset)


@rule(
    r"unused (?P<what>variable|parameter|function|label) '(?P<name>\w+)'",
    r"variable '(?P<name>\w+)' set but not (?P<what>used)",
    r"'(?P<name>\w+)' defined but not (?P<what>used)",
    r"label '(?P<name>\w+)' defined but not (?P<what>used)",
)
def unused(spot: Spot, match: re.Match[str]) -> Explanation:
    """Something that is declared and never read."""
    name, what = match["name"], match["what"]
    if what == "parameter":
        hint = (
            "A kernel that ignores an argument is wrong for some of its values. While you work on "
            f"it: (void){name};"
        )
        return Explanation(
            f"the kernel does not use its argument '{name}'",
            hint,
            "unused argument",
            "unused argument",
            HARMLESS,
        )
    how = (
        "gets a value that is never used" if "set but" in spot.diagnostic.text else "is never used"
    )
    return Explanation(
        f"'{name}' {how}",
        "Remove it, or use it where you meant to.",
        "unused",
        f"unused {name}",
        HARMLESS,
    )


@rule(
    r"statement with no effect",
    r"(?:expression|comparison) result unused",
    r"operand of comma (?:expression|operator) has no effect",
)
def no_effect(spot: Spot, match: re.Match[str]) -> Explanation:
    """A value that is computed and discarded: often == for =, or a call without parentheses."""
    # gcc points to the operator, clang to the beginning: the statement is between two ';'.
    code = spot.source.code
    begin = max(code.rfind(mark, 0, spot.offset) for mark in ";{}") + 1
    statement = re.split(r"[;{}]", code[begin:], maxsplit=1)[0].strip()
    hint = "Its value is discarded."
    if re.fullmatch(r"\w+", statement) and statement in rules.functions():
        hint = f"A call needs parentheses: {rules.functions()[statement]};"
    elif "==" in statement:
        hint = "== compares; = assigns."
    return Explanation("this statement does nothing", hint, "no effect", f"effect {begin}", GRAVE)


@rule(r"assignment used as truth value", r"using the result of an assignment as a condition")
def assignment_in_condition(spot: Spot, match: re.Match[str]) -> Explanation:
    """= for == in an if or while."""
    return Explanation(
        "= assigns; == compares",
        "Write == in a condition; if you do mean to assign, put parentheses around the assignment.",
        "= for ==",
        f"if {spot.diagnostic.line}",
        GRAVE,
    )


@rule(r"comparison of integer(?:s| expressions) of different sign")
def signs_compared(spot: Spot, match: re.Match[str]) -> Explanation:
    """int compared with size_t: -1 becomes the largest number."""
    hint = (
        "A negative int becomes a huge number in such a comparison. sizeof is unsigned: "
        "compare with (int)sizeof(...), or use the same type for both."
    )
    return Explanation(
        "a signed and an unsigned number are compared",
        hint,
        "signed and unsigned",
        f"sign {spot.offset}",
        DOUBTFUL,
    )


@rule(
    r"control reaches end of non-void function",
    r"non-void function does not return a value",
    r"'return' with no value",
    r"non-void function '\w+' should return a value",
)
def nothing_returned(spot: Spot, match: re.Match[str]) -> Explanation:
    """A kernel that ends without an error code."""
    label = "the function may end without returning a value"
    if "return" in spot.line:
        label = "this return has no value"
    return Explanation(
        label,
        "A kernel returns MPI_SUCCESS, or the error code of the call that failed: "
        "return MPI_SUCCESS;",
        "nothing returned",
        "returned",
        GRAVE,
    )


@rule(r"sizeof", r"size is based on a different type")
def size_of_pointer(spot: Spot, match: re.Match[str]) -> Explanation:
    """sizeof a pointer where the size of what it points to was meant."""
    found = re.search(r"sizeof\s*\(?\s*(\w+)", spot.line[max(0, spot.offset_in_line - 10) :])
    found = found or re.search(r"sizeof\s*\(?\s*(\w+)", spot.line)
    name = found[1] if found else "a pointer"
    return Explanation(
        f"sizeof({name}) is the size of a pointer, not of what it points to",
        "A pointer does not know how many elements there are: multiply their number by "
        "the size of one (MPI_Type_get_extent).",
        "sizeof a pointer",
        f"sizeof {spot.diagnostic.line}",
        GRAVE,
    )


@rule(r"\[-W(?:error=)?format|^format (?:'|specifies)")
def format_and_arguments(spot: Spot, match: re.Match[str]) -> Explanation:
    """printf: a % that does not match its argument."""
    kinds = re.search(
        r"format '(?P<mark>%[^']*)' expects argument of type '(?P<wanted>[^']*)', "
        r"but argument (?P<number>\d+) has type '(?P<given>[^']*)'",
        spot.diagnostic.text,
    )
    if kinds is None:
        kinds = re.search(
            r"format specifies type '(?P<wanted>[^']*)' but the argument has type "
            r"'(?P<given>[^']*)'",
            spot.diagnostic.text,
        )
    table = (
        "%d is for int, %ld for long, %zu for size_t and sizeof, %f for double, %p for "
        "addresses, %s for strings."
    )
    if kinds is None:
        return Explanation(
            "the format and the number of arguments do not match",
            "Each % takes one argument, in order.",
            "printf format",
            f"format {spot.diagnostic.line}",
            DOUBTFUL,
        )
    label = f"the format expects {a(kinds['wanted'])}, but the argument is {a(kinds['given'])}"
    return Explanation(label, table, "printf format", f"format {spot.diagnostic.line}", DOUBTFUL)


@rule(
    r"(?P<how>initialization|assignment) (?:of|to) '(?P<wanted>[^']*)'.* from "
    r"(?:incompatible pointer type )?'(?P<given>[^']*)'",
    r"(?P<how>initializing|assigning to) '(?P<wanted>[^']*)'(?: \(aka '[^']*'\))? "
    r"(?:with an expression of (?:incompatible )?type|from(?: incompatible type)?) "
    r"'(?P<given>[^']*)'",
    r"(?P<how>returning) '(?P<given>[^']*)'.* from a function with "
    r"(?:return|result) type '(?P<wanted>[^']*)'",
)
def value_of_another_type(spot: Spot, match: re.Match[str]) -> Explanation | None:
    """A variable or return value that is given a value of another type."""
    wanted, given = map(rules.plain_type, (match["wanted"], match["given"]))
    if "void" in (wanted, given):
        return None
    label = f"{a(wanted)} is set to {a(given)}"
    if match["how"] == "returning":
        label = f"the function returns {a(wanted)}, but this is {a(given)}"
    hint = ""
    if wanted == "MPI_Datatype":
        hint = f"A datatype is one of MPI's names, e.g. {DATATYPES['int']} for int, not a size."
    elif given.rstrip(" *") in HANDLES or given.startswith(("struct ompi", "ompi_")):
        hint = "Declare the variable with MPI's type: MPI_Comm, MPI_Datatype, MPI_Request, ..."
    elif wanted in HANDLES:
        hint = f"{wanted} is an MPI handle, not a number; the null handle is {_null(wanted)}."
    elif wanted.endswith("*") and not given.endswith("*"):
        hint = "An address is expected: write & before the variable."
    elif given.endswith("*"):
        hint = "A value is expected: write * before the address to read what it points to."
    return Explanation(label, hint, "a mismatched type", f"type {spot.diagnostic.line}", GRAVE)


@rule(r"in expansion of macro '(?P<name>MPI_\w+)'")
def constant_that_does_not_fit(spot: Spot, match: re.Match[str]) -> Explanation | None:
    """An MPI constant: gcc reports it in mpi.h, and only its place of use is left."""
    name = match["name"]
    kind = rules.constants().get(name)
    if kind is None:
        return None
    return Explanation(
        f"{name} is {a(kind)}, which does not fit here",
        f"Declare a variable for it as {kind}.",
        "a mismatched type",
        f"type {spot.diagnostic.line}",
        GRAVE,
    )


@rule(
    r"invalid use of void expression",
    r"void value not ignored",
    r"incomplete type '(?:const )?void'",
    r"incompatible type '(?:const )?void'",
    r"dereferencing 'void \*' pointer",
    r"ISO C does not allow indirection",
)
def element_of_void(spot: Spot, match: re.Match[str]) -> Explanation:
    """recvbuf[0] of a void *: the type of the elements is unknown."""
    found = re.search(r"(\w+)\s*\[|\*\s*(\w+)", spot.line)
    name = next((n for n in found.groups() if n), "the buffer") if found else "the buffer"
    return Explanation(
        f"'{name}' is a void *: C does not know how large an element is",
        "Move blocks with MPI (copy_local, MPI_Sendrecv) and find them with "
        "block(buffer, index, count, type); a kernel must work for every datatype.",
        "element of a void *",
        f"void {spot.diagnostic.line}",
        GRAVE,
    )


@rule(r"has no member named '(?P<name>\w+)'", r"no member named '(?P<name>\w+)'")
def no_such_member(spot: Spot, match: re.Match[str]) -> Explanation:
    """status.source instead of status.MPI_SOURCE."""
    members = {"source": "MPI_SOURCE", "tag": "MPI_TAG", "error": "MPI_ERROR"}
    name = match["name"]
    meant = members.get(name.lower().removeprefix("mpi_"))
    if meant:
        hint = f"Its name is {meant}."
    elif "tatus" in spot.diagnostic.text:
        hint = "An MPI_Status has MPI_SOURCE, MPI_TAG and MPI_ERROR; for the number of elements "
        hint += "call MPI_Get_count."
    else:
        hint = "Check the spelling."
    return Explanation(
        f"there is no member '{name}'", hint, "unknown member", f"member {name}", GRAVE
    )


@rule(r"invalid type argument of '->'", r"is not a pointer; did you mean to use '\.'")
def arrow_for_dot(spot: Spot, match: re.Match[str]) -> Explanation:
    """status->MPI_SOURCE of an MPI_Status."""
    return Explanation(
        "-> is for pointers",
        "Write a dot: status.MPI_SOURCE.",
        "-> for .",
        f"arrow {spot.diagnostic.line}",
        GRAVE,
    )


@rule(r"suggest braces around empty body", r"has empty body")
def empty_body(spot: Spot, match: re.Match[str]) -> Explanation:
    """if (...); does nothing."""
    return Explanation(
        "this ; ends the if or loop",
        "Remove the ; after the ), or nothing depends on the condition.",
        "an extra ;",
        f"body {spot.diagnostic.line}",
        GRAVE,
    )


@rule(r"misleading indentation|does not guard")
def misleading_indentation(spot: Spot, match: re.Match[str]) -> Explanation:
    """Two indented lines after an if without braces."""
    return Explanation(
        "this line looks as if it depends on the if, but does not",
        "Put { } around several statements.",
        "missing { }",
        _line(spot),
        GRAVE,
    )


@rule(r"read-only (?:location|variable|parameter)|read-only")
def written_const(spot: Spot, match: re.Match[str]) -> Explanation:
    """An assignment to something const."""
    return Explanation(
        "const data cannot be assigned to",
        "The send buffer may only be read; results belong in recvbuf.",
        "writing const data",
        _line(spot),
        GRAVE,
    )


@rule(
    r"above array bounds|outside array bounds|past the end of the array|"
    r"iteration \d+ invokes undefined behavior"
)
def beyond_array(spot: Spot, match: re.Match[str]) -> Explanation:
    """An index past the end of an array."""
    return Explanation(
        "an array is accessed past its end",
        "An array of n elements has the indices 0 to n - 1: a loop runs while i < n.",
        "past the end of an array",
        _line(spot),
        GRAVE,
    )


@rule(r"division by zero")
def division_by_zero(spot: Spot, match: re.Match[str]) -> Explanation:
    """A constant 0 as divisor."""
    return Explanation("this divides by zero", "", "division by zero", _line(spot), GRAVE)


@rule(r"infinite recursion|all paths through this function will call itself")
def endless_recursion(spot: Spot, match: re.Match[str]) -> Explanation:
    """A kernel that always calls itself."""
    return Explanation(
        "the function calls itself endlessly",
        "Does the kernel call its own name where it should call MPI?",
        "endless recursion",
        "recursion",
        GRAVE,
    )


@rule(r"invalid operands to binary (?:expression|(?P<sign>\S+)) \((?P<kinds>.*)\)")
def operands(spot: Spot, match: re.Match[str]) -> Explanation:
    """Operands that an operator cannot combine: a status + 1."""
    kinds = re.findall(r"'([^']*)'", re.sub(r" (?:\{aka[^}]*\}|\(aka[^)]*\))", "", match["kinds"]))
    sign = f"'{match['sign']}'" if match["sign"] else "this operator"
    return Explanation(
        f"{sign} cannot combine {' and '.join(map(a, kinds))}",
        "Handles and statuses are not numbers; shifts and % are for integers.",
        "operands",
        _line(spot),
        GRAVE,
    )


@rule(r"lvalue required as left operand|expression is not assignable")
def not_assignable(spot: Spot, match: re.Match[str]) -> Explanation:
    """rank + 1 = next."""
    return Explanation(
        "the left side of = cannot be assigned to",
        "Put a variable on the left of =; to compare, write ==.",
        "not assignable",
        _line(spot),
        GRAVE,
    )


@rule(
    r"subscripted value is n(?:either|ot an) array",
    r"invalid type argument of unary '\*'",
    r"indirection requires pointer operand",
)
def no_array(spot: Spot, match: re.Match[str]) -> Explanation:
    """rank[0] of an int."""
    return Explanation(
        "[] and * need an array or a pointer",
        "Is it declared with [n] or *?",
        "not an array",
        _line(spot),
        GRAVE,
    )


@rule(r"called object .*is not a function")
def no_function(spot: Spot, match: re.Match[str]) -> Explanation:
    """A variable followed by parentheses: often a missing *."""
    return Explanation(
        "this is called like a function, but is not one",
        "A * or a ; may be missing before the parenthesis, or a variable has the function's name.",
        "not a function",
        _line(spot),
        GRAVE,
    )


@rule(r"function definition is not allowed here")
def nested_function(spot: Spot, match: re.Match[str]) -> Explanation:
    """A function inside a function, or a missing '}' above."""
    return Explanation(
        "a function is defined inside another",
        "Move it above the kernel, or check for a missing } above this line.",
        "nested function",
        _line(spot),
        GRAVE,
    )


@rule(r"changes value from (?P<before>\S+) to (?P<after>\S+)")
def changed_value(spot: Spot, match: re.Match[str]) -> Explanation:
    """2.5 assigned to an int."""
    return Explanation(
        f"{match['before']} becomes {match['after']} here",
        "An integer is expected.",
        "rounded value",
        _line(spot),
        DOUBTFUL,
    )


@rule(
    r"comparison between (?:pointer and integer|distinct pointer types)",
    r"comparison of distinct pointer types",
)
def comparison_of_kinds(spot: Spot, match: re.Match[str]) -> Explanation:
    """A handle or an address compared with a number."""
    return Explanation(
        f"this compares values of different types ({plain(spot.diagnostic.text)})",
        "Compare handles with handles (MPI_COMM_NULL, MPI_REQUEST_NULL), addresses with "
        "NULL or MPI_IN_PLACE.",
        "mismatched comparison",
        _line(spot),
        GRAVE,
    )


def _null(kind: str) -> str:
    return f"{kind.upper()}_NULL"


def _line(spot: Spot) -> str:
    return f"line {spot.diagnostic.line}"
