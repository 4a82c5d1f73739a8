"""Rubrics are read whole or refused with file, place and value."""

import pytest

from mpilab.build import ROOT
from mpilab.errors import InputError
from mpilab.exercises import KERNEL, load
from mpilab.functions import trusted

KERNEL_EXERCISE = """
lab = "99-test"
[[exercise]]
id = "x"
title = "X"
kind = "kernel"
collective = "allgather"
function = "allgather_x"
[[exercise.item]]
id = "a"
title = "A"
points = 2
ranks = [4, 1]
counts = [1, 7]
"""
PYTHON_EXERCISE = """
lab = "99-test"
[[exercise]]
id = "f"
title = "F"
kind = "python"
function = "f"
[[exercise.item]]
id = "a"
title = "A"
points = 1
arguments = [[1, 2], [3, 4]]
expected = "operator:add"
"""


@pytest.fixture
def rubric(tmp_path):
    """A function: the Rubric of a text."""

    def of(text, **options):
        (tmp_path / "rubric.toml").write_text(text, encoding="utf-8")
        return load(tmp_path / "rubric.toml", **options)

    return of


def test_an_item_holds_all_combinations_smaller_ranks_first(rubric):
    text = KERNEL_EXERCISE + 'datatypes = ["int", "struct"]\nin_place = [false, true]\n'
    item = rubric(text).exercise("x").items[0]
    assert len(item.cases) == 2 * 2 * 2 * 2
    assert [case.ranks for case in item.cases] == [1] * 8 + [4] * 8
    assert len({case.seed for case in item.cases}) == 16


def test_the_seed_decides_the_data_and_equal_cases_of_two_items_are_one(rubric):
    text = KERNEL_EXERCISE + KERNEL_EXERCISE[KERNEL_EXERCISE.index("[[exercise.item]]"):].replace(
        'id = "a"', 'id = "b"')  # fmt: skip
    first, second = rubric(text).exercise("x").items
    assert first.cases == second.cases
    other = rubric(text, seed=2).exercise("x").items[0]
    assert {case.seed for case in other.cases}.isdisjoint(case.seed for case in first.cases)


def test_points_add_up(rubric):
    assert rubric(KERNEL_EXERCISE).exercise("x").points == 2


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('id = "x"', 'id = "x"\ncolour = 3', "exercise 'x': unknown key 'colour'"),
        ("points = 2", "points = -1", "exercise 'x', item 'a': points = -1"),
        ("points = 2", "points = 2\ntolerance = 1", "item 'a': unknown key 'tolerance'"),
        ('kind = "kernel"', 'kind = "novel"', "kind 'novel' is unknown; write kernel"),
        ('collective = "allgather"\n', "", "'collective' is missing"),
        ('title = "A"\n', "", "'title' is missing"),
        ("ranks = [4, 1]", "ranks = []", "item 'a': no case in it"),
        ("ranks = [4, 1]", "ranks = [0]", "ranks=0: has to be 1 or more"),
        ("points = 2", 'points = 2\nrounds = "Q"', "item 'a', rounds: formula 'Q'"),
        ("points = 2", "points = 2\nrounds = 1", "item 'a', rounds: formula 1: not a text"),
        ("points = 2", 'points = 2\nbytes = "m // (P - 4)"', "bytes: .*has no value for P = 4"),
        ('lab = "99-test"', 'lab = "99-test', "rubric.toml: not TOML"),
    ],
)  # fmt: skip
def test_a_rubric_with_a_mistake_is_refused_with_its_place(rubric, old, new, words):
    with pytest.raises(InputError, match=words) as refused:
        rubric(KERNEL_EXERCISE.replace(old, new))
    assert "rubric.toml: " in str(refused.value)


def test_twins_are_refused(rubric):
    with pytest.raises(InputError, match="two exercises are called 'x'"):
        rubric(KERNEL_EXERCISE + KERNEL_EXERCISE.replace('lab = "99-test"', ""))
    item = KERNEL_EXERCISE[KERNEL_EXERCISE.index("[[exercise.item]]"):]  # fmt: skip
    with pytest.raises(InputError, match="exercise 'x': two items are called 'a'"):
        rubric(KERNEL_EXERCISE + item)


@pytest.mark.parametrize(("old", "new"), [("[[1, 2], [3, 4]]", "[]"), ('"operator:add"', '""')])
def test_a_function_that_would_pass_without_being_called_is_refused(rubric, old, new):
    assert rubric(PYTHON_EXERCISE).exercise("f").items[0].arguments == ((1, 2), (3, 4))
    with pytest.raises(InputError, match="exercise 'f', item 'a': nothing to call"):
        rubric(PYTHON_EXERCISE.replace(old, new))


def test_an_unknown_exercise_and_a_missing_file_are_named(rubric, tmp_path):
    with pytest.raises(InputError, match="exercise 'y': not in lab 99-test; it has x"):
        rubric(KERNEL_EXERCISE).exercise("y")
    with pytest.raises(InputError, match="gone.toml: no such file"):
        load(tmp_path / "gone.toml")


@pytest.mark.parametrize(
    "path", [*ROOT.glob("labs/checks/*.toml"), *ROOT.glob("grading/*/rubric.toml")], ids=str
)
def test_the_rubrics_of_the_kit_can_be_used(path):
    rubric = load(path)
    assert rubric.exercises
    for exercise in rubric.exercises:
        assert exercise.points > 0
        for item in exercise.items:
            assert not item.expected or callable(trusted(item.expected))
        if exercise.kind == KERNEL and exercise.reference:
            assert (ROOT / "src_c" / exercise.reference).is_file()
