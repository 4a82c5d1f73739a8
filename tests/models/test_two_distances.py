"""LogGP with two distances, round by round."""

import pytest

from mpilab import remapping
from mpilab.algorithms import Schedule, Transfer, allgather, schedule_of
from mpilab.algorithms.remapping import RR, SEQ, placement
from mpilab.errors import InputError
from mpilab.models import LogGP, predict_placed

NEAR, FAR = LogGP(1.0, 2.0, 3.0, 0.5), LogGP(10.0, 20.0, 30.0, 5.0)


def of(*rounds, ranks=4):
    return Schedule("made up", ranks, tuple(tuple(Transfer(*t) for t in each) for each in rounds))


def test_a_round_is_as_long_as_its_slowest_process_and_rounds_add_up():
    levels = placement(SEQ, 2, 2)
    within, across = [(0, 1, (0,))], [(0, 1, (0,)), (2, 0, (2,))]
    near, far = NEAR.time(3), FAR.time(3)
    assert predict_placed(of(within), levels, 3, NEAR, FAR) == near
    assert predict_placed(of(within, across), levels, 3, NEAR, FAR) == near + far
    assert predict_placed(of(), levels, 3, NEAR, FAR) == 0


def test_messages_of_a_process_in_one_direction_follow_each_other():
    levels = placement(SEQ, 2, 2)
    sent = of([(0, 1, (0,)), (0, 2, (0, 1))])
    # o + 2 G0 + g1 + 5 G1 + L1 + o, with the larger o and L
    assert predict_placed(sent, levels, 3, NEAR, FAR) == 2 * 0.5 + 30 + 5 * 5.0 + 10 + 2 * 20
    received = of([(1, 0, (0,)), (0, 1, (0,))])
    assert predict_placed(received, levels, 3, NEAR, FAR) == NEAR.time(3)


def test_an_empty_message_takes_as_long_as_one_byte():
    levels = placement(SEQ, 2, 2)
    assert predict_placed(of([(0, 2, (0,))]), levels, 0, NEAR, FAR) == FAR.time(1)


def test_only_a_shared_link_tells_a_ring_in_seq_order_from_one_in_rr_order():
    ring = allgather.schedule("ring", 12)
    size = 1000
    in_seq, in_rr = placement(SEQ, 3, 4), placement(RR, 3, 4)
    alone = [predict_placed(ring, levels, size, NEAR, FAR) for levels in (in_seq, in_rr)]
    assert alone[0] == alone[1] == 11 * FAR.time(size)
    shared = [
        predict_placed(ring, levels, size, NEAR, FAR, shared=True) for levels in (in_seq, in_rr)
    ]
    assert shared[0] == alone[0]
    # four processes of a node send at once
    assert shared[1] == 11 * (4 * 999 * FAR.G + 3 * FAR.g + FAR.L + 2 * FAR.o)
    order = remapping.chosen("ring", in_rr)
    remapped = remapping.remapped("ring", order)
    assert predict_placed(remapped, in_rr, size, NEAR, FAR, shared=True) == shared[0]


def test_wrong_numbers_of_places_and_blocks_of_their_own_sizes_are_refused():
    with pytest.raises(InputError, match="a schedule for 4 ranks on places for 6"):
        predict_placed(of(), placement(SEQ, 2, 3), 1, NEAR, FAR)
    cut = schedule_of("bcast", "chain", 4, count=10, element_bytes=4, segment=8)
    with pytest.raises(InputError, match="chain has blocks of different sizes"):
        predict_placed(cut, placement(SEQ, 2, 2), 1, NEAR, FAR)
