"""A grader that is killed at any time resumes where it was: the marks are those of an undisturbed
run, and nothing is left on the machine."""

import os
import random
import shutil
import subprocess
import sys
import time

import psutil
import pytest
from small_kit import LAB, ROOT, WRONG, hand_in, made_kit, newest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

KILLS = 10
MOST_KILLS = 100
JOBS = 2
CODE = (
    "import sys; from mpilab.grading.grade import grade; "
    f"grade(sys.argv[1], {LAB!r}, sys.argv[2], root=sys.argv[3], jobs={JOBS}, progress=False)"
)
NOTHING = """%%kernel bcast_linear
#include "mpilab.h"
MPILAB_BCAST(linear)
{
    (void)buffer, (void)count, (void)datatype, (void)root, (void)comm;
    return MPI_SUCCESS;
}"""
# Blank kernels take no time: there are ten runs and more.
ANSWERS = {
    "anna": {"bcast_linear": None},
    "ben": {"placement": WRONG, "bcast_linear": None},
    "cleo": {"bcast_linear": NOTHING},
    "dan": {"placement": None, "bcast_linear": None, "by_distance": None},
}


def grader(kit, folder, out, scratch):
    """A process that grades the class in `folder` into `out`."""
    return subprocess.Popen(
        [sys.executable, "-c", CODE, folder, out, kit],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(scratch)},
    )


def verdicts(out):
    return {student: run.verdict for student, run in newest(out).items()}


def of_processes(scratch):
    """Processes that belong to a grader that keeps its files in `scratch`."""
    found = []
    for process in psutil.process_iter():
        try:
            if str(scratch) in process.environ().get("TMPDIR", "") or any(
                str(scratch) in word for word in process.cmdline()
            ):
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_at_ten_or_more_random_moments(tmp_path):
    kit, folder, scratch = made_kit(tmp_path / "kit"), tmp_path / "class", tmp_path / "scratch"
    scratch.mkdir()
    for student, answers in ANSWERS.items():
        hand_in(kit, folder, student, **answers)
    began = time.monotonic()
    assert grader(kit, folder, tmp_path / "whole", scratch).wait() == 0
    seconds = time.monotonic() - began
    whole = verdicts(tmp_path / "whole")
    csv = (tmp_path / "whole" / "grades.csv").read_bytes()
    assert set(whole) == set(ANSWERS)

    moments = random.Random(7)
    out, kills, resumed = tmp_path / "killed", 0, 0
    # On a busy machine, many are killed before the first mark: go on until one has begun anew.
    while kills < KILLS or (not resumed and kills < MOST_KILLS):
        process = grader(kit, folder, out, scratch)
        try:
            process.wait(moments.uniform(0, seconds))
        except subprocess.TimeoutExpired:
            process.kill()
            kills += 1
        process.wait()
        known = verdicts(out) if (out / "gradebook.sqlite").exists() else {}
        # What is there is complete and correct.
        assert known == {student: whole[student] for student in known}
        resumed += 0 < len(known) < len(whole)
        if len(known) == len(whole):
            shutil.rmtree(out)
    assert resumed > 0
    assert grader(kit, folder, out, scratch).wait() == 0
    assert verdicts(out) == whole
    assert (out / "grades.csv").read_bytes() == csv
    pages = sorted(path.name for path in (out / "feedback").iterdir())
    assert pages == sorted(f"{student}.html" for student in ANSWERS)
    psutil.wait_procs(of_processes(scratch), timeout=300)
    assert of_processes(scratch) == []
