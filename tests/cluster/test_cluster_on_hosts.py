"""The interactive ranks on emulated hosts: where they are, and what crosses between hosts."""

import os
import re

import pytest
from c_kernels import build, line_of, source_of

from mpilab.cases.case import Case
from mpilab.cluster.engines import Cluster
from mpilab.errors import InputError, SetupError
from mpilab.hosts import description, orders
from mpilab.hosts.emulated import Capabilities
from mpilab.hosts.places import Place
from mpilab.notebook import session
from mpilab.runners.result import CRASH, DEADLOCK, DONE, TIME_OUT

pytestmark = pytest.mark.privileged

SEQ = ("n1", "n1", "n2", "n2", "n3", "n3", "n4", "n4")
RR = ("n1", "n2", "n3", "n4") * 2
MIXED = ("n3", "n1", "n3", "n2")
BODIES = {
    "hangs": "MPI_Recv(recvbuf, 1, MPI_INT, (rank + 1) % size, 3, comm, /* here */\n"
    "    MPI_STATUS_IGNORE);",
    "crashes": "if (rank == 5) *(volatile int *)8 = 1; MPI_Barrier(comm);",
    "one_too_far": "int *own = malloc(sizeof *own); own[rank / 2] = 1; free(own);",
    "endless": "if (rank == 6) for (volatile int i = 0;; i++); /* spins */\n MPI_Barrier(comm);",
}
SOURCE = source_of(BODIES)

# Functions that run on the ranks


def here():
    """(rank, host, ranks that share its memory, its rank among them)."""
    from mpi4py import MPI

    node = MPI.COMM_WORLD.Split_type(MPI.COMM_TYPE_SHARED)
    return MPI.COMM_WORLD.rank, MPI.Get_processor_name(), node.size, node.rank


def birth():
    """The process ids of this process and of its parent."""
    return os.getpid(), os.getppid()


@pytest.fixture(scope="module", autouse=True)
def kernels(tmp_path_factory):
    """BODIES, as if they were cells of a notebook."""
    built = build(SOURCE, tmp_path_factory.mktemp("hosts"))
    session.kernels |= {f"allgather_{name}": built for name in BODIES}
    yield
    session.kernels.clear()


@pytest.fixture
def cluster(cluster_on_hosts):
    return cluster_on_hosts


class TestWhereRanksAre:
    def test_every_slot_has_a_rank_and_hosts_are_filled_one_after_the_other(self, cluster):
        assert cluster.n == 8
        assert cluster.names == SEQ
        assert repr(cluster) == (
            "<mpilab.Cluster of 8 ranks on 4 nodes in 2 groups (two-groups, seq): running>"
        )

    def test_ranks_of_a_host_share_its_memory_and_no_others_do(self, cluster):
        assert cluster.apply(here) == [(r, SEQ[r], 2, r % 2) for r in range(8)]

    def test_the_levels_know_the_groups(self, cluster):
        assert cluster.levels.places[2] == Place("n2", "left")
        assert cluster.levels.node.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
        assert cluster.levels.group.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]

    @pytest.mark.parametrize(
        ("order", "names", "shared"),
        [("rr", RR, (2,) * 8), (MIXED, MIXED, (2, 1, 2, 1))],
        ids=["rr", "a list"],
    )
    def test_ranks_come_in_any_order(self, hosts, order, names, shared):
        with Cluster(hosts=hosts, order=order, progress=False) as cluster:
            assert cluster.names == names
            answers = cluster.apply(here)
        assert [(rank, host) for rank, host, *_ in answers] == list(enumerate(names))
        assert tuple(size for *_, size, _ in answers) == shared

    def test_fewer_ranks_than_slots_leave_hosts_empty(self, hosts):
        with Cluster(3, hosts=hosts, progress=False) as cluster:
            assert [host for _, host, *_ in cluster.apply(here)] == ["n1", "n1", "n2"]
            assert cluster.levels.describe() == "2 nodes"

    @pytest.mark.slow
    def test_sixteen_ranks_run_on_eight_hosts_in_a_shuffled_order(self, hosts):
        with Cluster(hosts="four-groups", order="shuffled", seed=3, progress=False) as cluster:
            four_groups = description.read("four-groups")
            assert list(cluster.names) == orders.order(four_groups, "shuffled", seed=3)
            assert [host for _, host, *_ in cluster.apply(here)] == list(cluster.names)
            assert cluster.levels.describe() == "8 nodes in 4 groups"

    def test_messages_cross_the_network_and_the_view_reaches_all(self, cluster):
        cluster.view.execute("from mpi4py import MPI; x = MPI.COMM_WORLD.allreduce(1)", block=True)
        assert cluster.view["x"] == [8] * 8

    def test_one_process_has_imported_for_all_ranks_also_after_a_restart(self, cluster):
        born = cluster.apply(birth)
        (parent,) = {parent for _, parent in born}
        assert parent == cluster._processes.forkserver_process
        assert len({process for process, _ in born}) == 8
        cluster.restart()
        again = cluster.apply(birth)
        assert {parent for _, parent in again} == {parent}
        assert not {process for process, _ in again} & {process for process, _ in born}


class TestRuns:
    def test_a_recording_tells_what_crosses_between_nodes_and_groups(self, cluster):
        run = session.run("bcast_binomial", count=4)
        assert run.right
        assert [r.header["host"].decode() for r in run.result.recording.ranks] == list(SEQ)
        assert run.levels.places == cluster.places
        said = repr(run)
        assert "hosts:    left: n1 (0 1), n2 (2 3); right: n3 (4 5), n4 (6 7)" in said
        # 0-4 between the groups, 0-2 and 4-6 between nodes of one
        assert (
            "crossing: 3 messages, 48 bytes between nodes; "
            "1 message, 16 bytes between groups" in said
        )

    def test_a_kernel_learns_its_node_and_group_from_the_hosts(self, cluster):
        run = session.run("bcast_node_group", count=4, root=3)
        assert run.right
        crossing = run.levels.between_nodes()[run.messages["source"], run.messages["dest"]]
        assert crossing.sum() == 3
        crossing = run.levels.between_groups()[run.messages["source"], run.messages["dest"]]
        assert crossing.sum() == 1

    @pytest.mark.parametrize("reversed", [False, True])
    def test_places_are_those_of_the_kernels_communicator(self, cluster, reversed):
        run = session.run("allgather_ring", ranks=5, count=1, reversed=reversed)
        hosts = [rank.header["host"].decode() for rank in run.result.recording.ranks]
        assert [place.node for place in run.levels.places] == hosts
        assert hosts == list(SEQ[:5][::-1] if reversed else SEQ[:5])

    def test_a_deadlock_is_told_with_its_line_and_the_cluster_is_usable_again(self, cluster):
        run = session.run("allgather_hangs")
        assert run.result.outcome == DEADLOCK
        assert run.result.hang.cycle() == tuple(range(8))
        assert {s.line for s in run.result.states} == {line_of(SOURCE, "/* here */")}
        assert f"line {line_of(SOURCE, '/* here */')}" in repr(run)
        assert session.run("allgather_ring").right

    def test_a_crash_names_rank_and_signal_and_the_cluster_is_usable_again(self, cluster):
        run = session.run("allgather_crashes")
        assert run.result.outcome == CRASH
        assert run.result.crashed == (5, "SIGSEGV")
        assert cluster.running
        assert cluster.apply(here) == [(r, SEQ[r], 2, r % 2) for r in range(8)]

    def test_a_sanitized_kernel_runs_on_the_same_hosts(self, cluster, tmp_path, monkeypatch):
        built = build(SOURCE, tmp_path, sanitize=True)
        monkeypatch.setitem(session.kernels, "allgather_one_too_far", built)
        run = session.run("allgather_one_too_far", ranks=3)
        assert [place.node for place in run.levels.places] == list(SEQ[:3])
        assert list(run.result.sanitizer) == [2]

    def test_a_rank_that_computes_for_ever_is_met_in_its_line(self, cluster):
        case = Case("allgather", 8, 1)
        # Without a time limit: it is ended because of the processor time that its ranks have used.
        (result,) = session.run_cases("allgather_endless", [case], limit=240.0, work=1.0)
        assert result.outcome == TIME_OUT
        assert "rank 6 was computing" in result.hang.describe()
        assert any(result.samples[6])
        (right,) = session.run_cases("allgather_ring", [case])
        assert right.outcome == DONE


class TestWhatIsRefused:
    def test_a_host_that_the_description_does_not_have(self):
        with pytest.raises(InputError, match="'n9'.*n1, n2, n3, n4"):
            Cluster(hosts="two-groups", order=["n1", "n9"])

    def test_more_ranks_than_slots(self):
        with pytest.raises(InputError, match="9"):
            Cluster(9, hosts="two-groups")

    def test_an_order_for_another_number_of_ranks(self):
        with pytest.raises(InputError, match="2 ranks instead of 3"):
            Cluster(3, hosts="two-groups", order=["n1", "n2"])

    def test_an_order_without_hosts(self):
        with pytest.raises(InputError, match='hosts="two-groups", order="rr"'):
            Cluster(4, order="rr")

    def test_where_hosts_cannot_be_emulated_there_is_something_to_use_instead(self, monkeypatch):
        nothing = Capabilities("none", "not here")
        monkeypatch.setattr("mpilab.hosts.emulated.hosts.probe", lambda: nothing)
        cluster = Cluster(3, hosts="two-groups")
        with pytest.raises(SetupError, match=r"not here.*Cluster\(3\).*places=") as caught:
            cluster.start()
        assert not cluster.started
        places = re.search('places="(.*)"', str(caught.value))[1]
        assert orders.places_of(places) == cluster.places

    def test_hosts_that_nobody_has_described(self):
        with pytest.raises(InputError, match="three-groups"):
            Cluster(hosts="three-groups")
