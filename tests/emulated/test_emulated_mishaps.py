"""Kernels without pidfd, processes that end at the wrong moment, directories of others."""

import json
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
from small_clusters import Traces, await_end, described

from mpilab.errors import ClusterError
from mpilab.hosts.emulated import EmulatedHosts, sweep
from mpilab.hosts.emulated import hosts as life
from mpilab.hosts.emulated.hosts import State
from mpilab.util.namespaces import begun_at

# The supervisor, as a Python without os.pidfd_open runs it.
WITHOUT_PIDFD = f"""
import os, runpy, sys
del os.pidfd_open
runpy.run_path({life.SUPERVISOR!r}, run_name="__main__")
"""
# Reports a netns root that has ended by then.
TELLS_OF_THE_DEAD = """
import json, os, sys
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
print(json.dumps({"root": child, "hosts": [1, 1]}), flush=True)
sys.stdin.read()
"""
# Brings up hosts that are to stay, and is killed before it has recorded where they are.
KILLED = """
import json, os, signal
from small_clusters import described
from mpilab.hosts.emulated import EmulatedHosts
from mpilab.hosts.emulated.hosts import State

def write(self):
    print(json.dumps([self.processes[what][0] for what in ("supervisor", "root")]), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

State.write = write
EmulatedHosts(described({"a": 1})).up(stay=True)
"""
STUBBORN = """
import signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("there", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder for the directories of this test's clusters, which contains nothing else."""
    folder = tmp_path / "clusters"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def supervisor(tmp_path, monkeypatch):
    """Gives this test's clusters a different supervisor: the text of a program."""

    def replace(text):
        path = tmp_path / "supervisor.py"
        path.write_text(text)
        monkeypatch.setattr(life, "SUPERVISOR", str(path))

    return replace


@pytest.fixture
def no_pidfd(monkeypatch):
    monkeypatch.delattr(os, "pidfd_open")


def kept():
    """The owner's capabilities that starting a cluster needs if no namespace is created."""
    return SimpleNamespace(latency_by="", namespaces="root", tools={})


@pytest.mark.privileged
class TestWithoutPidfd:
    def test_hosts_come_up_and_go_down(self, namespaces, folder, supervisor, no_pidfd):
        supervisor(WITHOUT_PIDFD)
        hosts = EmulatedHosts(described({"a": 2})).up()
        traces = Traces(hosts)
        assert len(traces.left()) > 3
        hosts.down()
        assert traces.left() == [] and list(folder.iterdir()) == []

    def test_they_end_with_the_pipe_of_their_owner(self, namespaces, folder, supervisor):
        supervisor(WITHOUT_PIDFD)
        hosts = EmulatedHosts(described({"a": 2})).up()
        traces = Traces(hosts)
        hosts._supervisor.stdin.close()
        assert await_end(traces.supervisor)
        assert traces.left() == [] and list(folder.iterdir()) == []
        hosts.down()


@pytest.mark.privileged
def test_hosts_whose_supervisor_was_killed_go_down_without_a_word(namespaces, folder):
    for _ in range(5):
        hosts = EmulatedHosts(described({"a": 2})).up()
        os.kill(hosts._state.processes["supervisor"][0], signal.SIGKILL)
        hosts.down()
        assert list(folder.iterdir()) == []


def test_without_pidfd_a_supervisor_that_does_not_listen_is_killed(no_pidfd, monkeypatch):
    monkeypatch.setattr(life, "PATIENCE_S", 0.2)
    with subprocess.Popen(
        [sys.executable, "-c", STUBBORN], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"there\n"
        life.end_supervisor(process.pid)
        assert begun_at(process.pid) is None
        assert process.wait() == -signal.SIGKILL
    life.end_supervisor(process.pid)  # has ended: nothing to do


@pytest.mark.privileged
def test_who_is_killed_while_it_brings_up_hosts_that_are_to_stay_leaves_none(namespaces, folder):
    path = os.pathsep.join([os.path.dirname(__file__), os.getcwd()])
    done = subprocess.run(
        [sys.executable, "-c", KILLED],
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert done.returncode == -signal.SIGKILL
    supervisor, root = json.loads(done.stdout)
    assert await_end(supervisor) and await_end(root)
    assert list(folder.iterdir()) == []


class TestBegin:
    """With supervisors that create no namespaces."""

    def test_a_netns_root_that_has_ended_by_then_is_told_and_nothing_is_left(
        self, folder, supervisor
    ):
        supervisor(TELLS_OF_THE_DEAD)
        with pytest.raises(ClusterError, match="trial: the hosts ended as soon as they were up"):
            life.begin("trial", described({"a": 2}), kept(), os.getpid())
        assert list(folder.iterdir()) == []

    def test_a_supervisor_that_says_nothing_is_not_waited_for_for_ever(
        self, folder, supervisor, monkeypatch
    ):
        supervisor("import signal\nsignal.pause()\n")
        monkeypatch.setattr(life, "BEGIN_S", 0.2)
        with pytest.raises(
            ClusterError, match="trial: .*their supervisor did not report within 0.2 s"
        ):
            life.begin("trial", described({"a": 2}), kept(), os.getpid())
        assert list(folder.iterdir()) == []

    def test_a_sweep_in_the_middle_does_not_take_a_new_directory(
        self, folder, supervisor, monkeypatch
    ):
        supervisor(TELLS_OF_THE_DEAD)
        swept, flock = [], life.fcntl.flock

        def sweep_first(file, how):
            swept.append(sweep())
            flock(file, how)

        with monkeypatch.context() as patch:
            patch.setattr(life, "fcntl", SimpleNamespace(flock=sweep_first, LOCK_EX=2))
            with pytest.raises(ClusterError, match="ended as soon as they were up"):
                life.begin("trial", described({"a": 2}), kept(), os.getpid())
        assert swept == [[]]


def test_a_netns_root_that_nobody_has_seen_is_not_up(tmp_path):
    process = subprocess.Popen(["true"])
    process.wait()
    processes = {"root": (process.pid, begun_at(process.pid))}
    assert processes["root"][1] is None
    assert not State("mine", tmp_path, described({"a": 1}), processes).is_up


class TestSweep:
    def test_it_looks_where_clusters_are_put_and_where_temporary_files_are(
        self, tmp_path, monkeypatch
    ):
        dead = []
        for name in "base", "with blank":
            dead.append(tmp_path / name / "mpilab-hosts-dead")
            dead[-1].mkdir(parents=True)
            (dead[-1] / "lock").touch()
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "with blank"))
        monkeypatch.setattr(life, "base", lambda: str(tmp_path / "base"))
        assert sorted(sweep()) == dead
        assert not any(one.exists() for one in dead)

    def test_what_a_malicious_neighbor_puts_there_neither_stops_it_nor_is_removed(self, folder):
        fifo = folder / "mpilab-hosts-fifo"
        fifo.mkdir()
        os.mkfifo(fifo / "lock")
        elsewhere = folder / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "lock").touch()
        (folder / "mpilab-hosts-link").symlink_to(elsewhere)
        linked = folder / "mpilab-hosts-linked"
        linked.mkdir()
        (linked / "lock").symlink_to(elsewhere / "lock")
        script = f"import tempfile; tempfile.tempdir = {str(folder)!r}\n" + (
            "from mpilab.hosts.emulated import sweep; print(*sweep())"
        )
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            timeout=300,
            env=os.environ | {"PYTHONPATH": os.getcwd()},
        )
        assert done.returncode == 0, done.stderr
        assert str(linked) not in done.stdout
        assert (elsewhere / "lock").exists() and (linked / "lock").is_symlink()

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a directory another user's")
    def test_directories_of_other_users_stay(self, folder):
        other = folder / "mpilab-hosts-other"
        other.mkdir()
        (other / "lock").touch()
        os.chown(other, 65534, 65534)  # the lock is ours all the same
        assert sweep() == []
        assert (other / "lock").exists()
