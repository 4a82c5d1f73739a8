"""A kit with a lab of three small answers, and a class that hands them in."""

import re
from pathlib import Path

import nbformat

from mpilab.grading.gradebook import Gradebook
from mpilab.grading.release import answer_id, release, solutions

ROOT = Path(__file__).resolve().parents[2]
LAB = "00-first-contact"
RUBRIC = """
lab = "00-first-contact"
title = "First contact"

[parameters]
RANKS = 2
SIZES = [1]
REPETITIONS = 1

[[exercise]]
id = "placement"
title = "Which host each rank gets"
kind = "python"
function = "placement"

[[exercise.item]]
id = "by-slot"
title = "By slot"
points = 6
values = [0, 1]
arguments = [["n1 slots=4", 3, "slot"], ["n1 slots=4\\nn2 slots=4", 4, "slot"]]

[[exercise]]
id = "bcast_linear"
title = "The root sends to everybody"
kind = "kernel"
collective = "bcast"
function = "bcast_linear"
allowed = ["point-to-point"]
reference = "bcast/linear.c"

[[exercise.item]]
id = "any-size"
title = "Right result on any number of ranks"
points = 3
ranks = [2, 3]
counts = [1, 7]

[[exercise]]
id = "by_distance"
title = "What the numbers say"
kind = "text"

[[exercise.item]]
id = "text"
title = "Explanation"
points = 15
"""
WRONG = "def placement(hostfile, rank, policy):\n    return 'n2'"


ANSWERS = ("placement", "bcast_linear", "by_distance")
PRINTS = (
    '# %% nbgrader={"grade": false, "grade_id": "check", "locked": true, "schema_version": 3, '
    '"solution": false, "task": false}\n'
    "print('so it is on', placement('n1 slots=4', 3, 'slot'))"
)


def made_kit(root):
    """A kit in the folder `root`: of the lab only the answers, and a cell that prints."""
    for folder in ("labs/source", f"grading/{LAB}"):
        (root / folder).mkdir(parents=True)
    source = (ROOT / "labs" / "source" / f"{LAB}.py").read_text(encoding="utf-8")
    head, *cells = re.split(r"\n(?=# %%(?: |\n))", source)
    kept = [
        next(cell for cell in cells if f'"grade_id": "{name}"' in cell.partition("\n")[0])
        for name in ANSWERS
    ]
    parameters = next(cell for cell in cells if '["parameters"]' in cell)
    lab = "\n".join([head, parameters, kept[0], PRINTS, *kept[1:]])
    (root / "labs" / "source" / f"{LAB}.py").write_text(lab, encoding="utf-8")
    (root / "grading" / LAB / "rubric.toml").write_text(RUBRIC, encoding="utf-8")
    return root


def edit(root, old, new):
    """Change the rubric of a kit."""
    path = root / "grading" / LAB / "rubric.toml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def hand_in(kit, folder, student, **answers):
    """A notebook with the reference's answers, except those that are given; None for a blank."""
    source = kit / "labs" / "source" / f"{LAB}.py"
    notebook = nbformat.reads(nbformat.writes(release(source)), as_version=4)
    known = {**solutions(source), "by_distance": f"{student} thinks so.", **answers}
    for cell in notebook.cells:
        if known.get(answer_id(cell)) is not None:
            cell.source = known[answer_id(cell)]
    path = folder / student / f"{LAB}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)


def newest(out):
    """{student: the newest run} in the gradebook of the folder `out`."""
    with Gradebook(out / "gradebook.sqlite") as book:
        return {run.verdict.student: run for run in book.newest(LAB)}
