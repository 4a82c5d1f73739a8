"""Lab 01: each of its seeded bugs costs the items that it should, and no other; and where it
differs from other labs (test_every_lab.py)."""

import pytest
from lab_notebook import REDUCED, LabNotebook, checks, execute, on_stderr

from mpilab import exercises
from mpilab.grading.referee import Referee
from mpilab.grading.release import answer_id, solutions
from mpilab.grading.sandbox import open_sandbox

LAB = LabNotebook("01-collective-algorithms")
GRADING = LAB.rubric.parent
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
    "second-reduce-binary-tree.c": {"algorithm"},
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


def test_the_second_collective_is_one_of_four():
    assert len(LAB.exercises["second"].functions) == 4


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


@pytest.mark.slow
def test_the_formulas_in_the_lab_are_what_was_recorded(blank_run):
    (cell,) = [c for c in blank_run(LAB).cells if "cost_of(kernel)" in c.source]
    _, _, _, *lines = cell.outputs[-1]["data"]["text/markdown"].splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines]
    assert len(rows) == 7  # the other two are for students to write
    for name, *numbers in rows:
        assert numbers[:3] == numbers[3:], name


@pytest.mark.slow
def test_the_guard_is_seen_to_refuse_what_did_not_run(blank_run):
    (cell,) = [c for c in blank_run(LAB).cells if "use_dynamic_rules=" in c.source]
    (output,) = cell.outputs
    assert output.text.startswith("0 rows in the table\n")
    assert "Open MPI did not heed the choice" in output.text


@pytest.mark.slow
def test_a_kernel_that_does_not_compile_or_deadlocks_does_not_stop_the_lab(tmp_path):
    notebook = LAB.solved()
    for cell in notebook.cells:
        if answer_id(cell) == "pipeline":
            cell.source = cell.source.replace("const int segments", "const int segment_s")
        if answer_id(cell) == "binomial":
            cell.source = cell.source.replace("% size, TAG, comm);", "% size, TAG + rank, comm);")
    done = execute(notebook, tmp_path, **REDUCED[LAB.name])
    shown = checks(done)
    assert "no %%kernel cell has defined bcast_pipeline yet" in shown["pipeline"]
    assert "What each rank is doing" in shown["binomial"]
    assert "all public checks pass" in shown["second"]
    assert "bcast_binomial is left out of the sweep" in "".join(on_stderr(done))
