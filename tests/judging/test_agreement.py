"""What is simulated, what is then run on Open MPI, and the verdict from both."""

from dataclasses import replace

import pytest

from mpilab.cases.case import Case
from mpilab.errors import InputError
from mpilab.hosts.orders import places_of
from mpilab.judging import agreement, judge, rubric
from mpilab.judging.verdict import FAIL, PASS, UNGRADABLE
from mpilab.kernels.build import KERNELS, need
from mpilab.notebook.lab import Checked
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import (
    CRASH,
    DEADLOCK,
    DONE,
    ERROR,
    SKIPPED,
    SPENT,
    TRAP,
    Result,
)

RUBRIC = """
lab = "99-test"
[[exercise]]
id = "x"
title = "X"
kind = "kernel"
collective = "barrier"
function = "barrier_x"
[[exercise.item]]
id = "right"
title = "Right"
points = 1
ranks = [2, 4]
simulated_ranks = [4, 9]
[[exercise.item]]
id = "placed"
title = "Placed"
points = 1
places = ["1x2x2 rr"]
simulated_places = ["2x2x2 rr"]
platforms = ["groups-2x2x4 shuffled 3"]
"""
TIMED = """
[[exercise.item]]
id = "fast"
title = "Fast"
points = 1
platforms = ["flat-4x2"]
than = "barrier_linear"
faster = 3
"""


@pytest.fixture
def load(tmp_path):
    def of(text):
        (tmp_path / "rubric.toml").write_text(text)
        return rubric.load(tmp_path / "rubric.toml").exercise("x")

    return of


def crashed(case):
    return Result(case, CRASH, crashed=(0, "SIGSEGV"))


def test_what_is_run_for_real_is_not_simulated_alone(load):
    right, placed = load(RUBRIC).items
    assert [case.ranks for case in right.cases] == [2, 4]
    assert [case.ranks for case in right.simulated] == [9]
    assert [case.places for case in placed.cases] == [places_of("1x2x2 rr")]
    assert [(case.ranks, case.platform) for case in placed.simulated] == [
        (8, ""),
        (16, "groups-2x2x4 shuffled 3"),
    ]
    assert placed.simulated[1].levels.groups == 2


def test_a_platform_is_part_of_what_a_case_is(load):
    seeds = {case.seed for item in load(RUBRIC).items for case in (*item.cases, *item.simulated)}
    assert len(seeds) == 6
    with pytest.raises(InputError, match="ranks=3 on platform 'flat-4x2', which has 8 slots"):
        Case("barrier", 3, 0, platform="flat-4x2")
    with pytest.raises(InputError, match="places beside a platform"):
        Case("barrier", 8, 0, platform="flat-4x2", places=places_of("1x4x2 rr"))
    with pytest.raises(InputError, match="platform='flat-4x2': only for simulations"):
        run_cases("unused.so", "barrier_x", [Case("barrier", 8, 0, platform="flat-4x2")])


def test_each_timed_case_is_simulated_twice(load):
    cases, groups = agreement.to_simulate(load(RUBRIC + TIMED), alone=True)
    (case,) = [case for case in cases if case.platform == "flat-4x2" and not case.fresh]
    assert agreement.timed(case) in cases
    assert groups[cases.index(agreement.timed(case))] == ("fast",)
    assert [case.ranks for case in cases] == [8, 8, 8, 9, 16]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('platforms = ["flat-4x2"]', "ranks = [4]"), "than beside ranks; write simulated_ranks"),
        (('than = "barrier_linear"', ""), "faster without than"),
        (("faster = 3", "faster = 0"), "faster = 0: must be a number above 0"),
        (("flat-4x2", "flat-4x2 upwards"), "order 'upwards': unknown"),
        (("flat-4x2", "ring-4"), "platform 'ring-4': no such shape"),
        (('platforms = ["flat-4x2"]', 'platforms = "flat-4x2"'), "not a list"),
    ],
)
def test_a_wrong_rubric_is_told_with_its_item(load, change, words):
    with pytest.raises(InputError, match="exercise 'x', item 'fast'.*" + words):
        load(RUBRIC + TIMED.replace(*change))


def test_an_item_whose_cases_were_not_run_for_lack_of_processor_time_fails_without_a_second_try(
    load,
):
    asked = load(RUBRIC)
    cases, _ = agreement.to_simulate(asked)
    spent = [Result(case, SPENT, detail="it was not run") for case in cases]
    found = agreement.Witness(spent, isolated=True)
    assert agreement.to_run(asked, found)[0] == []
    real = agreement.Witness([])
    assert agreement.disputed(asked, real, found)[0] == []
    verdict, differences = agreement.judge_exercise(asked, real, found)
    assert [(item.outcome, item.awarded) for item in verdict.items] == [(FAIL, 0), (FAIL, 0)]
    assert "it was not run." in verdict.items[0].reason
    assert differences == []


def test_what_another_answer_used_up_costs_this_one_no_points(load):
    asked = load(RUBRIC)
    cases, _ = agreement.to_simulate(asked)
    found = agreement.Witness([Result(case, ERROR, detail="not run") for case in cases])
    verdict, _ = agreement.judge_exercise(asked, agreement.Witness([]), found)
    assert {item.outcome for item in verdict.items} == {UNGRADABLE}


def test_of_an_item_that_is_wrong_in_simulation_only_that_case_is_run(load):
    exercise = load(RUBRIC)
    cases, _ = agreement.to_simulate(exercise)
    (bad,) = [case for case in cases if case.ranks == 9]
    simulated = agreement.Witness(
        [crashed(case) if case == bad else Result(case, SKIPPED) for case in cases]
    )
    ran, groups = agreement.to_run(exercise, simulated)
    assert [case.ranks for case in ran] == [4, 9]
    assert groups == [("placed",), ("right",)]
    verdict, differences = agreement.judge_exercise(
        exercise, agreement.Witness([crashed(bad)]), simulated
    )
    assert [item.outcome for item in verdict.items] == [FAIL, UNGRADABLE]
    assert differences == []


def test_what_was_not_tried_on_open_mpi_is_neither_given_nor_lost(load):
    exercise = load(RUBRIC)
    cases, _ = agreement.to_simulate(exercise)
    simulated = agreement.Witness(map(crashed, cases))
    verdict, _ = agreement.judge_exercise(exercise, agreement.Witness([]), simulated)
    assert {item.outcome for item in verdict.items} == {UNGRADABLE}
    assert verdict.awarded is None
    verdict, _ = agreement.judge_exercise(exercise, agreement.Witness([]), agreement.Witness([]))
    assert {item.outcome for item in verdict.items} == {UNGRADABLE}


def test_a_platform_is_pretended_on_open_mpi(load):
    (case,) = [case for case in load(RUBRIC).items[1].simulated if case.platform]
    real = agreement.on_open_mpi(case)
    assert real == replace(case, platform="", places=case.levels.places)
    assert real.seed == case.seed and real.levels.node.tolist() == case.levels.node.tolist()


def test_a_check_tells_where_simgrid_is_missing(load):
    exercise = load(RUBRIC)
    verdict = agreement.check_exercise(exercise, [], None, most_ranks=1)
    assert all(item.outcome == UNGRADABLE for item in verdict.items)
    exercise = replace(exercise, items=exercise.items[1:])
    fine = [Result(case, DONE) for case in exercise.items[0].cases]
    verdict = agreement.check_exercise(exercise, fine, (), most_ranks=8)
    assert PASS not in {item.outcome for item in verdict.items}


def test_without_simgrid_a_check_is_decided_by_open_mpi_and_says_so(load):
    exercise = replace(load(RUBRIC + TIMED), function="barrier_dissemination")
    cases, groups = judge.plan(exercise, most_ranks=4)
    real = run_cases(need(KERNELS), "barrier_dissemination", cases, groups=groups, limit=60)
    verdict = agreement.check_exercise(exercise, real, None, most_ranks=4)
    assert [(item.outcome, item.unconfirmed) for item in verdict.items] == [
        (PASS, True),
        (PASS, True),
        (UNGRADABLE, False),
    ]
    shown = repr(Checked(verdict))
    assert shown.startswith("X: all public checks pass\n")
    assert shown.count("✓") == 2 and shown.count("Right on Open MPI; not confirmed by sim") == 2
    assert "SimGrid is not installed on this machine; 'mpilab doctor' says how" in shown


def outcomes_of(exercise, real, found, third=None):
    verdict, _ = agreement.judge_exercise(exercise, agreement.Witness(real), found, third)
    return {item.item: item.outcome for item in verdict.items}


def first_ended_in_jail(exercise, ended=TRAP):
    """(the first case to simulate, a Witness in the jail for which it `ended`, and only it)"""
    first, *others = agreement.to_simulate(exercise)[0]
    fine = [Result(case, SKIPPED) for case in others]
    bad = Result(first, ended, crashed=(0, "the kernel: division by zero"))
    return first, agreement.Witness([bad, *fine], isolated=True)


def test_in_a_dispute_between_the_jail_and_open_mpi_a_third_run_decides(load):
    exercise = load(RUBRIC)
    first, jailed = first_ended_in_jail(exercise)
    plan = agreement.disputed(exercise, agreement.Witness([]), jailed)
    assert plan == ([first], [("right",)])
    assert outcomes_of(exercise, [], jailed)["right"] == UNGRADABLE
    again = agreement.Witness([crashed(first)])
    assert outcomes_of(exercise, [], jailed, again)["right"] == FAIL
    right = agreement.Witness([Result(first, SKIPPED)])
    assert outcomes_of(exercise, [], jailed, right)["right"] == UNGRADABLE
    # Two that agree need no third.
    assert agreement.disputed(exercise, agreement.Witness([crashed(first)]), jailed) == ([], [])
    assert outcomes_of(exercise, [crashed(first)], jailed)["right"] == FAIL


def test_a_case_with_many_ranks_is_run_on_open_mpi_only_if_simgrid_may_have_crashed(load):
    exercise = load(RUBRIC.replace("simulated_ranks = [4, 9]", "simulated_ranks = [64]"))
    (case,) = [case for case in agreement.to_simulate(exercise)[0] if case.ranks == 64]
    for ended, asked in ((TRAP, []), (DEADLOCK, []), (CRASH, [64])):
        jailed = agreement.Witness([Result(case, ended, crashed=(0, "SIGABRT"))], isolated=True)
        ranks = [one.ranks for one in agreement.to_run(exercise, jailed)[0]]
        assert [one for one in ranks if one > 16] == asked
        assert agreement.disputed(exercise, agreement.Witness([]), jailed)[0] == [case]


def test_a_crash_in_both_simulations_of_what_is_right_on_open_mpi_may_be_simgrids(load):
    exercise = load(RUBRIC)
    first, jailed = first_ended_in_jail(exercise, CRASH)
    real = run_cases(need(KERNELS), f"{first.collective}_linear", [agreement.on_open_mpi(first)])
    assert real[0].outcome == DONE
    again = agreement.Witness([crashed(first)])
    assert outcomes_of(exercise, real, jailed, again)["right"] == UNGRADABLE


def test_a_crash_on_open_mpi_alone_is_in_dispute_as_well(load):
    exercise = load(RUBRIC)
    cases, _ = agreement.to_simulate(exercise)
    jailed = agreement.Witness([Result(case, SKIPPED) for case in cases], isolated=True)
    real = [crashed(exercise.items[0].cases[0])]
    assert agreement.disputed(exercise, agreement.Witness(real), jailed)[0] == [real[0].case]


def test_in_the_jail_even_a_case_for_the_simulation_alone_needs_a_native_run_to_fail(load):
    exercise = load(RUBRIC.replace("simulated_ranks = [4, 9]", "simulated_ranks = [80]"))
    (large,) = (case for case in exercise.items[0].simulated if case.ranks == 80)
    fine = [Result(case, SKIPPED) for case in agreement.to_simulate(exercise)[0] if case != large]
    found = [crashed(large), *fine]
    assert outcomes_of(exercise, [], agreement.Witness(found))["right"] == FAIL
    jailed = agreement.Witness(found, isolated=True)
    assert outcomes_of(exercise, [], jailed)["right"] == UNGRADABLE
    assert agreement.disputed(exercise, agreement.Witness([]), jailed)[0] == [large]
    again = agreement.Witness([crashed(large)])
    assert outcomes_of(exercise, [], jailed, again)["right"] == FAIL


def test_before_a_disputed_case_the_one_before_it_in_its_process_is_run_again(load):
    exercise = load(RUBRIC.replace("ranks = [2, 4]", "ranks = [2, 4]\nreversed = [false, true]", 1))
    cases, _ = agreement.to_simulate(exercise)
    first, second = (case for case in exercise.items[0].cases if case.ranks == 4)
    jailed = [crashed(case) if case == second else Result(case, SKIPPED) for case in cases]
    witness = agreement.Witness(jailed, isolated=True)
    plan = agreement.disputed(exercise, agreement.Witness([]), witness)
    assert plan == ([first, second], [("before right",), ("right",)])
    assert witness.before(first) is None  # another number of ranks has another process
    # What the case before it does there decides nothing.
    again = agreement.Witness([crashed(first), Result(second, SKIPPED)])
    assert outcomes_of(exercise, [], witness, again)["right"] == UNGRADABLE
    again = agreement.Witness([Result(first, SKIPPED), crashed(second)])
    assert outcomes_of(exercise, [], witness, again)["right"] == FAIL
