import time

import pytest

from mpilab.algorithms import formula
from mpilab.algorithms.allgather import ALGORITHMS
from mpilab.algorithms.formula import (
    binomial_crossings,
    binomial_hops,
    ceil_log2,
    circulant_rounds,
    cost_of,
    crossing_hops,
    doubling_messages,
    doubling_rounds,
    evaluate,
    floor_log2,
)
from mpilab.cases.case import Case
from mpilab.errors import InputError
from mpilab.hosts.orders import Runs, runs_by_name
from mpilab.hosts.places import Levels, Place


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("P - 1", 6),
        ("P * (P - 1) * m", 7 * 6 * 40),
        ("ceil_log2(P)", 3),
        ("floor_log2(P)", 2),
        ("0 if P == 1 else 2", 2),
        ("P // 2 if P % 2 == 0 else P - 1", 6),
        ("2 ** floor_log2(P)", 4),
        ("min(P, m, 3) + max(1, 2)", 5),
        ("-P", -7),
        ("P < m", 1),
        ("P >= m", 0),
        (" 3 ", 3),
    ],
)
def test_a_formula_has_the_value_of_its_arithmetic(text, value):
    assert evaluate(text, P=7, m=40) == value
    assert type(evaluate(text, P=7, m=40)) is int


@pytest.mark.parametrize("number", range(1, 70))
def test_the_logarithms_are_exact(number):
    assert 2 ** floor_log2(number) <= number < 2 ** (floor_log2(number) + 1)
    assert 2 ** ceil_log2(number) >= number
    assert number == 1 or 2 ** (ceil_log2(number) - 1) < number


@pytest.mark.parametrize("power", [1, 2, 4, 8])
@pytest.mark.parametrize("places", [1, 2, 3, 5, 8])
def test_a_binomial_tree_enters_every_place_of_a_power_of_two_ranks_once(places, power):
    assert binomial_crossings(Runs(((power,) * places,))) == places - 1
    assert binomial_crossings(Runs(((power,) * places,) * 3)) == 3 * (places - 1)


def test_a_binomial_tree_enters_an_uneven_place_more_often_but_within_bounds():
    # 0 | 1 2 3 4 5 6 | 7: the parent of 1, 2 and 4 is 0, that of 7 is 6.
    assert binomial_crossings(Runs(((1, 6, 1),))) == 4
    for first in range(1, 40):
        for length in range(1, 40):
            entered = binomial_crossings(Runs(((first, length),)))
            assert 1 <= entered <= floor_log2(length) + 1
    assert binomial_crossings(Runs(((1, 64),))) == 7


def test_runs_stand_in_the_order_of_the_kernels_with_the_roots_place_first():
    # Ranks of each node: b1 0 6, a1 1 3 5, a2 2 7, c1 4.
    places = [Place(name, name[0]) for name in "b1 a1 a2 a1 c1 a1 b1 a2".split()]
    levels = Levels(tuple(places))
    assert {name: runs.trees for name, runs in runs_by_name(levels, 0).items()} == {
        "node_ranks": ((2, 3, 2, 1),),
        "group_ranks": ((2, 5, 1),),
        "group_nodes": ((1, 2, 1),),
        "ranks_by_group": ((2,), (3, 2), (1,)),
    }
    assert runs_by_name(levels, 7)["ranks_by_group"].trees == ((2, 3), (2,), (1,))
    case = Case("bcast", 8, 3, root=4, places=tuple(places))
    assert runs_by_name(levels, 4)["node_ranks"].trees == ((1, 2, 3, 2),)
    # 0 | 1 2 | 3 4 5 | 6 7: members 1, 2, 3, 4 and 6 get theirs from another node, 1 to 4 from
    # another group.
    assert cost_of("bcast_rank_order").across(case) == (5 * 12, 4 * 12)


def test_blocks_cross_as_often_as_they_are_handed_up_to_another_place():
    # 0 | 1 2 3 4 5 6 | 7: members 1, 2 and 4 hand 1, 2 and 4 blocks up to 0, member 7 one to 6.
    assert crossing_hops(Runs(((1, 6, 1),))) == 1 + 2 + 4 + 1
    assert crossing_hops(Runs(((5,),))) == 0
    for ranks in range(1, 40):
        assert crossing_hops(Runs(((1,) * ranks,))) == binomial_hops(ranks, ranks)
    # Four places of four: 4, 8 and 4 blocks, of which the last four go twice.
    assert crossing_hops(Runs(((4, 4, 4, 4),) * 2)) == 2 * 16


def test_the_leaders_nodes_hold_the_root_s_and_the_first_of_each_other_group():
    # Ranks of each node: b1 0 6, a1 1 3 5, a2 2 7, c1 4.
    places = tuple(Place(name, name[0]) for name in "b1 a1 a2 a1 c1 a1 b1 a2".split())
    for root, ranks in ((0, 2 + 3 + 1), (1, 3 + 2 + 1), (2, 2 + 2 + 1), (4, 1 + 2 + 3)):
        assert formula.names_of(Case("gather", 8, 1, root=root, places=places))["L"] == ranks
    assert formula.names_of(Case("gather", 8, 1, root=3))["L"] == 8


def test_recursive_doubling_folds_the_ranks_beyond_a_power_of_two():
    assert [doubling_rounds(ranks) for ranks in range(1, 9)] == [0, 1, 3, 2, 4, 4, 4, 3]
    assert [doubling_messages(ranks) for ranks in range(1, 9)] == [0, 2, 4, 8, 10, 12, 14, 24]
    for ranks in range(1, 20):
        header = cost_of("allreduce_recursive_doubling").at(Case("allreduce", ranks, 1))
        assert header[:2] == (doubling_rounds(ranks), doubling_messages(ranks))


def test_runs_are_no_numbers():
    runs = {"node_ranks": Runs(((2, 3),))}
    assert evaluate("binomial_crossings(node_ranks) * 10", **runs) == 20
    for text in ("node_ranks", "node_ranks * 10", "-node_ranks", "ceil_log2(node_ranks)"):
        with pytest.raises(InputError, match="formula"):
            evaluate(text, **runs)


def test_the_fewest_rounds_for_many_pieces_are_those_of_a_binomial_tree_and_one_for_each_more():
    assert [circulant_rounds(ranks, 1) for ranks in (1, 2, 3, 8, 9)] == [0, 1, 2, 3, 4]
    assert [circulant_rounds(ranks, 10) for ranks in (1, 2, 9)] == [0, 10, 13]


@pytest.mark.parametrize(
    "text",
    [
        "Q",
        "P.real",
        "P.__class__",
        "__import__('os')",
        "print(P)",
        "eval('1')",
        "[P]",
        "P[0]",
        "'text'",
        "1.5",
        "P / 2",
        "P & 1",
        "lambda: P",
        "P and m",
        "(P := 3)",
        "[x for x in P]",
        "1 < P < 9",
        "min(*P)",
        "max(P, key=m)",
        "f'{P}'",
        "None",
        "",
        "P +",
        "P; m",
        "min",
    ],
)
def test_anything_else_is_refused_with_the_formula(text):
    with pytest.raises(InputError) as refused:
        evaluate(text, P=7, m=40)
    assert f"formula {text!r}" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("9 ** 9 ** 9", "too large"),
        ("P ** 100000", "too large"),
        ("2 ** -1", "not an integer"),
        ("P // 0", "zero"),
        ("P % 0", "zero"),
        ("ceil_log2(0)", "logarithm of 0"),
        ("floor_log2(-1)", "logarithm of -1"),
        ("ceil_log2(P, m)", "argument"),
        ("min()", "min"),
        ("1" * 5000, "digits"),
        ("P\0", "null"),
        ("binomial_crossings(P)", "trees"),
    ],
)
def test_a_formula_without_a_value_is_refused_at_once(text, words):
    begin = time.monotonic()
    with pytest.raises(InputError, match=words):
        evaluate(text, P=7, m=40)
    assert time.monotonic() - begin < 10


def test_a_formula_of_great_depth_is_refused():
    with pytest.raises(InputError):
        evaluate("(" * 5000 + "P" + ")" * 5000, P=1)
    with pytest.raises(InputError):
        evaluate("-" * 20000 + "P", P=1)


def test_a_number_instead_of_a_formula_is_refused_with_the_remedy():
    with pytest.raises(InputError, match="formula 3: not a string; write it in quotes"):
        evaluate(3, P=1)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 64])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_headers_say_what_the_schedules_count(name, ranks):
    rounds, messages, total = cost_of(f"allgather_{name}").at(Case("allgather", ranks, 10))
    schedule = formula_free_counts(name, ranks)
    assert (rounds, messages, total) == schedule


def formula_free_counts(name, ranks):
    from mpilab.algorithms import counts
    from mpilab.algorithms.allgather import schedule

    counted = counts(schedule(name, ranks), 40)
    return counted.rounds, counted.messages, counted.total_bytes


def test_a_kernel_that_we_do_not_have_is_named():
    with pytest.raises(InputError, match="kernel 'allgather_magic': no file .*magic.c"):
        cost_of("allgather_magic")
    with pytest.raises(InputError, match="'../../etc/passwd'|'ring'"):
        cost_of("ring")


def test_a_header_without_a_line_names_the_line(monkeypatch, tmp_path):
    monkeypatch.setattr(formula, "SOURCES", tmp_path)
    (tmp_path / "allgather").mkdir()
    file = tmp_path / "allgather" / "half.c"
    file.write_text("/* Half.\n *\n * Rounds:   1\n * Bytes:    m\n */\n * Messages: 1\n")
    with pytest.raises(InputError, match="half.c: no line 'Messages:' in its header"):
        cost_of("allgather_half")
    file.write_text("/* Whole.\n *\n * Rounds:   1\n * Messages: 1\n * Bytes:    m // 0\n */\n")
    with pytest.raises(InputError, match="m // 0"):
        cost_of("allgather_half").at(Case("allgather", 4, 2))


def test_an_alltoallv_is_counted_in_bytes_of_all_pairs():
    places = tuple(Place(f"{group}{node}", group) for group in "ab" for node in (1, 2)) * 2
    case = Case("alltoallv", 8, 5, places=places)
    names = formula.names_of(case)
    assert (names["V"], names["VM"], names["VG"]) == (56 * 20, 48 * 20, 32 * 20)
    assert {"V", "B"}.isdisjoint(formula.names_of(Case("allgather", 8, 5)))
    assert formula.names_of(Case("alltoallv", 8, 5, budget=64))["B"] == 64


def test_a_budget_that_a_header_names_is_what_pieces_are_counted_by():
    cost = cost_of("alltoallv_leaders")
    assert cost.budget == 8 << 20 and "B // (4 * Q * (P - Q))" in cost.pieces
    places = tuple(Place(name) for name in "nnmm")
    case = Case("alltoallv", 4, 25, places=places)
    assert cost.at(case) == (3, 4 + 2 + 2 + 2, 1200 + 2 * 400 + 64)
    in_pieces = Case("alltoallv", 4, 25, places=places, budget=16 * 30)  # 30 bytes of each pair
    assert cost.at(in_pieces) == (6, 4 + 2 + (4 * 4 - 2) + 4 * 2, 1200 + 2 * 400 + 64)
