"""A diagnosis names what the run proves, in the line where it happened, and accuses no other line:
kernels as students write them, run in the simulator, with mpirun or on a cluster."""

import pytest
from c_kernels import build_kernels, line_of, run, source_of

from mpilab import Cluster
from mpilab.cases.case import Case
from mpilab.diagnosis import diagnose
from mpilab.diagnosis.model import CRASH, DEADLOCK, MPI_ERROR, WRONG_RESULT
from mpilab.diagnosis.render import text
from mpilab.kernels import simgrid
from mpilab.runners import engines
from mpilab.runners.simgrid import simulate

OWN = "place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);"
# No kernel here completes an allgather, so every run is explained.
ONE_RANK = {
    # Line 30 of mpilab.h copies on MPI_COMM_SELF, which has the members of comm if size is 1.
    "copies": f"{OWN} ((char *)recvbuf)[0]++;",
    "duplicates": """
    MPI_Comm own;
    MPI_Comm_dup(comm, &own);
    MPI_Barrier(own);
    MPI_Comm_free(&own);""",
    "uses_world": "MPI_Barrier(MPI_COMM_WORLD); /* world */",
}
REVERSED = {
    # The ranks of comm are numbered in the opposite order; this call is in no recording.
    "rank_in_world": """
    MPI_Comm_rank(MPI_COMM_WORLD, &rank); /* rank in world */
    const int right = (rank + 1) % size, left = (rank - 1 + size) % size;
    if (rank == 0)
        MPI_Send(NULL, 0, MPI_BYTE, right, TAG, comm);
    MPI_Recv(NULL, 0, MPI_BYTE, left, TAG, comm, MPI_STATUS_IGNORE);
    if (rank != 0)
        MPI_Send(NULL, 0, MPI_BYTE, right, TAG, comm);""",
    "waits": "MPI_Recv(NULL, 0, MPI_BYTE, (rank + 1) % size, TAG, comm, MPI_STATUS_IGNORE);",
}
LOCAL = {
    "wrong_type": "int bytes; MPI_Type_size(MPI_DATATYPE_NULL, &bytes);",
    "wrong_member": (
        "MPI_Group all, some; MPI_Comm_group(comm, &all);"
        " MPI_Group_incl(all, 1, (int[]){99}, &some);"
    ),
    "wrong_operation": "int a = 0, b = 0; MPI_Reduce_local(&a, &b, 1, MPI_INT, MPI_OP_NULL);",
}
NULL = {
    "all": "int err = MPI_Waitall(3, none, MPI_STATUSES_IGNORE);",
    "any": "int index, err = MPI_Waitany(3, none, &index, MPI_STATUS_IGNORE);",
    "some": """
    int done, indices[3], err = MPI_Waitsome(3, none, &done, indices, MPI_STATUSES_IGNORE);""",
    "test": "int flag, err = MPI_Testall(3, none, &flag, MPI_STATUSES_IGNORE);",
    "start": "int err = MPI_Isend(&rank, 1, MPI_INT, 1 - rank, TAG, comm, none);",
    "one": "int err = MPI_Wait(none, MPI_STATUS_IGNORE);",
}
NULL = {
    f"null_{name}": f"MPI_Request *none = NULL;\n{body.strip()} /* null_{name} */\n"
    "    if (err != MPI_SUCCESS)\n        return err;"
    for name, body in NULL.items()
}
ARRAY = "the array of requests, argument 2 of MPI_{}, is NULL"
TOLD = {
    "null_all": f"{ARRAY.format('Waitall')}, although the count is 3",
    "null_any": f"{ARRAY.format('Waitany')}, although the count is 3",
    "null_some": f"{ARRAY.format('Waitsome')}, although the count is 3",
    "null_test": ARRAY.format("Testall"),
    "null_start": "the address of the request, the last argument of MPI_Isend, is NULL",
    "null_one": "the address of the request, the first argument of MPI_Wait, is NULL",
}
STOPPED = {
    # SimGrid ends the simulation by itself in both.
    "much_memory": """
    void *much;
    MPI_Alloc_mem((MPI_Aint)1 << 60, MPI_INFO_NULL, &much); /* asks */""",
    "gives_up": "abort(); /* aborts */",
    "asserts": "assert(size == 99); /* claims */",
    "checks": "\n#define CHECK(claim) if (!(claim)) abort()\n    CHECK(size == 99); /* checks */",
}
PART = {
    "too_long": """
    MPI_Comm part;
    MPI_Comm_split(comm, 0, 0, &part);
    int err = MPI_SUCCESS;
    if (rank == 0)
        MPI_Send((int[2]){0}, 2, MPI_INT, 1, TAG, part);
    else
        err = MPI_Recv((int[2]){0}, 1, MPI_INT, 0, TAG, part, MPI_STATUS_IGNORE); /* cuts */
    MPI_Comm_free(&part);
    if (err != MPI_SUCCESS)
        return err;""",
}
LATE = {
    # Rank 1 returns at once, and has nothing else to do: these messages come after the end.
    "late": """
    for (int i = 0; i < 3 && rank == 0; i++)
        MPI_Send(&i, 1, MPI_INT, 1, TAG, comm); /* late */""",
    "frees": "MPI_Comm_free(&comm);",
}
BODIES = {**PART, **ONE_RANK, **REVERSED, **LOCAL, **NULL, **STOPPED, **LATE}
PREAMBLE = (
    '#include "mpilab.h"\n#include <assert.h>\n#include <stdlib.h>\n#include <string.h>\n'
    "#include <unistd.h>\n"
)
SOURCE = source_of(BODIES, PREAMBLE)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build_kernels(tmp_path_factory.mktemp("real"), BODIES, PREAMBLE)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """A function: the Diagnosis of a simulated run of one of BODIES."""
    library = simgrid.build(SOURCE, tmp_path_factory.mktemp("simulated")).library

    def explain(name, ranks=2, **case):
        cases = [Case("allgather", ranks, 4, **case)]
        (result,) = simulate(library, f"allgather_{name}", cases)
        return diagnose(result)

    return explain


@pytest.fixture(scope="module")
def on_a_cluster(library):
    """A function: the Diagnosis of a run on one of the two engines of a cluster."""
    with Cluster(2, progress=False) as cluster:

        def explain(name):
            case = Case("allgather", 1, 4)
            (result,) = engines.run_cases(cluster, library, f"allgather_{name}", [case])
            return diagnose(result)

        yield explain


@pytest.mark.parametrize("name", ["copies", "duplicates"])
def test_a_communicator_with_the_members_of_another_is_not_taken_for_mpi_comm_world(
    on_a_cluster, simulated, name
):
    for found in (on_a_cluster(name), simulated(name, ranks=1)):
        assert found.kind == WRONG_RESULT
        assert "MPI_COMM_WORLD" not in text(found)


def test_mpi_comm_world_is_still_told_with_one_rank(simulated):
    said = text(simulated("uses_world", ranks=1))
    assert f"Line {line_of(SOURCE, '/* world */')} uses MPI_COMM_WORLD instead of comm" in said


def test_ranks_of_mpi_comm_world_are_the_cause_if_comm_numbers_them_otherwise(simulated):
    found = simulated("rank_in_world", ranks=3, reversed=True)
    assert (found.kind, found.pattern) == (DEADLOCK, "MPI_COMM_WORLD instead of comm")
    assert found.lines[0] == line_of(SOURCE, "/* rank in world */")
    assert "comm has the ranks in reverse order" in found.hint
    # Another kernel in the same file is not at fault.
    found = simulated("waits", ranks=3, reversed=True)
    assert found.kind == DEADLOCK and "MPI_COMM_WORLD" not in text(found)


@pytest.mark.parametrize("name", LOCAL)
def test_an_error_of_a_call_without_a_communicator_is_no_use_of_mpi_comm_world(
    library, simulated, name
):
    for found in (diagnose(run(library, name)), simulated(name)):
        assert found.kind == MPI_ERROR
        assert "MPI_COMM_WORLD" not in text(found)


@pytest.mark.parametrize("name", NULL)
def test_requests_that_are_null_are_told_with_the_call_the_argument_and_the_line(
    library, simulated, name
):
    line = line_of(SOURCE, f"/* {name} */")
    for found in (diagnose(run(library, name)), simulated(name)):
        assert found.kind in (MPI_ERROR, CRASH)  # SimGrid does not check the array
        assert found.pattern == "a null pointer"
        assert TOLD[name] in found.headline and f"line {line}" in found.headline
        assert found.lines[0] == line
        assert "never" not in found.hint


def test_what_stopped_the_simulator_is_told_without_accusing_the_line(simulated):
    found, line = simulated("much_memory"), line_of(SOURCE, "/* asks */")
    assert found.kind == CRASH and found.pattern == "the simulator stopped"
    assert found.headline == (
        f"the simulator (SimGrid) stopped while rank 1 was in line {line}: it could not allocate "
        f"{1 << 60} bytes"
    )
    assert "does not prove that the line is wrong" in found.hint
    assert [place.label for place in found.places] == ["rank 1 was here at that time"]


def test_messages_after_another_rank_s_last_call_are_told_not_what_the_simulator_makes_of_them(
    simulated,
):
    found = simulated("late")
    assert found.kind == WRONG_RESULT
    line = line_of(SOURCE, "/* late */")
    assert f"3 messages that rank 0 sent to rank 1 in line {line}" in text(found)


def test_no_words_of_the_simulator_reach_an_explanation(simulated):
    found = simulated("frees")
    said = " ".join((found.headline, found.hint, *found.notes))
    assert "smpi" not in said.lower() and "CRITICAL" not in said


def test_an_error_on_a_communicator_of_the_kernel_is_told_as_mpi_error(library, simulated):
    line = line_of(SOURCE, "/* cuts */")
    for found in (diagnose(run(library, "too_long")), simulated("too_long")):
        assert found.kind == MPI_ERROR
        assert f"MPI_Recv returned MPI_ERR_TRUNCATE in line {line}" in found.headline
        assert found.pattern == "message truncated"


@pytest.mark.parametrize(
    ("name", "marker", "words"),
    [
        ("gives_up", "aborts", "abort() was called"),
        ("asserts", "claims", "an assertion failed"),
        ("checks", "checks", "something that this line calls ended the program with abort()"),
    ],
)
def test_an_abort_of_the_kernel_is_told_in_its_line(library, simulated, name, marker, words):
    for found in (diagnose(run(library, name)), simulated(name)):
        line = line_of(SOURCE, f"/* {marker} */")
        assert found.lines[0] == line
        assert found.headline.endswith(f"crashed with SIGABRT in line {line}: {words}")
