"""Kernels built with sanitizers: mistakes are reported with rank and line, and nothing else is."""

import pytest
from c_kernels import line_of, source_of

from mpilab.algorithms.allgather import ALGORITHMS
from mpilab.cases.case import Case
from mpilab.cases.output import compare
from mpilab.diagnosis.crash import diagnose_report
from mpilab.errors import BuildError
from mpilab.kernels.build import build, compile_object, link, sanitized_harness
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import CRASH, DONE
from mpilab.trace.callsites import parse, separate
from mpilab.util.kit import ROOT

PREAMBLE = """#include "mpilab.h"
#include <stdlib.h>
#include <string.h>
static int many[100000], table[10];
static int deep(int *p, int n)
{
    volatile char room[8192];
    room[0] = (char)n;
    return n == 0 ? 0 : deep(p, n + 1) + room[0];
}
"""
BODIES = {
    "receive_buffer": "if (rank == 1) ((int *)recvbuf)[recvcount * size] = 5; /* receive */",
    "in_front": "if (rank == 1) ((int *)recvbuf)[-1] = 5; /* in front */",
    "send_buffer": "if (rank == 1) return ((const int *)sendbuf)[sendcount]; /* send */",
    "mpi_recv": """
    if (rank == 0) MPI_Send(many, recvcount * size + 1, MPI_INT, 1, 3, comm);
    if (rank == 1)
        MPI_Recv(recvbuf, recvcount * size + 1, MPI_INT, 0, 3, comm, MPI_STATUS_IGNORE); /* recv */
    """,
    "mpi_recv_large": """
    if (rank == 0) MPI_Send(many, 100000, MPI_INT, 1, 3, comm);
    if (rank == 1)
        MPI_Recv(recvbuf, 100000, MPI_INT, 0, 3, comm, MPI_STATUS_IGNORE); /* large */""",
    "mpi_send": """
    int *p = calloc(4, sizeof(int));
    if (rank == 1) MPI_Send(p, 5, MPI_INT, 0, 3, comm); /* sends */
    if (rank == 0) MPI_Recv(recvbuf, 5, MPI_INT, 1, 3, comm, MPI_STATUS_IGNORE);
    free(p);""",
    "copies": """
    const size_t bytes = 4 * (size_t)(recvcount * size) + (rank == 1);
    memcpy(recvbuf, many, bytes); /* copies */""",
    "heap": """
    int *p = malloc(sizeof(int) * (size_t)size); /* allocates */
    for (int i = 0; i <= size - (rank == 0); i++)
        p[i] = i; /* heap */
    free(p);""",
    "freed": "int *p = malloc(16);\n    if (rank == 1) free(p); /* frees */\n"
    "    p[1] = 3; /* freed */",
    "freed_twice": "char *p = malloc(8);\n    free(p);\n    if (rank == 1) free(p); /* twice */",
    "frees_buffer": "if (rank == 1) free(recvbuf); /* not its own */",
    "stack": "int a[4];\n    for (int i = 0; i <= 3 + (rank == 1); i++)\n"
    "        a[i] = size; /* stack */\n    ((int *)recvbuf)[0] = a[1];",
    "global": "int *volatile p = table;\n    p[rank == 1 ? 10 : 0] = 1; /* global */",
    "signed": "int most = 2147483647 - (rank == 0) * size;\n    most += size; /* signed */\n"
    "    ((int *)recvbuf)[0] = most;",
    "shift": "((int *)recvbuf)[0] = 1 << (rank * 40); /* shift */",
    "null": "int *p = rank == 1 ? NULL : recvbuf;\n    *p = 3; /* null */",
    "wild": "char *p = rank ? (char *)0x123456789000 : recvbuf;\n    *p = 3; /* wild */",
    "divides": "((int *)recvbuf)[0] = size / (1 - rank); /* divides */",
    "recurses": "if (rank == 1) return deep(recvbuf, 1);",
}
SOURCE = source_of(BODIES, PREAMBLE)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    built = build(SOURCE, tmp_path_factory.mktemp("sanitized"), sanitize=True)
    assert built.sanitized
    return built.library


@pytest.fixture
def diagnosed(library):
    """A function: the Result of one of BODIES on 2 ranks, and {rank: Diagnosis} of its reports."""

    def run(name):
        case = Case("allgather", 2, 4)
        (result,) = run_cases(library, f"allgather_{name}", [case], limit=60.0, sanitize=True)
        reports = {rank: separate(text)[1] for rank, text in result.printed.items()}
        reports = {r: text for r, text in reports.items() if text} | result.sanitizer
        lines = SOURCE.split("\n")
        return result, {
            rank: diagnose_report(rank, parse(text), lambda file, line: lines[line - 1])
            for rank, text in reports.items()
        }

    return run


@pytest.mark.parametrize(
    ("name", "marker", "pattern", "words"),
    [
        ("receive_buffer", "receive", "out of bounds", "wrote outside the receive buffer"),
        ("in_front", "in front", "out of bounds", "wrote outside the receive buffer"),
        ("send_buffer", "send", "out of bounds", "read outside the send buffer (16 bytes)"),
        ("mpi_recv", "recv", "out of bounds", "MPI_Recv on rank 1 wrote outside the receive"),
        ("mpi_recv_large", "large", "out of bounds", "MPI_Recv on rank 1 wrote outside the re"),
        ("mpi_send", "sends", "out of bounds", "MPI_Send on rank 1 read outside 16 bytes"),
        ("copies", "copies", "out of bounds", "wrote outside the receive buffer (32 bytes)"),
        ("heap", "heap", "out of bounds", "wrote outside 8 bytes from malloc()"),
        ("freed", "freed", "use after free", "memory that was no longer valid"),
        ("freed_twice", "twice", "use after free", "freed the same memory twice"),
        ("frees_buffer", "not its own", "heap corrupted", "called free() on what malloc() did"),
        ("stack", "stack", "out of bounds", "left the bounds of an array"),
        ("global", "global", "out of bounds", "'table' (40 bytes)"),
        ("signed", "signed", "undefined behavior", "signed integer overflow"),
        ("shift", "shift", "undefined behavior", "shift exponent 40"),
        ("null", "null", "a null pointer", "null pointer"),
        ("wild", "wild", "memory that is not yours", "wrote memory that is not its own"),
        ("divides", "divides", "division by zero", "division by zero"),
    ],
)
def test_a_mistake_is_reported_with_its_rank_and_line(diagnosed, name, marker, pattern, words):
    result, found = diagnosed(name)
    assert result.outcome == CRASH
    assert list(found) == [1]
    assert found[1].pattern == pattern
    assert words in found[1].headline
    line = line_of(SOURCE, f"/* {marker} */")
    assert found[1].lines[0] == line
    assert found[1].places[0].text == SOURCE.split("\n")[line - 1]


def test_who_allocated_and_who_freed_is_told(diagnosed):
    places = diagnosed("freed")[1][1].places
    assert [place.label for place in places[1:]] == ["freed here", "allocated here"]
    assert places[1].line == line_of(SOURCE, "/* frees */")
    places = diagnosed("heap")[1][1].places
    assert places[1].line == line_of(SOURCE, "/* allocates */")


def test_a_stack_that_is_used_up_is_told_with_the_function(diagnosed):
    _, found = diagnosed("recurses")
    assert found[1].pattern == "stack exhausted"
    assert line_of(SOURCE, "deep(int *p") <= found[1].lines[0] <= line_of(SOURCE, "deep(p, n + 1)")


def test_what_is_printed_is_not_the_report(diagnosed):
    result, _ = diagnosed("wild")
    assert separate(result.printed.get(1, ""))[0] == ""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """The shared object of our seven kernels, built with sanitizers."""
    folder = tmp_path_factory.mktemp("kernels")
    objects = [folder / f"{name}.o" for name in ALGORITHMS]
    for target in objects:
        source = (ROOT / "src_c" / "allgather" / f"{target.stem}.c").read_text(encoding="utf-8")
        compile_object(source, target, name=f"{target.stem}.c", sanitize=True)
    link(objects, folder / "kernels.so", sanitize=True)
    return folder / "kernels.so"


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_right_kernel_is_not_reported(kernels, algorithm):
    cases = [
        Case("allgather", ranks, count, datatype, in_place=in_place, snapshots=True)
        for ranks in (1, 2, 3, 4, 5)
        for count, datatype, in_place in (
            (0, "int", False),
            (1, "byte", True),
            (7, "shifted", False),
            (3, "mixed", False),
            (40_000, "int", False),
        )
    ]
    results = run_cases(kernels, f"allgather_{algorithm}", cases, limit=60.0, sanitize=True)
    for result in results:
        assert result.outcome == DONE, f"{result.case.describe()}: {result.detail}"
        assert compare(result.case, result.outputs) == []
        assert result.printed == result.sanitizer == {}


def test_a_missing_function_is_an_error_of_the_build_with_its_line(tmp_path):
    source = source_of(
        {"calls": "return missing(rank); /* calls */"}, '#include "mpilab.h"\nint missing(int);\n'
    )
    with pytest.raises(BuildError, match="undefined reference to `missing'") as refused:
        build(source, tmp_path, sanitize=True)
    assert [d.line for d in refused.value.diagnostics] == [line_of(source, "/* calls */")]


def test_the_program_is_made_once(library):
    path = sanitized_harness()
    before = path.stat().st_mtime_ns
    assert sanitized_harness() == path
    assert path.stat().st_mtime_ns == before
