"""Write an assignment and its marks into an nbgrader gradebook, run by a Python with nbgrader.

    python nbgrader_writer.py FILE.db < marks.json

It imports nothing from mpilab, because nbgrader usually has an environment of its own. The
assignment replaces one of the same name; other assignments stay unchanged.
"""

import json
import os
import shutil
import sys
import tempfile

from nbgrader.api import Gradebook, MissingEntry


def write(path: str, marks: dict) -> None:
    """Write `marks`, an export.nbgrader_table, into the gradebook at `path` atomically."""
    folder = os.path.dirname(os.path.abspath(path))
    handle, scratch = tempfile.mkstemp(dir=folder, prefix=f".{os.path.basename(path)}.")
    os.close(handle)
    try:
        if os.path.exists(path):
            shutil.copyfile(path, scratch)
        else:
            os.unlink(scratch)  # nbgrader creates the tables in a new file, but not in an empty one
        with Gradebook(f"sqlite:///{scratch}") as book:
            _fill(book, marks)
        os.chmod(scratch, 0o644)
        os.replace(scratch, path)
    except BaseException:
        if os.path.exists(scratch):
            os.unlink(scratch)
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
    write(sys.argv[1], json.load(sys.stdin))
