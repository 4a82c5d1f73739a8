"""Lab 02: the student notebook is made of its source, runs blank, and its solutions pass."""

import re
from pathlib import Path

import jupytext
import nbformat
import papermill
import pytest
from lab_notebook import LabNotebook, execute_handed_out

from mpilab import exercises
from mpilab.grading.answers import answer_cells, transplant
from mpilab.grading.release import answer_id, release, solution_lines, write_release

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "labs" / "source" / "02-allgather.py"
NOTEBOOK = ROOT / "labs" / "02-allgather.ipynb"
RUBRIC = ROOT / "grading" / "02-allgather" / "rubric.toml"
REDUCED = {"SIZES": [32, 4096], "PROCESSES": [2, 4], "REPETITIONS": 3}
MOST_LINES = 25
DRAWS = re.compile(r"\bshow\(")


def solved():
    """The lab with the solutions in their cells, as a student could hand it in."""
    source = jupytext.read(SOURCE, fmt="py:percent")
    for cell in source.cells:
        first, *body = cell.source.split("\n")
        if first.startswith("%%kernel"):
            cell.source = "\n".join([first, *(line.removeprefix("# ") for line in body)])
    notebook, problems = transplant(release(SOURCE), source)
    assert not problems
    return notebook


def execute(notebook, folder, **parameters):
    """The notebook after papermill has run it from top to bottom; an error in a cell raises."""
    before, after = folder / "before.ipynb", folder / "after.ipynb"
    nbformat.write(notebook, before)
    papermill.execute_notebook(before, after, parameters, cwd=ROOT / "labs", progress_bar=False)
    return nbformat.read(after, as_version=4)


def checks(notebook):
    """What each lab.check showed, by exercise."""
    shown = {}
    for cell in notebook.cells:
        called = re.match(r'lab\.check\("(\w+)"', cell.source)
        if called:
            shown[called[1]] = "\n".join(output["data"]["text/plain"] for output in cell.outputs
                                         if "data" in output)  # fmt: skip
    return shown


def code_cells():
    return [cell for cell in release(SOURCE).cells if cell.cell_type == "code"]


def test_the_committed_notebook_is_what_release_makes_of_the_source(tmp_path):
    fresh = write_release(SOURCE, tmp_path / "fresh.ipynb")
    assert NOTEBOOK.read_bytes() == fresh.read_bytes(), "run 'make release'"


def test_no_solution_line_and_no_marker_is_in_the_student_version():
    text = NOTEBOOK.read_text() + "\n".join(cell.source for cell in release(SOURCE).cells)
    secrets = solution_lines(SOURCE)
    assert len(secrets) > 40
    assert [line for line in secrets if line in text] == []
    assert not re.search(r"(BEGIN|END) SOLUTION|STUB:", text)


def test_the_answer_cells_are_those_of_the_rubric_with_its_points():
    rubric = exercises.load(RUBRIC)
    wanted = {exercise.id: exercise for exercise in rubric.exercises}
    answers = {answer_id(cell): cell for cell in release(SOURCE).cells if answer_id(cell)}
    assert list(answers) == list(wanted)
    for name, cell in answers.items():
        assert cell.metadata.nbgrader.points == wanted[name].points
        assert cell.cell_type == ("markdown" if wanted[name].kind == exercises.TEXT else "code")
        assert cell.metadata.nbgrader.cell_type == cell.cell_type
    assert sum(exercise.points for exercise in rubric.exercises) == 100


def test_every_exercise_that_a_machine_can_judge_has_a_check_cell():
    public = exercises.load(ROOT / "labs" / "checks" / "02-allgather.toml")
    assert list(checks(release(SOURCE))) == [exercise.id for exercise in public.exercises]


def test_no_code_cell_is_longer_than_a_screen_shows():
    long = {cell.source.split("\n")[0]: cell.source.count("\n") + 1 for cell in code_cells()
            if cell.source.count("\n") + 1 > MOST_LINES}  # fmt: skip
    assert long == {}


def test_a_question_stands_before_every_figure():
    question, unasked, figures = False, [], 0
    for cell in release(SOURCE).cells:
        if cell.cell_type == "markdown":
            question = "?" in cell.source
        elif DRAWS.search(cell.source):
            figures += 1
            if not question:
                unasked.append(cell.source)
    assert unasked == []
    assert figures > 8


def test_the_first_code_cell_holds_the_parameters_that_the_rubric_sets():
    first = code_cells()[0]
    assert first.metadata.tags == ["parameters"]
    names = set(re.findall(r"^([A-Z]+) =", first.source, re.MULTILINE))
    assert names == {"RANKS", "SIZES", "PROCESSES", "REPETITIONS", "SEED"}
    assert set(exercises.load(RUBRIC).parameters) <= names


def test_the_solutions_that_are_put_in_are_the_ones_of_the_source():
    answers = answer_cells(solved())
    assert "MPI_Isend(" in answers["nonblocking_all"]
    assert "\n    // BEGIN SOLUTION\n" in answers["pairwise"]
    assert "MPI_ERR_OTHER" not in re.sub(r"// STUB.*", "", answers["pairwise"])


@pytest.mark.slow
def test_run_all_of_the_blank_lab_ends_without_error_and_says_not_yet(tmp_path, monkeypatch):
    done = execute_handed_out(LabNotebook("02-allgather"), tmp_path, monkeypatch)
    shown = checks(done)
    assert all("not yet" in text and "✓" not in text for text in shown.values()), shown
    assert "returned error code" in shown["pairwise"]
    warned = [output.text for cell in done.cells if cell.cell_type == "code"
              for output in cell.outputs if output.get("name") == "stderr"]  # fmt: skip
    assert "".join(warned).count("UserWarning") == 2, warned
    assert all(cell.execution_count for cell in done.cells if cell.cell_type == "code")


@pytest.mark.slow
def test_run_all_of_the_solved_lab_passes_every_public_check_and_leaves_nothing_out(tmp_path):
    done = execute(solved(), tmp_path, **REDUCED)
    shown = checks(done)
    assert len(shown) == 3
    for text in shown.values():
        assert "all public checks pass" in text and "✗" not in text, text
    assert not [output for cell in done.cells if cell.cell_type == "code"
                for output in cell.outputs if output.get("name") == "stderr"]  # fmt: skip


@pytest.mark.slow
def test_a_kernel_that_does_not_compile_or_deadlocks_does_not_stop_the_lab(tmp_path):
    notebook = solved()
    for cell in notebook.cells:
        if answer_id(cell) == "nonblocking_all":
            cell.source = cell.source.replace("MPI_Waitall(started,", "MPI_Waitall(start")
        if answer_id(cell) == "pairwise":
            cell.source = cell.source.replace("dest, TAG, recvbuf", "dest, TAG + rank, recvbuf")
    done = execute(notebook, tmp_path, **REDUCED)
    compiled = next(cell for cell in done.cells if answer_id(cell) == "nonblocking_all")
    panel = compiled.outputs[0]["data"]["text/plain"]
    assert re.search(r"It does not compile: Line \d+: 'start' is not declared", panel)
    assert "'started'" in panel
    shown = checks(done)
    assert "no %%kernel cell has defined" in shown["nonblocking_all"]
    assert "It looks like: mismatched tags." in shown["pairwise"]
    assert "What each rank is doing" in shown["pairwise"]
