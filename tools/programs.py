"""Show which programs use the processor time of a command, as a table in Markdown.

    python tools/programs.py COMMAND [ARGUMENT ...]

Runs the command, and adds up the processor time (user and system) of all processes that it starts,
by what they are. docs/performance.md has such a table of a lab run by papermill.

Processes are read every 20 ms, or less often if there are so many that it would take a tenth of a
core; what the shortest ones use is only seen as what is missing from the sum that the kernel keeps,
and is listed as such.
"""

import argparse
import ctypes
import os
import re
import resource
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from contextlib import suppress

import psutil

from mpilab.errors import InputError
from mpilab.util import door
from mpilab.util.processes import processor_seconds

READ_EVERY_S, SHARE = 0.02, 0.1
PR_SET_CHILD_SUBREAPER = 36
# What a process is: the first pattern that matches its command line, without the program's folder.
KINDS = [
    (re.compile(pattern), words)
    for pattern, words in (
        (r"python\S* .*ipykernel_launcher", "notebook kernels"),
        (
            r"python\S* .*(mpilab\.cluster import|mpilab/cluster/)",
            "clusters: engines and controller",
        ),
        (r"python\S* .*(papermill|nbconvert)", "papermill, nbconvert"),
        (r"python\S* .*(mpilab\.grading\.inside|mpilab/grading)", "the grader in the sandbox"),
        (r"python\S* .*(-m pytest|exec\(eval\(sys\.stdin)", "pytest"),
        (r"python\S* .*jupyter", "Jupyter's servers"),
        (r"(mpilab-|mpirun|prte|osu|cannon|ping_pong)", "ranks on Open MPI"),
        (r"(smpimain|program --cfg=smpi|sh \S*smpirun)", "simulations"),
        (r"(cc1|as|ld|collect2|lto\S*|gcc|cc|clang\S*|s?mpicc|wasm\S*|make)( |$)", "compilers"),
        (r"bwrap ", "bubblewrap"),
        (r"chrom", "Chromium"),
        (r"(slurm|munge|srun|sbatch|squeue)", "Slurm"),
        (r"(buildah|mmdebstrap|dpkg|apt)", "fresh systems and containers"),
        (r"(python|mpilab )", "other programs in Python"),
    )
]
OTHER, SHORT = "other programs", "processes that ended before they were seen"


# {process: (its command line, its processor seconds)}.
Seen = dict[psutil.Process, tuple[str, float]]


def read(seen: Seen, command: int) -> None:
    """Read the command lines and times of all descendants of this process, and reap the orphans
    among them that have ended. That process `command` has ended is left for later."""
    for process in psutil.Process().children(recursive=True):
        line, _ = seen.get(process, ("", 0.0))
        is_orphan = False
        with suppress(psutil.Error):  # it may be gone at any of these lines
            try:
                times = process.cpu_times()
                line = " ".join(process.cmdline()) or line
            except psutil.ZombieProcess:  # it has ended, and its command line is gone
                is_orphan = process.ppid() == os.getpid() and process.pid != command
            seen[process] = line, times.user + times.system
        if is_orphan:
            os.waitpid(process.pid, os.WNOHANG)


def kind_of(command_line: str) -> str:
    """What a process is, in words."""
    program, blank, rest = command_line.partition(" ")
    line = program.rpartition("/")[2] + blank + rest
    return next((words for pattern, words in KINDS if pattern.match(line)), OTHER)


def measure(command: list[str]) -> tuple[int, dict[str, float], Counter[str]]:
    """(exit status, {kind: processor seconds}, {kind: processes}) of a command."""
    # Daemons become children of this process, so that the kernel counts their time as well.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    seen: Seen = {}
    over = threading.Event()

    def read_on() -> None:
        took = 0.0
        while not over.wait(max(READ_EVERY_S, took / SHARE)):
            began = time.thread_time()
            read(seen, process.pid)
            took = time.thread_time() - began

    before = processor_seconds(resource.RUSAGE_CHILDREN)
    reader = threading.Thread(target=read_on)
    try:
        process = subprocess.Popen(command, stdout=sys.stderr)
    except OSError as error:
        raise InputError(f"{command[0]}: {error.strerror}; name a program") from error
    read(seen, process.pid)
    reader.start()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and can be read
    over.set()
    reader.join()
    read(seen, process.pid)
    status = process.wait()
    while True:  # for daemons that have ended; those that have not are not waited for
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                break
        except ChildProcessError:
            break
    seconds: dict[str, float] = defaultdict(float)
    number = Counter[str]()
    for line, used in seen.values():
        seconds[kind_of(line)] += used
        number[kind_of(line)] += 1
    if (rest := processor_seconds(resource.RUSAGE_CHILDREN) - before - sum(seconds.values())) > 0:
        seconds[SHORT] = rest
    return status, seconds, number


def main() -> int:
    """The command line; see above. The exit status is that of the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND")
    command = parser.parse_args().command
    if not command:
        parser.error("name a command, e.g. python tools/programs.py make test")
    status, seconds, number = measure(command)
    print("| programs | processes | processor time |\n|---|--:|--:|")
    for kind, total in sorted(seconds.items(), key=lambda each: -each[1]):
        print(f"| {kind} | {number[kind] or ''} | {total:.1f} s |")
    print(f"| all | {number.total()} | {sum(seconds.values()):.1f} s |")
    return status


if __name__ == "__main__":
    sys.exit(door.run("tools/programs.py", main))
