"""Lab 01: the student notebook is made of its source, runs blank, its solutions pass, and each of
its seeded bugs costs the items that it should, and no other."""

import re

import pytest
from lab_notebook import LabNotebook, checks, execute, execute_handed_out, on_stderr

from mpilab import exercises
from mpilab.grading.answers import answer_cells
from mpilab.grading.referee import Referee
from mpilab.grading.release import answer_id, solution_lines, solutions, write_release
from mpilab.grading.sandbox import open_sandbox

LAB = LabNotebook("01-collective-algorithms")
GRADING = LAB.rubric.parent
REDUCED = {"SIZES": [64, 4096, 16384], "REPETITIONS": 3}
MOST_LINES = 25
DRAWS = re.compile(r"\bshow\(")
ALL = "every item"
# Which items each seeded bug must lose. The name of a bug begins with that of its exercise.
BUGS = {
    "pipeline-in-one-piece.c": {"algorithm"},
    "pipeline-store-and-forward.c": {"algorithm"},
    "pipeline-segments-of-elements.c": {"algorithm"},
    "pipeline-ignores-extent.c": {"datatypes"},
    "pipeline-goes-round.c": {"strict", "algorithm"},
    "binomial-always-from-rank-0.c": {"any-root", "algorithm"},
    "binomial-through-rank-0.c": {"algorithm"},
    "binomial-nearest-child-first.c": {"algorithm"},
    "binomial-only-powers-of-two.c": {"any-size"},
    "binomial-to-all-from-the-root.c": {"algorithm"},
    "binomial-calls-bcast.c": ALL,
    "second-gather-linear.c": {"algorithm"},
    "second-scatter-does-not-go-round.c": {"any-root"},
    "second-reduce-any-order.c": {"any-operation"},
    "second-barrier-rounds-down.c": {"any-size"},
    "second-barrier-relies-on-buffering.c": {"strict"},
    "cost-rounds-down.py": {"binomial", "scatter-allgather"},
    "choose-does-not-segment.py": {"long"},
}


@pytest.fixture(scope="module")
def referee():
    return Referee(open_sandbox(slot=8))


def lost(verdict):
    return {item.item for item in verdict.items if item.outcome != "pass"}


def test_the_committed_notebook_is_what_release_makes_of_the_source(tmp_path):
    fresh = write_release(LAB.source, tmp_path / "fresh.ipynb")
    assert LAB.notebook.read_bytes() == fresh.read_bytes(), "run 'make release'"


def test_no_solution_line_and_no_marker_is_in_the_student_version():
    text = LAB.notebook.read_text() + "\n".join(cell.source for cell in LAB.blank.cells)
    secrets = solution_lines(LAB.source)
    assert len(secrets) > 60
    assert [line for line in secrets if line in text] == []
    assert not re.search(r"(BEGIN|END) SOLUTION|STUB:", text)


def test_the_answer_cells_are_those_of_the_rubric_with_its_points():
    answers = {answer_id(cell): cell for cell in LAB.blank.cells if answer_id(cell)}
    assert list(answers) == list(LAB.exercises)
    for name, cell in answers.items():
        exercise = LAB.exercises[name]
        assert cell.metadata.nbgrader.points == exercise.points
        assert cell.cell_type == ("markdown" if exercise.kind == exercises.TEXT else "code")
        assert cell.metadata.nbgrader.cell_type == cell.cell_type
    assert sum(exercise.points for exercise in LAB.exercises.values()) == 100


def test_every_exercise_that_a_machine_can_judge_has_a_check_cell():
    public = exercises.load(LAB.public)
    assert list(checks(LAB.blank)) == [exercise.id for exercise in public.exercises]


def test_the_public_checks_offer_the_same_choice_of_kernels_as_the_rubric():
    public = {exercise.id: exercise for exercise in exercises.load(LAB.public).exercises}
    for name, exercise in LAB.exercises.items():
        if exercise.kind == exercises.KERNEL:
            assert public[name].functions == exercise.functions
    assert len(LAB.exercises["second"].functions) == 4


def test_no_code_cell_is_longer_than_a_screen_shows():
    long = {cell.source.split("\n")[0]: cell.source.count("\n") + 1 for cell in LAB.code_cells()
            if cell.source.count("\n") + 1 > MOST_LINES}  # fmt: skip
    assert long == {}


def test_a_question_stands_before_every_figure():
    question, unasked, figures = False, [], 0
    for cell in LAB.blank.cells:
        if cell.cell_type == "markdown":
            question = "?" in cell.source
        elif DRAWS.search(cell.source):
            figures += 1
            if not question:
                unasked.append(cell.source)
    assert unasked == []
    assert figures > 20


def test_the_first_code_cell_holds_the_parameters_that_the_rubric_sets():
    first = LAB.code_cells()[0]
    assert first.metadata.tags == ["parameters"]
    names = set(re.findall(r"^([A-Z]+) =", first.source, re.MULTILINE))
    assert names == {"RANKS", "SIZES", "PROCESSES", "REPETITIONS", "SEED"}
    assert set(exercises.load(LAB.rubric).parameters) <= names


def test_the_solutions_that_are_put_in_are_the_ones_of_the_source():
    answers = answer_cells(LAB.solved())
    assert "MPI_Sendrecv(" in answers["pipeline"]
    assert "\n    // BEGIN SOLUTION\n" in answers["binomial"]
    assert "MPI_ERR_OTHER" not in re.sub(r"// STUB.*", "", answers["second"])


def test_every_seeded_bug_is_held_against_the_items_that_it_must_lose():
    assert {bug.name for bug in (GRADING / "bugs").iterdir()} == set(BUGS)
    for bug, items in BUGS.items():
        exercise = LAB.exercises[bug.partition("-")[0]]
        known = {item.id for each in exercise.variants or (exercise,) for item in each.items}
        assert items == ALL or items < known


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_a_seeded_bug_loses_the_items_that_it_should_and_no_other(bug, referee):
    source = (GRADING / "bugs" / bug).read_text(encoding="utf-8")
    verdict = referee.judge(LAB.exercises[bug.partition("-")[0]], source, blank=False)
    assert verdict.items
    reasons = {item.item: item.reason for item in verdict.items}
    assert {item.outcome for item in verdict.items} <= {"pass", "fail"}, reasons
    wanted = {item.item for item in verdict.items} if BUGS[bug] == ALL else BUGS[bug]
    assert lost(verdict) == wanted, reasons


@pytest.mark.slow
def test_the_solutions_of_the_notebook_get_every_point(referee):
    answers = solutions(LAB.source)
    for name, exercise in LAB.exercises.items():
        if exercise.kind != exercises.TEXT:
            verdict = referee.judge(exercise, answers[name], blank=False)
            assert lost(verdict) == set(), {item.item: item.reason for item in verdict.items}
            assert verdict.awarded == exercise.points


@pytest.mark.slow
@pytest.mark.parametrize("function", LAB.exercises["second"].functions)
def test_each_of_the_four_collectives_to_choose_from_can_get_every_point(function, referee):
    path = GRADING / "reference" / f"{function}.c"
    source = path.read_text(encoding="utf-8") if path.exists() else solutions(LAB.source)["second"]
    assert source.startswith(f"%%kernel {function}\n")
    verdict = referee.judge(LAB.exercises["second"], source, blank=False)
    assert lost(verdict) == set(), {item.item: item.reason for item in verdict.items}
    assert verdict.awarded == LAB.exercises["second"].points


@pytest.fixture(scope="module")
def blank_run(tmp_path_factory):
    """The student version after "run all", in the kit that is handed out."""
    with pytest.MonkeyPatch.context() as patch:
        return execute_handed_out(LAB, tmp_path_factory.mktemp("blank"), patch)


@pytest.mark.slow
def test_run_all_of_the_blank_lab_ends_without_error_and_says_not_yet(blank_run):
    shown = checks(blank_run)
    assert all("not yet" in text and "✓" not in text for text in shown.values()), shown
    assert "returned error code" in shown["pipeline"]
    assert "".join(on_stderr(blank_run)).count("UserWarning") == 2, on_stderr(blank_run)
    assert all(cell.execution_count for cell in blank_run.cells if cell.cell_type == "code")


@pytest.mark.slow
def test_the_formulas_in_the_lab_are_what_was_recorded(blank_run):
    (cell,) = [c for c in blank_run.cells if "cost_of(kernel)" in c.source]
    _, _, _, *lines = cell.outputs[-1]["data"]["text/markdown"].splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines]
    assert len(rows) == 7  # the other two are for students to write
    for name, *numbers in rows:
        assert numbers[:3] == numbers[3:], name


@pytest.mark.slow
def test_the_guard_is_seen_to_refuse_what_did_not_run(blank_run):
    (cell,) = [c for c in blank_run.cells if "use_dynamic_rules=" in c.source]
    (output,) = cell.outputs
    assert output.text.startswith("0 rows in the table\n")
    assert "Open MPI did not heed the choice" in output.text


@pytest.mark.slow
def test_run_all_of_the_solved_lab_passes_every_public_check_and_leaves_nothing_out(tmp_path):
    done = execute(LAB.solved(), tmp_path, **REDUCED)
    shown = checks(done)
    assert len(shown) == 5
    for text in shown.values():
        assert "all public checks pass" in text and "✗" not in text, text
    assert on_stderr(done) == []


@pytest.mark.slow
def test_a_kernel_that_does_not_compile_or_deadlocks_does_not_stop_the_lab(tmp_path):
    notebook = LAB.solved()
    for cell in notebook.cells:
        if answer_id(cell) == "pipeline":
            cell.source = cell.source.replace("const int segments", "const int segment_s")
        if answer_id(cell) == "binomial":
            cell.source = cell.source.replace("% size, TAG, comm);", "% size, TAG + rank, comm);")
    done = execute(notebook, tmp_path, **REDUCED)
    shown = checks(done)
    assert "no %%kernel cell has defined bcast_pipeline yet" in shown["pipeline"]
    assert "What each rank is doing" in shown["binomial"]
    assert "all public checks pass" in shown["second"]
    assert "bcast_binomial is left out of the sweep" in "".join(on_stderr(done))
