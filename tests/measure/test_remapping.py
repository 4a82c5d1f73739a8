"""Which process behaves as which rank, and the table of what that saves: formula and count side by
side."""

import ctypes
import random
from itertools import product

import pytest

from mpilab import remapping
from mpilab.algorithms import allgather, holdings
from mpilab.algorithms.remapping import RR, SEQ, placement
from mpilab.errors import InputError
from mpilab.hosts.places import Levels, Place
from mpilab.kernels.build import KERNELS
from mpilab.models import LogGP, predict_placed
from tests.right_answers import answers_of

RIGHT = answers_of("03-rank-mapping")
rr_to_seq, seq_to_rr = RIGHT.rr_to_seq, RIGHT.seq_to_rr
SHAPES = list(product(range(1, 25), repeat=2))
POWERS = [(nodes, each) for nodes, each in product((2, 4, 8), repeat=2) if nodes * each <= 16]


def at_random(number):
    """The Levels of some ranks on some nodes of some groups, the same for the same number."""
    choice = random.Random(number)
    groups = choice.randint(1, 3)
    hosts = [Place(f"n{i}", f"g{choice.randrange(groups)}") for i in range(choice.randint(1, 6))]
    return Levels(tuple(choice.choice(hosts) for _ in range(choice.randint(1, 24))))


# --- the formulas


def test_each_formula_undoes_the_other():
    for nodes, each in SHAPES:
        ranks = range(nodes * each)
        assert [rr_to_seq(seq_to_rr(p, nodes, each), nodes, each) for p in ranks] == [*ranks]
        assert [seq_to_rr(rr_to_seq(p, nodes, each), nodes, each) for p in ranks] == [*ranks]


def test_a_formula_leads_to_the_rank_that_stands_at_the_same_node_and_core():
    for nodes, each in SHAPES:
        for node, core in product(range(nodes), range(each)):
            in_seq, in_rr = node * each + core, core * nodes + node
            assert seq_to_rr(in_seq, nodes, each) == in_rr, (nodes, each)
            assert rr_to_seq(in_rr, nodes, each) == in_seq, (nodes, each)
        last = nodes * each - 1
        assert (seq_to_rr(0, nodes, each), seq_to_rr(last, nodes, each)) == (0, last)


def test_the_slides_identity_is_a_slip():
    """f_RR→SEQ(f_RR→SEQ(p)) = p holds only if M = Q, or if nothing moves."""
    assert (rr_to_seq(1, 2, 3), rr_to_seq(3, 2, 3)) == (3, 4)
    for nodes, each in SHAPES:
        holds = all(
            rr_to_seq(rr_to_seq(p, nodes, each), nodes, each) == p for p in range(nodes * each)
        )
        assert holds == (nodes == each or 1 in (nodes, each)), (nodes, each)


def test_the_orders_in_c_are_those_of_the_formulas():
    kernels = ctypes.CDLL(str(KERNELS))
    for nodes, each in SHAPES[::7]:
        ranks = nodes * each
        process = (ctypes.c_int * ranks)()
        kernels.remap_regular(ranks, each, process)  # of processes in SEQ order
        assert [seq_to_rr(p, nodes, each) for p in process] == [*range(ranks)]
        kernels.remap_regular(ranks, nodes, process)  # in RR order
        assert [rr_to_seq(p, nodes, each) for p in process] == [*range(ranks)]


@pytest.mark.parametrize("rank, nodes, each", [(6, 2, 3), (-1, 2, 3), (0, 0, 3), (0, 2, 0)])
def test_a_rank_beyond_the_nodes_is_refused(rank, nodes, each):
    with pytest.raises(InputError, match=f"rank={rank} on {nodes} nodes of {each} processes"):
        seq_to_rr(rank, nodes, each)


# --- orders for any topology


@pytest.mark.parametrize("nodes, each", [(1, 4), (2, 4), (3, 5), (8, 2), (7, 1)])
def test_on_regular_nodes_the_orders_are_those_of_the_formulas(nodes, each):
    in_seq, in_rr = placement(SEQ, nodes, each), placement(RR, nodes, each)
    assert remapping.dealt(in_seq) == remapping.by_formula(seq_to_rr, in_seq)
    assert remapping.by_node(in_rr) == remapping.by_formula(rr_to_seq, in_rr)
    as_they_are = tuple(range(nodes * each))
    assert remapping.dealt(in_rr) == remapping.by_node(in_seq) == as_they_are


def test_groups_take_turns_and_in_each_its_nodes_do():
    places = [Place(name, name[0]) for name in "a1 a1 a1 a2 b1 b1 b2 c1".split()]
    assert remapping.dealt(Levels(tuple(places))) == (0, 4, 7, 3, 6, 1, 5, 2)


def test_a_formula_is_refused_where_processes_are_no_multiple_of_the_nodes():
    levels = Levels((Place("n1"), Place("n1"), Place("n2")))
    with pytest.raises(InputError, match="3 processes on 2 nodes"):
        remapping.by_formula(seq_to_rr, levels)


@pytest.mark.parametrize("number", range(60))
def test_on_any_topology_everybody_gets_all_blocks_and_no_more_cross_than_before(number):
    levels = at_random(number)
    ranks = len(levels.places)
    for algorithm in remapping.REMAPPED:
        plain = allgather.schedule(algorithm, ranks)
        schedule = remapping.remapped(algorithm, remapping.chosen(algorithm, levels))
        held = holdings(schedule)
        for before, transfers in zip(held[:-1], schedule.rounds, strict=True):
            assert all(before[t.source, list(t.blocks)].all() for t in transfers)
        assert held[-1].all()
        before, after = (remapping.crossing(s, levels) for s in (plain, schedule))
        if algorithm != "neighbor_exchange":
            assert sum(after) <= sum(before)
        if algorithm == "ring":  # a ring that comes to M > 1 nodes crosses M borders or more
            borders = [n if n > 1 else 0 for n in (levels.nodes, levels.groups)]
            assert after == tuple(border * (ranks - 1) for border in borders)


def test_recursive_doubling_deals_out_only_where_that_pays():
    assert remapping.chosen("recursive_doubling", placement(RR, 4, 4)) == tuple(range(16))
    in_seq = placement(SEQ, 4, 4)
    assert remapping.chosen("recursive_doubling", in_seq) == remapping.dealt(in_seq)
    # On three nodes no order has partners that are far apart on the same node: as they are, in SEQ
    # order, fewer blocks cross than in RR order.
    assert remapping.chosen("recursive_doubling", placement(SEQ, 3, 4)) == tuple(range(12))


def test_an_unknown_algorithm_or_order_is_named():
    with pytest.raises(InputError, match="algorithm='bruck': use one of recursive_doubling, ring"):
        remapping.remapped("bruck", (0, 1))
    with pytest.raises(InputError, match="order='seq': use 'SEQ' or 'RR'"):
        placement("seq", 2, 2)


# --- the table


@pytest.fixture(scope="module")
def rows():
    return remapping.table(POWERS)


def test_the_slides_formulas_are_read_as_they_are_printed():
    assert remapping.published() == {
        "RDA SEQ": ("(Q - 1) * m", "(M - 1) * Q * m"),
        "RDA RR": ("(Q - 1) * M * m", "(M - 1) * m"),
        "RDA*": ("(Q - 1) * M * m", "M * m"),
    }


def test_on_powers_of_two_what_is_counted_is_what_the_formulas_say(rows):
    assert len(rows) == len(POWERS) * 6 == 36
    assert [row.line.name for row in rows if not row.holds] == []
    counted = {
        row.line.name: [n // row.bytes for n in row.counted]
        for row in rows
        if (row.nodes, row.each) == (4, 4)
    }
    assert counted == {
        "RDA SEQ": [3, 12, 192],
        "RDA RR": [12, 3, 48],
        "RDA*": [12, 4, 60],
        "ring SEQ": [0, 15, 60],
        "ring RR": [0, 15, 240],
        "ring*": [0, 15, 60],
    }


def test_on_other_numbers_the_ring_keeps_its_formulas_and_recursive_doubling_does_not():
    others = remapping.table([(3, 2), (2, 3), (3, 4)], count=8)
    wrong = {(row.line.name, row.nodes, row.each) for row in others if not row.holds}
    doubling = ("RDA SEQ", "RDA RR", "RDA*")
    assert wrong == {(name, *shape) for name in doubling for shape in ((3, 2), (2, 3), (3, 4))}
    # On three nodes RR order is worse for recursive doubling than SEQ order, not better.
    total = {
        (row.line.name, row.each): row.counted[2] // row.bytes for row in others if row.nodes == 3
    }
    assert (total["RDA SEQ", 4], total["RDA RR", 4], total["RDA*", 4]) == (100, 136, 142)


def test_where_nothing_is_remapped_there_is_no_phase_1():
    (remapped,) = (row for row in remapping.table([(4, 1)], count=8) if row.line.name == "RDA*")
    assert remapped.formula[1] == 4 * 32 and remapped.counted[1] == 3 * 32


def test_the_text_shows_formula_and_count_side_by_side(rows):
    lines = remapping.as_text(rows).splitlines()
    assert len(lines) == 2 + 36 and all(line.endswith("  =") for line in lines[2:])
    (line,) = (line for line in lines if line.split()[:3] == ["RDA*", "4", "4"])
    assert line.split()[3:] == ["12", "12", "4", "4", "60", "60", "="]
    wrong = remapping.Row(rows[0].line, 2, 2, 4, (4, 8, 32), (4, 8, 36))
    assert remapping.as_text([wrong]).split()[-7:] == ["1", "1", "2", "2", "8", "9", "DIFFERENT"]


@pytest.mark.parametrize("name", ("RDA SEQ", "RDA RR", "RDA*"))
def test_the_slides_time_is_that_of_the_schedule_for_long_messages(name, rows):
    """LogGP round by round, with L, o and g, for blocks of 100 MB."""
    near, far = LogGP(1e-7, 1e-7, 1e-7, 1e-10), LogGP(2e-6, 1e-6, 1e-6, 1e-9)
    for row in rows:
        if row.line.name != name:
            continue
        levels = placement(row.line.order, row.nodes, row.each)
        order = tuple(range(row.nodes * row.each))
        if row.line.remap:
            order = remapping.by_formula(seq_to_rr, levels)
        schedule = remapping.remapped("recursive_doubling", order)
        size = 100_000_000
        seconds = predict_placed(schedule, levels, size, near, far)
        assert seconds == pytest.approx(row.seconds(near.G, far.G) * size / row.bytes, rel=1e-3)
