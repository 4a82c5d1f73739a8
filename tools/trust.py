"""Count the exercises, items and seeded bugs of each lab, and the attacks, for docs/trust.md.

python tools/trust.py        update the tables of that page
"""

import re
from pathlib import Path

from mpilab.grading.proving import bugs_of
from mpilab.judging.agreement import can_be_simulated, to_simulate
from mpilab.judging.rubric import KERNEL, Rubric, load
from mpilab.util.text import update

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "trust.md"
ATTACKS = ROOT / "tests" / "hostile" / "README.md"
HEAD = (
    "| lab | exercises | items | seeded bugs | kinds of bugs | simulated cases per kernel |",
    "|---|---:|---:|---:|---:|---:|",
)


def table() -> str:
    """A Markdown table with a row for each lab."""
    rows = []
    for path in sorted((ROOT / "grading").glob("*/rubric.toml")):
        rubric, lab = load(path), path.parent.name
        bugs = bugs_of(lab, rubric)
        items = sum(len(exercise.items) for exercise in rubric.exercises)
        kinds = len({bug.kind for bug in bugs})
        rows.append(
            f"| {lab} | {len(rubric.exercises)} | {items} | {len(bugs)} | {kinds} | "
            f"{simulated(rubric)} |"
        )
    return "\n".join([*HEAD, *rows])


def simulated(rubric: Rubric) -> str:
    """The smallest and the largest number of simulated cases of a kernel that moves data."""
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


def attacks() -> str:
    """A Markdown table of the hostile submissions in tests/hostile, by what they attack."""
    rows = ["| attacks on the grader | number | with 0 points expected |", "|---|---:|---:|"]
    for section in ATTACKS.read_text(encoding="utf-8").split("\n## ")[1:]:
        title = section.splitlines()[0].partition(":")[0]
        points = re.findall(r"^\| `\w+` \|.*\| ([\d.]+) of [\d.]+ \|$", section, re.MULTILINE)
        rows.append(f"| {title} | {len(points)} | {points.count('0')} |")
    return "\n".join(rows)


if __name__ == "__main__":
    update(PAGE, {"labs": table(), "attacks": attacks()})
