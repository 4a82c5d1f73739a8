"""However a cluster of emulated hosts ends, it leaves nothing behind."""

import json
import os
import signal
import subprocess
import sys

import psutil
import pytest
from c_kernels import build_kernels
from small_clusters import Traces, await_end, described, said

from mpilab.errors import ClusterError
from mpilab.hosts import emulated
from mpilab.hosts.emulated import EmulatedHosts, attach, running, sweep
from mpilab.hosts.emulated import hosts as life
from mpilab.hosts.emulated.hosts import FILE, Capabilities, State, read_state
from mpilab.runners.hang import process_of
from mpilab.util.namespaces import begun_at

# Brings hosts up, starts a process on them that would run forever, reports where, and waits.
OWNER = """
import json, subprocess, sys
from small_clusters import described
from mpilab.hosts.emulated import EmulatedHosts

with EmulatedHosts(described({"a": 1, "b": 1})) as hosts:
    command = hosts.command(["sh", "-c", "setsid sleep 1000 & echo $!; wait"], "n2")
    endless = subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                               stderr=subprocess.DEVNULL)
    pid = hosts.host_pid(int(endless.stdout.readline()))
    print(json.dumps([str(hosts.directory), pid]), flush=True)
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
def owner(namespaces, folder):
    """A process that has brought up hosts: (Popen, the hosts, the process that runs on them)."""
    path = os.pathsep.join([os.path.dirname(__file__), os.getcwd()])
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    with process:
        directory, endless = json.loads(process.stdout.readline())
        yield process, attach(directory), endless
        process.kill()


@pytest.mark.privileged
class TestEnd:
    def test_down_leaves_nothing_whatever_runs(self, namespaces, folder):
        hosts = EmulatedHosts(described({"a": 2})).up()
        traces = Traces(hosts)
        assert len(traces.left()) > 3
        process = subprocess.Popen(
            hosts.command(["sh", "-c", "trap '' TERM; (setsid sleep 1000 &); echo; read line"]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with process:
            assert process.stdout.readline() == b"\n"
            hosts.down()
            assert traces.left() == []
            assert list(folder.iterdir()) == []
            assert process.wait(120) == 128 + signal.SIGKILL
        assert not hosts.running and hosts.directory is None

    def test_they_can_come_up_again(self, namespaces):
        hosts = EmulatedHosts(described({"a": 1}))
        for _ in range(2):
            with hosts:
                assert said(hosts, ["hostname"]) == "n1\n"
            assert not hosts.running
        hosts.down()

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
    def test_a_killed_owner_leaves_nothing(self, owner, folder, number):
        process, hosts, endless = owner
        traces = Traces(hosts)
        process.send_signal(number)
        process.wait()
        assert await_end(traces.supervisor) and await_end(traces.root) and await_end(endless)
        assert traces.left() == []
        assert list(folder.iterdir()) == []

    def test_an_owner_that_ends_by_itself_leaves_nothing(self, owner, folder):
        process, hosts, endless = owner
        traces = Traces(hosts)
        process.communicate(timeout=300)
        assert process.returncode == 0
        assert traces.left() == [] and list(folder.iterdir()) == []

    def test_with_a_killed_supervisor_everything_ends_and_a_sweep_removes_the_files(
        self, owner, folder
    ):
        process, hosts, endless = owner
        traces = Traces(hosts)
        assert sweep() == []
        os.kill(traces.supervisor, signal.SIGKILL)
        assert await_end(traces.root) and await_end(endless)
        assert traces.left() == [str(hosts.directory)]
        assert not hosts.running
        assert str(hosts.directory) not in [str(one.directory) for one in running()]
        assert sweep() == [hosts.directory]
        assert list(folder.iterdir()) == []

    def test_without_one_of_the_hosts_all_end(self, owner, folder):
        _, hosts, endless = owner
        traces = Traces(hosts)
        os.kill(hosts.process("n2"), signal.SIGKILL)
        assert await_end(traces.supervisor) and await_end(endless)
        assert traces.left() == [] and list(folder.iterdir()) == []

    def test_others_can_take_them_down(self, owner, folder):
        _, hosts, endless = owner
        traces = Traces(hosts)
        hosts.down()
        assert traces.left() == [] and list(folder.iterdir()) == []

    def test_hosts_that_are_to_stay_outlive_their_owner(self, namespaces, folder):
        script = OWNER.replace("with EmulatedHosts(", "with attach(EmulatedHosts(").replace(
            ")) as hosts", ")).up(stay=True).directory) as hosts"
        )
        script = script.replace("import EmulatedHosts", "import EmulatedHosts, attach")
        path = os.pathsep.join([os.path.dirname(__file__), os.getcwd()])
        done = subprocess.run(
            [sys.executable, "-c", script],
            input="",
            text=True,
            timeout=300,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": path},
        )
        assert done.returncode == 0
        hosts = attach(json.loads(done.stdout)[0])
        traces = Traces(hosts)
        assert hosts.running and hosts.owner == 0
        assert said(hosts, ["hostname"], "n2") == "n2\n"
        hosts.down()
        assert traces.left() == [] and list(folder.iterdir()) == []


@pytest.mark.privileged
def test_a_killed_program_leaves_no_rank_and_no_file_on_hosts_that_go_on(namespaces, tmp_path):
    """Its supervisor ensures that."""
    fifo = tmp_path / "there"
    os.mkfifo(fifo)
    library = build_kernels(
        tmp_path,
        {
            "endless": f"""
    if (rank == 1) {{
        FILE *there = fopen("{fifo}", "w");
        fprintf(there, "there\\n");
        fclose(there);
    }}
    for (volatile int i = 0;;) i++;"""
        },
        preamble='#include "mpilab.h"\n#include <stdio.h>\n',
    )
    program = f"""
import sys
from mpilab.hosts.emulated import attach
from mpilab.cases.case import Case
from mpilab.runners.mpirun import run_cases
run_cases({str(library)!r}, "allgather_endless", [Case("allgather", 2, 1)], names=["n1", "n2"],
          hosts=attach(sys.argv[1]), guarded=[], limit=1000)
"""
    with EmulatedHosts(described({"a": 2})) as hosts:
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(hosts.directory)],
            env=os.environ | {"PYTHONPATH": os.getcwd()},
        )
        with open(fifo) as there:
            assert there.readline() == "there\n"
        ranks = [process_of(path) for path in hosts.directory.glob("mpilab-run-*/*/0.*.rec")]
        assert len(ranks) == 2 and None not in ranks
        (supervisor,) = [
            child.pid
            for child in psutil.Process(process.pid).children()
            if any("supervisor.py" in word for word in child.cmdline())
        ]
        process.kill()
        process.wait()
        assert await_end(supervisor)
        assert [rank for rank in ranks if begun_at(rank) is not None] == []
        assert list(hosts.directory.glob("mpilab-run-*")) == []
        assert [said(hosts, ["ls", "/dev/shm"], name) for name in hosts.names] == ["", ""]
        assert hosts.running


@pytest.mark.privileged
class TestBegin:
    def test_where_it_fails_it_says_at_what_and_leaves_nothing(
        self, namespaces, folder, monkeypatch
    ):
        broken = Capabilities(
            namespaces.namespaces, tbf=True, tools=namespaces.tools | {"tc": "/bin/false"}
        )
        monkeypatch.setattr("mpilab.hosts.emulated.hosts.probe", lambda: broken)
        with pytest.raises(ClusterError, match="trial: the hosts did not come up: false said"):
            EmulatedHosts(described({"a": 2}, rate=1e9)).up()
        assert list(folder.iterdir()) == []

    def test_a_relay_that_does_not_start_is_told(self, namespaces, folder, monkeypatch):
        broken = Capabilities(namespaces.namespaces, relay=True, tools=namespaces.tools)
        monkeypatch.setattr("mpilab.hosts.emulated.hosts.probe", lambda: broken)
        monkeypatch.setattr(life, "RELAY", "/bin/false")
        with pytest.raises(ClusterError, match="the relay ended with status 1"):
            EmulatedHosts(described({"a": 2}, latency=1e-3)).up()
        assert list(folder.iterdir()) == []

    def test_a_folder_that_open_mpi_or_the_hosts_cannot_use_is_not_taken(
        self, namespaces, tmp_path, monkeypatch
    ):
        (tmp_path / "with blank").mkdir()
        for folder in str(tmp_path / "with blank"), "/dev/shm":
            monkeypatch.setattr("tempfile.tempdir", folder)
            with EmulatedHosts(described({"a": 1})) as hosts:
                assert str(hosts.directory.parent) == "/tmp"


class TestState:
    """The stored state of a running cluster; needs no namespaces."""

    def written(self, folder, **more):
        process = os.getpid(), begun_at(os.getpid())
        description = described({"a": 2, "b": 1}, rate=1e9, uplink=2e8, uplink_latency=1e-3)
        found = State("mine", folder, description, {"root": process}, "relay", 7)
        found.write()
        return found

    def test_it_comes_back_as_it_was(self, tmp_path):
        written = self.written(tmp_path)
        assert read_state(tmp_path) == written
        assert written.is_up
        assert EmulatedHosts.attached(read_state(tmp_path)).owner == 7

    def test_a_number_that_another_process_has_by_now_is_not_up(self, tmp_path):
        self.written(tmp_path)
        path = tmp_path / FILE
        number, begun = os.getpid(), begun_at(os.getpid())
        path.write_text(
            path.read_text().replace(f"[{number}, {begun}]", f"[{number}, {begun - 1}]")
        )
        assert not read_state(tmp_path).is_up

    def test_without_a_file_or_in_another_version_s_words_there_is_no_state(self, tmp_path):
        assert read_state(tmp_path) is None
        self.written(tmp_path)
        path = tmp_path / FILE
        path.write_text(path.read_text().replace('"format": 2', '"format": 999'))
        assert read_state(tmp_path) is None

    def test_directories_that_are_kept_or_not_finished_or_others_stay(self, tmp_path, monkeypatch):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        for name in ("mpilab-hosts-new", "mpilab-other", "mpilab-hosts-dead"):
            (tmp_path / name).mkdir()
        (tmp_path / "mpilab-hosts-dead" / "lock").touch()
        (tmp_path / "mpilab-other" / "lock").touch()
        assert emulated.sweep() == [tmp_path / "mpilab-hosts-dead"]
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            "mpilab-hosts-new",
            "mpilab-other",
        ]

    def test_an_ended_process_was_never_begun(self):
        process = subprocess.Popen(["true"])
        assert await_end(process.pid)
        assert begun_at(process.pid) is None  # not waited for yet
        process.wait()
        assert begun_at(process.pid) is None
        assert begun_at(os.getpid()) > 0
