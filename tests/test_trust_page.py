"""The numbers on the page about trust are those of what is tried."""

import re

from mpilab.grading.proving import bugs_of
from mpilab.judging.agreement import can_be_simulated, to_simulate
from mpilab.judging.rubric import KERNEL, load
from mpilab.util.kit import ROOT

PAGE = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
TESTS = ROOT / "tests"


def number(before_words):
    return {int(found) for found in re.findall(rf"(\d+) {before_words}", PAGE)}


def simulated(rubric):
    """The fewest and the most cases that are simulated of a kernel which moves data."""
    kernels = [
        kernel
        for exercise in rubric.exercises
        if exercise.kind == KERNEL
        for kernel in exercise.variants or (exercise,)
    ]
    counts = [
        len(to_simulate(kernel)[0])
        for kernel in kernels
        if kernel.collective != "barrier" and can_be_simulated(kernel)
    ]
    if not counts:
        return "none"
    return f"{counts[0]}" if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)}"


def test_labs_and_their_seeded_bugs():
    rows, total = [], 0
    for path in sorted((ROOT / "grading").glob("*/rubric.toml")):
        rubric, lab = load(path), path.parent.name
        bugs = bugs_of(lab, rubric)
        items = sum(len(exercise.items) for exercise in rubric.exercises)
        kinds = len({bug.kind for bug in bugs})
        rows.append(
            f"| {lab} | {len(rubric.exercises)} | {items} | {len(bugs)} | {kinds} | "
            f"{simulated(rubric)} |"
        )
        total += len(bugs)
    assert re.findall(r"^\| \d\d-.*\|$", PAGE, re.MULTILINE) == rows
    assert number("bugs") == {total}
    assert number("labs") == {len(rows)}


def test_attacks():
    listed = (TESTS / "hostile" / "README.md").read_text(encoding="utf-8")
    assert number("attacks") == {len(re.findall(r"^\| `\w+` \|", listed, re.MULTILINE))}


def test_kills():
    test = (TESTS / "grading" / "test_killed.py").read_text(encoding="utf-8")
    assert number("kills") == {int(re.search(r"^KILLS = (\d+)$", test, re.MULTILINE)[1])}


def test_submissions_of_the_sample_class():
    students = [path for path in (ROOT / "grading" / "sample-class").iterdir() if path.is_dir()]
    assert number("submissions") == {len(students)}


def test_every_test_that_it_names_is_there():
    for name in re.findall(r"`(tests/[\w/.]+)`", PAGE):
        assert (ROOT / name).exists(), name
