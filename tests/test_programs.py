"""The tool that tells which programs use a command's processor time."""

import subprocess
import sys
from pathlib import Path

import programs
import psutil
import pytest

ROOT = Path(__file__).resolve().parents[1]

BUSY = """
import subprocess, sys, time
while time.process_time() < 0.4: pass
subprocess.run(["sh", "-c", "exec make --version"])
sys.exit(3)
"""


# A process whose parent has ended; the command ends once it is gone.
ORPHAN = """
import os, subprocess, sys, time
orphan = subprocess.check_output(["sh", "-c", "sleep 0.2 >/dev/null & echo $!"], text=True).strip()
until = time.monotonic() + 30
while os.path.exists(f"/proc/{orphan}"):
    if time.monotonic() > until: sys.exit("it is still there")
"""


def told(*command):
    """(exit status, rows) of the tool, as [[words, number, seconds]]."""
    tool = [sys.executable, ROOT / "tools" / "programs.py", *command]
    done = subprocess.run(tool, capture_output=True, text=True)
    return done, [line.strip("| ").split(" | ") for line in done.stdout.splitlines()[2:]]


def test_a_command_s_time_is_told_by_program_and_its_exit_status_kept():
    done, rows = told(sys.executable, "-c", BUSY)
    assert done.returncode == 3
    seconds = {row[0]: float(row[-1].removesuffix(" s")) for row in rows}
    assert seconds["other programs in Python"] >= 0.4
    assert seconds["all"] >= 0.4
    assert "GNU Make" in done.stderr and "GNU Make" not in done.stdout


def test_orphans_do_not_stay_as_zombies():
    done, rows = told(sys.executable, "-c", ORPHAN)
    assert done.returncode == 0, done.stderr
    assert "other programs" in [row[0] for row in rows]


def test_a_zombie_that_is_reaped_while_it_is_read_is_left_out(monkeypatch):
    def is_zombie(process):
        raise psutil.ZombieProcess(process.pid)

    def is_gone(process):
        raise psutil.NoSuchProcess(process.pid)

    seen = {}
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        monkeypatch.setattr(psutil.Process, "cmdline", is_zombie)
        monkeypatch.setattr(psutil.Process, "ppid", is_gone)
        programs.read(seen, command=0)
    assert child.pid not in [each.pid for each in seen]


def test_a_program_that_is_not_there_is_named_without_a_traceback():
    done, _ = told("/no/such/program")
    assert done.returncode == 1
    assert "/no/such/program: No such file or directory; name a program" in done.stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/k/.venv/bin/python -m ipykernel_launcher -f x.json", "notebook kernels"),
        ("/usr/libexec/gcc/cc1 -quiet a.c", "compilers"),
        ("gcc -shared a.c", "compilers"),
        ("/k/build/mpilab-harness kernels.so bcast_ring", "ranks on Open MPI"),
        ("/usr/lib/simgrid/smpimain ./program --cfg=smpi/np:4", "simulations"),
        ("sh /usr/bin/smpirun -np 4 ./program", "simulations"),
        ("/usr/bin/bwrap --unshare-all", "bubblewrap"),
        ("/k/.venv/bin/python -m pytest", "pytest"),
        ("sleep 1", "other programs"),
    ],
)
def test_what_a_process_is_follows_from_its_command_line(line, words):
    assert programs.kind_of(line) == words
