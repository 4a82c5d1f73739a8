"""The grader's memory use does not grow with the class."""

import subprocess
import sys

from small_kit import ROOT

LAB = "02-allgather"
LARGE = 8 << 20
TORN = b"{" + b" " * LARGE
# The peak in KiB comes last. (That of getrusage would include the process that started it.)
CODE = (
    "import re, sys; from mpilab.grading.grade import grade; "
    f"report = grade(sys.argv[1], {LAB!r}, sys.argv[2], jobs=2, progress=False); "
    "status = open('/proc/self/status').read(); "
    "print(len(report.graded), re.search(r'VmHWM:\\s+(\\d+) kB', status)[1])"
)


def peak(folder, students):
    for number in range(students):
        path = folder / "class" / f"student{number:02}" / f"{LAB}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_bytes(TORN)
    done = subprocess.run(
        [sys.executable, "-c", CODE, folder / "class", folder / "out"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    graded, most_kib = map(int, done.stdout.split()[-2:])
    assert graded == students
    assert (folder / "out" / "grades.csv").read_text().count("ungradable") == students
    return most_kib << 10


def test_forty_large_submissions_take_no_more_than_four(tmp_path):
    assert peak(tmp_path / "forty", 40) - peak(tmp_path / "four", 4) < 8 * LARGE
