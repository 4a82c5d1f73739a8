"""Other programs that the kit starts: how they are ended, and what they said."""

import os
import re
import subprocess
from collections import namedtuple

import psutil

POLITELY_S = 2.0  # what mpirun, or a cluster's guardian, gets to tidy up
DIES_S = 5.0  # a killed process is gone at once, unless the machine is very busy

# What a program said: `code` is None where it was ended after its time limit.
Said = namedtuple("Said", "code stdout stderr")


def run(command, limit, *, environment=None, stdin=None, cwd=None):
    """Run a program to its end, `limit` seconds at most; what it Said. All that it started, and
    that is still its child, has ended then, also where we are interrupted.

    stdin   text for it; None: there is nothing to read.

    Raises FileNotFoundError where there is no such program.
    """
    process = subprocess.Popen(
        [str(word) for word in command], env=environment, cwd=cwd,
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="replace",
        start_new_session=True)  # fmt: skip
    try:
        stdout, stderr = process.communicate(stdin, timeout=limit)
        return Said(process.returncode, stdout, stderr)
    except BaseException as error:
        end_family(process.pid)
        stdout, stderr = process.communicate()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        return Said(None, stdout, stderr)


def end_family(pid, *, politely=True):
    """End a process and all that descend from it; `politely` lets them tidy up for 2 seconds."""
    try:
        parent = psutil.Process(pid)
        left = [*parent.children(recursive=True), parent]
        if politely:
            parent.terminate()
    except psutil.NoSuchProcess:
        return
    if politely:
        _, left = psutil.wait_procs(left, timeout=POLITELY_S)
    for process in left:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue  # it ended by itself meanwhile
    psutil.wait_procs(left, timeout=DIES_S)


def trouble(said, lines=2):
    """Why a program did not end well, in one line, from what it Said."""
    if said.code is None:
        load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
        busy = f" (load {load:.1f} on {cores} cores: try again when less is running)"
        return f"no end within its time limit{busy if load > cores else ''}"
    for stream in said.stderr, said.stdout:
        stream = "".join(c if c.isprintable() or c == "\n" else " " for c in stream)
        # Open MPI says what is wrong between two lines of dashes; that a rank has ended says less.
        boxes = [" ".join(box.split()) for box in re.split(r"^-{20,}$", stream, flags=re.M)[1::2]]
        boxes = [box for box in boxes if box and not box.startswith(("prterun", "mpirun"))]
        if boxes:
            return boxes[0][:200]
        if text := [line.strip() for line in stream.splitlines() if line.strip()]:
            return " / ".join(text[-lines:])[:300]
    return f"exit status {said.code}"
