"""Lab 00: the student notebook is made of its source, runs blank, its solutions pass, and each
seeded bug loses what it should."""

import re
from pathlib import Path

import jupytext
import nbformat
import papermill
import pytest
from lab_notebook import LabNotebook, execute_handed_out

from mpilab import build, exercises, functions, judge, kernelcell
from mpilab.calls import call_answer
from mpilab.grading.answers import answer_cells, transplant
from mpilab.grading.release import answer_id, release, solution_lines, solutions, write_release
from mpilab.launch import run_cases
from mpilab.symbols import forbidden
from mpilab.verdict import PASS

ROOT = Path(__file__).resolve().parents[2]
LAB = "00-first-contact"
SOURCE = ROOT / "labs" / "source" / f"{LAB}.py"
NOTEBOOK = ROOT / "labs" / f"{LAB}.ipynb"
RUBRIC = ROOT / "grading" / LAB / "rubric.toml"
BUGS = RUBRIC.parent / "bugs"
REDUCED = {"SIZES": [1, 64, 4096, 65536], "REPETITIONS": 5}
MOST_LINES = 25
DRAWS = re.compile(r"\bshow\(")

# What is left to each seeded bug: the items that it must not lose.
KEEPS = {
    "placement-never-full.py": {"by-slot", "by-node"},
    "placement-as-many-each.py": {"by-node"},
    "bcast_linear-root-is-always-zero.c": {
        "powers-of-two", "any-size", "datatypes", "strict", "algorithm"},
    "bcast_linear-passes-it-on.c": {
        "powers-of-two", "any-size", "any-root", "datatypes", "strict"},
    "bcast_linear-assumes-int.c": {
        "powers-of-two", "any-size", "any-root", "strict", "algorithm"},
    # 512 integers are more than Open MPI puts aside of a message to oneself.
    "bcast_linear-root-sends-to-itself.c": {
        "any-size", "any-root", "datatypes", "algorithm"},
    "bcast_linear-calls-bcast.c": set(),
    "bcast_linear-forgets-the-last.c": set(),
    "barrier_double_ring-once-round.c": set(),
    "barrier_double_ring-all-receive-first.c": set(),
    "barrier_double_ring-only-powers-of-two.c": {"powers-of-two", "strict", "algorithm"},
    "barrier_double_ring-all-send-first.c": {"powers-of-two", "any-size"},
    "barrier_double_ring-through-rank-0.c": {"powers-of-two", "any-size", "strict"},
    "barrier_double_ring-does-nothing.c": set(),
    "fit-least-squares.py": {"exact"},
    "fit-microseconds.py": set(),
}  # fmt: skip


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


def shown(cell):
    """What a cell has shown and printed, as text."""
    return "\n".join(
        output["data"]["text/plain"] if "data" in output else output.get("text", "")
        for output in cell.outputs
    )


def checks(notebook):
    """What each lab.check showed, by exercise."""
    called = ((re.match(r'lab\.check\("(\w+)"', cell.source), cell) for cell in notebook.cells)
    return {match[1]: shown(cell) for match, cell in called if match}


def code_cells():
    return [cell for cell in release(SOURCE).cells if cell.cell_type == "code"]


def awarded(exercise, answer, folder):
    """The items of `exercise` that the text of an answer passes, judged as the referee does."""
    if exercise.kind == exercises.PYTHON:
        calls = functions.calls(exercise)
        returned = call_answer(answer, exercise.function, [list(each) for each in calls])
        verdict = functions.judge_function(exercise, dict(zip(calls, returned, strict=True)))
    else:
        built = build.build(kernelcell.split(answer)[1], folder, stem="answer")
        if forbidden(built.object, exercise.function, exercise.allowed):
            return set()
        cases, groups = judge.plan(exercise)
        results = run_cases(built.library, exercise.function, cases, groups=groups, work=3.0,
                            standstill=0.5)  # fmt: skip
        verdict = judge.judge_exercise(exercise, results)
    return {item.item for item in verdict.items if item.outcome == PASS}


def test_the_committed_notebook_is_what_release_makes_of_the_source(tmp_path):
    fresh = write_release(SOURCE, tmp_path / "fresh.ipynb")
    assert NOTEBOOK.read_bytes() == fresh.read_bytes(), "run 'make release'"


def test_no_solution_line_and_no_marker_is_in_the_student_version():
    text = NOTEBOOK.read_text() + "\n".join(cell.source for cell in release(SOURCE).cells)
    secrets = solution_lines(SOURCE)
    assert len(secrets) > 30
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
    public = exercises.load(ROOT / "labs" / "checks" / f"{LAB}.toml")
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
    assert figures > 4


def test_the_first_code_cell_holds_the_parameters_that_the_rubric_sets():
    first = code_cells()[0]
    assert first.metadata.tags == ["parameters"]
    names = set(re.findall(r"^([A-Z]+) =", first.source, re.MULTILINE))
    assert names == {"RANKS", "SIZES", "REPETITIONS", "SEED"}
    assert set(exercises.load(RUBRIC).parameters) <= names


@pytest.mark.parametrize("name", ["placement", "fit"])
def test_the_solutions_in_python_get_full_marks(name, tmp_path):
    exercise = exercises.load(RUBRIC).exercise(name)
    assert awarded(exercise, solutions(SOURCE)[name], tmp_path) == {i.id for i in exercise.items}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bcast_linear", "barrier_double_ring"])
def test_the_solutions_in_c_get_full_marks(name, tmp_path):
    exercise = exercises.load(RUBRIC).exercise(name)
    assert awarded(exercise, solutions(SOURCE)[name], tmp_path) == {i.id for i in exercise.items}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bcast_linear", "barrier_double_ring"])
def test_our_own_kernels_of_the_same_names_do_what_is_asked(name, tmp_path):
    exercise = exercises.load(RUBRIC).exercise(name)
    answer = (ROOT / "src_c" / exercise.reference).read_text(encoding="utf-8")
    assert awarded(exercise, answer, tmp_path) == {item.id for item in exercise.items}


def test_every_seeded_bug_is_held_to_what_it_loses():
    assert {path.name for path in BUGS.iterdir()} == set(KEEPS)


@pytest.mark.parametrize("name", [name for name in KEEPS if name.endswith(".py")])
def test_a_seeded_bug_in_python_loses_what_it_should_and_no_more(name, tmp_path):
    exercise = exercises.load(RUBRIC).exercise(name.partition("-")[0])
    assert awarded(exercise, (BUGS / name).read_text(encoding="utf-8"), tmp_path) == KEEPS[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in KEEPS if name.endswith(".c")])
def test_a_seeded_bug_in_c_loses_what_it_should_and_no_more(name, tmp_path):
    exercise = exercises.load(RUBRIC).exercise(name.partition("-")[0])
    assert awarded(exercise, (BUGS / name).read_text(encoding="utf-8"), tmp_path) == KEEPS[name]


@pytest.mark.slow
def test_run_all_of_the_blank_lab_ends_without_error_and_says_not_yet(tmp_path, monkeypatch):
    done = execute_handed_out(LabNotebook("00-first-contact"), tmp_path, monkeypatch)
    said = checks(done)
    assert all("not yet" in text and "✓" not in text for text in said.values()), said
    assert "returned error code" in said["bcast_linear"]
    assert all(cell.execution_count for cell in done.cells if cell.cell_type == "code")


@pytest.mark.slow
def test_run_all_of_the_solved_lab_passes_every_public_check_and_says_where_ranks_run(tmp_path):
    done = execute(solved(), tmp_path, **REDUCED)
    for text in checks(done).values():
        assert "all public checks pass" in text and "✗" not in text, text
    cells = {cell.source: shown(cell) for cell in done.cells if cell.cell_type == "code"}

    def of(words):
        return next(text for source, text in cells.items() if words in source)

    assert "rank 3 of 4: host " in of("-n 4 --hostfile localhost.txt")
    assert "not enough slots" in of("-n 5 --hostfile localhost.txt")
    assert "--map-by node: n1 n2 n3 n4 n1 n2 n3 n4" in of("mapped(")
    assert "my-hosts.txt:3: 'slots=four' is not a number" in of("hosts.parse(")
    assert "deadlock" in of('mpilab.run("barrier_head_to_head"').lower()
    assert "α = " in of("fit_hockney(")
    assert not [output for cell in done.cells if cell.cell_type == "code"
                for output in cell.outputs if output.get("name") == "stderr"]  # fmt: skip


def test_the_solutions_that_are_put_in_are_the_ones_of_the_source():
    answers = answer_cells(solved())
    assert "MPI_Send(NULL, 0, MPI_BYTE, right" in answers["barrier_double_ring"]
    assert "\n    // BEGIN SOLUTION\n" in answers["bcast_linear"]
    assert "MPI_ERR_OTHER" not in re.sub(r"// STUB.*", "", answers["bcast_linear"])
