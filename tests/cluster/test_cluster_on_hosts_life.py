"""The interactive ranks on emulated hosts: how they end, restart, and leave nothing behind."""

import os
import signal
from pathlib import Path

import pytest
from living import is_alive
from test_engines import (
    active_cluster,
    crash,
    existing,
    files,
    leave,
    owner,
    receive_forever,
    sum_of_ranks,
    wait_until,
    world_rank,
)

from mpilab.cluster import engines, supervisor
from mpilab.cluster.engines import Cluster
from mpilab.errors import ClusterError, EngineDied

pytestmark = pytest.mark.privileged


def files_in_memory():
    """The contents of /dev/shm on the rank's host: [path]."""
    return [str(path) for path in Path("/dev/shm").rglob("*")]


def runs_on_hosts(hosts):
    """The ids, as seen here, of the processes that run on these hosts."""
    inside = os.readlink(f"/proc/{hosts.process(hosts.names[0])}/ns/pid")
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{process}/ns/pid") == inside and is_alive(process):
                found.append(int(process))
        except OSError:  # it has just ended
            continue
    return found


@pytest.fixture
def cluster(cluster_on_hosts):
    return cluster_on_hosts


class TestFailures:
    def test_a_segmentation_fault_names_the_rank_and_a_restart_heals(self, cluster):
        with pytest.raises(EngineDied, match="rank 7 died of SIGSEGV") as caught:
            cluster.apply(crash, 7)
        assert caught.value.ranks == (7,)
        assert "rank 7 died of SIGSEGV" in repr(cluster)
        cluster.restart()
        assert cluster.apply(sum_of_ranks) == [28] * 8

    def test_a_rank_that_exits_is_told_from_one_that_crashes(self, cluster):
        with pytest.raises(EngineDied, match="rank 3 ended with exit code 3"):
            cluster.apply(leave, 3)

    def test_ranks_that_wait_for_ever_are_replaced(self, cluster):
        cluster.apply(world_rank)
        with pytest.raises(TimeoutError, match="ranks 1 and 6 are without an answer"):
            cluster.apply(receive_forever, 1, 6, timeout=5.0)
        cluster.restart()
        assert cluster.apply(sum_of_ranks) == [28] * 8

    def test_a_killed_forkserver_is_reported_and_a_restart_heals(self, cluster):
        processes = cluster._processes
        os.kill(processes.location.process_here(processes.forkserver_process), signal.SIGKILL)
        with pytest.raises(ClusterError, match="ranks failed"):
            cluster.apply(receive_forever, timeout=300)
        cluster.restart()
        assert cluster.apply(sum_of_ranks) == [28] * 8

    def test_hosts_that_are_taken_down_end_the_ranks_and_a_restart_brings_both_back(self, hosts):
        with Cluster(2, hosts="two-groups", progress=False) as cluster:
            cluster.hosts.down()
            with pytest.raises(ClusterError, match="ranks failed"):
                cluster.apply(receive_forever, timeout=300)
            cluster.restart()
            assert cluster.apply(sum_of_ranks) == [1, 1]
            own = cluster.hosts
        assert not own.running

    def test_a_restart_at_once_after_hosts_were_taken_down_brings_both_back(self, hosts):
        with Cluster(2, hosts="two-groups", progress=False) as cluster:
            for _ in range(3):  # whatever is known of their end by then
                cluster.hosts.down()
                cluster.restart()
            assert cluster.apply(sum_of_ranks) == [1, 1]

    def test_a_restart_leaves_no_shared_memory_of_the_former_ranks(self, cluster):
        cluster.restart()
        own = f"/dev/shm/{cluster._processes.directories[0].name}"
        now = f"{own}/{cluster._processes.launches}"
        for found in cluster.apply(files_in_memory):
            assert any(path.startswith(f"{now}/") for path in found)
            assert [path for path in found if path != own and not path.startswith(now)] == []


class TestNothingIsLeftBehind:
    @pytest.fixture(autouse=True)
    def no_active_cluster(self, monkeypatch):
        monkeypatch.setattr(engines, "_active", None)

    def test_hosts_that_were_up_stay_up_and_are_empty_after_stop(self, hosts):
        before = runs_on_hosts(hosts)
        with Cluster(4, hosts=hosts, progress=False) as cluster:
            assert active_cluster() is cluster
            cluster.apply(sum_of_ranks)
            assert len(runs_on_hosts(hosts)) > len(before) + 4
            directories = cluster._processes.directories
            assert len(existing(directories)) == 1 + 4  # one in each host's memory
        assert hosts.running
        assert existing(directories) == []
        assert runs_on_hosts(hosts) == before

    def test_hosts_that_came_with_the_cluster_go_with_it(self, hosts):
        with Cluster(2, hosts="two-groups", progress=False) as cluster:
            cluster.apply(sum_of_ranks)
            identity, own = cluster._processes.identity, cluster.hosts
            directories = [*cluster._processes.directories, own.directory]
            supervisors = [own.process(name) for name in own.names]
            assert len(existing(directories)) == len(directories)
        assert not own.running
        assert supervisor.marked(identity) == []
        assert existing(directories) == []
        assert not any(map(is_alive, supervisors))
        assert hosts.running

    @pytest.mark.parametrize(
        "call",
        [
            "",
            "cluster.view.apply_async(receive_forever)",
            "child = os.fork() or signal.pause()\nprint(child, flush=True)",
        ],
        ids=["idle ranks", "ranks stuck in C", "an owner that forked"],
    )
    def test_after_kill_9_of_the_owner(self, hosts, call):
        run = owner(OWNER.format(call=call))
        identity, watcher, watching, *directories = run.stdout.readline().split()
        child = run.stdout.readline().strip() if "print" in call else ""
        used = {name for name in files(identity) if name.startswith("/tmp/")}
        assert len(existing(directories)) == len(directories)
        assert is_alive(watcher) and is_alive(watching)
        run.kill()
        run.wait()
        try:
            assert wait_until(
                lambda: (
                    not supervisor.marked(identity)
                    and not existing([*directories, *used])
                    and not is_alive(watcher)
                    and not is_alive(watching)
                ),
                seconds=120.0,
            )
        finally:
            if child:
                os.kill(int(child), signal.SIGKILL)

    def test_an_interrupt_reaches_neither_ranks_nor_hosts(self, hosts):
        call = """
came = []
signal.signal(signal.SIGINT, lambda number, _: came.append(number))
print("armed", flush=True)
while not came:
    os.read(0, 1)
print(cluster.apply(world_rank), flush=True)
"""
        run = owner(OWNER.format(call=call), start_new_session=True)
        run.stdout.readline()
        assert run.stdout.readline() == "armed\n"
        os.killpg(run.pid, signal.SIGINT)
        run.stdin.write(" ")
        run.stdin.flush()
        assert run.stdout.readline() == "[0, 1, 2]\n"
        run.stdin.close()
        assert run.wait(120) == 0


OWNER = """
import os, signal
from mpilab.cluster.engines import Cluster
from test_engines import receive_forever, world_rank
cluster = Cluster(3, hosts="two-groups", order="rr", progress=False).start()
processes, hosts = cluster._processes, cluster.hosts
print(processes.identity, processes.supervisor.process.pid, hosts.process("n1"), hosts.directory,
      *processes.directories, flush=True)
{call}
input_is_closed = os.read(0, 1)
"""
