import os
import signal
import subprocess
from pathlib import Path

import pytest

from mpilab.grading import supervisor


@pytest.fixture
def v2(tmp_path):
    """A folder that looks like the root of a version 2 tree, for tests that need no real one."""
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    (tmp_path / "cgroup.subtree_control").write_text("cpu\n")
    return tmp_path


def test_v2_is_known_by_its_controllers(v2, tmp_path):
    assert supervisor.control_groups(str(v2)) == "v2"
    (v2 / "cgroup.controllers").write_text("cpu\n")
    assert supervisor.control_groups(str(v2)) is None


def test_v1_is_known_by_its_folders(tmp_path):
    assert supervisor.control_groups(str(tmp_path)) is None
    (tmp_path / "memory").mkdir()
    (tmp_path / "pids").mkdir()
    assert supervisor.control_groups(str(tmp_path)) == "v1"


def test_a_v2_group_enables_its_controllers_and_sets_its_limits(v2):
    group = supervisor.create_group("v2", 1 << 20, 7, root=str(v2))
    assert (v2 / "cgroup.subtree_control").read_text() == "+memory +pids"
    (folder,) = set(group.directories.values())
    written = {name: Path(folder, name).read_text() for name in os.listdir(folder)}
    assert written == {"memory.max": "1048576", "pids.max": "7"}


def test_a_v2_group_counts_what_the_kernel_refused(v2):
    group = supervisor.create_group("v2", 1 << 20, 7, root=str(v2))
    folder = group.directories["memory"]
    with open(f"{folder}/memory.events", "w") as file:
        file.write("low 0\nhigh 0\nmax 31\noom 2\noom_kill 1\n")
    with open(f"{folder}/pids.events", "w") as file:
        file.write("max 5\n")
    assert group.refusals() == {"memory": 1, "processes": 5}


def test_a_group_that_cannot_be_limited_is_not_left_behind(v2, monkeypatch):
    def refuse(*arguments):
        raise PermissionError("read-only")

    monkeypatch.setattr(supervisor, "_limit", refuse)
    with pytest.raises(PermissionError):
        supervisor.create_group("v2", 1 << 20, 7, root=str(v2))
    assert [path.name for path in v2.iterdir() if path.is_dir()] == []


def test_groups_of_supervisors_that_are_gone_are_swept_away(v2):
    gone = subprocess.Popen(["true"])
    gone.wait()
    here = os.stat("/proc/self/ns/pid").st_ino
    swept = {f"mpilab-{gone.pid}-1a", f"mpilab-{gone.pid}-1b-{here}"}
    kept = {f"mpilab-{os.getpid()}-1a-{here}", "mpilab-x", "system.slice"}
    # The group of a supervisor in another container, whose number may belong to a running process
    # here.
    kept.add(f"mpilab-{gone.pid}-1c-{here + 1}")
    for name in swept | kept:
        (v2 / name).mkdir()
    supervisor.sweep_groups(str(v2))
    assert {path.name for path in v2.iterdir() if path.is_dir()} == kept


@pytest.mark.privileged
@pytest.mark.skipif(
    os.geteuid() != 0 or supervisor.control_groups() is None, reason="needs root and control groups"
)
def test_a_real_group_holds_its_process_and_can_be_removed():
    group = supervisor.create_group(supervisor.control_groups(), 64 << 20, 10)
    try:
        child = os.fork()
        if child == 0:
            group.join()
            try:
                for _ in range(20):
                    if os.fork() == 0:
                        signal.pause()
            except OSError:
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert group.refusals()["processes"] > 0
    finally:
        with open(f"{group.directories['pids']}/cgroup.procs") as file:
            for pid in file.read().split():
                os.kill(int(pid), signal.SIGKILL)
        group.remove()
    assert not any(os.path.exists(folder) for folder in group.directories.values())
