"""Generate grading/sample-class from grading/sample-class.toml, the lab's source and the seeded
bugs.

python tools/sample_class.py        write the notebooks

`make refresh` runs it. The output is always the same; a test compares the committed notebooks with
it.
"""

import sys
import tomllib
from collections.abc import Mapping
from typing import Any

import nbformat
from nbformat import NotebookNode

from mpilab.grading.answers import answer_cells
from mpilab.grading.proving import bugs_of
from mpilab.grading.release import answer_id, release, solutions
from mpilab.judging import rubric
from mpilab.util import door
from mpilab.util.kit import ROOT

GRADING = ROOT / "grading"
CHEAT = 'print("all public checks pass")'


def sample_class() -> tuple[str, dict[str, str]]:
    """(lab, {student: content of the notebook, as text}) for the whole class."""
    table = tomllib.loads((GRADING / "sample-class.toml").read_text(encoding="utf-8"))
    lab = table["lab"]
    source = ROOT / "labs" / "source" / f"{lab}.py"
    blank, reference = release(source), solutions(source)
    wrong = {
        bug.name: bug.source for bug in bugs_of(lab, rubric.load(GRADING / lab / "rubric.toml"))
    }
    return lab, {
        student: _notebook(blank, reference, wrong, answers)
        for student, answers in table["student"].items()
    }


def _notebook(
    blank: NotebookNode,
    reference: Mapping[str, str],
    wrong: Mapping[str, str],
    answers: Mapping[str, Any],
) -> str:
    """The text of one notebook; `reference` is {exercise: answer}, `wrong` {bug's name: answer}."""
    notebook = nbformat.from_dict(blank.copy())
    notebook = nbformat.reads(nbformat.writes(notebook), as_version=4)
    known = answer_cells(notebook)
    for cell in notebook.cells:
        exercise = answer_id(cell)
        if exercise in known:
            answer = answers.get(exercise, "reference")
            if answer == "reference":
                cell.source = reference[exercise]
            elif answer != "blank":
                cell.source = wrong[answer].rstrip("\n")
        elif answers.get("tampered") and cell.cell_type == "code" and ".check(" in cell.source:
            cell.source = CHEAT
    text = nbformat.writes(notebook) + "\n"
    return text[: len(text) // 2] if answers.get("torn") else text


def main() -> None:
    """Write the notebooks, and print how many changed."""
    lab, notebooks = sample_class()
    changed = 0
    for student, text in notebooks.items():
        path = GRADING / "sample-class" / student / f"{lab}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            changed += 1
    print(f"{len(notebooks)} notebooks in {GRADING / 'sample-class'}, {changed} of them changed")


if __name__ == "__main__":
    sys.exit(door.run("tools/sample_class.py", main))
