"""Predictions of schedules: they equal the textbook's formulas."""

from math import ceil, log2

import numpy as np
import pytest

from mpilab.algorithms import allgather, schedule_of
from mpilab.errors import InputError
from mpilab.models import Hockney, predict, predict_schedule

MODEL = Hockney(alpha=3e-6, beta=5e-10)


# All algorithms of ours are compared with their costs in closed form in test_costs.py.
TEXTBOOK = (
    "nonblocking_gather_bcast",
    "nonblocking_all",
    "pairwise",
    "ring",
    "recursive_doubling",
    "bruck",
    "neighbor_exchange",
)


@pytest.mark.parametrize("name", TEXTBOOK)
@pytest.mark.parametrize("ranks", [1, 2, 4, 8, 16])
def test_predictions_on_powers_of_two_are_the_textbooks(name, ranks):
    m, (a, b) = 4096, (MODEL.alpha, MODEL.beta)
    all_blocks = (ranks - 1) * m * b
    logarithmic = log2(ranks) * a + all_blocks
    linear = (ranks - 1) * a + all_blocks
    assert predict(name, ranks, m, MODEL) == pytest.approx(
        {
            "nonblocking_gather_bcast": 2 * (ranks - 1) * a + (1 + ranks) * all_blocks,
            "nonblocking_all": linear,
            "pairwise": logarithmic,
            "ring": linear,
            "recursive_doubling": logarithmic,
            "bruck": logarithmic,
            "neighbor_exchange": (ranks // 2) * a + all_blocks,
        }[name]
    )


@pytest.mark.parametrize("ranks", [3, 5, 6, 7, 11, 13])
def test_bruck_and_pairwise_keep_their_cost_on_every_number_of_ranks(ranks):
    expected = ceil(log2(ranks)) * MODEL.alpha + (ranks - 1) * 100 * MODEL.beta
    assert predict("bruck", ranks, 100, MODEL) == pytest.approx(expected)
    assert predict("pairwise", ranks, 100, MODEL) == pytest.approx(expected)


def test_recursive_doubling_pays_for_folding_on_other_numbers_of_ranks():
    # 6 ranks: fold 1 block, swap 2 and 4 blocks (ranks 0 and 1 hold two each), unfold 6 blocks.
    expected = 4 * MODEL.alpha + (1 + 2 + 4 + 6) * 100 * MODEL.beta
    assert predict("recursive_doubling", 6, 100, MODEL) == pytest.approx(expected)


def test_an_array_of_sizes_gives_an_array_of_times():
    times = predict("ring", 4, np.array([0, 10, 1000]), MODEL)
    assert times.shape == (3,)
    assert times[2] == predict("ring", 4, 1000, MODEL)


def test_fewer_cores_than_ranks_share_the_work_of_all_messages():
    one_round = 56 * (MODEL.alpha + 100 * MODEL.beta)
    assert predict("nonblocking_all", 8, 100, MODEL, cores=2) == pytest.approx(one_round / 2)
    assert predict("nonblocking_all", 8, 100, MODEL, cores=8) == predict(
        "nonblocking_all", 8, 100, MODEL
    )


def test_on_two_cores_few_messages_beat_many_although_both_are_one_step_deep():
    few = predict("nonblocking_gather_bcast", 16, 8, MODEL, cores=2)
    many = predict("nonblocking_all", 16, 8, MODEL, cores=2)
    assert few < many
    assert predict("nonblocking_gather_bcast", 16, 8, MODEL) > predict(
        "nonblocking_all", 16, 8, MODEL
    )


def test_no_cores_at_all_are_refused():
    with pytest.raises(InputError, match="cores=0"):
        predict("ring", 4, 8, MODEL, cores=0)


def test_a_schedule_with_sizes_of_its_own_takes_no_bytes():
    # 10 bytes in segments of 4 down a chain of 3 ranks: rounds of 4, 4, 4 and 2 bytes.
    pipeline = schedule_of("bcast", "pipeline", 3, count=10, segment=4)
    expected = 4 * MODEL.alpha + (4 + 4 + 4 + 2) * MODEL.beta
    assert predict_schedule(pipeline, None, MODEL) == pytest.approx(expected)
    with pytest.raises(InputError, match="give None"):
        predict_schedule(pipeline, 10, MODEL)


def test_a_schedule_without_sizes_wants_bytes():
    with pytest.raises(InputError, match="give bytes"):
        predict_schedule(allgather.schedule("ring", 4), None, MODEL)


def test_a_barrier_costs_messages_only():
    barrier = schedule_of("barrier", "dissemination", 8)
    assert predict_schedule(barrier, None, MODEL) == pytest.approx(3 * MODEL.alpha)
