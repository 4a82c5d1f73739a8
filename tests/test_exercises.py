"""Rubrics are read whole or refused with file, place and value."""

import pytest

from mpilab.build import ROOT
from mpilab.errors import InputError
from mpilab.exercises import KERNEL, load
from mpilab.expected import COLLECTIVES
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
VARIANTS = """
lab = "99-test"
[[exercise]]
id = "x"
title = "A tree of your choice"
kind = "kernel"
collective = "bcast"
allowed = ["point-to-point"]
[[exercise.variant]]
function = "bcast_binary"
reference = "bcast/binary.c"
[[exercise.variant.item]]
id = "a"
title = "A"
points = 3
ranks = [2]
counts = [1]
[[exercise.variant]]
function = "reduce_chain"
collective = "reduce"
reference = "reduce/chain.c"
[[exercise.variant.item]]
id = "a"
title = "A"
points = 1
ranks = [2, 3]
counts = [1]
[[exercise.variant.item]]
id = "b"
title = "B"
points = 2
ranks = [2]
counts = [1]
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


def cases(rubric, collective, extra):
    """The cases of an item of an exercise about `collective`, with the keys `extra`."""
    text = KERNEL_EXERCISE.replace('"allgather"', f'"{collective}"')
    return rubric(text + extra).exercise("x").items[0].cases


def test_a_negative_root_counts_from_the_last_rank_and_one_rank_is_tried_once(rubric):
    found = cases(rubric, "bcast", "roots = [0, -1]\n")
    assert [(case.ranks, case.count, case.root) for case in found] == [
        (1, 1, 0), (1, 7, 0), (4, 1, 0), (4, 1, 3), (4, 7, 0), (4, 7, 3)]  # fmt: skip


def test_operations_and_tunables_are_varied_with_all_the_rest(rubric):
    extra = 'roots = [0]\nops = ["sum", "compose"]\nsegments = [0, 64]\nfanouts = [2, 3]\n'
    found = cases(rubric, "reduce", extra)
    assert len(found) == 2 * 2 * 2 * 2 * 2
    assert {case.op for case in found} == {"sum", "compose"}
    assert {(case.segment, case.fanout) for case in found} == {(0, 2), (0, 3), (64, 2), (64, 3)}
    assert len({case.seed for case in found}) == len(found)
    assert {case.radix for case in cases(rubric, "bcast", "radixes = [3]\n")} == {3}


def test_a_barrier_needs_no_counts_and_everything_else_does(rubric):
    text = KERNEL_EXERCISE.replace("counts = [1, 7]\n", "")
    found = rubric(text.replace('"allgather"', '"barrier"')).exercise("x").items[0].cases
    assert [(case.ranks, case.count) for case in found] == [(1, 0), (4, 0)]
    with pytest.raises(InputError, match="the key 'counts' is missing"):
        rubric(text)


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_collective_can_be_asked_for(rubric, collective):
    text = KERNEL_EXERCISE.replace('"allgather"', f'"{collective}"')
    if collective == "barrier":
        text = text.replace("counts = [1, 7]", "counts = [0]")
    found = rubric(text).exercise("x").items[0].cases
    assert {case.collective for case in found} == {collective}


def test_all_quantities_can_be_counted_exactly_or_bounded_from_above(rubric):
    extra = 'busiest_messages = "1"\nmost_busiest_bytes = "m"\nmost_rounds = "P"\n'
    item = rubric(KERNEL_EXERCISE + extra).exercise("x").items[0]
    assert dict(item.counted) == {
        "busiest_messages": "1", "most_busiest_bytes": "m", "most_rounds": "P"}  # fmt: skip


def test_an_answer_may_be_one_of_several_kernels_of_the_same_worth(rubric):
    read = rubric(VARIANTS)
    exercise = read.exercise("x")
    assert exercise.points == 3
    assert exercise.functions == ("bcast_binary", "reduce_chain")
    binary, chain = exercise.variants
    assert (binary.collective, chain.collective) == ("bcast", "reduce")
    assert binary.allowed == chain.allowed == ("point-to-point",)
    assert [item.id for item in chain.items] == ["a", "b"]
    assert chain.id == "x" and chain.title == "A tree of your choice: reduce_chain"
    assert exercise.variant("reduce_chain") == chain
    assert exercise.variant("bcast_linear") is None
    assert read.references == ("bcast/binary.c", "reduce/chain.c")


def test_an_exercise_without_variants_is_judged_as_it_is_whatever_the_answer_defines(rubric):
    exercise = rubric(KERNEL_EXERCISE).exercise("x")
    assert exercise.variant("") is exercise
    assert exercise.functions == ("allgather_x",)
    assert exercise.references == ()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("points = 3", "points = 4", "variants are worth bcast_binary 4, reduce_chain 3 points"),
        ("reduce_chain", "bcast_binary", "two variants are called 'bcast_binary'"),
        ('kind = "kernel"', 'kind = "python"', "kind 'python' has no variants"),
        ('collective = "bcast"', 'collective = "bcast"\nfunction = "f"', "'function' beside vari"),
        ("counts = [1]", "counts = [1]\nroots = [2]", "variant 'bcast_binary', item 'a': root=2"),
        ('reference = "bcast', 'level = 3\nreference = "bcast', "variant 'bcast_binary': unknown"),
    ],
)  # fmt: skip
def test_variants_with_a_mistake_are_refused_with_their_place(rubric, old, new, words):
    with pytest.raises(InputError, match=words):
        rubric(VARIANTS.replace(old, new, 1))


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
        ("ranks = [4, 1]", "ranks = 4", r"ranks = 4: not a list; write \[4\]"),
        ("ranks = [4, 1]", 'ranks = ["4"]', "ranks: '4' is of the wrong type; write e.g. 0"),
        ("points = 2", "points = 2\nroots = [1]", "item 'a': root=1 with 1 rank: has to be below"),
        ("ranks = [4, 1]", "ranks = [4]\nroots = [1]", "item 'a': root=1: allgather has no root"),
        ("points = 2", 'points = 2\nops = ["compose"]', "allgather has no operation"),
        ('"allgather"', '"gossip"', "collective 'gossip' is unknown"),
        ("points = 2", 'points = 2\nmost_rounds = "Q"', "item 'a', most_rounds: formula 'Q'"),
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
        assert exercise.kind != KERNEL or exercise.functions
    for reference in rubric.references:
        assert (ROOT / "src_c" / reference).is_file()
