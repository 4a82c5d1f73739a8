"""What answers may take of the processor: their own reserve, and together a bounded time."""

import pytest

from mpilab.grading import referee, run
from mpilab.grading.grade import NOTEBOOK_RESERVE_S
from mpilab.grading.run import MOST_PACE, START_S, Budget, Pace
from mpilab.judging.rubric import KERNEL, PYTHON, load
from mpilab.util.kit import ROOT

RUBRICS = sorted(ROOT.glob("grading/*/rubric.toml"))
MOST_S = 130.0  # beyond an honest submission
# Processor time is looked at every second, and ranks on two cores take that twice.
LATE_S = {KERNEL: 2.0, PYTHON: 1.0}


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
def test_the_pace_is_bounded_and_one_start_does_not_change_it(start, factor):
    pace = Pace()
    pace.saw(start)
    assert pace.factor == 1.0
    for _ in range(run.STARTS):
        pace.saw(start)
    assert pace.factor == factor


@pytest.mark.parametrize("path", RUBRICS, ids=lambda path: path.parent.name)
def test_the_answers_to_a_lab_cannot_take_two_minutes_more_than_right_ones(path):
    rubric = load(path)
    third = referee.THIRD_COMPILE_WORK_S + referee.THIRD_WORK_S
    most = {KERNEL: referee.KERNEL_RESERVE_S + third, PYTHON: referee.PYTHON_RESERVE_S}
    kinds = [each.kind for each in rubric.exercises if each.kind in most]
    answers = sum(most[kind] + LATE_S[kind] for kind in kinds)
    assert answers + NOTEBOOK_RESERVE_S + LATE_S[KERNEL] <= MOST_S
