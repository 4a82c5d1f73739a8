"""Rules about values: not initialised, not used, of a type that does not fit, not returned."""

import re

from mpilab.diagnosis import prototypes
from mpilab.diagnosis.slips.arguments import DATATYPES, HANDLES
from mpilab.diagnosis.slips.rules import DOUBTFUL, GRAVE, HARMLESS, Slip, a, plain, rule


@rule(
    r"'(?P<name>\w+)' (?:is|may be) used uninitialized",
    r"variable '(?P<name>\w+)' is (?:used )?uninitialized",
    r"variable '(?P<name>\w+)' may be uninitialized",
)
def uninitialised(spot, match):
    """A variable that is read before it has a value."""
    name = match["name"]
    kind, _ = spot.source.declared(name)
    sometimes = "whenever" in spot.diagnostic.text or "may be" in spot.diagnostic.text
    label = f"'{name}' {'may be' if sometimes else 'is'} used before it has a value"
    if kind == "MPI_Request":
        hint = ("A request gets its value from MPI_Isend, MPI_Irecv, ...: give them its address. "
                f"Where none is started: MPI_Request {name} = MPI_REQUEST_NULL;")  # fmt: skip
    elif kind in HANDLES:
        hint = f"Give {name} a value first, e.g. {kind} {name} = {_null(kind)};"
    elif kind.endswith("*"):
        hint = (f"{name} points nowhere yet: get memory for it (malloc), or declare the thing "
                f"itself and pass its address, &{name}.")  # fmt: skip
    elif sometimes:
        hint = f"Not every way to this line sets {name}: give it a value where it is declared."
    else:
        hint = f"Give {name} a value before this line."
    use, _ = spot.note(r"uninitialized use occurs here")
    offset = spot.source.offset(use.line, use.column) if use else None
    return Slip(label, hint, "no value yet", f"value {name}", GRAVE, offset)


@rule(r"unused (?P<what>variable|parameter|function|label) '(?P<name>\w+)'",
      r"variable '(?P<name>\w+)' set but not (?P<what>used)",
      r"'(?P<name>\w+)' defined but not (?P<what>used)",
      r"label '(?P<name>\w+)' defined but not (?P<what>used)")  # fmt: skip
def unused(spot, match):
    """Something that is declared and never read."""
    name, what = match["name"], match["what"]
    if what == "parameter":
        hint = ("A kernel that does not look at an argument is wrong for some of its values. "
                f"While you work on it: (void){name};")  # fmt: skip
        return Slip(f"the kernel does not use its argument '{name}'", hint, "unused argument",
                    "unused argument", HARMLESS)  # fmt: skip
    how = (
        "gets a value that is never used" if "set but" in spot.diagnostic.text else "is never used"
    )
    return Slip(f"'{name}' {how}", "Take it away, or use it where you meant to.", "unused",
                f"unused {name}", HARMLESS)  # fmt: skip


@rule(r"statement with no effect", r"(?:expression|comparison) result unused",
      r"operand of comma (?:expression|operator) has no effect")  # fmt: skip
def no_effect(spot, match):
    """A value that is computed and dropped: often == for =, or a call without brackets."""
    # gcc points to the operator, clang to the beginning: the statement is between two ';'.
    code = spot.source.code
    begin = max(code.rfind(mark, 0, spot.offset) for mark in ";{}") + 1
    statement = re.match(r"[^;{}]*", code[begin:])[0].strip()
    hint = "Its value is thrown away."
    if re.fullmatch(r"\w+", statement) and statement in prototypes.functions():
        hint = f"A call has brackets: {prototypes.functions()[statement]};"
    elif "==" in statement:
        hint = "== compares; = assigns."
    return Slip("this statement does nothing", hint, "no effect",
                f"effect {begin}", GRAVE)  # fmt: skip


@rule(r"assignment used as truth value", r"using the result of an assignment as a condition")
def assignment_in_condition(spot, match):
    """= for == in an if or while."""
    return Slip("= assigns; == compares", "Write == in a condition; if you do mean to assign, put "
                "the assignment into brackets of its own.", "= for ==",
                f"if {spot.diagnostic.line}", GRAVE)  # fmt: skip


@rule(r"comparison of integer(?:s| expressions) of different sign")
def signs_compared(spot, match):
    """int against size_t: -1 becomes the largest number."""
    hint = ("A negative int becomes a huge number in such a comparison. sizeof is unsigned: "
            "compare with (int)sizeof(...), or take the other type for both.")  # fmt: skip
    return Slip("a signed and an unsigned number are compared", hint, "signed and unsigned",
                f"sign {spot.offset}", DOUBTFUL)  # fmt: skip


@rule(r"control reaches end of non-void function", r"non-void function does not return a value",
      r"'return' with no value", r"non-void function '\w+' should return a value")  # fmt: skip
def nothing_returned(spot, match):
    """A kernel that ends without an error code."""
    label = "the function may end without returning a value"
    if "return" in spot.line:
        label = "this return has no value"
    return Slip(label, "A kernel returns MPI_SUCCESS, or the error code of the call that failed: "
                "return MPI_SUCCESS;", "nothing returned", "returned", GRAVE)  # fmt: skip


@rule(r"sizeof", r"size is based on a different type")
def size_of_pointer(spot, match):
    """The size of the pointer where the size of what it points to was meant."""
    found = re.search(r"sizeof\s*\(?\s*(\w+)", spot.line[max(0, spot.offset_in_line - 10) :])
    found = found or re.search(r"sizeof\s*\(?\s*(\w+)", spot.line)
    name = found[1] if found else "a pointer"
    return Slip(f"sizeof({name}) is the size of a pointer, not of what it points to",
                "A pointer does not know how many elements there are: multiply their number by "
                "the size of one (MPI_Type_get_extent).", "sizeof a pointer",
                f"sizeof {spot.diagnostic.line}", GRAVE)  # fmt: skip


@rule(r"\[-W(?:error=)?format|^format (?:'|specifies)")
def format_and_arguments(spot, match):
    """printf: a % that does not fit its argument."""
    kinds = re.search(r"format '(?P<mark>%[^']*)' expects argument of type '(?P<wanted>[^']*)', "
                      r"but argument (?P<number>\d+) has type '(?P<given>[^']*)'",
                      spot.diagnostic.text)  # fmt: skip
    if kinds is None:
        kinds = re.search(r"format specifies type '(?P<wanted>[^']*)' but the argument has type "
                          r"'(?P<given>[^']*)'", spot.diagnostic.text)  # fmt: skip
    table = ("%d is for int, %ld for long, %zu for size_t and sizeof, %f for double, %p for "
             "addresses, %s for texts.")  # fmt: skip
    if kinds is None:
        return Slip("the format and the arguments do not agree in number", "Each % takes one "
                    "argument, in their order.", "printf format",
                    f"format {spot.diagnostic.line}", DOUBTFUL)  # fmt: skip
    label = f"the format wants {a(kinds['wanted'])}, but the argument is {a(kinds['given'])}"
    return Slip(label, table, "printf format", f"format {spot.diagnostic.line}", DOUBTFUL)


@rule(
    r"(?P<how>initialization|assignment) (?:of|to) '(?P<wanted>[^']*)'.* from "
    r"(?:incompatible pointer type )?'(?P<given>[^']*)'",
    r"(?P<how>initializing|assigning to) '(?P<wanted>[^']*)'(?: \(aka '[^']*'\))? "
    r"(?:with an expression of (?:incompatible )?type|from(?: incompatible type)?) "
    r"'(?P<given>[^']*)'",
    r"(?P<how>returning) '(?P<given>[^']*)'.* from a function with "
    r"(?:return|result) type '(?P<wanted>[^']*)'",
)
def value_of_another_type(spot, match):
    """A variable that gets a value of another type."""
    wanted, given = map(prototypes.plain_type, (match["wanted"], match["given"]))
    if "void" in (wanted, given):
        return None
    label = f"{a(wanted)} is set to {a(given)}"
    if match["how"] == "returning":
        label = f"the function returns {a(wanted)}, but this is {a(given)}"
    hint = ""
    if wanted == "MPI_Datatype":
        hint = f"A datatype is one of MPI's names, e.g. {DATATYPES['int']} for int; no size."
    elif given.rstrip(" *") in HANDLES or given.startswith(("struct ompi", "ompi_")):
        hint = "Declare the variable with MPI's type: MPI_Comm, MPI_Datatype, MPI_Request, ..."
    elif wanted in HANDLES:
        hint = f"{wanted} is a handle of MPI's, no number; none is {_null(wanted)}."
    elif wanted.endswith("*") and not given.endswith("*"):
        hint = "An address is wanted: write & before the variable."
    elif given.endswith("*"):
        hint = "A value is wanted: write * before the address to read what it points to."
    return Slip(label, hint, "another type", f"type {spot.diagnostic.line}", GRAVE)


@rule(r"in expansion of macro '(?P<name>MPI_\w+)'")
def constant_that_does_not_fit(spot, match):
    """gcc tells of MPI's constants in mpi.h, and leaves us only the place of their use."""
    name = match["name"]
    kind = prototypes.constants().get(name)
    if kind is None:
        return None
    return Slip(f"{name} is {a(kind)}, which does not fit here", f"A variable for it is declared "
                f"{kind}.", "another type", f"type {spot.diagnostic.line}", GRAVE)  # fmt: skip


@rule(r"invalid use of void expression", r"void value not ignored",
      r"incomplete type '(?:const )?void'", r"incompatible type '(?:const )?void'",
      r"dereferencing 'void \*' pointer", r"ISO C does not allow indirection")  # fmt: skip
def element_of_void(spot, match):
    """recvbuf[0] of a void *: C does not know what the elements are."""
    found = re.search(r"(\w+)\s*\[|\*\s*(\w+)", spot.line)
    name = next((n for n in found.groups() if n), "the buffer") if found else "the buffer"
    return Slip(f"'{name}' is a void *: C does not know how large an element is",
                "Move blocks with MPI (copy_local, MPI_Sendrecv) and find them with "
                "block(buffer, index, count, type); a kernel holds for every datatype.",
                "element of a void *", f"void {spot.diagnostic.line}", GRAVE)  # fmt: skip


@rule(r"has no member named '(?P<name>\w+)'", r"no member named '(?P<name>\w+)'")
def no_such_member(spot, match):
    """status.source for status.MPI_SOURCE."""
    members = {"source": "MPI_SOURCE", "tag": "MPI_TAG", "error": "MPI_ERROR"}
    name = match["name"]
    meant = members.get(name.lower().removeprefix("mpi_"))
    if meant:
        hint = f"It is called {meant}."
    elif "tatus" in spot.diagnostic.text:
        hint = "An MPI_Status has MPI_SOURCE, MPI_TAG and MPI_ERROR; for the number of elements "
        hint += "call MPI_Get_count."
    else:
        hint = "Mind the spelling."
    return Slip(f"there is no member '{name}'", hint, "unknown member", f"member {name}", GRAVE)


@rule(r"invalid type argument of '->'", r"is not a pointer; did you mean to use '\.'")
def arrow_for_dot(spot, match):
    """status->MPI_SOURCE of an MPI_Status."""
    return Slip("-> is for pointers", "Write a dot: status.MPI_SOURCE.", "-> for .",
                f"arrow {spot.diagnostic.line}", GRAVE)  # fmt: skip


@rule(r"suggest braces around empty body", r"has empty body")
def empty_body(spot, match):
    """if (...); does nothing."""
    return Slip("this ; ends the if or loop", "Take the ; after the ) away, or nothing depends on "
                "the condition.", "a ; too many", f"body {spot.diagnostic.line}",
                GRAVE)  # fmt: skip


@rule(r"misleading indentation|does not guard")
def misleading_indentation(spot, match):
    """Two indented lines after an if without braces."""
    return Slip("this line looks as if it depended on the if, but does not",
                "More than one statement needs { }.", "missing { }", _line(spot),
                GRAVE)  # fmt: skip


@rule(r"read-only (?:location|variable|parameter)|read-only")
def written_const(spot, match):
    """An assignment to something const."""
    return Slip("what is const cannot be assigned to", "The send buffer may only be read; results "
                "belong into recvbuf.", "writing what is const", _line(spot), GRAVE)  # fmt: skip


@rule(r"above array bounds|outside array bounds|past the end of the array|"
      r"iteration \d+ invokes undefined behavior")  # fmt: skip
def beyond_array(spot, match):
    """An index beyond the end."""
    return Slip("an array is used beyond its end", "An array of n elements has the indices 0 to "
                "n - 1: a loop runs while i < n.", "beyond the end of an array", _line(spot),
                GRAVE)  # fmt: skip


@rule(r"division by zero")
def division_by_zero(spot, match):
    """A constant 0 as divisor."""
    return Slip("this divides by zero", "", "division by zero", _line(spot), GRAVE)


@rule(r"infinite recursion|all paths through this function will call itself")
def endless_recursion(spot, match):
    """A kernel that calls itself always."""
    return Slip("the function calls itself without end", "Does the kernel call its own name where "
                "it should call MPI?", "endless recursion", "recursion", GRAVE)  # fmt: skip


@rule(r"invalid operands to binary (?:expression|(?P<sign>\S+)) \((?P<kinds>.*)\)")
def operands(spot, match):
    """Things that an operator cannot put together: a status + 1."""
    kinds = re.findall(r"'([^']*)'", re.sub(r" (?:\{aka[^}]*\}|\(aka[^)]*\))", "", match["kinds"]))
    sign = f"'{match['sign']}'" if match["sign"] else "this operator"
    return Slip(f"{sign} cannot put {' and '.join(map(a, kinds))} together", "Handles and statuses "
                "are no numbers; shifts and % are for whole numbers.", "operands", _line(spot),
                GRAVE)  # fmt: skip


@rule(r"lvalue required as left operand|expression is not assignable")
def not_assignable(spot, match):
    """rank + 1 = next."""
    return Slip("what stands left of = cannot be assigned to", "A variable stands left of =; to "
                "compare write ==.", "not assignable", _line(spot), GRAVE)  # fmt: skip


@rule(r"subscripted value is n(?:either|ot an) array", r"invalid type argument of unary '\*'",
      r"indirection requires pointer operand")  # fmt: skip
def no_array(spot, match):
    """rank[0] of an int."""
    return Slip("[] and * need an array or a pointer", "Is it declared with [n] or *?", "no array",
                _line(spot), GRAVE)  # fmt: skip


@rule(r"called object .*is not a function")
def no_function(spot, match):
    """A variable with brackets behind it: often a * that is missing."""
    return Slip("this is called like a function, but it is none", "A * or a ; may be missing "
                "before the bracket, or a variable has the function's name.", "no function",
                _line(spot), GRAVE)  # fmt: skip


@rule(r"function definition is not allowed here")
def nested_function(spot, match):
    """A function inside of a function, or a '}' that is missing above."""
    return Slip("a function is defined inside of another", "Put it above the kernel; or is a } "
                "missing above this line?", "nested function", _line(spot), GRAVE)  # fmt: skip


@rule(r"changes value from (?P<before>\S+) to (?P<after>\S+)")
def changed_value(spot, match):
    """2.5 for an int."""
    return Slip(f"{match['before']} becomes {match['after']} here", "A whole number is wanted.",
                "rounded value", _line(spot), DOUBTFUL)  # fmt: skip


@rule(r"comparison between (?:pointer and integer|distinct pointer types)",
      r"comparison of distinct pointer types")  # fmt: skip
def comparison_of_kinds(spot, match):
    """A handle or an address against a number."""
    return Slip(f"this compares things of different kinds ({plain(spot.diagnostic.text)})",
                "Compare handles with handles (MPI_COMM_NULL, MPI_REQUEST_NULL), addresses with "
                "NULL or MPI_IN_PLACE.", "compared kinds", _line(spot), GRAVE)  # fmt: skip


def _null(kind):
    return f"{kind.upper()}_NULL"


def _line(spot):
    return f"line {spot.diagnostic.line}"
