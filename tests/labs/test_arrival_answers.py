"""When ranks have the message, as lab 01 asks: against a clock for each rank, and what follows."""

import pytest

from mpilab.errors import InputError
from mpilab.models import Hockney, cost
from tests.right_answers import answers_of

RIGHT = answers_of("01-collective-algorithms")
ALGORITHMS, ARRIVALS, fastest_bcast = RIGHT.ALGORITHMS, RIGHT.ARRIVALS, RIGHT.fastest_bcast
best_segments, mean_arrival, means = RIGHT.best_segments, RIGHT.mean_arrival, RIGHT.means
ALPHA, BETA = 2e-6, 1e-9
SIZE = 65536


def messages(algorithm, ranks, segments):
    """Yield (sender, receiver), each message after all that its sender sends or receives before."""
    if algorithm == "linear":
        yield from ((0, place) for place in range(1, ranks))
    elif algorithm == "pipeline":
        for _ in range(segments):
            yield from ((place, place + 1) for place in range(ranks - 1))
    else:
        distance = 1 << ((ranks - 1).bit_length() - 1)
        while distance:
            yield from ((place, place + distance) for place in range(0, ranks, 2 * distance))
            yield "step"
            distance //= 2


def clocked(algorithm, ranks, segments):
    """The mean arrival, by a clock for each rank's port that sends, and one for what it has."""
    seconds = ALPHA + BETA * SIZE / (segments if algorithm == "pipeline" else 1)
    has, sends = [0.0] * ranks, [0.0] * ranks
    for message in messages(algorithm, ranks, segments):
        if message == "step":  # all wait for it
            sends = [max(sends)] * ranks
        elif message[1] < ranks:
            source, dest = message
            sends[source] = has[dest] = max(has[source], sends[source], has[dest]) + seconds
    return sum(has[1:]) / (ranks - 1)


@pytest.mark.parametrize("ranks", (2, 3, 4, 5, 7, 8, 9, 13, 16, 100))
@pytest.mark.parametrize("algorithm", ARRIVALS)
def test_the_mean_is_that_of_the_clocks_of_all_ranks(algorithm, ranks):
    for segments in (1, 4, 64):
        seconds = mean_arrival(algorithm, ranks, SIZE, segments, ALPHA, BETA)
        assert seconds == pytest.approx(clocked(algorithm, ranks, segments), rel=1e-9)


def test_on_two_ranks_the_mean_is_the_cost():
    for algorithm in ("linear", "binomial"):
        own = cost("bcast", algorithm, 2, SIZE, Hockney(ALPHA, BETA))
        assert mean_arrival(algorithm, 2, SIZE, 1, ALPHA, BETA) == pytest.approx(own)
    own = cost("bcast", "scatter_allgather_ring", 6, SIZE, Hockney(ALPHA, BETA))
    assert means(6, SIZE, ALPHA, BETA)[2] == pytest.approx(own)


@pytest.mark.parametrize("algorithm", ARRIVALS)
def test_a_root_alone_waits_for_nothing(algorithm):
    assert mean_arrival(algorithm, 1, SIZE, 1, ALPHA, BETA) == 0
    assert means(1, SIZE, ALPHA, BETA) == [0, 0, 0, 0]


@pytest.mark.parametrize(("ranks", "size"), ((2, 1000), (3, 0), (3, 5), (8, 10**5), (64, 4096)))
def test_no_other_number_of_segments_is_better(ranks, size):
    best = best_segments(ranks, size, ALPHA, BETA)
    assert 1 <= best <= max(size, 1)
    seconds = mean_arrival("pipeline", ranks, size, best, ALPHA, BETA)
    others = range(1, min(max(size, 1), 3000) + 1)
    assert seconds <= min(mean_arrival("pipeline", ranks, size, s, ALPHA, BETA) for s in others)


@pytest.mark.parametrize(("size", "name"), ((8, "binomial"), (10_000_000, "pipeline")))
def test_on_64_ranks_trees_win_for_short_messages_and_the_pipeline_for_long_ones(size, name):
    assert ALGORITHMS[fastest_bcast(64, size, ALPHA, BETA)] == name


def test_by_the_mean_linear_wins_ties_only_and_scatter_and_allgather_never():
    for ranks in (1, 2, 3, 4, 5, 7, 8, 12, 16, 64, 100):
        for size in (1 << power for power in range(0, 31, 2)):
            seconds = means(ranks, size, ALPHA, BETA)
            best = fastest_bcast(ranks, size, ALPHA, BETA)
            assert ALGORITHMS[best] != "scatter_allgather_ring", (ranks, size)
            assert best != 0 or seconds.count(seconds[0]) > 1, (ranks, size)


def test_by_the_last_rank_scatter_and_allgather_win_in_between():
    model, size = Hockney(ALPHA, BETA), 50_000
    segment = size // 20
    last = [cost("bcast", name, 64, size, model, segment=segment) for name in ALGORITHMS]
    assert min(last) == last[ALGORITHMS.index("scatter_allgather_ring")]
    assert fastest_bcast(64, size, ALPHA, BETA) != ALGORITHMS.index("scatter_allgather_ring")


def test_of_equals_the_first_is_chosen():
    assert fastest_bcast(1, 1000, ALPHA, BETA) == 0
    assert fastest_bcast(2, 1000, ALPHA, BETA) == 0


@pytest.mark.parametrize("arguments", (("linear", 0, 8, 1), ("linear", 4, 8, 0), ("ring", 4, 8, 1)))
def test_what_cannot_be_is_refused(arguments):
    with pytest.raises(InputError, match="ring|P=0|S=0"):
        mean_arrival(*arguments, ALPHA, BETA)
