"""In a simulation, too, a kernel in the jail reaches no other memory by MPI or by printing."""

import os
import subprocess

import pytest

from mpilab.cases.case import Case
from mpilab.kernels import jail
from mpilab.runners.result import DONE, TRAP
from mpilab.runners.simgrid import simulate
from mpilab.util import kit

ABOVE = """\
#include "mpilab.h"
#include <stdlib.h>
#include <string.h>
struct piece { const void *at; unsigned bytes; };
__attribute__((import_module("wasi_snapshot_preview1"), import_name("fd_write")))
unsigned print_pieces(int descriptor, const struct piece *all, unsigned count, unsigned *written);
static int numbers[4096];
static MPI_Aint places[1 << 16];
static struct piece pieces[2000];
MPILAB_ALLGATHER(answer)
{
    (void)sendbuf, (void)sendtype, (void)recvbuf, (void)recvcount, (void)recvtype;
    MPI_Datatype made;
    MPI_Request request = MPI_REQUEST_NULL;
    unsigned written = 0, outside = 1 << 30, one = 1, two = 2;
    switch (sendcount) {
"""
BELOW = "    }\n    return MPI_SUCCESS;\n}\n"
SEND = "MPI_Type_commit(&made); MPI_Send(numbers, 1000, made, MPI_PROC_NULL, 1, comm);"
# name: (statements, what the trap says; "" if there is none)
TRIED = {
    # SMPI steps by the last block, even if that is empty: 1000 elements, each 256 MiB further on.
    "an empty block far away": (
        "MPI_Type_create_hindexed(2, (int[]){1, 0}, (MPI_Aint[]){0, 1 << 28}, MPI_INT, &made);"
        + SEND,
        "reaches outside",
    ),
    "an empty block far before": (
        "MPI_Type_create_hindexed(2, (int[]){1, 0}, (MPI_Aint[]){0, -(1 << 28)}, MPI_INT, &made);"
        + SEND,
        "reaches outside",
    ),
    "a copy of such a type": (
        "MPI_Datatype first; MPI_Type_create_hindexed(2, (int[]){1, 0}, (MPI_Aint[]){0, 1 << 28}, "
        "MPI_INT, &first); MPI_Type_dup(first, &made);" + SEND,
        "reaches outside",
    ),
    "such a type within another": (
        "MPI_Datatype first; MPI_Type_create_struct(2, (int[]){1, 0}, (MPI_Aint[]){0, 1 << 28}, "
        "(MPI_Datatype[]){MPI_INT, MPI_INT}, &first); MPI_Type_contiguous(1000, first, &made);"
        "MPI_Type_commit(&made); MPI_Send(numbers, 1, made, MPI_PROC_NULL, 1, comm);",
        "reaches outside",
    ),
    "an attribute of the communicator that all ranks share": (
        "int key; MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);"
        "MPI_Comm_set_attr(MPI_COMM_WORLD, key, numbers);",
        "MPI_COMM_WORLD is not the kernel's own",
    ),
    "an attribute of the kernel's communicator": (
        "int key; MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);"
        "MPI_Comm_set_attr(comm, key, numbers);",
        "",
    ),
    "the same blocks next to each other": (
        "MPI_Type_create_hindexed(2, (int[]){1, 1}, (MPI_Aint[]){0, 4}, MPI_INT, &made);" + SEND,
        "",
    ),
    # SMPI allocated count times length numbers, and wrote one for each block.
    "many blocks without elements": (
        "MPI_Type_create_hindexed_block(1 << 16, 0, places, MPI_INT, &made); MPI_Type_free(&made);"
        "MPI_Type_create_indexed_block(4096, 0, numbers, MPI_INT, &made); MPI_Type_free(&made);",
        "",
    ),
    "so many elements that their number overflows": (
        "MPI_Type_create_hindexed_block(1 << 16, 1 << 16, places, MPI_BYTE, &made);",
        "",
    ),
    "a request freed while its message is under way": (
        "int rank; MPI_Comm_rank(comm, &rank); int got[2] = {0, 0};"
        "MPI_Isend(&two, 1, MPI_INT, 1 - rank, 1, comm, &request); MPI_Request_free(&request);"
        "MPI_Recv(got, 1, MPI_INT, 1 - rank, 1, comm, MPI_STATUS_IGNORE);"
        "if (got[0] != 2) abort();",
        "",
    ),
    "MPI_Cancel of no request": ("if (MPI_Cancel(&request) == MPI_SUCCESS) abort();", ""),
    "text that is all there": (
        'pieces[0] = (struct piece){"ab", 2}; pieces[2] = (struct piece){"c", 1};'
        "if (print_pieces(1, pieces, 3, &written) != 0 || written != 3) abort();",
        "",
    ),
    "pieces whose addresses wrap around": (
        "print_pieces(1, (struct piece *)0xfffffff8, 2, &written);",
        "outside the kernel's memory",
    ),
    "a piece whose end wraps around": (
        "pieces[0] = (struct piece){numbers, 0xfffffff0}; print_pieces(1, pieces, 1, &written);",
        "outside the kernel's memory",
    ),
    "more pieces than Linux accepts": (
        "if (print_pieces(1, pieces, 1025, &written) != 28) abort();"
        "if (print_pieces(2, pieces, 0xffffffff, &written) != 28) abort();",
        "",
    ),
    "another file": ("if (print_pieces(3, pieces, 0, &written) != 8) abort();", ""),
    "a result outside": (
        "(void)one; print_pieces(1, pieces, 1, (unsigned *)outside);",
        "outside the kernel's memory",
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("simulated")


@pytest.fixture
def library(folder, require_tool):
    for name in (*jail.TOOLS, "smpicc"):
        require_tool(name)
    made = folder / "k.so"
    if made.exists():
        return made
    cases = "".join(
        f"case {number}: {{ {statements} break; }}\n"
        for number, (statements, _) in enumerate(TRIED.values(), 1)
    )
    (folder / "answer.c").write_text(ABOVE + cases + BELOW)
    source = [folder / "answer.c"]
    return jail.build_kernel(source, "allgather_answer", "allgather", made, simulated=True)


@pytest.mark.parametrize("name", TRIED)
def test_a_kernel_reaches_nothing_outside_in_a_simulation(name, library):
    case = Case("allgather", 2, 1 + list(TRIED).index(name))
    (result,) = simulate(library, "allgather_answer", [case])
    why = TRIED[name][1]
    assert result.outcome == (TRAP if why else DONE), (result.outcome, result.crashed, result.log)
    if why:
        assert why in result.crashed[1]


def test_the_simulated_shim_is_built_again_if_its_calls_have_changed(require_tool):
    for tool in (*jail.TOOLS, "smpicc"):
        require_tool(tool)
    jail.prepare(simulated=True)
    sources = kit.ROOT / "src_c"
    said = subprocess.run(
        ["make", "-n", "-W", "runtime/jail/calls.inc", "simulated-jail"]
        + [f"BUILD={os.path.relpath(kit.BUILD, sources)}"],
        cwd=sources,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "jail/shim.o" in said.stdout
