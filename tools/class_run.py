"""Run a whole class through the kit's commands, and print what each step takes, in Markdown.

    python tools/class_run.py [--students 120] [--keep DIR]

Makes a class of that size from the answers of the sample class, as a zip that Moodle would offer
for download. Then collects it, grades it in two shares, merges these, marks the texts, reports,
exports and returns feedback: each step by the command that an instructor would type. `make class`
runs it; docs/performance.md has such a table.

"largest process" is the highest resident memory of any process of a step, as the kernel counts it.
"all together" is the proportional share of memory of all its processes, sampled twice a second.
"""

import argparse
import csv
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

import psutil

from mpilab.errors import InputError
from mpilab.util import door

ROOT = Path(__file__).resolve().parents[1]
LAB = "02-allgather"
SAMPLE_CLASS = ROOT / "grading" / "sample-class"
SAMPLED_EVERY_S = 0.5
MIB = 1 << 20


@dataclass(frozen=True)
class Step:
    """What a command took: wall and processor seconds, and memory in bytes."""

    command: str
    wall: float
    processor: float
    largest: int
    together: int


def moodle_zip(path: Path, students: int) -> None:
    """Write a class of the sample class's answers, in turn, as Moodle's 'Download all submissions'.

    The student 'Ada 001' hands in ada's notebook of the sample class.
    """
    notebooks = sorted(SAMPLE_CLASS.glob(f"*/{LAB}.ipynb"))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, notebook in enumerate(islice(cycle(notebooks), students), start=1):
            name = f"{notebook.parent.name.title()} {number:03}"
            archive.write(notebook, f"{name}_{10_000 + number}_assignsubmission_file/{LAB}.ipynb")


def give_points(path: Path) -> None:
    """Fill in the CSV of 'mpilab marks export': 4 points for each text, and a comment."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row.update(points="4", comment="Which of the two terms is it?")
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def run(command: str, folder: Path) -> Step:
    """Run 'mpilab COMMAND' in a folder; the Step that it was.

    Exit status 1 means that some students were left out, with a list, as the unreadable ones are.
    """
    words = [sys.executable, "-m", "mpilab", *command.split()]
    began = time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(folder / "log.txt", "ab") as log:
        process = subprocess.Popen(words, cwd=folder, stdout=log, stderr=log)
        with sampled(process.pid) as together:
            _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - began
    if process.returncode not in (0, 1):
        raise InputError(f"mpilab {command}: exit status {process.returncode}; see {log.name}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Step(command, wall, seconds, used.ru_maxrss << 10, max(together))


@contextmanager
def sampled(pid: int) -> Iterator[list[int]]:
    """Context manager for a list of samples: the memory of a process and its descendants, bytes."""
    samples, over = [0], threading.Event()

    def sample() -> None:
        while not over.wait(SAMPLED_EVERY_S):
            samples.append(_memory(pid))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join()


def _memory(pid: int) -> int:
    """The proportional set size of a process and its descendants, in bytes."""
    total = 0
    try:
        first = psutil.Process(pid)
        processes = [first, *first.children(recursive=True)]
    except psutil.Error:
        return 0
    for process in processes:
        try:
            total += process.memory_full_info().pss
        except psutil.Error:  # it has ended meanwhile
            continue
    return total


def steps(students: int, folder: Path) -> Iterator[Step]:
    """The Steps of a class of `students`, run in an empty folder."""
    moodle_zip(folder / "download.zip", students)
    yield run(f"collect download.zip class --lab {LAB}", folder)
    for share in (1, 2):
        grade = f"grade class --lab {LAB} --share {share}/2 --out share-{share} --no-progress"
        yield run(grade, folder)
    yield run(f"merge out share-1 share-2 --submissions class --lab {LAB}", folder)
    yield run(f"marks export out manual.csv --lab {LAB}", folder)
    give_points(folder / "manual.csv")
    yield run(f"marks import out manual.csv --lab {LAB}", folder)
    yield run(f"report out --lab {LAB}", folder)
    for target in ("csv", "moodle", "gradescope"):
        yield run(f"export out --lab {LAB} --to {target} --partial", folder)
    yield run("feedback out --to moodle --roster class/submissions.csv --partial", folder)


def table(students: int, done: list[Step]) -> str:
    """The Steps as a table in Markdown, with their sums, and seconds per student."""
    rows = [
        f"| `mpilab {each.command}` | {each.wall:.1f} s | {each.processor:.1f} s "
        f"| {each.largest / MIB:.0f} MiB | {each.together / MIB:.0f} MiB |"
        for each in done
    ]
    wall, processor = sum(each.wall for each in done), sum(each.processor for each in done)
    return "\n".join(
        [
            "| step | wall time | processor time | largest process | all together |",
            "|---|--:|--:|--:|--:|",
            *rows,
            f"| all, for {students} students | {wall:.0f} s | {processor:.0f} s "
            f"| {max(each.largest for each in done) / MIB:.0f} MiB "
            f"| {max(each.together for each in done) / MIB:.0f} MiB |",
            f"| per student | {wall / students:.1f} s | {processor / students:.1f} s | | |",
        ]
    )


def main() -> None:
    """Run the class, and print the table; progress on standard error."""
    parser = argparse.ArgumentParser(description="Run a class through the kit's commands.")
    parser.add_argument("--students", type=int, default=120, help="size (default: %(default)s)")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="a new folder to keep the files in"
    )
    options = parser.parse_args()
    if options.students < 1:
        raise InputError(f"--students {options.students}: write a number from 1")
    with tempfile.TemporaryDirectory(prefix="mpilab-class-") as scratch:
        folder = options.keep or Path(scratch)
        try:
            folder.mkdir(parents=True, exist_ok=not options.keep)
        except FileExistsError as error:
            raise InputError(f"{folder}: exists already; name a new folder") from error
        done = []
        for step in steps(options.students, folder):
            print(f"{step.wall:8.1f} s  mpilab {step.command}", file=sys.stderr, flush=True)
            done.append(step)
    print(table(options.students, done))


if __name__ == "__main__":
    sys.exit(door.run("tools/class_run.py", main))
