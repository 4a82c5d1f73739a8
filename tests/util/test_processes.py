"""Process numbers inside and outside PID namespaces; tests/emulated tests those of real ones."""

import mmap
import os
import signal
import subprocess
import sys

import pytest
from living import is_alive

from mpilab.util import processes

# Maps a file, says so, and waits.
MAPS = """
import mmap, sys
with open(sys.argv[1], "r+b") as file:
    memory = mmap.mmap(file.fileno(), 0)
print("maps", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a recording"
    path.write_bytes(bytes(4096))
    return path


@pytest.fixture
def writer(path):
    """A process that has the file mapped."""
    command = [sys.executable, "-c", MAPS, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"maps\n"
        yield process.pid


def test_the_process_that_has_the_file_is_its_writer(path, writer):
    assert processes.writer(path, writer) == writer


def test_a_name_that_leads_to_the_file_will_do(path, writer, tmp_path):
    (tmp_path / "link").symlink_to(path)
    assert processes.writer(tmp_path / "link", writer) == writer


def test_a_process_of_that_number_without_the_file_is_not(path, writer):
    assert processes.writer(path, os.getpid()) is None
    assert processes.writer(path, 1) is None
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ):
        assert processes.writer(path, os.getpid()) == os.getpid()


def test_a_process_that_has_ended_is_nobody(path, writer):
    process = subprocess.Popen(["true"])
    process.wait()
    assert processes.writer(path, process.pid) is None
    assert processes.outside(process.pid, processes.namespace(os.getpid())) is None
    assert processes.namespace(process.pid) is None


def test_in_our_own_namespace_numbers_are_what_they_are(writer):
    here = processes.namespace(os.getpid())
    assert here is not None and processes.namespace(writer) == here
    assert processes.outside(writer, here) == writer
    assert processes.outside(writer, here + 1) is None


def test_an_unknown_namespace_is_not_that_of_strangers(monkeypatch):
    # What `namespace` returns for other users' processes if we are not root.
    monkeypatch.setattr(processes, "namespace", lambda process: None)
    assert processes.outside(os.getpid(), processes.namespace(os.getpid())) is None


def test_processes_that_are_hidden_from_us_are_passed_over(path, writer, monkeypatch):
    hidden = f"/proc/{os.getpid()}/status"

    def open_but_for(name, *more):
        if name == hidden:
            raise PermissionError(1, "Operation not permitted", name)  # as with hidepid=1
        return open(name, *more)

    monkeypatch.setattr(processes, "open", open_but_for, raising=False)
    here = processes.namespace(os.getpid())
    assert processes.outside(os.getpid(), here) is None
    assert processes.outside(writer, here) == writer


def test_the_time_of_processes_that_were_killed_is_not_used_twice(monkeypatch):
    looks = iter([1.0, 6.0, 2.0, 5.0])  # the second process was killed after it had taken 4 s
    monkeypatch.setattr(processes.ProcessorTime, "_look", lambda self: next(looks))
    monkeypatch.setattr(processes.ProcessorTime, "LOOK_S", 0.0)
    used = processes.ProcessorTime()
    assert [used() for _ in range(4)] == [1.0, 6.0, 6.0, 9.0]


@pytest.mark.parametrize("last", ["exit 3", "wait"])
def test_what_a_program_leaves_running_in_its_session_is_ended_after_its_time(last):
    said = processes.run(["sh", "-c", f"sleep 1000 & echo $!; {last}"], 1.0)
    assert said.code is None
    assert not is_alive(int(said.stdout))


def test_what_has_left_the_session_and_holds_the_output_open_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(processes, "DIES_S", 1.0)
    said = processes.run(["sh", "-c", "echo ä; setsid sleep 1000 & echo $!"], 1.0)
    assert said.code is None and said.stdout.startswith("ä\n")
    os.kill(int(said.stdout.split()[1]), signal.SIGKILL)


def test_errors_can_be_among_the_output():
    said = processes.run(["sh", "-c", "echo one; echo two >&2; echo three"], 60, merged=True)
    assert said == (0, "one\ntwo\nthree\n", "")
