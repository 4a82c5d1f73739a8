"""Every collective is judged: correct kernels get all points, wrong ones lose the right items."""

from dataclasses import replace

import pytest

from mpilab.judging.judge import judge_exercise, plan
from mpilab.judging.rubric import load
from mpilab.judging.verdict import FAIL, PASS
from mpilab.kernels.build import KERNELS, build
from mpilab.runners.mpirun import run_cases

RUBRIC = """
lab = "99-test"

[[exercise]]
id = "bcast"
title = "Binomial broadcast"
kind = "kernel"
collective = "bcast"
function = "bcast_mine"

[[exercise.item]]
id = "right"
title = "Right"
points = 1
ranks = [1, 2, 5]
counts = [0, 1, 50]

[[exercise.item]]
id = "roots"
title = "From any root"
points = 1
ranks = [5]
counts = [4]
roots = [2, -1]
datatypes = ["int", "vector"]

[[exercise.item]]
id = "tree"
title = "A tree"
points = 1
ranks = [8]
counts = [4]
roots = [1]
most_rounds = "ceil_log2(P)"
messages = "P - 1"
most_busiest_messages = "ceil_log2(P)"


[[exercise]]
id = "pipeline"
title = "Pipelined broadcast"
kind = "kernel"
collective = "bcast"
function = "bcast_mine"

[[exercise.item]]
id = "right"
title = "Right"
points = 1
ranks = [1, 5]
counts = [0, 50]
segments = [0, 64]

[[exercise.item]]
id = "segments"
title = "In segments"
points = 1
ranks = [5]
counts = [50]
segments = [16, 64]
rounds = "P - 2 + S"
messages = "(P - 1) * S"
bytes = "(P - 1) * m"
busiest_messages = "S"
busiest_bytes = "m"


[[exercise]]
id = "gather"
title = "Binomial gather"
kind = "kernel"
collective = "gather"
function = "gather_mine"

[[exercise.item]]
id = "right"
title = "Right"
points = 1
ranks = [1, 2, 5]
counts = [0, 3]
in_place = [false, true]

[[exercise.item]]
id = "roots"
title = "To any root"
points = 1
ranks = [5]
counts = [3]
roots = [2, -1]

[[exercise.item]]
id = "tree"
title = "A tree"
points = 1
ranks = [8]
counts = [3]
messages = "P - 1"
bytes = "binomial_hops(P, P) * m"
busiest_bytes = "P // 2 * m"


[[exercise]]
id = "reduce"
title = "Reduce"
kind = "kernel"
collective = "reduce"
function = "reduce_mine"

[[exercise.item]]
id = "sum"
title = "Sums"
points = 1
ranks = [1, 5]
counts = [3]
roots = [0, -1]

[[exercise.item]]
id = "order"
title = "In order"
points = 1
ranks = [5]
counts = [3]
ops = ["compose"]

[[exercise.item]]
id = "chain"
title = "A chain"
points = 1
ranks = [5]
counts = [64]
segments = [64]
fanouts = [1]
rounds = "ceil_div(P - 1, K) + S - 1"
most_busiest_bytes = "m"


[[exercise]]
id = "barrier"
title = "Barrier"
kind = "kernel"
collective = "barrier"
function = "barrier_mine"

[[exercise.item]]
id = "barrier"
title = "A barrier"
points = 1
ranks = [1, 2, 5]

[[exercise.item]]
id = "rounds"
title = "In few rounds"
points = 1
ranks = [5, 8]
reversed = [false, true]
rounds = "ceil_log2(P)"
busiest_messages = "ceil_log2(P)"
busiest_bytes = "0"

[[exercise]]
id = "alltoallv"
title = "Alltoallv by leaders"
kind = "kernel"
collective = "alltoallv"
function = "alltoallv_mine"

[[exercise.item]]
id = "right"
title = "Right"
points = 1
ranks = [1, 2, 5]
counts = [0, 3]
datatypes = ["int", "struct"]

[[exercise.item]]
id = "uneven"
title = "Any counts and displacements"
points = 1
ranks = [4]
counts = [3]
in_place = [false, true]
patterns = ["ragged", "sparse"]

[[exercise.item]]
id = "leaders"
title = "One message for each two nodes"
points = 1
places = ["2x2x2 rr"]
counts = [3]
patterns = ["even", "ragged"]
budgets = [0]
node_messages = "M * (M - 1)"
node_bytes = "VM"

"""

# Each is wrong, or another algorithm, in one respect.
WRONG = """
#include "mpilab.h"
#include <stdlib.h>

MPILAB_BCAST(one_piece);
MPILAB_BCAST(one_piece) /* a chain, but without segments */
{
    int rank, size, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank), MPI_Comm_size(comm, &size);
    if (rank != root)
        err = MPI_Recv(buffer, count, datatype, (rank + size - 1) % size, TAG, comm,
                       MPI_STATUS_IGNORE);
    if ((rank + 1) % size != root && err == MPI_SUCCESS)
        err = MPI_Send(buffer, count, datatype, (rank + 1) % size, TAG, comm);
    return err;
}

MPILAB_BCAST(from_zero);
MPILAB_BCAST(from_zero) /* as if the root were always rank 0 */
{
    (void)root;
    return bcast_one_piece(buffer, count, datatype, 0, comm);
}

MPILAB_GATHER(only_to_zero);
MPILAB_GATHER(only_to_zero) /* right for root 0; others get nothing */
{
    int rank, size, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank), MPI_Comm_size(comm, &size);
    if (root != 0)
        return MPI_SUCCESS;
    if (rank != 0)
        return MPI_Send(sendbuf, sendcount, sendtype, 0, TAG, comm);
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, 0);
    for (int source = 1; source < size && err == MPI_SUCCESS; source++)
        err = MPI_Recv(block(recvbuf, source, recvcount, recvtype), recvcount, recvtype, source,
                       TAG, comm, MPI_STATUS_IGNORE);
    return err;
}

MPILAB_REDUCE(as_they_come);
MPILAB_REDUCE(as_they_come) /* combines in the order of arrival: sums only */
{
    int rank, size, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank), MPI_Comm_size(comm, &size);
    if (rank != root)
        return MPI_Send(sendbuf, count, datatype, root, TAG, comm);
    if (sendbuf != MPI_IN_PLACE)
        copy_local(sendbuf, count, datatype, recvbuf, count, datatype);
    int *other = malloc(sizeof(int) * (count + 1));
    for (int source = 0; source < size && err == MPI_SUCCESS; source++) {
        if (source == root)
            continue;
        err = MPI_Recv(other, count, datatype, source, TAG, comm, MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = MPI_Reduce_local(other, recvbuf, count, datatype, op);
    }
    free(other);
    return err;
}

MPILAB_ALLTOALLV(side_by_side);
MPILAB_ALLTOALLV(side_by_side) /* pays no heed to displacements */
{
    int rank, size, err = MPI_SUCCESS, sent = 0;
    (void)sdispls, (void)rdispls;
    MPI_Comm_rank(comm, &rank), MPI_Comm_size(comm, &size);
    if (sendbuf == MPI_IN_PLACE)
        return MPI_SUCCESS;
    MPI_Request requests[size];
    for (int dest = 0; dest < size; sent += sendcounts[dest++])
        MPI_Isend(block(sendbuf, sent, 1, sendtype), sendcounts[dest], sendtype, dest, TAG, comm,
                  &requests[dest]);
    for (int source = 0, got = 0; source < size && err == MPI_SUCCESS; got += recvcounts[source++])
        err = MPI_Recv(block(recvbuf, got, 1, recvtype), recvcounts[source], recvtype, source, TAG,
                       comm, MPI_STATUS_IGNORE);
    return err == MPI_SUCCESS ? MPI_Waitall(size, requests, MPI_STATUSES_IGNORE) : err;
}

MPILAB_BARRIER(none);
MPILAB_BARRIER(none)
{
    (void)comm;
    return MPI_SUCCESS;
}

MPILAB_BARRIER(neighbors);
MPILAB_BARRIER(neighbors) /* waits for its left neighbor only: enough for two */
{
    int rank, size;
    MPI_Comm_rank(comm, &rank), MPI_Comm_size(comm, &size);
    return MPI_Sendrecv(NULL, 0, MPI_BYTE, (rank + 1) % size, TAG, NULL, 0, MPI_BYTE,
                        (rank + size - 1) % size, TAG, comm, MPI_STATUS_IGNORE);
}
"""

# (exercise, kernel handed in, {item that fails: words of its reason}); ours are right.
RIGHT = [
    ("bcast", "bcast_binomial", {}),
    ("pipeline", "bcast_pipeline", {}),
    ("gather", "gather_binomial", {}),
    ("reduce", "reduce_chain", {}),
    ("barrier", "barrier_dissemination", {}),
    (
        "bcast",
        "bcast_linear",
        {"tree": "7 messages from one rank where the algorithm has at most 3."},
    ),
    ("bcast", "bcast_binary", {}),  # another tree, but within the bounds
    ("bcast", "bcast_chain", {"tree": "another algorithm: "}),
    (
        "gather",
        "gather_linear",
        {
            "tree": "84 bytes in messages where the algorithm has 144, 12 bytes from one rank "
            "where the algorithm has 48."
        },
    ),
    ("reduce", "reduce_linear", {"chain": "1 round where the algorithm has 7."}),
    ("alltoallv", "alltoallv_leaders", {}),
    (
        "alltoallv",
        "alltoallv_pairwise",
        {"leaders": "48 messages between nodes where the algorithm has 12."},
    ),
    ("barrier", "barrier_linear", {"rounds": "2 rounds where the algorithm has 3, 4 messages"}),
]
FAULTS = [
    (
        "pipeline",
        "bcast_one_piece",
        {
            "segments": "4 rounds where the algorithm has 16, "
            "4 messages where the algorithm has 52, "
            "1 message from one rank where the algorithm has 13."
        },
    ),
    (
        "bcast",
        "bcast_from_zero",
        {"roots": "count 4, datatype int, root 2: wrong result", "tree": "root 1: wrong result"},
    ),
    ("gather", "gather_only_to_zero", {"roots": "root 2: wrong result on rank 2", "tree": "bytes"}),
    ("reduce", "reduce_as_they_come", {"order": "op compose: wrong result on rank 0", "chain": ""}),
    (
        "alltoallv",
        "alltoallv_side_by_side",
        {"uneven": "ragged counts: wrong result on ranks 0 to 3", "leaders": "48 messages"},
    ),
    (
        "barrier",
        "barrier_none",
        {
            "barrier": "With 2 ranks: no barrier: rank 0 can leave it before rank 1 has come.",
            "rounds": "With 5 ranks: no barrier",
        },
    ),
    (
        "barrier",
        "barrier_neighbors",
        {"barrier": "With 5 ranks: no barrier: rank 0 can leave it before", "rounds": ""},
    ),
]


@pytest.fixture(scope="module")
def rubric(tmp_path_factory):
    path = tmp_path_factory.mktemp("rubric") / "rubric.toml"
    path.write_text(RUBRIC, encoding="utf-8")
    return load(path)


def results_of(library, rubric, listed):
    """{(exercise, kernel): results of all its cases}; all kernels of a library at once."""
    runs = [
        (name, kernel, case)
        for name, kernel, _ in listed
        for case in plan(rubric.exercise(name))[0]
    ]
    cases = [replace(case, function=kernel) for _, kernel, case in runs]
    found = {}
    for (name, kernel, case), result in zip(runs, run_cases(library, "", cases), strict=True):
        found.setdefault((name, kernel), []).append(replace(result, case=case))
    return found


@pytest.fixture(scope="module")
def results(rubric, tmp_path_factory):
    wrong = build(WRONG, tmp_path_factory.mktemp("wrong")).library
    return results_of(KERNELS, rubric, RIGHT) | results_of(wrong, rubric, FAULTS)


@pytest.mark.parametrize(("name", "kernel", "failing"), [*RIGHT, *FAULTS])
def test_a_kernel_loses_the_items_that_it_fails_and_no_other(
    rubric, results, name, kernel, failing
):
    verdict = judge_exercise(rubric.exercise(name), results[name, kernel])
    outcomes = {item.item: item.outcome for item in verdict.items}
    assert outcomes == {item: FAIL if item in failing else PASS for item in outcomes}
    for item in verdict.items:
        assert failing.get(item.item, "") in item.reason


def test_the_evidence_names_the_root_the_operation_and_the_tunables(rubric, results):
    said = judge_exercise(rubric.exercise("bcast"), results["bcast", "bcast_from_zero"]).items[1]
    assert said.evidence["root"] == 2
    assert said.evidence["reproduce"] == 'mpilab.run("bcast_mine", ranks=5, count=4, root=2)'
    said = judge_exercise(rubric.exercise("reduce"), results["reduce", "reduce_as_they_come"])
    assert said.items[1].evidence["reproduce"] == (
        'mpilab.run("reduce_mine", ranks=5, count=3, op="compose")'
    )
    assert said.items[2].evidence["reproduce"] == (
        'mpilab.run("reduce_mine", ranks=5, count=64, segment=64, fanout=1)'
    )


def test_the_evidence_names_the_counts_of_an_alltoallv(rubric, results):
    said = judge_exercise(
        rubric.exercise("alltoallv"), results["alltoallv", "alltoallv_side_by_side"]
    )
    assert said.items[1].evidence["reproduce"] == (
        'mpilab.run("alltoallv_mine", ranks=4, count=3, pattern="ragged")'
    )


def test_a_barrier_is_reproduced_without_a_count(rubric, results):
    said = judge_exercise(rubric.exercise("barrier"), results["barrier", "barrier_none"]).items[0]
    assert said.evidence["reproduce"] == 'mpilab.run("barrier_mine", ranks=2)'
    assert "count" not in said.evidence


def test_what_was_counted_of_the_busiest_rank_is_evidence(rubric, results):
    said = judge_exercise(rubric.exercise("bcast"), results["bcast", "bcast_linear"]).items[2]
    assert said.evidence["most messages from one rank"] == 7
    assert said.evidence["rounds counted"] == 1
