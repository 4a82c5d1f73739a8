"""Ranks on emulated hosts: real Open MPI, our kernels, and the outcomes of runs that fail."""

import os
import random
import re
import signal
import sys
from collections import Counter

import pytest
from c_kernels import build, line_of, source_of
from small_clusters import described, said

from mpilab.cases.case import Case
from mpilab.cases.output import compare
from mpilab.errors import ClusterError, InputError
from mpilab.hosts.emulated import EmulatedHosts
from mpilab.kernels import openmpi
from mpilab.kernels.build import KERNELS
from mpilab.models.declared import counts
from mpilab.runners import mpirun
from mpilab.runners.hang import LOOKS
from mpilab.runners.result import CRASH, DEADLOCK, DONE, TIME_OUT
from mpilab.trace.callsites import lines_of

pytestmark = pytest.mark.privileged

# More than half a second can become on a busy machine.
LIMIT = 60.0
BODIES = {
    "place": """
    char name[MPI_MAX_PROCESSOR_NAME];
    int length, neighbors;
    MPI_Comm node;
    MPI_Get_processor_name(name, &length);
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &neighbors);
    MPI_Comm_free(&node);
    printf("%s %s %s %d\\n", name, mpilab_place()->node, mpilab_place()->group, neighbors);
    return MPI_Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);""",
    "crossed": """
    MPI_Recv(recvbuf, 1, MPI_INT, size - 1 - rank, 7, comm, MPI_STATUS_IGNORE); /* waits */""",
    "crashes": """
    MPI_Barrier(comm);
    if (rank == size - 1) *(volatile int *)8 = 1; /* crashes */
    MPI_Barrier(comm);""",
    # In a call of MPI, also in the barrier before this kernel, the others would see that a
    # connection broke, and abort, maybe before mpirun has seen the status: they say when they are
    # in no call.
    "leaves": """
    int file = open(FIFO, rank < size - 1 ? O_WRONLY : O_RDONLY);
    char byte = 0;
    if (rank < size - 1 && write(file, &byte, 1) == 1)
        for (;;) pause();
    for (int left = size - 1; left > 0; left--)
        if (read(file, &byte, 1) != 1) return MPI_ERR_OTHER;
    _exit(7);""",
    "endless": """
    if (rank == size - 1)
        for (volatile int i = 0;;) i++; /* computes */
    MPI_Recv(recvbuf, 1, MPI_INT, size - 1, 3, comm, MPI_STATUS_IGNORE);""",
}
SOURCE = source_of(
    BODIES,
    preamble='#include "mpilab.h"\n#include <fcntl.h>\n#include <stdio.h>\n#include <unistd.h>\n',
)


def built(folder):
    """The library of these kernels in an empty folder."""
    os.mkfifo(folder / "fifo")
    return build(SOURCE.replace("FIFO", f'"{folder}/fifo"'), folder).library


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return built(tmp_path_factory.mktemp("ranks"))


def run(library, name, hosts, ranks=4, *, limit=LIMIT, work=None, names=None, **case):
    cases = [Case("allgather", ranks, 1, **case)]
    (result,) = mpirun.run_cases(
        library, f"allgather_{name}", cases, limit=limit, work=work, hosts=hosts, names=names
    )
    return result


def places_told(result):
    """(node, group, ranks on the node) of each rank, as the ranks themselves found out."""
    found = []
    for rank in range(result.case.ranks):
        name, node, group, neighbors = result.printed[rank].split()
        assert name == node
        found.append((node, group, int(neighbors)))
    return found


def expected(hosts, names):
    groups = {host.name: host.group for host in hosts.description.hosts}
    return [(name, groups[name], names.count(name)) for name in names]


def orders(hosts, ranks=16):
    """Rank orders by name: host by host, in turn, hosts shuffled, ranks at random, and one that
    returns to a host repeatedly with different numbers of ranks."""
    names = list(hosts.names)
    turn = random.Random(3)
    shuffled = turn.sample(names, len(names))
    at_random = [turn.choice(names) for _ in range(ranks)]
    return {
        "seq": [name for name in names for _ in range(ranks // len(names))],
        "rr": [names[i % len(names)] for i in range(ranks)],
        "shuffled": [name for name in shuffled for _ in range(ranks // len(names))],
        "random": at_random,
        "again": ["n3", "n1", "n3", "n3", "n8", "n1", "n1", "n1", "n1", "n3"],
    }


@pytest.mark.parametrize("order", ["seq", "rr", "shuffled", "random", "again"])
def test_each_rank_runs_where_it_is_told_to_and_knows_node_and_group(library, eight, order):
    names = orders(eight)[order]
    result = run(library, "place", eight, len(names), names=names)
    assert result.outcome == DONE, result.detail
    assert compare(result.case, result.outputs) == []
    assert places_told(result) == expected(eight, names)
    assert result.places == eight.description.places(names)


def test_a_communicator_in_reverse_has_its_places_in_reverse(library, pair):
    result = run(library, "place", pair, 3, names=["n1", "n2", "n2"], reversed=True)
    assert [place.node for place in result.places] == ["n2", "n2", "n1"]
    assert places_told(result) == expected(pair, ["n2", "n2", "n1"])


def test_without_names_the_slots_are_filled_and_cases_may_differ_in_ranks(library, eight):
    cases = [Case("allgather", ranks, 2) for ranks in (5, 1, 3)]
    results = mpirun.run_cases(library, "allgather_place", cases, hosts=eight, limit=LIMIT)
    names = ["n1", "n1", "n2", "n2", "n3"]
    for result in results:
        assert places_told(result) == expected(eight, names[: result.case.ranks])


@pytest.mark.parametrize("order", ["seq", "random"])
def test_a_broadcast_by_levels_crosses_each_link_once_and_is_right(eight, order):
    names = orders(eight)[order]
    count = 5000  # ints
    cases = [Case("bcast", 16, count, root=root) for root in (0, 5)]
    results = mpirun.run_cases(
        KERNELS, "bcast_node_group", cases, hosts=eight, names=names, limit=LIMIT
    )
    nodes, groups = len(set(names)), len({p.group for p in eight.description.places(names)})
    for result in results:
        assert result.outcome == DONE, result.detail
        assert compare(result.case, result.outputs) == []
        assert len(result.levels.places) == 16
        found = counts(result.recording, result.levels)
        assert found["node_bytes"] == (nodes - 1) * 4 * count
        assert found["group_bytes"] == (groups - 1) * 4 * count


def test_two_ranks_on_a_host_share_memory_and_two_hosts_do_not(eight):
    """Network traffic can be counted there: two megabytes, once for each link."""

    def sent(name):
        text = said(eight, ["cat", "/proc/net/dev"], name)
        return int(re.search(r"eth0:\s*(.*)", text)[1].split()[8])

    before = [sent(name) for name in eight.names]
    case = Case("bcast", 16, 500_000)
    (result,) = mpirun.run_cases(KERNELS, "bcast_node_group", [case], hosts=eight, limit=LIMIT)
    assert result.outcome == DONE, result.detail
    after = [sent(name) for name in eight.names]
    megabytes = [round((b - a) / 2e6, 1) for a, b in zip(before, after, strict=True)]
    # The seven other hosts got it once; acknowledgements and headers are a few percent.
    assert 7.0 <= sum(megabytes) < 8.5
    # Two groups at once is the most that the first host serves, besides its neighbor.
    assert megabytes[0] >= 2.0


class TestFailures:
    def test_a_deadlock_between_hosts_is_explained_with_ranks_and_lines(self, library, eight):
        result = run(library, "crossed", eight, 4, names=["n1", "n3", "n5", "n7"])
        assert result.outcome == DEADLOCK
        assert {state.line for state in result.states} == {line_of(SOURCE, "/* waits */")}
        assert "rank 0 is blocked in MPI_Recv from rank 3" in result.hang.describe()

    def test_a_crash_on_another_host_names_rank_and_signal(self, library, eight):
        result = run(library, "crashes", eight, 4, names=["n1", "n3", "n5", "n7"])
        assert result.outcome == CRASH
        assert result.crashed == (3, "SIGSEGV")
        number, site, address = result.ranks[3].crash
        assert (number, address) == (signal.SIGSEGV, 8)
        (where,) = lines_of(str(library), (site,))
        assert where[2] == line_of(SOURCE, "/* crashes */")

    def test_a_rank_that_leaves_on_another_host_is_told_with_its_status(self, library, pair):
        result = run(library, "leaves", pair, 2, names=list(pair.names))
        assert result.outcome == CRASH
        assert result.crashed == (None, "exit status 7")

    def test_a_rank_that_computes_on_another_host_is_met_in_its_loop(self, library, pair):
        result = run(library, "endless", pair, 4, limit=1000.0, work=1.0)
        assert result.outcome == TIME_OUT
        assert list(result.samples) == [3]
        assert 1 <= len(result.samples[3]) <= LOOKS
        met = {line for _, _, line in lines_of(str(library), tuple(result.samples[3]))}
        assert met == {line_of(SOURCE, "/* computes */")}

    def test_work_is_counted_for_the_ranks_and_not_for_who_has_their_numbers_here(
        self, library, pair
    ):
        result = mpirun.run_cases(
            library,
            "allgather_endless",
            [Case("allgather", 4, 1)],
            hosts=pair,
            limit=1000.0,
            work=1.0,
        )[0]
        assert result.outcome == TIME_OUT

    @pytest.mark.parametrize("name", ["place", "crossed", "crashes", "endless"])
    def test_nothing_of_a_run_stays_on_the_hosts(self, library, pair, name):
        run(library, name, pair, 4, limit=1000.0, work=1.0)
        files = f"ls -A /dev/shm {pair.directory}/tmp"
        for host in pair.names:
            assert said(pair, ["sh", "-c", files], host).split() == [
                "/dev/shm:",
                f"{pair.directory}/tmp:",
            ]
        listed = said(pair, ["sh", "-c", "cat /proc/[0-9]*/comm 2>/dev/null; true"]).split()
        assert not {"mpilab-harness", "mpirun", "prterun", "prted"} & set(listed)

    def test_the_cases_after_one_that_failed_are_run(self, library, pair):
        cases = [
            Case("allgather", 4, 1, function=f"allgather_{name}")
            for name in ("place", "crashes", "place", "crossed", "place")
        ]
        results = mpirun.run_cases(library, "allgather_place", cases, hosts=pair, limit=LIMIT)
        outcomes = [result.outcome for result in results]
        assert outcomes == [DONE, CRASH, DONE, DEADLOCK, DONE]


class TestAnMpirunThatDoesNotEnd:
    """As Open MPI's mpirun sometimes does on several hosts, when all ranks have ended."""

    @pytest.fixture(autouse=True)
    def endless(self, monkeypatch, tmp_path):
        real = openmpi.tool("mpirun")
        program = tmp_path / "mpirun"
        program.write_text(f'#!/bin/sh\n"{real}" "$@"\nexec sleep 1000\n')
        program.chmod(0o755)
        monkeypatch.setattr(openmpi, "tool", lambda name: str(program))

    def test_a_crash_is_told_all_the_same(self, library, pair):
        result = run(library, "crashes", pair, 4, limit=1000.0)
        assert result.outcome == CRASH
        assert result.crashed == (3, "SIGSEGV")

    def test_a_rank_that_left_is_told_without_a_status(self, library, pair):
        result = run(library, "leaves", pair, 4, limit=1000.0)
        assert result.crashed == (None, "all ranks ended, mpirun did not")

    def test_cases_that_came_to_their_end_are_done(self, library, pair):
        timed = Case("allgather", 4, 1, record=False)
        results = mpirun.run_cases(
            library, "allgather_place", [timed, timed], hosts=pair, limit=1000.0
        )
        assert [result.outcome for result in results] == [DONE, DONE]
        left = [said(pair, ["ls", "/dev/shm"], name).split() for name in pair.names]
        assert left == [[], []]


class TestNames:
    def test_too_few_names_are_refused(self, library, pair):
        with pytest.raises(InputError, match="names: 2 hosts for 4 ranks; give one for each rank"):
            run(library, "place", pair, 4, names=["n1", "n2"])

    def test_names_of_no_host_are_refused(self, library, pair):
        with pytest.raises(InputError, match="'n9'"):
            run(library, "place", pair, 2, names=["n1", "n9"])

    def test_hosts_that_are_down_are_refused(self, library):
        with pytest.raises(ClusterError, match="the hosts are not up"):
            run(library, "place", EmulatedHosts(described({"a": 1})), 2)

    def test_a_hostfile_has_a_line_a_rank_and_is_written_once(self, pair):
        path = pair.hostfile(["n2", "n1", "n2"])
        assert path.read_text() == "n2\nn1\nn2\n"
        assert pair.hostfile(["n2", "n1", "n2"]) == path
        assert pair.hostfile(["n2"]) != path
        with pytest.raises(InputError, match="host 'n9': not in trial"):
            pair.hostfile(["n9"])


class TestEnvironment:
    def test_a_plain_mpirun_fills_the_hosts_by_their_slots(self, eight):
        script = (
            "from mpi4py import MPI; c = MPI.COMM_WORLD\n"
            "found = c.gather(MPI.Get_processor_name())\n"
            "if c.rank == 0: print(*found)"
        )
        command = [openmpi.tool("mpirun"), "-n", "12", sys.executable, "-c", script]
        text = said(eight, command, env=eight.environment(12))
        assert text.split() == [f"n{i // 2 + 1}" for i in range(12)]

    def test_more_ranks_than_slots_are_allowed(self, pair):
        script = "from mpi4py import MPI; print(MPI.Get_processor_name())"
        command = [openmpi.tool("mpirun"), "-n", "6", sys.executable, "-c", script]
        found = Counter(said(pair, command, env=pair.environment(6)).split())
        assert found.total() == 6 and set(found) == {"n1", "n2"}

    def test_what_the_hosts_need_stands_above_the_user_s_wishes_and_these_above_ours(
        self, pair, monkeypatch
    ):
        monkeypatch.setenv("OMPI_MCA_btl_tcp_if_include", "lo")
        monkeypatch.setenv("OMPI_MCA_coll", "^han")
        monkeypatch.setenv("TMPDIR", "/nowhere")
        found = pair.environment(4, OMPI_MCA_coll="basic", OMPI_MCA_coll_base_verbose="1")
        assert found["OMPI_MCA_btl_tcp_if_include"] == "eth0"
        assert found["OMPI_MCA_coll"] == "^han"
        assert found["OMPI_MCA_coll_base_verbose"] == "1"
        assert found["TMPDIR"] == str(pair.directory / "tmp")
        assert found["MPILAB_GROUPS"] == "n1=a,n2=a"

    def test_waiting_ranks_sleep_by_the_cores_of_the_machine(self, eight):
        cores = len(os.sched_getaffinity(0))
        found = eight.environment(cores + 1)
        assert found.items() >= openmpi.yielding(cores + 1).items()
        assert openmpi.yielding(cores + 1)
