"""Kernels in the jail behave as they do natively, and access nothing outside it."""

import numpy as np
import pytest

from mpilab.cases.case import Case
from mpilab.cases.output import compare
from mpilab.diagnosis import diagnose
from mpilab.errors import BuildError
from mpilab.kernels import jail, simgrid
from mpilab.kernels.build import KERNELS
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE, TRAP
from mpilab.runners.simgrid import simulate
from mpilab.util.kit import ROOT

SRC = ROOT / "src_c"
COMMON = [
    path
    for name in ("tree", "topology", "exchange")
    for path in sorted((SRC / "common" / name).glob("*.c"))
]
DATATYPES = ("int", "contiguous", "vector", "shifted")


@pytest.fixture(autouse=True)
def tools(require_tool):
    for name in jail.TOOLS:
        require_tool(name)


def cases(collective, ranks):
    if collective == "barrier":
        return [Case("barrier", ranks, 0)]
    root = {"root": ranks - 2} if collective in ("bcast", "gather", "scatter", "reduce") else {}
    found = [
        Case(collective, ranks, count, datatype=datatype, seed=100 * ranks + count, **root)
        for datatype in DATATYPES
        for count in (0, 1, 7, 1000)
    ]
    if collective in ("allgather", "alltoallv"):
        found.append(Case(collective, ranks, 5, in_place=True, seed=3))
    return found


def messages(result):
    found = result.recording.messages
    return sorted(found[["source", "dest", "bytes"]].tolist())


@pytest.mark.parametrize(
    "kernel",
    ["allgather/bruck", "alltoallv/leaders", "bcast/node_group", "reduce/in_order_binary"],
)
def test_a_kernel_sends_and_leaves_the_same_as_natively(kernel, tmp_path):
    collective, name = kernel.split("/")
    function = f"{collective}_{name}"
    library = jail.build_kernel(
        [SRC / f"{kernel}.c", *COMMON], function, collective, tmp_path / "k.so"
    )
    wanted = [case for ranks in (4, 5) for case in cases(collective, ranks)]
    natively = run_cases(KERNELS, function, wanted, limit=60.0)
    jailed = run_cases(library, function, wanted, limit=60.0)
    for case, one, other in zip(wanted, natively, jailed, strict=True):
        assert (one.outcome, other.outcome) == (DONE, DONE), (case.describe(), other.log)
        assert compare(case, other.outputs) == [], case.describe()
        assert messages(one) == messages(other), case.describe()
        assert one.recording.rounds == other.recording.rounds, case.describe()
        for here, there in zip(one.outputs, other.outputs, strict=True):
            assert np.array_equal(here.received, there.received)


@pytest.mark.parametrize("kernel", ["allgather/ring", "alltoallv/leaders", "bcast/node_group"])
def test_a_simulated_kernel_takes_the_same_time(kernel, tmp_path, require_tool):
    require_tool("smpicc")
    collective, name = kernel.split("/")
    function = f"{collective}_{name}"
    library = jail.build_kernel(
        [SRC / f"{kernel}.c", *COMMON], function, collective, tmp_path / "k.so", simulated=True
    )
    wanted = [
        Case(collective, 16, count, datatype=datatype, seed=count, platform="flat-4x4")
        for datatype in ("int", "vector")
        for count in (0, 1, 1000)
    ]
    natively, jailed = (
        simulate(simgrid.kernels(), function, wanted),
        simulate(library, function, wanted),
    )
    for case, one, other in zip(wanted, natively, jailed, strict=True):
        assert (one.outcome, other.outcome) == (DONE, DONE), (case.describe(), other.log)
        assert compare(case, other.outputs) == [], case.describe()
        assert messages(one) == messages(other), case.describe()
        for here, there in zip(one.outputs, other.outputs, strict=True):
            assert np.array_equal(here.spans_ns, there.spans_ns)


# Helpers as natively: tests/kernels/test_symbols.py.
NAMED = ("load", "send_count", "main", "mmap", "record_progress", "write", "log2")


def test_a_helper_may_have_any_name_but_one_of_mpis(tmp_path):
    helpers = "\n".join(f"int {name}(int x) {{ return x + 1; }}" for name in NAMED)
    calls = "(".join(NAMED) + "(rank" + ")" * len(NAMED)
    library = build(tmp_path, f"sum = {calls};", helpers)
    (result,) = run_cases(library, "allgather_answer", [Case("allgather", 1, 0)], limit=60.0)
    assert result.outcome == DONE, result.log


# --- what it cannot do

BODY = """\
#include "mpilab.h"
#include <stdlib.h>
#include <string.h>
%s
MPILAB_ALLGATHER(answer)
{
    int rank, size;
    volatile int sum = 0;
    (void)sendbuf, (void)sendcount, (void)sendtype, (void)recvbuf, (void)recvcount, (void)recvtype;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    %s
    return sum & 0;
}
"""


def build(tmp_path, statements, above="", simulated=False):
    (tmp_path / "answer.c").write_text(BODY % (above, statements))
    return jail.build_kernel(
        [tmp_path / "answer.c"],
        "allgather_answer",
        "allgather",
        tmp_path / "k.so",
        simulated=simulated,
    )


TRAPS = {
    "send from behind its memory": (
        "MPI_Send((char *)0x7fffff00, 4096, MPI_CHAR, 0, 1, comm);",
        "reaches outside the kernel's memory",
    ),
    "a count that overflows": (
        "MPI_Request r; MPI_Isend(recvbuf, 0x7fffffff, MPI_DOUBLE, 0, 1, comm, &r);",
        "reaches outside the kernel's memory",
    ),
    "a far displacement": (
        "MPI_Datatype t; MPI_Aint far = 1LL << 40; int one = 1;"
        "MPI_Type_create_hindexed(1, &one, &far, MPI_INT, &t); MPI_Type_commit(&t);"
        "MPI_Send(recvbuf, 1, t, 0, 1, comm);",
        "reaches outside the kernel's memory",
    ),
    "a negative displacement": (
        "MPI_Datatype t; MPI_Type_create_hvector(2, 1, -(1LL << 31), MPI_INT, &t);"
        "MPI_Type_commit(&t); MPI_Recv(recvbuf, 1, t, 0, 1, comm, MPI_STATUS_IGNORE);",
        "reaches outside the kernel's memory",
    ),
    "a type that is resized to look small": (
        "MPI_Datatype t, u; MPI_Type_contiguous(1 << 28, MPI_INT, &t);"
        "MPI_Type_create_resized(t, 0, 4, &u); MPI_Type_commit(&u);"
        "MPI_Send(recvbuf, 1, u, 0, 1, comm);",
        "reaches outside the kernel's memory",
    ),
    "a handle that is none": (
        "MPI_Send(recvbuf, 1, (MPI_Datatype)12345, 0, 1, comm);",
        "an argument is not a valid datatype",
    ),
    "freeing what it was lent": ("MPI_Comm c = comm; MPI_Comm_free(&c);", "it would free what"),
    "freeing MPI's": ("MPI_Comm c = MPI_COMM_WORLD; MPI_Comm_free(&c);", "it would free what"),
    "a type of the caller's": ("MPI_Type_free(&recvtype);", "it would free what"),
    "one request twice": (
        "MPI_Request r[2]; MPI_Irecv(recvbuf, 0, MPI_CHAR, MPI_PROC_NULL, 1, comm, &r[0]);"
        "r[1] = r[0]; MPI_Waitall(2, r, MPI_STATUSES_IGNORE);",
        "the same request is in the array twice",
    ),
    "statuses behind its memory": (
        "MPI_Request r[1] = {MPI_REQUEST_NULL};MPI_Waitall(1, r, (MPI_Status *)0x7ffffff0);",
        "an argument points outside",
    ),
    "an array of counts at NULL": (
        "MPI_Datatype t; MPI_Type_indexed(3, NULL, NULL, MPI_INT, &t);",
        "",  # MPI rejects it, or the shim does: both end without output outside
    ),
    "a key of MPI's": (
        "int *v, f; MPI_Comm_get_attr(comm, 0, &v, &f);",
        "the key is none that the kernel has made",
    ),
    "division by zero": ("volatile int zero = 0; sum = size / zero;", "division by zero"),
    "a function that is none": (
        "int (*volatile f)(int) = (int (*)(int))77777; sum = f(1);",
        "a call through a pointer that is no such function",
    ),
    "abort": ("abort();", "abort, a failed assert"),
}


@pytest.mark.parametrize("name", TRAPS)
def test_what_reaches_outside_ends_the_kernel(name, tmp_path):
    statements, why = TRAPS[name]
    library = build(tmp_path, statements)
    (result,) = run_cases(library, "allgather_answer", [Case("allgather", 1, 4)])
    if why:
        assert result.outcome == TRAP, result.log
        assert result.crashed[0] == 0 and why in result.crashed[1]
    else:
        assert result.outcome in (TRAP, DONE, "error")


KINDS = {
    "division by zero": "if (rank == size - 1) sum = size / sum;",
    "abort, a failed assert, or undefined behavior": "if (rank == size - 1) abort();",
    "an access outside of its memory": (
        "if (rank == size - 1) sum = *(volatile int *)(0x7f000000 + sum);"
    ),
    "a null pointer": "if (rank == size - 1) sum = *(int *volatile)(sum + 4);",
    "its stack was used up": "if (rank == size - 1) sum = deep(1 + sum);",
    "a call through a pointer that is no such function": (
        "if (rank == size - 1) { int (*volatile f)(int) = (int (*)(int))77777; sum = f(1); }"
    ),
    "MPI_Send: an argument is not a valid communicator, or was freed": (
        "if (rank == size - 1) MPI_Send(recvbuf, 0, MPI_INT, 0, 1, (MPI_Comm)4711);"
    ),
}
RECURSION = {
    f"frames of {size} bytes": (
        "__attribute__((noinline)) static int deep(int n)"
        f"{{ volatile char a[{size}]; a[n & 7] = (char)n;"
        "return n == 0 ? 0 : deep(n + 1) + a[n & 7]; }"
    )
    for size in (16, 1 << 16)
}


@pytest.mark.parametrize("simulated", [False, True], ids=["Open MPI", "simulated"])
@pytest.mark.parametrize("why", KINDS)
def test_a_trap_tells_its_reason_and_its_rank(why, simulated, tmp_path, require_tool):
    for above in RECURSION.values() if why == "its stack was used up" else [""]:
        result = one_run(tmp_path, KINDS[why], above, simulated, require_tool)
        assert result.outcome == TRAP, result.log
        rank, said = result.crashed
        assert rank == 2 and said == (why if ": " in why else f"the kernel: {why}")
        diagnosis = diagnose(result)
        assert (diagnosis.kind, diagnosis.headline) == ("trap", f"{said}, rank 2")


def one_run(tmp_path, statements, above, simulated, require_tool):
    library = build(tmp_path, statements, above, simulated=simulated)
    if simulated:
        require_tool("smpicc")
        return simulate(library, "allgather_answer", [Case("allgather", 3, 4)])[0]
    return run_cases(library, "allgather_answer", [Case("allgather", 3, 4)])[0]


DELETES = """\
static int key;
static int deletes(MPI_Comm comm, int k, void *value, void *extra)
{
    int rank;
    (void)k, (void)value, (void)extra;
    MPI_Comm_rank(comm, &rank);
    if (rank == 1)
        %s
    return MPI_SUCCESS;
}
"""


@pytest.mark.parametrize("simulated", [False, True], ids=["Open MPI", "simulated"])
@pytest.mark.parametrize(
    "statement, why",
    [
        ("abort();", "the kernel: abort, a failed assert, or undefined behavior"),
        ("MPI_Barrier(comm);", "MPI_Barrier: called by a function that copies or deletes"),
    ],
)
def test_a_trap_after_the_kernel_has_returned_is_one_of_its_case(
    statement, why, simulated, tmp_path, require_tool
):
    """Freeing the kernel's communicator calls what the kernel has attached to it."""
    if simulated:
        require_tool("smpicc")
    library = build(
        tmp_path,
        "MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deletes, &key, NULL);"
        "MPI_Comm_set_attr(comm, key, NULL);",
        above=DELETES % statement,
        simulated=simulated,
    )
    run = simulate if simulated else run_cases
    wanted = [Case("allgather", 3, 4), Case("allgather", 3, 5)]
    for result in run(library, "allgather_answer", wanted):
        assert result.outcome == TRAP, (result.outcome, result.detail)
        assert result.crashed[0] == 1 and result.crashed[1].startswith(why)


def test_what_a_kernel_prints_is_no_trap(tmp_path):
    library = build(
        tmp_path,
        'fprintf(stderr, "jail: rank 1: the kernel: division by zero\\n");',
        above="#include <stdio.h>",
    )
    (result,) = run_cases(library, "allgather_answer", [Case("allgather", 2, 4)])
    assert result.outcome == DONE and result.crashed is None


def test_a_request_of_an_earlier_call_is_refused(tmp_path):
    library = build(
        tmp_path,
        "if (calls++ == 0) MPI_Recv_init(place, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &kept);"
        "else MPI_Start(&kept);",
        above="static MPI_Request kept; static int calls, place[1];",
    )
    case = Case("allgather", 1, 4)
    first, second = run_cases(library, "allgather_answer", [case, case])
    assert first.outcome == DONE and second.outcome == TRAP
    assert "the request is one of an earlier call" in second.crashed[1]


@pytest.mark.parametrize(
    "statements, above, missing",
    [
        ('sum = system("id");', "", "system"),
        ('sum = (int)getenv("HOME")[0];', "", "no environment"),
        ('sum = fopen("job.json", "r") != NULL;', "#include <stdio.h>", "no files"),
        ("sum = PMPI_Barrier(comm);", "int PMPI_Barrier(MPI_Comm);", "PMPI_Barrier"),
        (
            "sum = evil();",
            '__attribute__((import_module("mpi"), import_name("x*/ int evil(void){} /*")))'
            " int evil(void);",
            "x*/",
        ),
    ],
)
def test_what_is_not_offered_does_not_link(statements, above, missing, tmp_path):
    with pytest.raises(BuildError) as refused:
        build(tmp_path, statements, above)
    assert missing in str(refused.value) and "not available" in str(refused.value)


def test_a_call_that_is_declared_in_another_way_is_refused(tmp_path):
    source = tmp_path / "answer.c"
    source.write_text(
        "typedef struct mpilab_handle_Comm *MPI_Comm;\n"
        "typedef struct mpilab_handle_Datatype *MPI_Datatype;\n"
        '__attribute__((import_module("mpi"), import_name("MPI_Comm_rank")))\n'
        "int other(long long, int);\n"
        "int allgather_answer(const void *a, int b, MPI_Datatype c, void *d, int e, "
        "MPI_Datatype f, MPI_Comm g)\n{ return other(1LL << 40, 3); }\n"
    )
    with pytest.raises(BuildError, match="declares MPI_Comm_rank with parameters"):
        jail.build_kernel([source], "allgather_answer", "allgather", tmp_path / "k.so")


@pytest.mark.parametrize(
    "module",
    [b"", b"\0asm\1\0\0", b"\0asm\1\0\0\0\2\x85\x80\x80\x80\x80\x80", b"\0asm\1\0\0\0\7\5\1"],
)
def test_a_module_that_is_torn_is_refused(module):
    with pytest.raises(BuildError, match="module of the kernel|does not export"):
        jail.check(module, "allgather")
