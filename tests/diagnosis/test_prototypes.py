"""What mpi.h declares, and which argument of which call is at a place in the source."""

import re

import pytest

from mpilab.diagnosis.compiler import rules as prototypes
from mpilab.diagnosis.compiler.rules import Source

SOURCE = """#include "mpilab.h"
#define CALL(x) MPI_Hidden(x)
static int f(const void *sendbuf, int sendcount, MPI_Datatype sendtype, MPI_Comm comm)
{
    int rank, size = 4, next[2] = {1, 2};
    MPI_Request requests[2], *first = requests;
    MPI_Status status;
    /* MPI_Commented(out, */ // MPI_Also(out)
    MPI_Sendrecv(block(sendbuf, (rank + 1) % size, sendcount, sendtype), 1, "a(,", // x, y
                 &requests, &requests[1], (int[]){1, 2}, requests[0], &status, MPI_INT,
                 rank * 2, (char *)sendbuf, next[1]);
    MPI_Broken(comm, (rank;
    return MPI_Barrier(comm);
}
"""


@pytest.fixture(scope="module")
def source():
    return Source(SOURCE)


def call(source, name):
    (found,) = [call for call in source.calls if call.function == name]
    return found


def test_the_arguments_of_mpis_functions_have_their_names_and_types():
    send = prototypes.functions()["MPI_Send"]
    assert str(send) == "MPI_Send(buf, count, datatype, dest, tag, comm)"
    assert [p.type for p in send.parameters] == [
        "void *",
        "int",
        "MPI_Datatype",
        "int",
        "int",
        "MPI_Comm",
    ]
    requests = prototypes.functions()["MPI_Waitall"].parameters[1]
    assert (requests.type, requests.name) == ("MPI_Request *", "array_of_requests")
    assert requests.is_array


def test_every_function_that_mpi_h_declares_is_known():
    text = (prototypes.include_directory() / "mpi.h").read_text()
    declared = set(re.findall(r"^OMPI_DECLSPEC\s+\w+\s+\*?(MPI_\w+)\s*\(", text, re.MULTILINE))
    assert len(declared) > 400
    assert declared <= prototypes.functions().keys()


def test_helpers_of_mpilab_h_are_known_like_mpis_functions():
    assert str(prototypes.functions()["block"]) == "block(buffer, index, count, type)"
    assert prototypes.functions()["block"].result == "void *"
    assert {"TAG", "copy_local", "MPILAB_ALLGATHER"} <= prototypes.own_names()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("MPI_COMM_WORLD", "MPI_Comm"),
        ("MPI_INT", "MPI_Datatype"),
        ("MPI_SUM", "MPI_Op"),
        ("MPI_REQUEST_NULL", "MPI_Request"),
        ("MPI_STATUS_IGNORE", "MPI_Status *"),
        ("MPI_IN_PLACE", "void *"),
        ("MPI_ANY_SOURCE", "int"),
        ("MPI_ERR_TRUNCATE", "int"),
        ("MPI_COMM_TYPE_SHARED", "int"),
    ],
)
def test_a_constant_has_its_type(name, kind):
    assert prototypes.constants()[name] == kind


def test_all_names_are_functions_constants_and_types():
    assert {"MPI_Send", "MPI_INT", "MPI_Request", "MPI_Status"} <= prototypes.names()
    assert not any(name.startswith("PMPI_") for name in prototypes.names())


def test_the_prototype_of_a_kernel_is_mpilab_hs():
    head = prototypes.kernel_prototype("allgather_mine")
    assert head.startswith("int allgather_mine(const void *sendbuf, int sendcount, ")
    assert head.endswith("MPI_Comm comm)")
    head = prototypes.kernel_prototype("alltoallv_mine")
    assert "int alltoallv_mine(const void *sendbuf, const int sendcounts[], " in head
    assert prototypes.kernel_prototype("main") == prototypes.kernel_prototype("gossip_x") == ""


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("const void *", "void *"),
        ("MPI_Request[]", "MPI_Request *"),
        ("int  **", "int **"),
        ("const char*", "char *"),
        ("static inline int", "int"),
    ],
)
def test_types_are_compared_without_const(text, plain):
    assert prototypes.plain_type(text) == plain


def test_calls_are_cut_at_their_own_commas(source):
    arguments = [argument.text for argument in call(source, "MPI_Sendrecv").arguments]
    assert arguments == [
        "block(sendbuf, (rank + 1) % size, sendcount, sendtype)",
        "1",
        '"a(,"',
        "&requests",
        "&requests[1]",
        "(int[]){1, 2}",
        "requests[0]",
        "&status",
        "MPI_INT",
        "rank * 2",
        "(char *)sendbuf",
        "next[1]",
    ]


def test_comments_strings_and_macros_hold_no_calls(source):
    names = {call.function for call in source.calls}
    assert not names & {"MPI_Commented", "MPI_Also", "MPI_Hidden", "a"}
    assert "block" in names


def test_a_call_without_its_bracket_ends_with_the_statement(source):
    broken = call(source, "MPI_Broken")
    assert [argument.text for argument in broken.arguments] == ["comm", "(rank"]
    assert call(source, "MPI_Barrier").arguments[0].text == "comm"


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("rank", "int"),
        ("&rank", "int *"),
        ("size", "int"),
        ("next", "int *"),
        ("next[1]", "int"),
        ("requests", "MPI_Request *"),
        ("&requests", "MPI_Request (*)[]"),
        ("first", "MPI_Request *"),
        ("&first", "MPI_Request **"),
        ("requests[0]", "MPI_Request"),
        ("sendbuf", "void *"),
        ("sendtype", "MPI_Datatype"),
        ("comm", "MPI_Comm"),
        ("&status", "MPI_Status *"),
        ("MPI_INT", "MPI_Datatype"),
        ("TAG", "int"),
        ("(rank + 1) % size", "int"),
        ("-1", "int"),
        ("2.5", "double"),
        ('"x"', "char *"),
        ("(char *)sendbuf", "char *"),
        ("sizeof(int)", "size_t"),
        ("block(sendbuf, 0, 1, sendtype)", "void *"),
        ("int", "type int"),
        ("nothing", ""),
        ("rank ? 1 : 2", ""),
    ],
)
def test_the_type_of_an_expression_is_told_where_it_can_be_seen(source, expression, kind):
    assert source.type_of(expression) == kind


def test_a_place_leads_to_the_innermost_call_and_its_argument(source):
    line = next(n for n, text in enumerate(source.lines, 1) if "MPI_Sendrecv" in text)
    text = source.line(line)
    inner = source.call_at(source.offset(line, text.index("sendcount") + 1))
    assert inner.function == "block"
    assert inner.index_at(source.offset(line, text.index("sendcount") + 1)) == 2
    outer = source.call_at(source.offset(line + 1, source.line(line + 1).index("&status") + 1))
    assert outer.function == "MPI_Sendrecv"
    assert outer.index_at(source.offset(line + 1, source.line(line + 1).index("&status") + 1)) == 7


def test_columns_in_bytes_and_in_characters_lead_to_the_same_word():
    source = Source("    /* “äöü” */ MPI_Barrier(comm);\n")
    word = source.text.index("MPI_Barrier")
    in_bytes = len(source.text[:word].encode())
    assert source.offset(1, word + 1) == source.offset(1, in_bytes + 1) == word
    assert source.word(word + 3) == "MPI_Barrier"
