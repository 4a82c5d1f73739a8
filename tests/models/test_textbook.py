"""The costs that lab 01 asks for: the same as the kit's, and the choice that follows from them."""

import pytest

from mpilab.errors import InputError
from mpilab.models import Hockney, cost
from tests.right_answers import answers_of

RIGHT = answers_of("01-collective-algorithms")
ALGORITHMS, bcast_seconds = RIGHT.ALGORITHMS, RIGHT.bcast_seconds
best_segments, fastest_bcast = RIGHT.best_segments, RIGHT.fastest_bcast
ALPHA, BETA = 2e-6, 1e-9


@pytest.mark.parametrize("ranks", (1, 2, 3, 4, 8, 13, 100))
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_broadcast_takes_what_the_kits_own_formula_says(algorithm, ranks):
    for segments in (1, 4, 64):
        seconds = bcast_seconds(algorithm, ranks, 65536, segments, ALPHA, BETA)
        segment = 65536 // segments if algorithm == "pipeline" else 0
        own = cost("bcast", algorithm, ranks, 65536, Hockney(ALPHA, BETA), segment=segment)
        assert seconds == pytest.approx(own, rel=1e-12)


def test_a_pipeline_of_three_links_and_two_segments_takes_four_rounds():
    assert bcast_seconds("pipeline", 4, 1000, 2, ALPHA, BETA) == pytest.approx(4 * 2.5e-6)


@pytest.mark.parametrize(("ranks", "size"), ((2, 1000), (3, 0), (3, 5), (8, 10**5), (64, 4096)))
def test_no_other_number_of_segments_is_better(ranks, size):
    best = best_segments(ranks, size, ALPHA, BETA)
    assert 1 <= best <= max(size, 1)
    seconds = bcast_seconds("pipeline", ranks, size, best, ALPHA, BETA)
    others = range(1, min(max(size, 1), 3000) + 1)
    assert seconds <= min(bcast_seconds("pipeline", ranks, size, s, ALPHA, BETA) for s in others)


@pytest.mark.parametrize(
    ("size", "name"),
    (
        (8, "binomial"),
        (50_000, "scatter_allgather_ring"),
        (10_000_000, "pipeline"),
    ),
)
def test_on_64_ranks_trees_win_for_short_messages_and_the_pipeline_for_long_ones(size, name):
    assert ALGORITHMS[fastest_bcast(64, size, ALPHA, BETA)] == name


def test_of_equals_the_first_is_chosen():
    assert fastest_bcast(1, 1000, ALPHA, BETA) == 0
    assert fastest_bcast(2, 1000, ALPHA, BETA) == 0


@pytest.mark.parametrize("arguments", (("linear", 0, 8, 1), ("linear", 4, 8, 0), ("ring", 4, 8, 1)))
def test_what_cannot_be_is_refused(arguments):
    with pytest.raises(InputError, match="ring|P=0|S=0"):
        bcast_seconds(*arguments, ALPHA, BETA)
