"""Rules about names: misspelt, not declared, declared twice, defined nowhere, not of C."""

import re
from difflib import get_close_matches

from mpilab.diagnosis import prototypes
from mpilab.diagnosis.slips.rules import GRAVE, Slip, rule

# Header → names that students use of it.
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
}  # fmt: skip
HEADER_OF = {name: header for header, listed in HEADERS.items() for name in listed.split()}

# Words of other languages → what C says.
HABITS = {
    "nullptr": ("C++", "In C it is NULL."),
    "new": ("C++", "In C memory comes from malloc(bytes) of <stdlib.h>; give it back with free."),
    "delete": ("C++", "In C memory is given back with free(pointer)."),
    "cout": ("C++", "In C write printf(...) of <stdio.h>."),
    "endl": ("C++", "In C write printf(...) of <stdio.h>, with \\n at the end of a line."),
    "std": ("C++", "C has no standard library of C++: arrays, printf, malloc instead."),
    "using": ("C++", "C has no namespaces."),
    "namespace": ("C++", "C has no namespaces."),
    "template": ("C++", "C has no templates."),
    "class": ("C++", "C has struct, without methods."),
    "vector": ("C++", "In C use an array, or malloc and free of <stdlib.h>."),
    "string": ("C++", "In C a text is a char array or a const char *."),
    "call": ("Fortran", "In C a function is called by its name alone: MPI_Barrier(comm);"),
    "CALL": ("Fortran", "In C a function is called by its name alone: MPI_Barrier(comm);"),
    "ierr": ("Fortran", "In C the error code is what the function returns: int err = MPI_...;"),
    "ierror": ("Fortran", "In C the error code is what the function returns: int err = MPI_...;"),
    "integer": ("Fortran", "In C it is int."),
    "then": ("Fortran", "In C: if (condition) { ... }"),
    "endif": ("Fortran", "In C a block ends with }."),
    "mod": ("Fortran", "In C the remainder is written with %: (rank + 1) % size."),
    "elif": ("Python", "In C: else if (condition) { ... }"),
    "range": ("Python", "In C: for (int i = 0; i < n; i++) { ... }"),
    "True": ("Python", "In C write 1, or include <stdbool.h> and write true."),
    "False": ("Python", "In C write 0, or include <stdbool.h> and write false."),
    "None": ("Python", "In C it is NULL (pointers) or MPI_..._NULL (handles)."),
    "def": ("Python", "In C a function begins with the type that it returns."),
    "print": ("Python", "In C write printf(...) of <stdio.h>."),
    "len": ("Python", "A C array does not know its length: pass it along."),
    "pass": ("Python", "In C an empty block is { }."),
    "and": ("Python", "In C it is &&."),
    "or": ("Python", "In C it is ||."),
    "not": ("Python", "In C it is !."),
}  # fmt: skip
# MPI's names in other words, too far from the right ones for a comparison of letters.
ALIASES = {"MPI_ADD": "MPI_SUM", "MPI_INTEGER_T": "MPI_INT", "MPI_INTS": "MPI_INT",
           "MPI_NULL_STATUS": "MPI_STATUS_IGNORE", "MPI_IGNORE": "MPI_STATUS_IGNORE",
           "MPI_STATUS_NULL": "MPI_STATUS_IGNORE", "MPI_ANY": "MPI_ANY_SOURCE",
           "MPI_WORLD": "MPI_COMM_WORLD", "COMM_WORLD": "MPI_COMM_WORLD", "MPI_STRING": "MPI_CHAR",
           "MPI_Rank": "MPI_Comm_rank", "MPI_Size": "MPI_Comm_size"}  # fmt: skip


@rule(
    r"(?P<name>)implicit(?:ly)? declar(?:ation of|ing library) function '(?P<function>\w+)'",
    r"use of undeclared identifier '(?P<name>\w+)'",
    r"'(?P<name>\w+)' undeclared",
    r"unknown type name '(?P<name>\w+)'",
    r"'(?P<name>\w+)' was not declared",
)
def undeclared(spot, match):
    """A name that nothing above explains."""
    name = match["name"] or match["function"]
    is_function = not match["name"]
    is_type = "type name" in match[0]
    label = f"'{name}' is not declared"
    subject = f"name {name}"
    offset = _offset_of(spot, name)
    if name in prototypes.names() | prototypes.own_names():
        hint = 'Put #include "mpilab.h" at the top of the cell.'
        return Slip(label, hint, "missing #include", "header mpilab.h", GRAVE, offset)
    if name in HABITS and not (is_function and name in spot.source.identifiers() and name == "len"):
        language, hint = HABITS[name]
        label = f"'{name}' is {language}, not C"
        return Slip(label, hint, "another language", f"language {name}", GRAVE, offset)
    if name in HEADER_OF:
        header = HEADER_OF[name]
        hint = f"Put #include <{header}> at the top of the cell."
        return Slip(label, hint, "missing #include", f"header {header}", GRAVE, offset)
    if meant := suggestion(name, spot.source, spot.diagnostic.text, is_function):
        return Slip(label, f"Did you mean {meant}?", "misspelt name", subject, GRAVE, offset)
    if is_function:
        hint = (f"No function {name} is known here: mind the spelling, or define it above the "
                "kernel in this cell.")  # fmt: skip
        return Slip(label, hint, "unknown function", subject, GRAVE, offset)
    if is_type:
        return Slip(f"'{name}' is no type", "Mind the spelling of the type.", "unknown type",
                    subject, GRAVE, offset)  # fmt: skip
    hint = f"Declare it before its first use, e.g. int {name} = 0;"
    if re.search(rf"\bfor\s*\(\s*{re.escape(name)}\s*=", spot.line):
        hint = f"Declare it in the loop: for (int {name} = ...)."
    return Slip(label, hint, "not declared", subject, GRAVE, offset)


def suggestion(name, source, said="", is_function=False):
    """The name that was probably meant by `name`, of MPI's or of the source's; ''."""
    if name in ALIASES:
        return ALIASES[name]
    if name.upper().startswith("MPI"):
        for word in (_same_letters(name), _nearest(name)):
            if word:
                return word
    elif is_function:
        known = {*HEADER_OF, *prototypes.own_names(), *(c.function for c in source.calls)}
        near = get_close_matches(name, sorted(known - {name}), 1, 0.8)
        return near[0] if near else ""
    if compilers := re.search(r"did you mean '(\w+)'", said):
        own = source.identifiers() | prototypes.own_names()
        return compilers[1] if compilers[1] in own else ""
    declared = [w for w in sorted(source.identifiers()) if w != name and source.declared(w)[0]]
    near = get_close_matches(name, declared, 1, 0.7)
    return near[0] if near and len(name) > 1 else ""


@rule(r"undefined reference to [`'](?P<name>\w+)'")
def undefined_reference(spot, match):
    """Declared, but defined nowhere: the linker's message."""
    name = match["name"]
    calls = [call for call in spot.source.calls if call.function == name]
    here = [c for c in calls if spot.source.place(c.begin)[0] == spot.diagnostic.line]
    # Without a line from the linker: the last call, since a declaration comes before it.
    offset = (here or calls)[-1].begin if calls else None
    meant = suggestion(name, spot.source, is_function=True) if name.startswith("MPI") else ""
    hint = f"{name} is declared but has no body: define it in this cell, or mind the spelling."
    if meant:
        hint = f"Did you mean {meant}?"
    return Slip(f"'{name}' is defined nowhere", hint, "defined nowhere", f"name {name}", GRAVE,
                offset)  # fmt: skip


@rule(r"multiple definition of [`'](?P<name>\w+)'")
def multiple_definition(spot, match):
    """A name of ours or of MPI's that the cell defines as well."""
    name = match["name"]
    return Slip(f"'{name}' is already defined elsewhere", "Call your function something else.",
                "defined twice", f"name {name}", GRAVE)  # fmt: skip


@rule(r"^'?(?P<file>[^\s:']+)'?:? (?:No such file or directory|file not found)")
def no_such_file(spot, match):
    """An #include of a file that does not exist."""
    file = match["file"]
    known = ["mpilab.h", "mpi.h", *HEADERS]
    near = get_close_matches(file, known, 1, 0.6)
    if near:
        hint = f"Did you mean {near[0]}?"
    elif "." not in file:
        hint = "That is a header of C++; C's end in .h."
    else:
        hint = 'A kernel needs #include "mpilab.h"; C\'s own headers stand in <>.'
    return Slip(f"there is no file '{file}' to include", hint, "unknown #include",
                f"file {file}", GRAVE)  # fmt: skip


@rule(
    r"redefinition of '(?P<name>\w+)'",
    r"redeclaration of '(?P<name>\w+)' with no linkage",
    r"'(?P<name>\w+)' redeclared as different kind",
)
def declared_twice(spot, match):
    """The same name declared twice in one block."""
    name = match["name"]
    first, _ = spot.note(r"previous (?:definition|declaration)|^in expansion of macro")
    where = f" (first in line {first.line})" if first and first.line else ""
    hint = "Leave the second type away to assign to the first, or take another name."
    if spot.word.startswith("MPILAB_") or any(c.function == name for c in spot.source.calls):
        hint = "Keep one of the two functions."
    elif name in ("comm", "sendbuf", "recvbuf", "sendcount", "recvcount", "sendtype", "recvtype"):
        hint = f"{name} is an argument of the kernel: use it as it is."
    return Slip(f"'{name}' is declared twice{where}", hint, "declared twice", f"name {name}",
                GRAVE)  # fmt: skip


@rule(r"conflicting types for '(?P<name>\w+)'")
def other_prototype(spot, match):
    """A function whose head is not the one that a header gives."""
    name = match["name"]
    right = prototypes.kernel_prototype(name)
    if not right:
        if name in prototypes.names() | prototypes.own_names():
            hint = "Call your function something else: this name belongs to a header."
        else:
            hint = "Declaration and definition have to agree; a function comes before its calls."
        return Slip(f"'{name}' is declared in another way before", hint, "another prototype",
                    f"name {name}", GRAVE)  # fmt: skip
    _, _, listed = right.partition("(")
    wanted = prototypes.parse_parameters(listed.rstrip(") "))
    head = re.search(rf"(\w[\w\s*]*?)\b{name}\s*\(([^()]*)\)", spot.source.code)
    difference = _difference(head, wanted) if head else ""
    hint = f"{difference}The right head is: {right}".strip()
    return Slip(f"the head of '{name}' differs from its prototype in mpilab.h", hint,
                "another prototype", f"name {name}", GRAVE)  # fmt: skip


def _difference(head, wanted):
    got = prototypes.parse_parameters(head[2])
    if prototypes.plain_type(head[1]) != "int":
        return "It has to return int. "
    if len(got) != len(wanted):
        return f"It has {len(wanted)} arguments, yours {len(got)}. "
    for number, (one, other) in enumerate(zip(got, wanted, strict=True), 1):
        given, right = one.text.replace(one.name, ""), other.text.replace(other.name, "")
        if given.replace(" ", "") != right.replace(" ", ""):
            return f"Argument {number} is '{other.text}', yours '{one.text}'. "
    return ""


def _same_letters(name):
    """MPI's name with the same letters: case and underscores are what is mistaken most often."""

    def letters(word):
        return word.replace("_", "").lower()

    same = sorted(word for word in prototypes.names() if letters(word) == letters(name))
    return same[0] if same else ""


def _nearest(name):
    """MPI's name with the fewest different letters, of those that are written alike."""
    is_constant = name == name.upper()
    alike = sorted(word for word in prototypes.names() if (word == word.upper()) == is_constant)
    near = get_close_matches(name, alike, 1, 0.75)
    return near[0] if near else ""


def _offset_of(spot, name):
    """Where in the line the name stands; None where it is not in it."""
    if spot.word == name:
        return None
    match = re.search(rf"\b{re.escape(name)}\b", spot.line)
    return spot.source.offset(spot.diagnostic.line, 1) + match.start() if match else None
