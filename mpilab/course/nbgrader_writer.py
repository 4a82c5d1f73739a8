"""Write an assignment and its marks into an nbgrader gradebook, run by a Python with nbgrader.

    python nbgrader_writer.py FILE.db < marks.json

It imports nothing from mpilab, because nbgrader usually has its own environment. The assignment
replaces one of the same name; other assignments stay unchanged.
"""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry


def write(path: Path, marks: dict) -> None:
    """Write `marks`, an export.nbgrader_table, into the gradebook at `path` atomically."""
    path = path.absolute()
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    scratch = Path(name)
    try:
        if path.exists():
            shutil.copyfile(path, scratch)
        else:
            scratch.unlink()  # nbgrader creates the tables in a new file, but not in an empty one
        with Gradebook(f"sqlite:///{scratch}") as book:
            _fill(book, marks)
        scratch.chmod(0o644)
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


if __name__ == "__main__":
    write(Path(sys.argv[1]), json.load(sys.stdin))
