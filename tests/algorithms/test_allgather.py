"""Every allgather schedule is correct, wastes nothing, and costs what its formula says."""

from math import ceil, log2

import numpy as np
import pytest

from mpilab.algorithms import Transfer, counts, holdings
from mpilab.algorithms.allgather import ALGORITHMS, schedule
from mpilab.errors import InputError

RANKS = range(1, 18)
EVERY = [(name, ranks) for name in ALGORITHMS for ranks in RANKS]
every_schedule = pytest.mark.parametrize("name, ranks", EVERY)
# Those with formulas below; test_algorithms.py compares all with the formulas of their headers.
CLOSED = (
    "nonblocking_gather_bcast",
    "nonblocking_all",
    "pairwise",
    "ring",
    "recursive_doubling",
    "bruck",
    "neighbor_exchange",
)


def core(ranks):
    return 2 ** int(log2(ranks))


def closed_rounds(name, ranks):
    steps = ceil(log2(ranks))
    doubling = int(log2(core(ranks))) + (2 if ranks > core(ranks) else 0)
    return {
        "nonblocking_gather_bcast": 2 if ranks > 1 else 0,
        "nonblocking_all": 1 if ranks > 1 else 0,
        "pairwise": steps,
        "ring": ranks - 1,
        "recursive_doubling": doubling,
        "bruck": steps,
        "neighbor_exchange": ranks // 2 if ranks % 2 == 0 else ranks - 1,
    }[name]


def closed_messages(name, ranks):
    steps = ceil(log2(ranks))
    rest = ranks - core(ranks)
    return {
        "nonblocking_gather_bcast": 2 * (ranks - 1),
        "nonblocking_all": ranks * (ranks - 1),
        "pairwise": ranks * steps,
        "ring": ranks * (ranks - 1),
        "recursive_doubling": core(ranks) * int(log2(core(ranks))) + 2 * rest,
        "bruck": ranks * steps,
        "neighbor_exchange": ranks * (ranks // 2 if ranks % 2 == 0 else ranks - 1),
    }[name]


def closed_total_blocks(name, ranks):
    everybody_gets_the_others = ranks * (ranks - 1)
    return {
        "nonblocking_gather_bcast": (ranks - 1) * (1 + ranks),
        # A folded rank gets its own block back.
        "recursive_doubling": everybody_gets_the_others + ranks - core(ranks),
    }.get(name, everybody_gets_the_others)


def closed_most_blocks_sent(name, ranks):
    """Blocks sent by the busiest rank; rank 0 in the algorithms that are not symmetric."""
    if name == "nonblocking_gather_bcast":
        return (ranks - 1) * ranks
    rest = ranks - core(ranks)
    if name == "recursive_doubling" and rest:
        # By doubling, rank 0 sends everything except the half that it receives in the last round;
        # ranks 0 … rest-1 hold two blocks each at the start.
        held = [
            len([r for r in range(ranks) if r % core(ranks) < distance])
            for distance in (2**i for i in range(int(log2(core(ranks)))))
        ]
        return sum(held) + ranks
    return ranks - 1


@every_schedule
def test_every_block_reaches_every_rank(name, ranks):
    assert holdings(schedule(name, ranks))[-1].all()


@every_schedule
def test_nobody_sends_a_block_that_it_does_not_hold_yet(name, ranks):
    plan = schedule(name, ranks)
    held = holdings(plan)
    for before, transfers in zip(held, plan.rounds, strict=False):
        for transfer in transfers:
            assert before[transfer.source, list(transfer.blocks)].all(), transfer


@every_schedule
def test_no_block_reaches_a_rank_twice_and_only_complete_sets_return_its_own(name, ranks):
    plan = schedule(name, ranks)
    received = [[] for _ in range(ranks)]
    for transfer in plan.transfers():
        received[transfer.dest] += transfer.blocks
    for rank, blocks in enumerate(received):
        assert len(blocks) == len(set(blocks))
        if rank in blocks:
            assert name in ("nonblocking_gather_bcast", "recursive_doubling")
            assert (
                Transfer(0 if "gather" in name else rank - core(ranks), rank, tuple(range(ranks)))
                in plan.transfers()
            )


@every_schedule
def test_no_rank_sends_to_itself_and_no_message_is_empty(name, ranks):
    for transfer in schedule(name, ranks).transfers():
        assert transfer.source != transfer.dest
        assert transfer.blocks


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", CLOSED)
def test_rounds_messages_and_bytes_equal_the_closed_formulas(name, ranks):
    added = counts(schedule(name, ranks), block_bytes=24)
    assert added.rounds == closed_rounds(name, ranks)
    assert added.messages == closed_messages(name, ranks)
    assert added.total_bytes == 24 * closed_total_blocks(name, ranks)
    assert added.max_bytes_sent == 24 * closed_most_blocks_sent(name, ranks)


@pytest.mark.parametrize("name", ["pairwise", "ring", "bruck", "neighbor_exchange"])
@pytest.mark.parametrize("ranks", RANKS[1:])
def test_symmetric_algorithms_send_and_receive_one_message_per_rank_and_round(name, ranks):
    for transfers in schedule(name, ranks).rounds:
        assert sorted(t.source for t in transfers) == list(range(ranks))
        assert sorted(t.dest for t in transfers) == list(range(ranks))


def test_the_ring_of_four_is_the_one_in_the_style_guide():
    sent = [[t.blocks for t in transfers] for transfers in schedule("ring", 4).rounds]
    assert sent == [[(0,), (1,), (2,), (3,)], [(3,), (0,), (1,), (2,)], [(2,), (3,), (0,), (1,)]]


def test_pairwise_of_six_sends_only_the_two_blocks_that_are_still_missing_in_its_last_step():
    last = schedule("pairwise", 6).rounds[-1]
    assert last[1] == Transfer(1, 5, (1, 0))


def test_bruck_of_five_sends_its_own_block_first_and_one_block_in_its_last_step():
    plan = schedule("bruck", 5)
    assert plan.rounds[1][4] == Transfer(4, 2, (4, 0))
    assert plan.rounds[2][0] == Transfer(0, 1, (0,))


def test_recursive_doubling_of_six_folds_two_ranks_in_and_out():
    rounds = schedule("recursive_doubling", 6).rounds
    assert rounds[0] == (Transfer(4, 0, (4,)), Transfer(5, 1, (5,)))
    assert rounds[2][0] == Transfer(0, 2, (0, 1, 4, 5))
    assert rounds[2][3] == Transfer(3, 1, (2, 3))
    assert rounds[3] == (Transfer(0, 4, tuple(range(6))), Transfer(1, 5, tuple(range(6))))


def test_neighbor_exchange_of_six_alternates_between_left_and_right():
    rounds = schedule("neighbor_exchange", 6).rounds
    assert rounds[0][2] == Transfer(2, 3, (2,))
    assert rounds[1][2] == Transfer(2, 1, (2, 3))
    assert rounds[2][2] == Transfer(2, 3, (0, 1))
    assert rounds[1][5] == Transfer(5, 0, (4, 5))


def test_neighbor_exchange_of_an_odd_number_of_ranks_is_the_ring():
    assert schedule("neighbor_exchange", 7).rounds == schedule("ring", 7).rounds


def test_the_matrix_tells_who_sent_how_much_to_whom():
    added = counts(schedule("nonblocking_gather_bcast", 3), block_bytes=10)
    assert np.array_equal(added.messages_between, [[0, 1, 1], [1, 0, 0], [1, 0, 0]])
    assert np.array_equal(added.bytes_between, [[0, 30, 30], [10, 0, 0], [10, 0, 0]])
    assert added.max_bytes_received == 30


def test_holdings_start_with_each_ranks_own_block():
    held = holdings(schedule("ring", 3))
    assert held.shape == (3, 3, 3)
    assert np.array_equal(held[0], np.eye(3, dtype=bool))
    assert list(held[1, 1]) == [True, True, False]


def test_an_unknown_algorithm_is_refused_with_the_names_that_exist():
    with pytest.raises(InputError, match="'rings'.*neighbor_exchange"):
        schedule("rings", 4)


def test_a_communicator_without_ranks_is_refused():
    with pytest.raises(InputError, match="ranks=0"):
        schedule("ring", 0)
