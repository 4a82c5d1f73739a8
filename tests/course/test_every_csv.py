"""Whatever a student writes (a name, a text) and whatever an instructor answers: no CSV of the kit
has a cell that a spreadsheet runs, in any locale."""

import csv
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from csv_attacks import ATTACKS, run_in_some_locale
from marks_made_up import LAB, hand_in, verdict

import mpilab
from mpilab.algorithms import requests
from mpilab.cli import main
from mpilab.course import export, feedback, leaderboard, manual
from mpilab.course.collect import collect
from mpilab.course.marks import class_marks
from mpilab.errors import InputError
from mpilab.grading.decisions import manual as given
from mpilab.grading.decisions import override
from mpilab.grading.gradebook import Gradebook, run_of
from mpilab.grading.submission import student_name
from mpilab.measure import sweep_table
from mpilab.measure.dataset import Dataset
from mpilab.notebook import simulated
from mpilab.trace.recording import REQUEST
from mpilab.util.files import csv_text


def _possible(name):
    try:
        return student_name(name) == name
    except InputError:
        return False


NAMES = list(dict.fromkeys(filter(_possible, (text.replace("/", "").strip() for text in ATTACKS))))


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """A graded class of hostile names and texts, with hostile comments and reasons; all final."""
    folder = tmp_path_factory.mktemp("hostile") / "out"
    for name, attack in zip(NAMES, ATTACKS, strict=False):
        hand_in(folder, verdict(name, attack, "fail", second=attack))
    with Gradebook(folder / "gradebook.sqlite") as book:
        for name, attack in zip(NAMES, ATTACKS, strict=False):
            run = run_of(book, LAB, name)
            book.decide([given(run, "why", "text", 8, attack), given(run, "table", "text", 7)])
            book.decide([override(run, 3, attack, "ring")])
    return folder


def _grades(out, folder):
    assert main(["marks", "show", str(out)]) == 0
    return out / "grades.csv"


def _manual(out, folder):
    with Gradebook(out / "gradebook.sqlite") as book:
        manual.export(book, LAB, folder / "manual.csv", everything=True)
    return folder / "manual.csv"


def _plain(out, folder):
    return _text(export.plain_csv(class_marks(out, LAB)).text, folder)


def _moodle(out, folder):
    return _text(export.moodle(class_marks(out, LAB), column="=Lab 2").text, folder)


def _text(text, folder):
    path = folder / "file.csv"
    path.write_text(text, encoding="utf-8", newline="")
    return path


def _worksheet(out, folder):
    """Moodle's own worksheet, of which it reads the column Identifier only."""
    header = [*export.WORKSHEET, "Online text"]
    rows = [
        [f"Participant {at}", name, "Submitted", "", "", "Yes", "", "", "", ATTACKS[at]]
        for at, name in enumerate(NAMES)
    ]
    template = folder / "template.csv"
    with open(template, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    roster = {name: {"id": str(at)} for at, name in enumerate(NAMES)}
    marks = class_marks(out, LAB)
    return _text(export.moodle_worksheet(marks, template, roster=roster).text, folder)


def _new_worksheet(out, folder):
    table = folder / "submissions.csv"
    rows = [
        [name, f"{name}_{at}_assignsubmission_file/x.ipynb", at] for at, name in enumerate(NAMES)
    ]
    table.write_text(csv_text([["student", "source", "id"], *rows]), encoding="utf-8", newline="")
    marks = class_marks(out, LAB)
    _, done = feedback.give_back(marks, out, to="moodle", target=folder, roster=table)
    assert done.without == []
    return folder / "worksheet.csv"


def _canvas(out, folder):
    """Canvas's own gradebook, which finds students by their numbers."""
    rows = [[name, at, name, ""] for at, name in enumerate(NAMES)]
    template = folder / "template.csv"
    with open(template, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["Student", "ID", "Section", "Lab (1)"], *rows])
    roster = {name: {"id": str(at)} for at, name in enumerate(NAMES)}
    marks = class_marks(out, LAB)
    done = export.canvas(marks, template, "Lab", roster=roster, match="ID")
    return _text(done.text, folder)


def _submissions(out, folder):
    for at, name in enumerate(NAMES):
        path = folder / "download" / f"{name}_{at}_assignsubmission_file" / f"{LAB}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"{}")
    collect(folder / "download", folder / "class", LAB, with_ids=True)
    return folder / "class" / "submissions.csv"


def _leaderboard(out, folder):
    entries = [
        leaderboard.Entry(name, None, {}, attack)
        for name, attack in zip(NAMES, ATTACKS, strict=False)
    ]
    board = SimpleNamespace(points=(), than="=1+1")
    leaderboard.write_csv(entries, {one: one for one in NAMES}, board, folder / "board.csv")
    return folder / "board.csv"


def _sweep(out, folder):
    rows = np.zeros(len(ATTACKS), sweep_table.ROW)
    rows["algorithm"] = [attack[:40] for attack in ATTACKS]
    return _text(sweep_table.HEADER + sweep_table.text_of(rows), folder)


def _dataset(out, folder):
    table = Dataset("x.csv", columns="machine:U80 seconds", example="x,1", program="x")
    rows = table.array([(attack, 1.0) for attack in ATTACKS])
    table.write(rows, folder / "x.csv")
    return folder / "x.csv"


def _readers(out, folder):
    return requests.write_readers(
        folder / "x.csv", {attack: np.zeros(1, REQUEST) for attack in ATTACKS}
    )


def _simulated(out, folder):
    rows = [
        simulated.Simulated(attack, attack, attack, 4, 8, 1e-6, 1, 2, 3, True) for attack in ATTACKS
    ]
    simulated.write(rows, folder / "x.csv")
    return folder / "x.csv"


# What writes a CSV, by the module that calls csv_text.
WRITERS = {
    "grading/marks.py": [_grades],
    "course/manual.py": [_manual],
    "course/export.py": [_plain, _moodle, _worksheet, _new_worksheet, _canvas],
    "course/collect.py": [_submissions],
    "course/leaderboard.py": [_leaderboard],
    "measure/sweep_table.py": [_sweep],
    "measure/dataset.py": [_dataset],
    "algorithms/requests.py": [_readers],
    "notebook/simulated.py": [_simulated],
}


@pytest.mark.parametrize(
    "write",
    [each for of_module in WRITERS.values() for each in of_module],
    ids=lambda w: w.__name__,
)
def test_no_csv_of_the_kit_has_a_formula_in_any_locale(write, out, tmp_path):
    text = write(out, tmp_path).read_bytes().decode("utf-8-sig")
    assert text.count("\n") > len(NAMES) and "1+1" in text
    assert run_in_some_locale(text) == set()


def test_these_are_all_modules_that_write_csv():
    package = Path(mpilab.__file__).parent
    callers = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"\bcsv_text\(", path.read_text(encoding="utf-8"))
    }
    assert callers - {"util/files.py"} == set(WRITERS)
