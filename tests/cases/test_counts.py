"""The arguments of an alltoallv, as computed in Python: counts, displacements, volumes."""

from dataclasses import replace

import numpy as np
import pytest
from test_buffers import outputs

from mpilab.cases import counts as exchange
from mpilab.cases.case import Case, block_places, gap_places, sent_places
from mpilab.cases.data import GUARD_BYTES, datatype
from mpilab.cases.output import compare
from mpilab.errors import InputError
from mpilab.hosts.places import Levels, Place

PATTERNS = [(pattern, in_place) for pattern in exchange.PATTERNS for in_place in (False, True)]


def case(pattern="ragged", in_place=False, ranks=5, count=4, name="int"):
    return Case("alltoallv", ranks, count, name, in_place, pattern=pattern)


def test_an_even_exchange_is_an_alltoall():
    even = case("even")
    assert (exchange.elements(even) == 4).all()
    for rank in range(5):
        side = exchange.received(even, rank)
        assert side.begins.tolist() == [0, 4, 8, 12, 16] and side.room == 20


def test_a_ragged_exchange_has_counts_from_nothing_to_twice_the_count():
    counts = exchange.elements(case(ranks=7))
    assert set(counts.ravel().tolist()) == {0, 2, 4, 6, 8}
    assert (counts != counts.T).any()
    assert counts[1].tolist() == [4, 8, 2, 6, 0, 4, 8]  # (1 + 2j + 1) mod 5 halves of 4
    assert exchange.elements(case(ranks=7, count=1)).max() == 2


def test_in_a_sparse_exchange_most_pairs_have_nothing_to_say():
    counts = exchange.elements(case("sparse", ranks=8))
    assert np.argwhere(counts).tolist() == [
        [0, 0],
        [0, 1],
        [0, 2],
        [3, 3],
        [3, 4],
        [3, 5],
        [6, 0],
        [6, 6],
        [6, 7],
    ]


@pytest.mark.parametrize("pattern", exchange.PATTERNS)
def test_in_place_each_pair_exchanges_as_much_in_both_directions(pattern):
    counts = exchange.elements(case(pattern, in_place=True, ranks=9))
    assert (counts == counts.T).all() and counts.any()


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
@pytest.mark.parametrize(("pattern", "in_place"), PATTERNS)
def test_blocks_do_not_overlap_and_stay_in_the_buffer(pattern, in_place, ranks):
    tried = case(pattern, in_place, ranks)
    for rank in range(ranks):
        for side in (exchange.sent(tried, rank), exchange.received(tried, rank)):
            held = np.zeros(side.room, int)
            for begin, count in zip(side.begins, side.counts, strict=True):
                held[begin : begin + count] += 1
            assert held.max(initial=0) <= 1 and held.sum() == side.counts.sum()
            if pattern != "even":  # a gap before each block and after the last
                assert side.room == side.counts.sum() + exchange.GAP * (ranks + 1)


def test_uneven_blocks_stand_in_another_order_on_each_rank():
    orders = {
        tuple(np.argsort(exchange.received(case(), rank).begins).tolist()) for rank in range(5)
    }
    assert len(orders) == 5 and (0, 1, 2, 3, 4) not in orders


@pytest.mark.parametrize("name", ["int", "vector", "struct", "mixed"])
@pytest.mark.parametrize(("pattern", "in_place"), PATTERNS)
def test_what_is_expected_holds_what_was_sent_and_leaves_the_rest(pattern, in_place, name):
    tried = case(pattern, in_place, 4, 3, name)
    before = [tried.regions(rank) for rank in range(4)]
    for dest, after in enumerate(tried.expected()):
        left = np.ones(len(after), bool)
        for source in range(4):
            here = block_places(tried, source, dest)
            there = (block_places if in_place else sent_places)(tried, dest, source)
            assert (after[here] == before[source][1 if in_place else 0][there]).all()
            left[here] = False
        assert (after[left] == before[dest][1][left]).all()


@pytest.mark.parametrize("name", ["int", "struct"])
def test_every_byte_counts_also_those_between_blocks(name):
    tried = case(ranks=3, count=2, name=name)
    assert compare(tried, outputs(tried)) == []
    gaps = set(gap_places(tried, 1).tolist())
    told = set()
    for place in range(len(tried.regions(1)[1])):
        came = outputs(tried)
        came[1].received[place] ^= 1
        (difference,) = compare(tried, came)
        assert difference.rank == 1
        is_gap = difference.notes == ("the gaps between the blocks were overwritten",)
        assert is_gap == (place in gaps)
        told |= {difference.notes or "a block"}
    assert len(told) == (4 if datatype(name)[1].extent != datatype(name)[1].size else 3)


def test_gaps_are_all_that_belongs_to_no_block():
    tried = case(ranks=3, count=2, name="int")
    side = exchange.received(tried, 2)
    assert len(gap_places(tried, 2)) == 4 * (side.room - side.counts.sum())
    assert gap_places(tried, 2).min() == GUARD_BYTES
    assert not len(gap_places(case("even"), 0)) and not len(gap_places(Case("gather", 2, 1), 0))


def test_volumes_are_counted_by_level():
    places = (Place("a1", "a"), Place("a1", "a"), Place("a2", "a"), Place("b1", "b"))
    even = case("even", ranks=4)  # 16 bytes a pair
    volumes = exchange.volumes(even, Levels(places))
    assert volumes == {"V": 12 * 16, "VM": 10 * 16, "VG": 6 * 16}
    sparse = exchange.volumes(replace(even, pattern="sparse"), Levels(places))
    assert sparse == {"V": 4 * 16, "VM": 3 * 16, "VG": 2 * 16}  # 0 to 1 and 2, 3 to 0 and 1


def test_a_pattern_is_refused_where_nobody_knows_it():
    with pytest.raises(InputError, match="pattern 'odd' is unknown; write one of even, ragged"):
        case("odd")
    with pytest.raises(
        InputError, match="pattern 'ragged': all blocks of gather have the same size"
    ):
        Case("gather", 2, 1, pattern="ragged")
    with pytest.raises(InputError, match="budget=-1: must be 0 or more"):
        Case("alltoallv", 2, 1, budget=-1)


def test_a_case_tells_its_pattern_and_its_budget():
    tried = Case("alltoallv", 2, 7, pattern="ragged", budget=4096)
    assert tried.describe() == "2 ranks, count 7, datatype int, budget 4096 bytes, ragged counts"
    assert tried.line(0).endswith("budget=4096 pattern=ragged openmpi=-1 monitor=0")
    assert "pattern" not in case("even").line(0)
