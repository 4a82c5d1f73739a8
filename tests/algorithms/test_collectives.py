"""Every schedule leaves every rank with what the collective promises, and wastes nothing."""

from itertools import product

import numpy as np
import pytest

from mpilab.algorithms import (
    COLLECTIVES,
    ROOTED,
    algorithm_of,
    algorithms,
    counts,
    holdings,
    message_bytes,
    parts,
    schedule_of,
)
from mpilab.algorithms.algorithm import Call

RANKS = (*range(1, 10), 16, 17)
TUNINGS = ({}, {"count": 13, "segment": 3, "fanout": 3, "radix": 3})
NAMES = [(collective, name) for collective in COLLECTIVES for name in algorithms(collective)]
HANDED_ON = [names for names in NAMES if names[0] in ("allgather", "bcast", "gather", "scatter")]
REDUCED = [names for names in NAMES if names[0] in ("reduce", "allreduce", "barrier")]


def schedules(collective, name):
    """The schedules of an algorithm on all RANKS, with the first and the last root, and tuned."""
    for ranks, tuning in product(RANKS, TUNINGS):
        for root in {0, ranks - 1} if collective in ROOTED else {0}:
            yield schedule_of(collective, name, ranks, root=root, **tuning)


@pytest.mark.parametrize("collective, name", NAMES)
def test_no_rank_sends_to_itself_and_one_rank_alone_sends_nothing(collective, name):
    for schedule in schedules(collective, name):
        assert all(transfer.source != transfer.dest for transfer in schedule.transfers())
        assert bool(schedule.transfers()) == (schedule.ranks > 1)
        assert all(schedule.rounds)


@pytest.mark.parametrize("collective, name", HANDED_ON)
def test_nobody_sends_a_block_that_it_does_not_hold_yet(collective, name):
    for schedule in schedules(collective, name):
        for before, transfers in zip(holdings(schedule), schedule.rounds, strict=False):
            for transfer in transfers:
                assert before[transfer.source, list(transfer.blocks)].all(), transfer


@pytest.mark.parametrize("name", algorithms("bcast"))
def test_after_a_broadcast_every_rank_has_every_block(name):
    for schedule in schedules("bcast", name):
        assert holdings(schedule)[-1].all()


@pytest.mark.parametrize("name", algorithms("bcast"))
def test_a_broadcast_starts_with_the_root_alone(name):
    for schedule in schedules("bcast", name):
        has_any = holdings(schedule)[0].any(axis=1)
        assert np.flatnonzero(has_any).tolist() == [schedule.root]


@pytest.mark.parametrize("name", algorithms("gather"))
def test_after_a_gather_the_root_has_every_block_and_each_had_its_own(name):
    for schedule in schedules("gather", name):
        held = holdings(schedule)
        assert held[-1, schedule.root].all()
        own = np.eye(schedule.ranks, dtype=bool)
        assert (held[0, :, : schedule.ranks] == own).all()


@pytest.mark.parametrize("name", algorithms("scatter"))
def test_after_a_scatter_every_rank_has_its_own_block(name):
    for schedule in schedules("scatter", name):
        assert holdings(schedule)[-1].diagonal().all()


@pytest.mark.parametrize("name", algorithms("reduce"))
def test_after_a_reduction_the_root_has_every_ranks_part_of_every_block(name):
    for schedule in schedules("reduce", name):
        assert parts(schedule)[-1, schedule.root].all()


@pytest.mark.parametrize("collective", ["allreduce", "barrier"])
def test_after_an_allreduce_or_a_barrier_every_rank_has_heard_of_every_other_one(collective):
    for name in algorithms(collective):
        for schedule in schedules(collective, name):
            assert parts(schedule)[-1].all(), name


@pytest.mark.parametrize("collective, name", [n for n in REDUCED if n[0] != "barrier"])
def test_no_part_is_taken_in_twice(collective, name):
    """At every step, partial results are disjoint, or the message is the result."""
    for ranks in RANKS:
        call = Call(ranks, root=ranks - 1 if collective in ROOTED else 0, count=13, segment=3)
        plan = algorithm_of(collective, name).plan(call)
        has = np.zeros((ranks, len(plan.sizes), ranks), dtype=bool)
        has[range(ranks), :, range(ranks)] = True
        for step in plan.steps:
            before = has.copy()
            for transfer in step:
                moved = list(transfer.blocks)
                sent, there = before[transfer.source, moved], has[transfer.dest, moved]
                overlap = (sent & there).any(axis=1)
                assert sent[overlap].all(), f"{ranks} ranks: {transfer}"
                has[transfer.dest, moved] |= sent


@pytest.mark.parametrize("name", algorithms("barrier"))
def test_the_messages_of_a_barrier_are_empty(name):
    schedule = schedule_of("barrier", name, 6)
    assert schedule.sizes == ()
    assert {transfer.blocks for transfer in schedule.transfers()} == {()}
    assert counts(schedule).total_bytes == 0


@pytest.mark.parametrize("collective", ["bcast", "reduce"])
@pytest.mark.parametrize("ranks, segments", [(2, 1), (5, 1), (5, 7), (9, 40)])
def test_a_pipeline_works_on_many_segments_at_a_time(collective, ranks, segments):
    schedule = schedule_of(collective, "pipeline", ranks, count=segments * 10, segment=10)
    assert len(schedule.rounds) == ranks - 2 + segments
    busiest = max(len(transfers) for transfers in schedule.rounds)
    assert busiest == min(ranks - 1, segments)


def test_a_tree_broadcast_serves_all_children_at_once():
    first, second, third = schedule_of("bcast", "binomial", 8, root=3).rounds
    assert {(t.source, t.dest) for t in first} == {(3, 7), (3, 5), (3, 4)}
    assert {(t.source, t.dest) for t in second} == {(7, 1), (7, 0), (5, 6)}
    assert {(t.source, t.dest) for t in third} == {(1, 2)}


def test_split_binary_of_six_is_the_one_in_its_header():
    rounds = schedule_of("bcast", "split_binary", 6).rounds
    assert [{(t.source, *t.blocks, t.dest) for t in transfers} for transfers in rounds] == [
        {(0, 0, 1), (0, 1, 2)},
        {(1, 0, 3), (1, 0, 5), (2, 1, 4), (2, 1, 5)},
        {(1, 0, 2), (2, 1, 1), (3, 0, 4), (4, 1, 3)},
    ]


def test_linear_sync_tells_what_its_blocks_are():
    schedule = schedule_of("gather", "linear_sync", 3, count=1500)
    assert schedule.sizes == (1024,) * 3 + (476,) * 3 + (8,) * 3
    said = [(t.source, schedule.name(t.blocks[0]), t.dest) for t in schedule.transfers()]
    assert said == [
        (0, "go 1", 1),
        (1, "1", 0),
        (0, "go 2", 2),
        (1, "rest 1", 0),
        (2, "2", 0),
        (2, "rest 2", 0),
    ]


def test_blocks_of_a_cut_message_add_up_and_may_be_empty():
    schedule = schedule_of("bcast", "scatter_allgather_ring", 5, count=3, element_bytes=8)
    assert schedule.sizes == (0, 8, 0, 8, 8)
    sent = [message_bytes(schedule, transfer) for transfer in schedule.transfers()]
    assert sum(sent) == counts(schedule).total_bytes
    assert 0 in sent
