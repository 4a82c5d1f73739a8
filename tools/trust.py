"""Count the exercises, items and seeded bugs of each lab, for docs/trust.md.

python tools/trust.py        update the table of that page
"""

from pathlib import Path

from mpilab.grading.proving import bugs_of
from mpilab.judging.agreement import can_be_simulated, to_simulate
from mpilab.judging.rubric import KERNEL, Rubric, load
from mpilab.util.text import update

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "trust.md"
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


if __name__ == "__main__":
    update(PAGE, {"labs": table()})
