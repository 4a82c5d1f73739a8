"""The same cases and the same results on engines that are already running."""

import pytest
from c_kernels import build, build_kernels

from mpilab.algorithms.allgather import ALGORITHMS, schedule
from mpilab.cases.case import Case
from mpilab.cases.output import compare
from mpilab.cluster.engines import Cluster
from mpilab.errors import ClusterError, InputError
from mpilab.hosts.orders import places_of
from mpilab.kernels.build import KERNELS
from mpilab.models.declared import counts
from mpilab.notebook import lab, session
from mpilab.runners import engines
from mpilab.runners.result import CRASH, DEADLOCK, DONE, ERROR, SKIPPED, TIME_OUT

BODIES = {
    "segfault": "if (rank == 1) *(volatile int *)8 = 1; MPI_Barrier(comm);",
    "deadlock": "MPI_Recv(recvbuf, 1, MPI_INT, (rank + 1) % size, 7, comm, MPI_STATUS_IGNORE);",
    "stray": "if (rank == 0) MPI_Send(&rank, 1, MPI_INT, 1, TAG, comm);"
    "return MPI_Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);",
    "endless": "if (rank == 1) for (volatile int i = 0;; i++); MPI_Barrier(comm);",
}


@pytest.fixture(scope="module")
def cluster():
    with Cluster(4, progress=False) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build_kernels(tmp_path_factory.mktemp("interactive"), BODIES)


def run(cluster, library, name, *cases, **options):
    return engines.run_cases(cluster, library, f"allgather_{name}", list(cases), **options)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_kernels_are_right_on_any_part_of_the_cluster(cluster, name):
    cases = [
        Case("allgather", ranks, 3, datatype, in_place, in_place)
        for ranks in (1, 2, 3, 4)
        for datatype, in_place in (("int", False), ("mixed", False), ("struct", True))
    ]
    for result in run(cluster, KERNELS, name, *cases):
        assert result.outcome == DONE, result.detail
        assert compare(result.case, result.outputs) == []
        planned = schedule(name, result.case.ranks)
        assert len(result.recording.messages) == len(planned.transfers())
        assert result.recording.rounds == len(planned.rounds)


def test_repetitions_are_timed_without_a_recording(cluster):
    case = Case("allgather", 4, 64, record=False, dump=False, warmup=1, repetitions=10)
    (result,) = run(cluster, KERNELS, "ring", case)
    assert result.recording is None
    assert [output.spans_ns.shape for output in result.outputs] == [(10, 2)] * 4


def test_after_a_deadlock_the_cluster_is_usable_again(cluster, library):
    hung, right = Case("allgather", 4, 1), Case("allgather", 4, 2)
    (result,) = run(cluster, library, "deadlock", hung)
    assert result.outcome == DEADLOCK
    assert result.hang.cycle() == (0, 1, 2, 3)
    assert run(cluster, KERNELS, "ring", right)[0].outcome == DONE


def test_a_crash_names_rank_and_signal_in_the_kernels_order_and_later_cases_are_skipped(
    cluster, library
):
    cases = [Case("allgather", 4, 1, reversed=True), Case("allgather", 4, 2)]
    first, second = run(cluster, library, "segfault", *cases, groups=[("a",), ("a",)])
    assert first.outcome == CRASH
    assert first.crashed == (1, "SIGSEGV")
    assert second.outcome == SKIPPED
    assert run(cluster, KERNELS, "ring", cases[1])[0].outcome == DONE


@pytest.mark.parametrize("record", [True, False])
def test_a_rank_that_computes_for_ever_is_a_time_out(cluster, library, record):
    case = Case("allgather", 4, 1, record=record)
    (result,) = run(cluster, library, "endless", case, limit=2.0)
    assert result.outcome == TIME_OUT
    if record:
        assert "rank 1 was computing" in result.hang.describe()


def test_a_kernel_that_is_not_there_is_an_error_and_the_cluster_goes_on(cluster):
    case = Case("allgather", 4, 1)
    (result,) = run(cluster, KERNELS, "missing", case)
    assert result.outcome == ERROR
    assert "no function allgather_missing" in result.detail
    assert run(cluster, KERNELS, "ring", case)[0].outcome == DONE


def test_more_ranks_than_there_are_is_refused_before_anything_is_run(cluster):
    with pytest.raises(InputError, match=r"ranks=5: the cluster has 4; .*Cluster\(5\).start\(\)"):
        run(cluster, KERNELS, "ring", Case("allgather", 4, 1), Case("allgather", 5, 1))


def test_a_message_that_nobody_received_does_not_reach_the_next_run(cluster, library):
    """Its communicator is freed, and the next one may get the same number."""
    for _ in range(3):
        stray, right = run(cluster, library, "stray", Case("allgather", 4, 1))[0], None
        assert stray.outcome == DONE
        (right,) = run(cluster, KERNELS, "ring", Case("allgather", 4, 1))
        assert compare(right.case, right.outputs) == []


@pytest.mark.parametrize("is_reversed", [False, True])
def test_ranks_pretend_to_be_where_each_run_says_and_nowhere_afterwards(cluster, is_reversed):
    """400 bytes once to each other node, once to each other group."""
    for words, between_nodes, between_groups in (
        ("2x2x1 rr", 3, 1),
        ("1x2x2 rr", 1, 0),
        ("4x1x1 seq", 3, 3),
        ("a/n1 b/n2 b/n2 a/n1", 1, 1),
        ("", 0, 0),
    ):
        case = session.run(
            "bcast_node_group",
            count=100,
            root=2,
            reversed=is_reversed,
            places=places_of(words) if words else (),
        )
        assert case.right
        found = counts(case.result.recording, case.result.case.levels)
        assert found["messages"] == 3
        assert (found["node_bytes"], found["group_bytes"]) == (
            400 * between_nodes,
            400 * between_groups,
        )


def test_places_tell_how_many_ranks_a_run_has(cluster):
    run = session.run("bcast_node_group", places="1x3x1 seq")
    assert run.result.case.ranks == 3
    assert "2 messages, 32 bytes between nodes" in repr(run)
    with pytest.raises(InputError, match="ranks=8: the cluster has 4"):
        session.run("bcast_node_group", places="2x2x2 rr")
    with pytest.raises(InputError, match="places of 3 ranks for 2"):
        session.run("bcast_node_group", ranks=2, places="1x3x1 seq")
    with pytest.raises(InputError, match="places '1x3x1': a cluster and an order are needed"):
        session.run("bcast_node_group", places="1x3x1")


CHECKS = """
lab = "99-test"
[[exercise]]
id = "levels"
title = "A broadcast by nodes"
kind = "kernel"
collective = "bcast"
function = "bcast_mine"
allowed = ["point-to-point", "communicators"]
[[exercise.item]]
id = "crossing"
title = "Each node gets the message once"
points = 1
places = ["2x2x1 rr", "1x2x2 rr", "a/n1*3 b/n2", "2x2x2 rr"]
counts = [0, 25]
roots = [0, -1]
node_bytes = "(M - 1) * m"
"""
# A student's answer: the root leads its node, and leaders forward the message to their nodes.
BY_NODES = """#include "mpilab.h"
static int from_first(void *buffer, int count, MPI_Datatype datatype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank), MPI_Comm_size(comm, &size);
    if (rank != 0)
        return MPI_Recv(buffer, count, datatype, 0, TAG, comm, MPI_STATUS_IGNORE);
    for (int dest = 1; dest < size; dest++)
        MPI_Send(buffer, count, datatype, dest, TAG, comm);
    return MPI_SUCCESS;
}
MPILAB_BCAST(mine);
MPILAB_BCAST(mine)
{
    MPI_Comm node, leaders;
    int rank, in_node;
    MPI_Comm_rank(comm, &rank);
    const int key = rank == root ? 0 : rank + 1;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, key, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &in_node);
    MPI_Comm_split(comm, in_node == 0 ? 0 : MPI_UNDEFINED, key, &leaders);
    if (leaders != MPI_COMM_NULL) {
        from_first(buffer, count, datatype, leaders);
        MPI_Comm_free(&leaders);
    }
    from_first(buffer, count, datatype, node);
    MPI_Comm_free(&node);
    return MPI_SUCCESS;
}
"""

SPLIT_BY_NODE = "MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, key, MPI_INFO_NULL, &node);"
SPLIT_INTO_ONES = "MPI_Comm_split(comm, rank, key, &node);"


@pytest.fixture
def checks(tmp_path, monkeypatch):
    """A function that returns what the check of an exercise with places says about a source."""
    (tmp_path / "labs" / "checks").mkdir(parents=True)
    (tmp_path / "labs" / "checks" / "99-test.toml").write_text(CHECKS)
    monkeypatch.setattr(lab, "ROOT", tmp_path)

    def of(source):
        monkeypatch.setitem(session.kernels, "bcast_mine", build(source, tmp_path))
        return lab.Lab("99-test").check("levels")

    return of


def test_a_check_with_places_passes_what_crosses_as_often_as_it_has_to(cluster, checks):
    checked = checks(BY_NODES)
    assert checked.passed, repr(checked)


def test_a_check_with_places_tells_what_crosses_too_often_and_the_call_that_shows_it(
    cluster, checks
):
    (item,) = checks(BY_NODES.replace(SPLIT_BY_NODE, SPLIT_INTO_ONES)).verdict.items
    assert (
        "on 2 nodes: the result is right, but by another algorithm: 200 bytes between nodes where "
        "the algorithm has 100" in item.reason
    )
    assert item.evidence["reproduce"] == (
        'mpilab.run("bcast_mine", ranks=4, count=25, places="1x2x2 rr")'
    )


def test_a_case_on_a_cluster_whose_hosts_are_down_is_an_error(library):
    class Down:
        n, folder, running, log_size, places = 4, None, False, 0, ()
        restarted = False

        def apply(self, *_, **__):
            raise ClusterError("the cluster of 4 ranks is not running")

        def restart(self):
            self.restarted = True

    cluster = Down()
    (result,) = run(cluster, library, "stray", Case("allgather", 2, 1))
    assert (result.outcome, result.detail) == (ERROR, "the cluster of 4 ranks is not running")
    assert not cluster.restarted
