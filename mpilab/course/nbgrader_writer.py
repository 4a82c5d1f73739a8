"""What a Python with nbgrader runs: marks into its gradebook, and our referee as its autograder.

    python nbgrader_writer.py FILE.db < marks.json

writes an assignment and its marks. The assignment replaces one of the same name; other assignments
stay unchanged. `configure` is called by the configuration of a course that 'mpilab release
--nbgrader' has set up.

It imports nothing from mpilab, because nbgrader usually has its own environment.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbgrader import preprocessors, utils
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters import Autograde, GenerateAssignment
from nbgrader.converters.base import NbGraderException
from traitlets import Unicode
from traitlets.config import Config


def write(path: Path, marks: dict) -> None:
    """Write `marks`, an export.nbgrader_table, into the gradebook at `path` atomically."""
    path = path.absolute()
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    scratch = Path(name)
    try:
        if path.exists():
            shutil.copy(path, scratch)  # with its mode
        else:
            scratch.unlink()  # nbgrader creates the tables in a new file, but not in an empty one
        with Gradebook(f"sqlite:///{scratch}") as book:
            _fill(book, marks)
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def _fill(book: Gradebook, marks: dict) -> None:
    name = marks["assignment"]
    try:
        duedate = book.find_assignment(name).duedate
        book.remove_assignment(name)
    except MissingEntry:
        duedate = None
    book.add_assignment(name, duedate=duedate)
    book.add_notebook(name, name)
    for cell in marks["cells"]:
        book.add_grade_cell(
            cell["name"], name, name, max_score=cell["points"], cell_type=cell["type"]
        )
        book.add_solution_cell(cell["name"], name, name)
    for student in marks["students"]:
        book.update_or_create_student(student["id"])
        submission = book.add_submission(name, student["id"])
        (notebook,) = submission.notebooks
        notebook.late_submission_penalty = student["penalty"]
        given = {grade["name"]: grade for grade in student["grades"]}
        for grade in notebook.grades:
            mark = given[grade.name]
            grade.auto_score = mark["auto"]
            grade.manual_score = mark["manual"]
            grade.needs_manual_grade = mark["waits"]
        for comment in notebook.comments:
            comment.auto_comment = given[comment.name]["comment"]
    book.db.commit()


def configure(config: Config, python: str, course: str | Path) -> None:
    """Let `nbgrader autograde` in the folder `course` call 'mpilab grade' of the Python `python`.

    What the students' notebooks contain is already what they get, so `nbgrader generate_assignment`
    leaves the answer cells as they are.
    """
    config.Referee.python, config.Referee.out = str(python), str(Path(course) / "mpilab")
    release, grade = GenerateAssignment.preprocessors, Autograde.autograde_preprocessors
    config.GenerateAssignment.preprocessors = [
        each for each in release.default() if each is not preprocessors.ClearSolutions
    ]
    config.Autograde.autograde_preprocessors = [
        Referee if each is preprocessors.Execute else each for each in grade.default()
    ]


class Referee(preprocessors.NbGraderPreprocessor):
    """Judge a submission by 'mpilab grade', in its sandbox, instead of running it here.

    Each test cell gets the points as its value, which nbgrader takes for partial credit, and the
    reasons as its output.
    """

    python = Unicode(help="the Python that mpilab is installed in").tag(config=True)
    out = Unicode(help="the folder for mpilab's gradebooks and feedback pages").tag(config=True)

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Fill in the outputs of the test cells of a submission, which is not run."""
        about = resources["nbgrader"]
        exercises = self._judged(nb, about["student"], about["notebook"])
        for cell in nb.cells:
            if utils.is_grade(cell) and not utils.is_solution(cell):
                name = cell.metadata.nbgrader.grade_id.removeprefix("check_")
                cell.outputs = _outputs(name, exercises[name])
        return nb, resources

    def _judged(self, nb: Any, student: str, lab: str) -> dict[str, Any]:
        """{exercise: its marks}, as 'mpilab marks show --json' tells them."""
        out = Path(self.out) / lab / student
        with tempfile.TemporaryDirectory() as folder:
            notebook = Path(folder) / f"{lab}.ipynb"
            nbformat.write(nb, notebook)
            named = ("--lab", lab, "--student", student, "--out", out, "--no-progress")
            self._mpilab("grade", notebook, *named)
        (mark,) = json.loads(self._mpilab("marks", "show", out, "--lab", lab, "--json"))
        return mark["exercises"]

    def _mpilab(self, *arguments: object) -> str:
        command = [self.python, "-I", "-m", "mpilab", *map(str, arguments)]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode:
            raise NbGraderException(f"mpilab {arguments[0]} failed: {ran.stderr.strip()}")
        return ran.stdout


def _outputs(name: str, exercise: dict[str, Any]) -> list[Any]:
    """The outputs of a test cell: a line for each item, and the points."""
    if exercise["awarded"] is None:  # never a zero that nobody has decided on
        reasons = (item["reason"] for item in exercise["items"].values() if item["reason"])
        raise NbGraderException(f"exercise {name} could not be graded: {'; '.join(reasons)}")
    lines = [
        f"{item['title']}: {item['awarded']:g} of {item['points']:g}. {item['reason']}".rstrip()
        for item in exercise["items"].values()
    ]
    return [
        nbformat.v4.new_output("stream", name="stdout", text="\n".join(lines) + "\n"),
        nbformat.v4.new_output("execute_result", {"text/plain": repr(exercise["awarded"])}),
    ]


if __name__ == "__main__":
    write(Path(sys.argv[1]), json.load(sys.stdin))
