"""The fixtures and hooks on which the tests rely."""

import mmap
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import conftest
from tests.conftest import OneWorkerForAFileOrALab

HERE = Path(__file__).parent
# Takes the lock, forks a child that outlives it, and prints the child's number.
HOLDER = """
import os, pathlib, signal, sys
sys.path.insert(0, sys.argv[1])
import conftest
held = conftest.lock(pathlib.Path(sys.argv[2]), exclusive=True)
child = os.fork()
if child == 0:
    os.close(1)
    signal.pause()
print(child, flush=True)
signal.pause()
"""
TAKER = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
import conftest
print("waits", flush=True)
conftest.lock(pathlib.Path(sys.argv[2]), exclusive=sys.argv[3] == "alone")
print("has it", flush=True)
"""


def started(script, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", script, HERE, *arguments], stdout=subprocess.PIPE, text=True
    )


def test_a_lock_ends_with_its_holder_though_a_child_of_that_lives_on(tmp_path):
    with started(HOLDER, tmp_path) as holder:
        child = int(holder.stdout.readline())
        try:
            with started(TAKER, tmp_path, "alone") as alone, started(TAKER, tmp_path, "") as other:
                for taker in alone, other:
                    assert taker.stdout.readline() == "waits\n"
                    assert taker.poll() is None
                holder.send_signal(signal.SIGKILL)
                for taker in alone, other:
                    assert taker.communicate(timeout=120)[0] == "has it\n"
        finally:
            os.kill(child, signal.SIGKILL)


def test_tests_that_run_together_share_the_lock(tmp_path):
    with started(
        TAKER.replace("conftest.lock", "held = conftest.lock") + "input()", tmp_path, ""
    ) as first:
        assert first.stdout.readline() == "waits\n"
        assert first.stdout.readline() == "has it\n"
        with started(TAKER, tmp_path, "") as second:
            assert second.communicate(timeout=120)[0] == "waits\nhas it\n"
        first.kill()


def test_the_tests_of_a_file_share_a_worker_but_those_of_labs_and_systems_have_their_own():
    def shared(*nodeids):
        split = OneWorkerForAFileOrALab._split_scope
        return len({split(None, nodeid) for nodeid in nodeids}) == 1

    every = "tests/labs/test_every_lab.py::test_runs"
    rubrics = "tests/labs/test_rubrics.py::test_it"
    of_one = "tests/labs/test_03_rank_mapping.py::test_a_figure[wide]"
    assert shared(
        "tests/cli/test_command_line.py::test_a",
        "tests/cli/test_command_line.py::TestB::test_c[03-x]",
    )
    assert shared(f"{every}[03-rank-mapping]", of_one)
    assert not shared(f"{every}[03-rank-mapping]", f"{every}[04-topology]")
    assert not shared(f"{every}[03-rank-mapping]", f"{rubrics}[03-rank-mapping]")
    demo = "tests/fresh/test_fresh_systems.py::TestMakeDemo"
    assert shared(f"{demo}::test_a[trixie root]", f"{demo}::test_b[trixie root]")
    assert not shared(f"{demo}::test_a[trixie root]", f"{demo}::test_a[trixie student]")


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no shared memory here")
def test_shared_memory_that_a_process_uses_is_not_left_behind():
    name = f"mpilab-test-{os.getpid()}"
    with open(f"/dev/shm/{name}", "w+b") as file:
        file.write(b"x" * 4096)
        file.flush()
        try:
            assert conftest._used_by_nobody({name, "no-such-name"}) == {name}
            with mmap.mmap(file.fileno(), 4096):
                assert conftest._used_by_nobody({name}) == set()
        finally:
            os.unlink(f"/dev/shm/{name}")
