"""Child processes: run them, end them with all their descendants, and explain their failures."""

import ctypes
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from mpilab.util import door

POLITELY_S = 2.0  # time for mpirun, or a cluster's supervisor, to clean up
DIES_S = 5.0  # a killed process ends at once, unless the machine is very busy

PR_SET_DUMPABLE = 4

# PID namespaces: a process has one number inside its namespace and another outside.
#
# The number that a program on emulated hosts (or in a sandbox) reports for itself may belong to
# another process out here. See pid_namespaces(7).


def hide_memory() -> None:
    """Let no other process of this user read the memory or open the files of this one (Linux)."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def namespace(process: int) -> int | None:
    """The ID of a process's PID namespace; None if it has ended or belongs to another user."""
    try:
        return Path(f"/proc/{process}/ns/pid").stat().st_ino
    except OSError:
        return None


def outside(inside: int, of: int | None) -> int | None:
    """The number here of the process that is `inside` in the PID namespace `of`, or None."""
    if of is None:  # `namespace` returns None for processes that ended or are not ours
        return None
    for process in _all():
        if _innermost(process) == inside and namespace(process) == of:
            return process
    return None


def writer(path: str | Path, number: int) -> int | None:
    """The process that has mapped the file `path` and calls itself `number`, or None.

    Works across namespaces: the mapped file identifies the process. (macOS has neither namespaces
    nor a way to ask.)
    """
    if not sys.platform.startswith("linux"):
        return number
    if _has_mapped(number, path) and _innermost(number) == number:
        return number
    for process in _all():
        if process != number and _innermost(process) == number and _has_mapped(process, path):
            return process
    return None


def _all() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _innermost(process: int) -> int | None:
    """The number of a process in its own PID namespace; None if it has ended or is hidden
    (/proc mounted with hidepid)."""
    try:
        with open(f"/proc/{process}/status", "rb") as file:
            for line in file:
                if line.startswith(b"NSpid:"):
                    return int(line.split()[-1])
    except OSError:
        return None
    return process  # a kernel without PID namespaces


def _has_mapped(process: int, path: str | Path) -> bool:
    """True if the process has mapped this file; False if it ended or belongs to another user."""
    wanted = os.fsencode(Path(path).resolve())
    try:
        with open(f"/proc/{process}/maps", "rb") as file:
            return any(line.split(None, 5)[5:] == [wanted + b"\n"] for line in file)
    except OSError:
        return False


def processor_seconds(*whose: int) -> float:
    """The user and system time so far of `whose`: resource.RUSAGE_SELF, RUSAGE_CHILDREN, or both.

    The time of a child counts, with that of its children, once it has been waited for.
    """
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, whose))


class ProcessorTime:
    """The processor time of this process and its descendants so far, in seconds.

    Call it to look. Unless `fresh`, it looks at most every LOOK_S, because it lists processes. What
    processes take after the last look before they are killed together with their parents is not
    counted, so look before and after that.
    """

    LOOK_S = 0.1

    def __init__(self) -> None:
        self.seen, self.lost, self.looked = 0.0, 0.0, -self.LOOK_S

    def __call__(self, fresh: bool = False) -> float:
        now = time.monotonic()
        if fresh or now - self.looked >= self.LOOK_S:
            seen = self._look()
            # It can only have become less because processes were killed that nobody waited for.
            self.lost += max(self.seen - seen, 0.0)
            self.looked, self.seen = now, seen
        return self.seen + self.lost

    def _look(self) -> float:
        used = processor_seconds(resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        for process in psutil.Process().children(recursive=True):
            try:
                used += sum(process.cpu_times()[:4])  # with its children that have ended
            except psutil.NoSuchProcess:
                continue  # it has just ended: its parent's time will include it
        return used


class Said(NamedTuple):
    """The output of a program; `code` is None if it was ended after its time limit."""

    code: int | None
    stdout: str
    stderr: str


def run(
    command: Iterable[object],
    limit: float,
    *,
    environment: Mapping[str, str] | None = None,
    stdin: str | None = None,
    cwd: str | Path | None = None,
    merged: bool = False,
) -> Said:
    """Run a program for at most `limit` seconds; return its output and exit code (Said).

    After a time-out or an interrupt, it and all its descendants are ended. What it leaves running
    counts as a part of it for as long as that may write to its output.

    stdin    input text; None: empty input.
    merged   whether errors go to the output as well, as in a terminal.

    Raises FileNotFoundError if there is no such program.
    """
    process = None
    try:
        with door.deferred():
            process = subprocess.Popen(
                [str(word) for word in command],
                env=environment,
                cwd=cwd,
                stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if merged else subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
        stdout, stderr = process.communicate(stdin, timeout=limit)
        return Said(process.returncode, stdout, stderr or "")
    except BaseException as error:
        if process is None:
            raise
        end_family(process.pid)
        stdout, stderr = _rest(process)
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        return Said(None, stdout, stderr)


def _rest(process: subprocess.Popen[str]) -> tuple[str, str]:
    """The whole output of a program that was ended. If something that has left its session still
    holds the pipes open, what came until now."""
    try:
        stdout, stderr = process.communicate(timeout=DIES_S)
        return stdout, stderr or ""
    except subprocess.TimeoutExpired as late:
        for pipe in filter(None, (process.stdout, process.stderr)):
            pipe.close()
        stdout, stderr = (_text(each) for each in (late.stdout, late.stderr))
        return stdout, stderr


def _text(output: bytes | str | None) -> str:
    """Output in a TimeoutExpired: bytes even where the program was started for text."""
    return output.decode("utf-8", "replace") if isinstance(output, bytes) else output or ""


def environment_of(python: str | Path) -> dict[str, str]:
    """The environment variables to run `python` with.

    PATH begins with its folder, where a program may look for others of its environment by their
    bare names, as nbgrader does for alembic.
    """
    path = f"{Path(python).absolute().parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {**os.environ, "PATH": path}


def end_family(pid: int, *, politely: bool = True) -> None:
    """End a process, all its descendants, and its session if it leads one; `politely` gives them 2
    seconds to clean up."""
    left = _family(pid)
    if politely:
        with suppress(psutil.NoSuchProcess):
            psutil.Process(pid).terminate()
        _, left = psutil.wait_procs(left, timeout=POLITELY_S)
    for process in left:
        with suppress(psutil.NoSuchProcess):  # it has just ended on its own
            process.kill()
    psutil.wait_procs(left, timeout=DIES_S)


def _family(pid: int) -> list[psutil.Process]:
    family = set()
    for number in {pid, *psutil.pids()}:
        # A process whose parent has ended belongs to init now, but still to its session.
        with suppress(psutil.NoSuchProcess, ProcessLookupError, PermissionError):
            if pid in (number, os.getsid(number)):
                process = psutil.Process(number)
                family |= {process, *process.children(recursive=True)}
    return list(family)


def trouble(said: Said, lines: int = 2) -> str:
    """Why a program failed, in one line, from its output (Said)."""
    if said.code is None:
        load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
        busy = f" (load {load:.1f} on {cores} cores: try again when the machine is less busy)"
        return f"not finished within its time limit{busy if load > cores else ''}"
    for stream in said.stderr, said.stdout:
        stream = "".join(c if c.isprintable() or c == "\n" else " " for c in stream)
        # Open MPI prints the cause between two lines of dashes; "a rank has ended" says less.
        boxes = [" ".join(box.split()) for box in re.split(r"^-{20,}$", stream, flags=re.M)[1::2]]
        boxes = [box for box in boxes if box and not box.startswith(("prterun", "mpirun"))]
        if boxes:
            return boxes[0][:200]
        if text := [line.strip() for line in stream.splitlines() if line.strip()]:
            return " / ".join(text[-lines:])[:300]
    return f"exit status {said.code}"
