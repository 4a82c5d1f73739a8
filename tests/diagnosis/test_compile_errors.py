"""Common compile errors, each compiled with gcc and clang: the line, the wording, the hint."""

import pytest

from mpilab.diagnosis.compiler import REMINDER, diagnose_build, diagnose_warnings
from mpilab.diagnosis.model import COMPILE_ERROR, COMPILE_WARNING, Diagnosis
from mpilab.errors import BuildError
from mpilab.kernels.build import Diagnostic, build

HEAD = """
#include "mpilab.h"
#include <stdio.h>
int allgather_ring(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                   int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size, right = 1, left = 0, err = 0;
    char *text = 0;
    MPI_Request request, requests[2];
    MPI_Status status;
    MPI_Comm_rank(comm, &rank), MPI_Comm_size(comm, &size);
    (void)sendbuf, (void)sendcount, (void)sendtype, (void)recvbuf, (void)recvcount, (void)recvtype;
    (void)request, (void)requests, (void)status, (void)err, (void)text, (void)left, (void)right;
"""
TAIL = """
    return MPI_SUCCESS;
}
"""
FIRST = HEAD.count("\n") + 1
SEND = "MPI_Send(buf, count, datatype, dest, tag, comm)"
ERROR, WARNING = COMPILE_ERROR, COMPILE_WARNING

# (statements of the kernel, kind, where the first place begins, words of its label, of the hint)
MISTAKES = [
    # Arguments of MPI's functions.
    (
        "    MPI_Send(sendbuf, sendtype, sendcount, right, TAG, comm);",
        WARNING,
        "sendtype,",
        "argument 2 of MPI_Send is the count (an int), but 'sendtype' is an MPI_Datatype",
        f"Arguments 2 and 3 appear to be swapped. The prototype: {SEND}.",
    ),
    (
        "    MPI_Send(sendbuf, sendcount, right, sendtype, TAG, comm);",
        WARNING,
        "right,",
        "argument 3 of MPI_Send is the datatype (an MPI_Datatype), but 'right' is an int",
        f"Arguments 3 and 4 appear to be swapped. The prototype: {SEND}.",
    ),
    (
        "    MPI_Send(sendbuf, sendcount, sendtype, right, comm, TAG);",
        WARNING,
        "comm,",
        "argument 5 of MPI_Send is the tag",
        "Arguments 5 and 6 appear to be swapped",
    ),
    (
        "    MPI_Wait(&status, &request);",
        WARNING,
        "&status",
        "argument 1 of MPI_Wait is the request",
        "Arguments 1 and 2 appear to be swapped",
    ),
    (
        "    MPI_Isend(sendbuf, 1, sendtype, right, TAG, comm, request);",
        WARNING,
        "request)",
        "argument 7 of MPI_Isend is the request (the address of an MPI_Request)",
        "write &request",
    ),
    (
        "    MPI_Recv(recvbuf, 1, recvtype, left, TAG, comm, status);",
        ERROR,
        "status)",
        "argument 7 of MPI_Recv is the status (the address of an MPI_Status)",
        "write &status",
    ),
    (
        "    MPI_Comm_rank(comm, rank);",
        WARNING,
        "rank)",
        "argument 2 of MPI_Comm_rank is the rank (the address of an int), but 'rank' is an int",
        "write &rank",
    ),
    (
        "    MPI_Comm_rank(&comm, &rank);",
        WARNING,
        "&comm",
        "'&comm' is the address of an MPI_Comm",
        "Remove the &: write comm",
    ),
    (
        "    MPI_Waitall(2, &requests, MPI_STATUSES_IGNORE);",
        WARNING,
        "&requests",
        "the array_of_requests (an array of MPI_Request)",
        "write requests.",
    ),
    (
        "    MPI_Sendrecv(sendbuf, 1, sendtype, right, TAG,\n"
        "                 recvbuf, 1, recvtype, left, TAG, comm, status);",
        ERROR,
        "status)",
        "argument 12 of MPI_Sendrecv is the status",
        "write &status",
    ),
    (
        "    MPI_Send(block(recvbuf, 1, recvcount, recvtype), 1, rank, right, TAG, comm);",
        WARNING,
        "rank, right",
        "argument 3 of MPI_Send is the datatype",
        SEND,
    ),
    (
        "    /* “äöü” */ MPI_Comm_rank(comm, rank);",
        WARNING,
        "rank)",
        "argument 2 of MPI_Comm_rank",
        "write &rank",
    ),
    (
        "    MPI_Barrier(1);",
        WARNING,
        "1)",
        "argument 1 of MPI_Barrier is the comm",
        "A communicator is not a number",
    ),
    (
        "    int req;\n    MPI_Isend(sendbuf, 1, sendtype, right, TAG, comm, &req);",
        WARNING,
        "&req",
        "'&req' is the address of an int",
        "Declare it as MPI_Request req",
    ),
    (
        "    MPI_Recv(recvbuf, 1, recvtype, left, TAG, comm, &request);",
        WARNING,
        "&request",
        "argument 7 of MPI_Recv is the status",
        "MPI_STATUS_IGNORE",
    ),
    (
        "    MPI_Send(sendbuf, sendcount, int, right, TAG, comm);",
        ERROR,
        "int,",
        "argument 3 of MPI_Send is the datatype, but 'int' is a C type",
        f"Write MPI_INT. The prototype: {SEND}.",
    ),
    (
        "    MPI_Send(sendbuf, sendcount, sendtype, right, TAG);",
        ERROR,
        "MPI_Send",
        "MPI_Send takes 6 arguments, but got 5: the comm is missing",
        SEND,
    ),
    (
        "    MPI_Send(sendbuf, sendcount, right, TAG, comm);",
        ERROR,
        "MPI_Send",
        "the datatype is missing",
        SEND,
    ),
    (
        "    rank = MPI_Comm_rank(comm);",
        ERROR,
        "MPI_Comm_rank",
        "MPI_Comm_rank takes 2 arguments, but got 1: the rank is missing",
        "MPI_Comm_rank(comm, rank",
    ),
    (
        "    MPI_Send(sendbuf, 1, sendtype, right, TAG, comm, MPI_STATUS_IGNORE);",
        ERROR,
        "MPI_Send",
        "'MPI_STATUS_IGNORE' is one too many",
        SEND,
    ),
    (
        "    MPI_Recv(sendbuf, 1, recvtype, left, TAG, comm, &status);",
        WARNING,
        "sendbuf",
        "MPI_Recv would write into 'sendbuf', which is const",
        "recvbuf",
    ),
    # Names.
    (
        "    MPI_Comm_rank(MPI_COMM_WORD, &rank);",
        ERROR,
        "MPI_COMM_WORD",
        "'MPI_COMM_WORD' is not declared",
        "Did you mean MPI_COMM_WORLD?",
    ),
    (
        "    MPI_Allgather(MPI_INPLACE, 0, sendtype, recvbuf, 1, recvtype, comm);",
        ERROR,
        "MPI_INPLACE",
        "is not declared",
        "Did you mean MPI_IN_PLACE?",
    ),
    (
        "    MPI_Allreduce(&rank, &size, 1, MPI_INT, MPI_ADD, comm);",
        ERROR,
        "MPI_ADD",
        "is not declared",
        "Did you mean MPI_SUM?",
    ),
    (
        "    MPI_ISend(sendbuf, 1, sendtype, right, TAG, comm, &request);",
        ERROR,
        "MPI_ISend",
        "'MPI_ISend' is not declared",
        "Did you mean MPI_Isend?",
    ),
    (
        "    MPI_Reqest r;\n    MPI_Wait(&r, MPI_STATUS_IGNORE);",
        ERROR,
        "MPI_Reqest",
        "'MPI_Reqest' is not declared",
        "Did you mean MPI_Request?",
    ),
    (
        "    MPI_Comm_rank(comm, &rnk);\n    rnk = 3;",
        ERROR,
        "rnk",
        "'rnk' is not declared",
        "Did you mean rank?",
    ),
    (
        "    place_own_blok(sendbuf, 1, sendtype, recvbuf, 1, recvtype, rank);",
        ERROR,
        "place_own_blok",
        "is not declared",
        "Did you mean place_own_block?",
    ),
    (
        "    for (i = 0; i < size; i++)\n        err++;",
        ERROR,
        "i =",
        "'i' is not declared",
        "for (int i = ...)",
    ),
    (
        "    memcpy(recvbuf, sendbuf, 4);",
        ERROR,
        "memcpy",
        "'memcpy' is not declared",
        "#include <string.h>",
    ),
    (
        "    text = malloc(100);\n    free(text);",
        ERROR,
        "malloc",
        "'malloc' is not declared",
        "#include <stdlib.h>",
    ),
    (
        "    left = neighbour(rank);",
        ERROR,
        "neighbour",
        "'neighbour' is not declared",
        "define it above",
    ),
    ("    int rank = 0;", ERROR, "rank", "'rank' is declared twice (first in line 7)", "another"),
    ("    err = status.source;", ERROR, None, "no member 'source'", "MPI_SOURCE"),
    ("    err = status->MPI_SOURCE;", ERROR, None, "-> is for pointers", "status.MPI_SOURCE"),
    # Other languages.
    ("    call MPI_Barrier(comm);", ERROR, "call", "'call' is Fortran", "MPI_Barrier(comm);"),
    ("    MPI_Barrier(comm, ierr);", ERROR, "ierr", "'ierr' is Fortran", "int err = MPI_"),
    ("    left = (rank - 1) mod size;", ERROR, None, "'mod' is Fortran", "% size"),
    ("    MPI::COMM_WORLD.Barrier();", ERROR, None, "this line is C++", "no ::"),
    ("    int *v = new int[4];\n    (void)v;", ERROR, "new", "'new' is C++", "malloc"),
    ("    const int &r = right;\n    (void)r;", ERROR, None, "references are C++", "pointer"),
    ("    if (rank == 0 and size > 1) err = 1;", ERROR, None, "'and' is Python", "&&"),
    ("    for i in range(size):\n        err = 1;", ERROR, None, "this line is Python", "for (int"),
    ("    bool done = 0;\n    (void)done;", ERROR, "bool", "'bool' is not", "<stdbool.h>"),
    # The form.
    (
        "    err = MPI_Barrier(comm)\n    err = 0;",
        ERROR,
        None,
        "a ';' is missing at the end of this line",
        "every statement with ;",
    ),
    ("    MPI_Barrier(comm;", ERROR, None, "a ')' is missing", ""),
    (
        "    MPI_Comm_size(comm, , &size);",
        ERROR,
        ", &size",
        "a value is missing before ','",
        "comma",
    ),
    (
        "    MPI_Comm_size comm, &size;",
        ERROR,
        None,
        "'(' is missing after MPI_Comm_size",
        "MPI_Comm_size(comm, size)",
    ),
    ("    if rank == 0\n        err = 1;", ERROR, None, "'(' is missing after if", "if (...)"),
    (
        "    if (rank == 0) {\n        err = 1;",
        ERROR,
        "{",
        f"the block that begins in line {FIRST} is never closed",
        "'}' is missing",
    ),
    ("    err = 1;\n    else err = 2;", ERROR, "else", "this else has no if", "{ }"),
    ('    printf("hello);', ERROR, None, "this string is never closed", '"'),
    ("    err = “1”;", ERROR, None, "'“' is not a valid character in C", "retype them"),
    # Values.
    (
        "    int next;\n    MPI_Send(sendbuf, 1, sendtype, next, TAG, comm);",
        WARNING,
        None,
        "'next' is used before it has a value",
        "Give next a value",
    ),
    (
        "    MPI_Request r;\n    if (r == MPI_REQUEST_NULL)\n        err = 1;",
        WARNING,
        None,
        "'r' is used before it has a value",
        "MPI_Request r = MPI_REQUEST_NULL",
    ),
    (
        "    MPI_Status *st;\n    MPI_Recv(recvbuf, 1, recvtype, 0, TAG, comm, st);",
        WARNING,
        None,
        "'st' is used before it has a value",
        "points nowhere",
    ),
    ("    int idle;", WARNING, "idle", "'idle' is never used", ""),
    ("    int idle;\n    idle = rank;", WARNING, "idle", "gets a value that is never used", ""),
    (
        "    for (int i = 0; i < sizeof(int); i++)\n        err++;",
        WARNING,
        "< sizeof",
        "a signed and an unsigned number are compared",
        "(int)sizeof",
    ),
    ("    if (rank = 0)\n        err = 1;", WARNING, None, "= assigns; == compares", "=="),
    ("    rank == 0;", WARNING, None, "this statement does nothing", "= assigns"),
    ("    MPI_Barrier;", WARNING, None, "this statement does nothing", "MPI_Barrier(comm);"),
    (
        "    err = sizeof(text) / sizeof(text[0]);",
        WARNING,
        None,
        "sizeof(text) is the size of a pointer",
        "does not know how many",
    ),
    (
        '    printf("%d\\n", text);',
        WARNING,
        None,
        "the format expects an int, but the argument is a string",
        "%s for strings",
    ),
    (
        '    printf("%d %d\\n", rank);',
        WARNING,
        None,
        "the number of arguments do not match",
        "Each %",
    ),
    (
        "    MPI_Datatype t = sizeof(int);\n    (void)t;",
        WARNING,
        None,
        "an MPI_Datatype is set to a",
        "MPI_INT for int",
    ),
    ("    int t = MPI_INT;\n    (void)t;", WARNING, None, "an MPI_Datatype", "MPI"),
    ("    MPI_Datatype t = int;\n    (void)t;", ERROR, "int;", "'int' is a C type", "MPI_INT"),
    ("    ((int *)recvbuf)[0] = *sendbuf;", ERROR, None, "is a void *", "block(buffer"),
    ("    *(const int *)sendbuf = 1;", ERROR, None, "const data cannot be assigned", "read"),
    ("    left = rank / 0;", WARNING, None, "divides by zero", ""),
    ("    err = status + 1;", ERROR, None, "cannot combine", "not numbers"),
    ("    rank + 1 = size;", ERROR, None, "left side of =", "=="),
    ("    err = rank[0];", ERROR, None, "[] and * need an array", "declared"),
    ("    text = 'abc';", WARNING, None, "'...' holds one character", "double quotes"),
]

ARGUMENTS = """const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
    int recvcount, MPI_Datatype recvtype, MPI_Comm comm"""
SILENT = (
    "    (void)sendbuf, (void)sendcount, (void)sendtype;\n"
    "    (void)recvbuf, (void)recvcount, (void)recvtype;\n"
)

# (whole cell, kind, line, words of the label, words of the hint)
CELLS = [
    (
        f"int allgather_ring({ARGUMENTS})\n{{\n    return MPI_Barrier(comm);\n}}\n",
        ERROR,
        1,
        "'MPI_Datatype' is not declared",
        '#include "mpilab.h"',
    ),
    ('#include "mpi_lab.h"\n', ERROR, 1, "no file 'mpi_lab.h'", "Did you mean mpilab.h?"),
    ("#include <iostream>\n", ERROR, 1, "no file 'iostream'", "C++ header"),
    (
        '#include "mpilab.h"\nint allgather_ring('
        + ARGUMENTS.removeprefix("const ")
        + ")\n{\n"
        + SILENT
        + "    return MPI_Barrier(comm);\n}\n",
        ERROR,
        2,
        "the declaration of 'allgather_ring' differs from its prototype",
        "Argument 1 is 'const void *sendbuf', yours 'void *sendbuf'. Write: int allg",
    ),
    (
        f'#include "mpilab.h"\nvoid allgather_ring({ARGUMENTS})\n{{\n{SILENT}'
        "    MPI_Barrier(comm);\n}\n",
        ERROR,
        2,
        "differs from its prototype",
        "It must return int.",
    ),
    (
        f'#include "mpilab.h"\nMPILAB_ALLGATHER(ring)\n{{\n{SILENT}    MPI_Barrier(comm);\n}}\n',
        WARNING,
        7,
        "may end without returning a value",
        "return MPI_SUCCESS;",
    ),
    (
        f'#include "mpilab.h"\nMPILAB_ALLGATHER(ring)\n{{\n{SILENT}'
        "    return MPI_Barrier(comm);\n}\n"
        f"MPILAB_ALLGATHER(ring)\n{{\n{SILENT}    return MPI_Barrier(comm);\n}}\n",
        ERROR,
        8,
        "'allgather_ring' is declared twice (first in line 2)",
        "Keep one",
    ),
    (
        f'#include "mpilab.h"\nint helper(int);\nMPILAB_ALLGATHER(ring)\n{{\n{SILENT}'
        "    return MPI_Barrier(comm) + helper(3);\n}\n",
        ERROR,
        7,
        "'helper' is not defined",
        "define it in this cell",
    ),
    (
        '#include "mpilab.h"\n'
        "int MPI_Barrier(MPI_Comm comm)\n{\n    return PMPI_Barrier(comm);\n}\n"
        f"MPILAB_ALLGATHER(ring)\n{{\n{SILENT}    return MPI_Barrier(comm);\n}}\n",
        ERROR,
        3,
        "'MPI_Barrier' is already defined elsewhere",
        "Call your function something else.",
    ),
    (
        '#include "mpilab.h"\nMPILAB_ALLGATHER(ring);\n{\n    return MPI_Barrier(comm);\n}\n',
        ERROR,
        2,
        "the function's body follows a ';'",
        "Remove the ;",
    ),
    (
        '#include "mpilab.h"\nMPI_Barrier(MPI_COMM_WORLD);\n',
        ERROR,
        2,
        "MPI_Barrier is called outside any function",
        "between the { and }",
    ),
    (
        '#include "mpilab.h"\nint helper(int a)\n{\n    if (a)\n        a = 1;\n    }\n'
        "    return a;\n}\n",
        ERROR,
        7,
        "the function ends in line 6, before this",
        "extra '}'",
    ),
    (
        '#include "mpilab.h"\nint helper(int used, int ignored) { return used; }\n',
        WARNING,
        2,
        "does not use its argument 'ignored'",
        "(void)ignored;",
    ),
]


@pytest.fixture(params=["gcc", "clang"])
def compiler(request, monkeypatch, require_tool):
    """Each test with gcc, and with clang where it is installed."""
    monkeypatch.setenv("OMPI_CC", require_tool(request.param))
    return request.param


@pytest.fixture
def diagnose(compiler, tmp_path):
    """A function that builds a cell's C text and returns the Diagnosis; None if nothing is
    wrong."""

    def compiled(source):
        try:
            return diagnose_warnings(build(source, tmp_path).warnings, source)
        except BuildError as error:
            return diagnose_build(error, source)

    return compiled


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: " ".join(mistake[0].split()))
def test_a_mistake_is_named_at_its_place_with_what_to_do(mistake, diagnose):
    statements, kind, begin, words, hint = mistake
    source = HEAD + statements + TAIL
    found = diagnose(source)
    place = found.places[0]
    assert found.kind == kind
    assert words in place.label
    assert hint in found.hint
    assert f"line {place.line}: {place.label}" in found.headline
    assert FIRST <= place.line < FIRST + statements.count("\n") + 1
    assert place.text == source.split("\n")[place.line - 1]
    if begin is not None:
        assert place.text[place.column - 1 :].startswith(begin)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell[3])
def test_a_mistake_in_the_whole_cell_is_named_at_its_line(cell, diagnose):
    source, kind, line, words, hint = cell
    found = diagnose(source)
    assert (found.kind, found.places[0].line) == (kind, line)
    assert words in found.headline
    assert hint in found.hint


def test_a_cell_without_fault_has_no_diagnosis(diagnose):
    assert diagnose(HEAD + "    MPI_Barrier(comm);" + TAIL) is None


def test_messages_that_follow_from_the_same_mistake_are_not_shown(diagnose):
    found = diagnose(HEAD + "    for (i = 0; i < 3; i++)\n        i += MPI_Barier(comm);" + TAIL)
    assert [place.label for place in found.places] == [
        "'i' is not declared",
        "'MPI_Barier' is not declared",
    ]


def test_two_misspelled_names_in_one_line_are_both_shown(diagnose):
    found = diagnose(HEAD + "    MPI_Comm_rank(MPI_COMM_WORD, &rnk);" + TAIL)
    assert [place.label for place in found.places] == [
        "'MPI_COMM_WORD' is not declared",
        "'rnk' is not declared",
    ]


def test_a_request_without_its_address_is_not_called_uninitialized_too(diagnose):
    found = diagnose(HEAD + "    MPI_Request r;\n    MPI_Wait(r, MPI_STATUS_IGNORE);" + TAIL)
    assert [place.line for place in found.places] == [FIRST + 1]
    assert found.pattern == "missing &"


def test_at_most_five_errors_are_shown_and_the_rest_is_counted(diagnose):
    wrong = "\n".join(f"    err = wrong_{number};" for number in "abcdefg")
    found = diagnose(HEAD + wrong + TAIL)
    assert found.lines == tuple(range(FIRST, FIRST + 5))
    assert "2 more errors after these." in found.notes


def test_the_compilers_own_words_and_the_hints_of_further_places_are_notes(diagnose):
    found = diagnose(HEAD + "    MPI_COMM_WORD;\n    memcpy(recvbuf, sendbuf, 1);" + TAIL)
    assert f"line {FIRST + 1}: Put #include <string.h> at the top of the cell." in found.notes
    assert any(
        note.startswith(f"Compiler message, line {FIRST}: ") and "MPI_COMM_WORD" in note
        for note in found.notes
    )
    assert "MPI_COMM_WORD" in found.log and "memcpy" in found.log


def test_what_is_likely_the_bug_comes_before_what_is_unused(diagnose):
    found = diagnose(HEAD + "    int idle;\n    MPI_Comm_rank(comm, rank);" + TAIL)
    assert found.lines == (FIRST + 1, FIRST)
    assert REMINDER in found.notes


def test_an_error_keeps_a_telling_warning_beside_it(diagnose):
    found = diagnose(HEAD + "    MPI_Comm_rank(comm, rank);\n    nothing = 1;" + TAIL)
    assert found.lines == (FIRST + 1,)
    assert any(
        note.startswith(f"Also a warning, line {FIRST}: argument 2 of MPI_Comm_rank")
        for note in found.notes
    )


def test_a_diagnosis_travels_as_json(diagnose):
    found = diagnose(HEAD + "    MPI_Send(sendbuf);" + TAIL)
    assert Diagnosis.from_json(found.to_json()) == found


def test_an_error_without_a_line_is_told_as_it_is():
    error = BuildError(
        "mpicc: did not finish within 0.5 s; look for an #include that expands endlessly"
    )
    found = diagnose_build(error, "int x;\n")
    assert found.headline == f"It does not compile: {error}"
    assert (found.kind, found.places) == (COMPILE_ERROR, ())


def test_a_line_that_the_linker_does_not_know_is_looked_up():
    error = BuildError("no", [Diagnostic("error", 0, 1, "undefined reference to `nowhere'")])
    found = diagnose_build(error, "int nowhere(int);\nint f(void)\n{\n    return nowhere(1);\n}\n")
    assert found.lines == (4,)
    assert found.headline == "It does not compile: line 4: 'nowhere' is not defined"


def test_words_that_no_rule_knows_are_shown_without_options_and_second_names():
    text = "odd thing with 'MPI_Comm' {aka 'struct ompi_communicator_t *'} [-Wodd]"
    found = diagnose_warnings([Diagnostic("warning", 1, 5, text, "int x;")], "int x;\n")
    assert found.headline == "It compiles, with a warning: line 1: odd thing with 'MPI_Comm'"
    assert found.places[0].column == 5


def test_notes_alone_are_no_warnings():
    notes = [Diagnostic("note", 1, 1, "declared here", "int x;")]
    assert diagnose_warnings(notes, "int x;\n") is None
    assert diagnose_warnings([], "int x;\n") is None
