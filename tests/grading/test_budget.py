"""What answers may take of the processor: their own reserve, and together a bounded time."""

import pytest

from mpilab.grading import referee, run
from mpilab.grading.run import MOST_PACE, START_S, Budget, Pace
from mpilab.grading.sandbox import open_sandbox
from mpilab.judging.rubric import KERNEL, PYTHON, Exercise, load
from mpilab.util.kit import ROOT

SLOT = 70  # of the sandbox, which no other test uses
RUBRICS = sorted(ROOT.glob("grading/*/rubric.toml"))


@pytest.fixture
def paced(monkeypatch):
    pace = Pace()
    monkeypatch.setattr(run, "PACE", pace)
    return pace


def test_a_run_has_the_reserve_and_what_it_takes_with_a_right_answer(paced):
    budget = Budget(8.0)
    with budget.run(2.0) as first:
        assert first.seconds == 10.0
        first.used = 1.5  # what it leaves is there for the next run
    with budget.run(3.0) as second:
        assert second.seconds == 11.5
        second.used = 30.0
    with budget.run(1.0) as third:
        assert third.seconds == 1.0  # a run that confirms a failure still has its own time


def test_processor_time_is_measured_by_the_pace_of_the_machine(paced):
    for _ in range(run.STARTS):
        paced.saw(2 * START_S)
    budget = Budget(8.0)
    with budget.run(2.0) as share:
        assert share.seconds == 20.0
        share.used = 10.0
    assert budget.left == 5.0


@pytest.mark.parametrize(("start", "factor"), [(START_S / 2, 1.0), (100 * START_S, MOST_PACE)])
def test_the_pace_is_bounded(start, factor):
    pace = Pace()
    assert pace.factor == 1.0
    pace.saw(start)
    assert pace.factor == factor


def test_the_pace_is_that_of_the_first_start_and_later_of_most():
    pace = Pace()
    for start, factor in ((3, 3.0), (2, 2.5), (2, 2.0), (100, 2.5), (2, 2.0)):
        pace.saw(start * START_S)
        assert pace.factor == pytest.approx(factor)
    for _ in range(run.STARTS):
        pace.saw(START_S)
    assert pace.factor == 1.0


def test_the_first_run_in_a_sandbox_has_the_pace_of_this_machine(paced, monkeypatch):
    """Its notebook has a limit, and no other run has told how slow the machine is."""
    monkeypatch.setattr(run, "START_S", run.START_S / 1000)
    open_sandbox(slot=SLOT)
    assert paced.factor == MOST_PACE


@pytest.mark.parametrize("path", RUBRICS, ids=lambda path: path.parent.name)
def test_the_answers_to_a_lab_cannot_take_a_minute_more_than_right_ones(path):
    exercises = load(path).exercises
    third = referee.THIRD_COMPILE_WORK_S + referee.THIRD_WORK_S
    kernel = referee.kernel_reserve(exercises) + third + referee.LATE_S
    python = referee.PYTHON_RESERVE_S + referee.PYTHON_LATE_S
    kinds = [each.kind for each in exercises]
    answers = kinds.count(KERNEL) * kernel + kinds.count(PYTHON) * python
    notebook = referee.NOTEBOOK_RESERVE_S + referee.LATE_S
    assert answers + notebook <= 60.0 + 1e-9
    assert referee.kernel_reserve(exercises) >= referee.LEAST_KERNEL_RESERVE_S


@pytest.mark.parametrize(
    ("kernels", "reserve"), [(0, referee.KERNEL_RESERVE_S), (40, referee.LEAST_KERNEL_RESERVE_S)]
)
def test_the_reserve_of_an_answer_in_c_is_bounded_whatever_the_rubric(kernels, reserve):
    exercises = [Exercise(id="e", title="E", kind=KERNEL, items=())] * kernels
    assert referee.kernel_reserve(exercises) == reserve
