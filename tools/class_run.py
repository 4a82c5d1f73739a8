"""Run a whole class through the kit's commands, and print what each step takes, in Markdown.

    python tools/class_run.py [--students 120] [--slurm SHARES] [--keep DIR]

Makes a class of that size from the answers of the sample class, as the zip and the grading
worksheet that Moodle would offer for download; every tenth student hands in a day late, and every
twentieth nothing. Then collects it, grades it in two shares, merges these, marks the texts, gives
zeros, deducts for lateness, reports, exports and returns feedback: each step by the command that an
instructor would type. At the end, the worksheet must have a mark for everybody but those whose
submission cannot be judged. `make class` runs it; docs/performance.md has such a table.

With --slurm, slurm/submit-class.sh grades and merges SHARES shares on a Slurm cluster instead, one
on each node. On a machine without one, root can make one of four nodes that share the cores:

    python tests/slurm/real_slurm.py --nodes 4 make class SLURM=4

"largest process" is the highest resident memory of any process of a step, as the kernel counts it.
"all together" is the proportional share of memory of all its processes, sampled twice a second.
Of a Slurm job, both are of the processes that it has on this machine, sampled; its processor time
is not known.
"""

import argparse
import csv
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

import psutil

from mpilab.errors import InputError
from mpilab.util import door
from mpilab.util.files import csv_text
from mpilab.util.processes import processor_seconds

ROOT = Path(__file__).resolve().parents[1]
LAB = "02-allgather"
SAMPLE_CLASS = ROOT / "grading" / "sample-class"
SAMPLED_EVERY_S = 0.5
LOOK_S = 1.0  # between questions to Slurm, which announces no end
MIB = 1 << 20


@dataclass(frozen=True)
class Step:
    """What a command took: wall and processor seconds (None: not known), and memory in bytes."""

    command: str
    wall: float
    processor: float | None
    largest: int
    together: int


def moodle_download(folder: Path, students: int) -> None:
    """Write download.zip, a class of the sample class's answers in turn, and worksheet.csv.

    They are in the form of Moodle's 'Download all submissions' and 'Download grading worksheet'.
    The student 'Ada 001' hands in ada's notebook of the sample class, unless it is a twentieth.
    """
    notebooks = sorted(SAMPLE_CLASS.glob(f"*/{LAB}.ipynb"))
    rows = [
        ["Identifier", "Full name", "Status", "Grade", "Maximum grade"]
        + ["Last modified (submission)", "Last modified (grade)", "Feedback comments"]
    ]
    with zipfile.ZipFile(folder / "download.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number, notebook in enumerate(islice(cycle(notebooks), students), start=1):
            name, id_ = f"{notebook.parent.name.title()} {number:03}", 10_000 + number
            status, time = "No submission - ", "-"
            if number % 20:
                archive.write(notebook, f"{name}_{id_}_assignsubmission_file/{LAB}.ipynb")
                status, time = "Submitted for grading - ", ON_TIME
            if number % 20 == 10:
                status, time = "Submitted for grading - 1 day 1 hour late - ", LATE
            rows.append([f"Participant {id_}", name, status, "", "100", time, "-", ""])
    (folder / "worksheet.csv").write_text(csv_text(rows), encoding="utf-8")


ON_TIME, LATE = "Friday, 20 November 2026, 9:59 PM", "Sunday, 22 November 2026, 12:59 AM"
DUE = "2026-11-20T23:59"


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


def run(command: str, folder: Path, status: int = 0) -> Step:
    """Run 'mpilab COMMAND' in a folder; the Step that it was. Its exit status must be `status`."""
    words = [sys.executable, "-m", "mpilab", *command.split()]
    began = time.perf_counter()
    before = processor_seconds(resource.RUSAGE_CHILDREN)
    with open(folder / "log.txt", "ab") as log:
        process = subprocess.Popen(words, cwd=folder, stdout=log, stderr=log)
        with sampled(psutil.Process().children) as (_, together):
            _, ended, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(ended)
    wall = time.perf_counter() - began
    if process.returncode != status:
        raise InputError(f"mpilab {command}: exit status {process.returncode}; see {log.name}")
    seconds = processor_seconds(resource.RUSAGE_CHILDREN) - before
    return Step(f"mpilab {command}", wall, seconds, used.ru_maxrss << 10, max(together))


def run_on_slurm(shares: int, folder: Path) -> Step:
    """Grade the class by slurm/submit-class.sh; the Step up to the merged gradebook."""
    words = ["slurm/submit-class.sh", "class", LAB, "out", str(shares)]
    command = " ".join(words)
    began = time.perf_counter()
    called = [str(ROOT / words[0]), *words[1:]]
    said = subprocess.run(called, cwd=folder, capture_output=True, text=True)
    jobs = re.findall(r"job (\d+)", said.stdout)
    if said.returncode or len(jobs) != 2:
        raise InputError(f"{command}: {(said.stderr or said.stdout).strip()}")
    with sampled(lambda: _of_jobs(jobs)) as (largest, together):
        while _are_active(jobs):
            time.sleep(LOOK_S)
    if not (folder / "out" / "grades.csv").exists():
        raise InputError(f"{command}: no grades.csv; see {folder / 'out' / 'logs'}")
    return Step(command, time.perf_counter() - began, None, max(largest), max(together))


def _are_active(jobs: list[str]) -> bool:
    """Whether Slurm still has one of these jobs to run; it forgets jobs some time after the end."""
    states = "PENDING,RUNNING,CONFIGURING,COMPLETING,SUSPENDED,REQUEUED"
    asked = ["squeue", "-h", "-j", ",".join(jobs), "-t", states, "-o", "%i"]
    return bool(subprocess.run(asked, capture_output=True, text=True).stdout.strip())


def _of_jobs(jobs: list[str]) -> list[psutil.Process]:
    """The processes of these Slurm jobs that this machine shows, without most descendants."""
    found = []
    for process in psutil.process_iter():
        try:
            environment = process.environ()
        except psutil.Error:  # it has ended, or is another user's
            continue
        names = ("SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID")
        if any(environment.get(name) in jobs for name in names):
            found.append(process)
    return found


@contextmanager
def sampled(
    roots: Callable[[], Iterable[psutil.Process]],
) -> Iterator[tuple[list[int], list[int]]]:
    """Context manager for two lists of samples of the processes that `roots` returns, and their
    descendants, in bytes: the largest one's resident memory, and the memory of all."""
    largest, together, over = [0], [0], threading.Event()

    def sample() -> None:
        while not over.wait(SAMPLED_EVERY_S):
            one, all_ = _memory(roots)
            largest.append(one)
            together.append(all_)

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield largest, together
    finally:
        over.set()
        thread.join()


def _memory(roots: Callable[[], Iterable[psutil.Process]]) -> tuple[int, int]:
    """(largest resident set size, sum of proportional set sizes) of some processes and all their
    descendants, in bytes."""
    processes, largest, total = set(), 0, 0
    for root in roots():
        try:
            processes |= {root, *root.children(recursive=True)}
        except psutil.Error:  # it has ended meanwhile
            continue
    for process in processes:
        try:
            memory = process.memory_full_info()
        except psutil.Error:  # it has ended meanwhile
            continue
        largest, total = max(largest, memory.rss), total + memory.pss
    return largest, total


def steps(students: int, folder: Path, shares: int = 0) -> Iterator[Step]:
    """The Steps of a class of `students`, run in an empty folder; on Slurm if `shares` is given."""
    moodle_download(folder, students)
    yield run(f"collect download.zip class --lab {LAB} --roster worksheet.csv", folder)
    if shares:
        yield run_on_slurm(shares, folder)
    else:
        for share in (1, 2):
            grade = f"grade class --lab {LAB} --share {share}/2 --out share-{share} --no-progress"
            yield run(grade, folder)
        yield run(f"merge out share-1 share-2 --submissions class --lab {LAB}", folder)
    yield run(f"marks export out manual.csv --lab {LAB}", folder)
    give_points(folder / "manual.csv")
    yield run(f"marks import out manual.csv --lab {LAB}", folder)
    yield run(f"marks absent out --lab {LAB} --zero", folder)
    yield run(f"marks late out --lab {LAB} --due {DUE} --per-day 10%", folder)
    yield run(f"report out --lab {LAB}", folder)
    for target in ("csv", "moodle --template worksheet.csv", "gradescope"):
        yield run(f"export out --lab {LAB} --to {target} --partial", folder)
    yield run("feedback out --template worksheet.csv --partial", folder)
    check(students, folder)


def check(students: int, folder: Path) -> None:
    """Raise InputError unless the filled worksheet has the marks that it should have."""
    with open(folder / "out" / "grades.csv", encoding="utf-8", newline="") as file:
        marks = {row["student"]: row for row in csv.DictReader(file)}
    with open(folder / "out" / "moodle" / "worksheet.csv", encoding="utf-8", newline="") as file:
        given = {row["Full name"]: row["Grade"] for row in csv.DictReader(file)}
    without = {name for name, row in marks.items() if row["status"] == "ungradable"}
    late = {name for name, row in marks.items() if float(row["penalty"] or 0) > 0}
    for what, found, wanted in (
        ("students", len(marks), students),
        (
            "marks",
            {name: mark for name, mark in given.items() if mark}.keys(),
            marks.keys() - without,
        ),
        ("zeros for nothing", {given[name] for name in given if int(name[-3:]) % 20 == 0}, {"0"}),
        ("late students", {int(name[-3:]) % 20 for name in late}, {10}),
    ):
        if found != wanted and students >= 20:
            raise InputError(f"{what}: {found} instead of {wanted}; see {folder}")


def table(students: int, done: list[Step]) -> str:
    """The Steps as a table in Markdown, with their sums, and seconds per student."""
    rows = [
        f"| `{each.command}` | {each.wall:.1f} s | {_seconds(each.processor)} "
        f"| {each.largest / MIB:.0f} MiB | {each.together / MIB:.0f} MiB |"
        for each in done
    ]
    wall, processor = sum(each.wall for each in done), sum(each.processor or 0 for each in done)
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


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.1f} s"


def main() -> None:
    """Run the class, and print the table; progress on standard error."""
    parser = argparse.ArgumentParser(description="Run a class through the kit's commands.")
    parser.add_argument("--students", type=int, default=120, help="size (default: %(default)s)")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="a new folder to keep the files in"
    )
    parser.add_argument(
        "--slurm", type=int, default=0, metavar="SHARES", help="grade on a Slurm cluster"
    )
    options = parser.parse_args()
    if options.students < 1:
        raise InputError(f"--students {options.students}: write a number from 1")
    if options.slurm < 0 or (options.slurm and shutil.which("sbatch") is None):
        raise InputError(
            f"--slurm {options.slurm}: write a number of shares, on a machine with sbatch; "
            "without, tests/slurm/real_slurm.py makes a Slurm"
        )
    with tempfile.TemporaryDirectory(prefix="mpilab-class-") as scratch:
        folder = options.keep or Path(scratch)
        try:
            folder.mkdir(parents=True, exist_ok=not options.keep)
        except FileExistsError as error:
            raise InputError(f"{folder}: exists already; name a new folder") from error
        done = []
        for step in steps(options.students, folder, options.slurm):
            print(f"{step.wall:8.1f} s  {step.command}", file=sys.stderr, flush=True)
            done.append(step)
    print(table(options.students, done))


if __name__ == "__main__":
    sys.exit(door.run("tools/class_run.py", main))
