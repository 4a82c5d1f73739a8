"""Costs in closed form: equal to those of schedules under the same assumptions, and correct at the
limits."""

import numpy as np
import pytest

from mpilab.algorithms import algorithms, schedule_of, tunables
from mpilab.errors import InputError
from mpilab.models import Hockney, best_segment, coefficients, cost, predict_schedule
from mpilab.models.choice import one_by_one
from mpilab.models.costs import FORMULAS, OPENMPI_FORMULAS

MODEL = Hockney(alpha=1e-6, beta=3e-9)
ALL = [(collective, name) for collective in FORMULAS for name in FORMULAS[collective]]
BLOCKWISE = ("allgather", "gather", "scatter")

# Rounds of a schedule begin when the previous one has ended on all ranks; in these two, children
# that are served first continue at once. If a tree is not complete, messages from shallower leaves
# arrive in separate rounds. Both have separate tests below.
OTHERWISE = (("bcast", "binomial"), ("bcast", "knomial"), ("reduce", "binary"))
WITH_ROUNDS = [one for one in ALL if one not in OTHERWISE]


def by_schedule(collective, name, ranks, size, model=MODEL, **tuning):
    schedule = schedule_of(collective, name, ranks, count=size, **tuning)
    return predict_schedule(schedule, None, model)


def test_every_kernel_has_a_formula_and_no_other_has():
    for collective, formulas in FORMULAS.items():
        assert set(formulas) == set(algorithms(collective))


@pytest.mark.parametrize("collective, name", WITH_ROUNDS)
@pytest.mark.parametrize("ranks", [1, 2, 4, 8, 16])
def test_on_powers_of_two_costs_are_those_of_the_schedule(collective, name, ranks):
    size = 0 if collective == "barrier" else 4096
    # One segment: the default cuts pipelines.
    segment = 1 << 20 if "segment" in tunables(collective, name) else 0
    got = cost(collective, name, ranks, size, MODEL, segment=segment)
    assert got == pytest.approx(by_schedule(collective, name, ranks, size, segment=segment))


@pytest.mark.parametrize(
    "collective, name",
    [
        ("bcast", "pipeline"),
        ("bcast", "chain"),
        ("bcast", "binary"),
        ("reduce", "pipeline"),
        ("reduce", "chain"),
        ("allreduce", "segmented_ring"),
    ],
)
@pytest.mark.parametrize("ranks", [2, 3, 5, 8, 9, 13])
@pytest.mark.parametrize("segment", [0, 16, 48, 1000])
def test_segments_cost_what_the_schedule_says_on_any_number_of_ranks(
    collective, name, ranks, segment
):
    size = 48 * ranks
    got = cost(collective, name, ranks, size, MODEL, segment=segment)
    assert got == pytest.approx(by_schedule(collective, name, ranks, size, segment=segment))


@pytest.mark.parametrize("segment", [3, 7, 50])
def test_a_shorter_last_segment_counts_as_long_as_it_is(segment):
    for collective in ("bcast", "reduce"):
        got = cost(collective, "pipeline", 6, 100, MODEL, segment=segment)
        assert got == pytest.approx(by_schedule(collective, "pipeline", 6, 100, segment=segment))


@pytest.mark.parametrize("ranks, fanout", [(3, 2), (7, 2), (15, 2), (13, 3)])
@pytest.mark.parametrize("collective", ["bcast", "reduce"])
def test_complete_trees_cost_what_the_schedule_says(collective, ranks, fanout):
    tuning = dict(fanout=fanout, segment=25)
    got = cost(collective, "binary", ranks, 100, MODEL, **tuning)
    assert got == pytest.approx(by_schedule(collective, "binary", ranks, 100, **tuning))


@pytest.mark.parametrize("ranks", [4, 5, 6, 8, 12, 16])
def test_an_incomplete_reduction_tree_costs_at_most_what_is_claimed(ranks):
    assert cost("reduce", "binary", ranks, 100, MODEL) >= by_schedule(
        "reduce", "binary", ranks, 100
    )


@pytest.mark.parametrize("ranks", [2, 4, 8, 16])
def test_a_binomial_broadcast_one_by_one_takes_the_logarithm(ranks):
    steps = ranks.bit_length() - 1
    assert coefficients("bcast", "binomial", ranks, 100) == (steps, steps * 100)
    assert coefficients("bcast", "binomial", ranks, 100, segment=25) == (4 * steps, steps * 100)


@pytest.mark.parametrize("ranks", [2, 4, 8, 16])
def test_with_gamma_a_binomial_broadcast_waits_for_all_children_as_rounds_do(ranks):
    got = cost("bcast", "binomial", ranks, 100, MODEL, gamma=one_by_one)
    assert got == pytest.approx(by_schedule("bcast", "binomial", ranks, 100))


@pytest.mark.parametrize("ranks, radix", [(9, 3), (27, 3), (16, 4)])
def test_knomial_trees_have_radix_less_one_children_a_level(ranks, radix):
    got = cost("bcast", "knomial", ranks, 100, MODEL, radix=radix, gamma=one_by_one)
    assert got == pytest.approx(by_schedule("bcast", "knomial", ranks, 100, radix=radix))
    levels = {9: 2, 27: 3, 16: 2}[ranks]
    a, _ = coefficients("bcast", "knomial", ranks, 100, radix=radix)
    assert a == levels * (radix - 1)


def test_gamma_replaces_the_number_of_children_that_are_served_at_once():
    def gamma(ranks):
        return {2: 1.0, 3: 1.3, 5: 1.9, 9: 4.0}[ranks]

    at_once = dict(gamma=gamma)
    assert coefficients("bcast", "linear", 9, 10, **at_once) == (4, 40)
    assert coefficients("scatter", "linear_nb", 9, 10, **at_once) == (4, 40)
    assert coefficients("scatter", "linear", 9, 10, **at_once) == (8, 80)
    assert coefficients("bcast", "binary", 7, 10, **at_once) == pytest.approx((2.6, 26))
    # Four chains of two: the root serves four, then each gets one more message.
    assert coefficients("bcast", "chain", 9, 10, **at_once) == pytest.approx((2.9, 29))


@pytest.mark.parametrize("ranks", [3, 5, 6, 7, 13])
def test_folding_costs_messages_as_long_as_the_whole(ranks):
    core = 1 << (ranks.bit_length() - 1)
    for collective, name, folds in (
        ("bcast", "scatter_allgather", 1),
        ("reduce", "rabenseifner", 1),
        ("allreduce", "rabenseifner", 2),
        ("allreduce", "recursive_doubling", 2),
    ):
        a, b = coefficients(collective, name, ranks, 1000)
        a_core, b_core = coefficients(collective, name, core, 1000)
        assert (a - a_core, b - b_core) == pytest.approx((folds, folds * 1000))


@pytest.mark.parametrize("collective, name", ALL)
def test_one_rank_alone_sends_nothing(collective, name):
    assert cost(collective, name, 1, 1 << 20, MODEL) == 0


@pytest.mark.parametrize("collective, name", ALL)
@pytest.mark.parametrize("ranks", [2, 3, 8, 12])
def test_no_bytes_cost_start_ups_only(collective, name, ranks):
    a, b = coefficients(collective, name, ranks, 0)
    assert a > 0
    go_aheads = 8 * (ranks - 1) if name == "linear_sync" else 0
    assert b == go_aheads


@pytest.mark.parametrize("collective, name", ALL)
@pytest.mark.parametrize("tuning", [{}, {"segment": 1000}])
@pytest.mark.parametrize("ranks", [2, 3, 6, 8, 17])
def test_more_bytes_never_cost_less(collective, name, tuning, ranks):
    sizes = np.arange(0, 20000, 37)
    a, b = coefficients(collective, name, ranks, sizes, **tuning)
    assert a.shape == b.shape == sizes.shape
    assert (np.diff(a) >= 0).all()
    if collective != "barrier" and name != "linear_sync":
        assert (np.diff(b) > 0).all()
    # linear_sync may save bytes of go-aheads, for one more start-up.
    seconds = cost(collective, name, ranks, sizes, MODEL, **tuning)
    assert (np.diff(seconds) >= 0).all()


@pytest.mark.parametrize("collective, name", ALL)
def test_an_array_of_sizes_costs_what_each_size_does(collective, name):
    sizes = np.array([0, 1, 5000, 123456])
    together = cost(collective, name, 6, sizes, MODEL)
    assert together.tolist() == [cost(collective, name, 6, int(size), MODEL) for size in sizes]


@pytest.mark.parametrize("ranks", [3, 4, 16, 100])
def test_the_best_segment_of_a_pipeline_is_the_square_root(ranks):
    size = 1 << 24
    square_root = np.sqrt(size * MODEL.alpha / ((ranks - 2) * MODEL.beta))
    for collective in ("bcast", "reduce"):
        assert best_segment(collective, "pipeline", ranks, size, MODEL) == pytest.approx(
            square_root, rel=0.02
        )


@pytest.mark.parametrize(
    "collective, name, tuning",
    [
        ("bcast", "pipeline", {}),
        ("bcast", "chain", {"fanout": 2}),
        ("bcast", "binary", {"fanout": 3}),
        ("bcast", "split_binary", {}),
        ("reduce", "binary", {}),
        ("reduce", "in_order_binary", {}),
    ],
)
@pytest.mark.parametrize("size", [100, 50_000, 3_000_000])
def test_no_other_segment_costs_less_than_the_best_one(collective, name, tuning, size):
    best = best_segment(collective, name, 17, size, MODEL, **tuning)
    least = cost(collective, name, 17, size, MODEL, segment=best, **tuning)
    whole = size / 2 if name == "split_binary" else size
    others = {int(np.ceil(whole / number)) for number in range(1, 2000)}
    costs = [cost(collective, name, 17, size, MODEL, segment=one, **tuning) for one in others]
    assert least <= min(costs) * (1 + 1e-3)


def test_segments_that_only_cost_are_left_whole():
    assert best_segment("bcast", "binomial", 8, 5000, MODEL) == 5000
    assert best_segment("bcast", "pipeline", 2, 5000, MODEL) == 5000
    assert best_segment("allreduce", "segmented_ring", 4, 4096, MODEL) == 1024


def test_an_algorithm_without_segments_has_no_best_one():
    with pytest.raises(InputError, match="bcast pipeline"):
        best_segment("bcast", "linear", 8, 5000, MODEL)
    with pytest.raises(InputError, match="must be positive"):
        best_segment("bcast", "pipeline", 8, 0, MODEL)


@pytest.mark.parametrize(
    "collective, theirs, ours",
    [
        ("bcast", "basic_linear", "linear"),
        ("bcast", "split_binary_tree", "split_binary"),
        ("barrier", "bruck", "dissemination"),
        ("reduce", "in-order_binary", "in_order_binary"),
        ("allgather", "neighbor", "neighbor_exchange"),
    ],
)
def test_open_mpis_names_have_the_costs_of_ours(collective, theirs, ours):
    expected = cost(collective, ours, 8, 1000, MODEL)
    assert cost(collective, theirs, 8, 1000, MODEL) == expected
    assert cost(collective, theirs, 8, 1000, MODEL, library="openmpi") == expected


def test_open_mpis_pipeline_has_no_segments_unless_it_is_given_some():
    ours = coefficients("bcast", "pipeline", 8, 1 << 20)
    theirs = coefficients("bcast", "pipeline", 8, 1 << 20, library="openmpi")
    assert theirs == coefficients("bcast", "pipeline", 8, 1 << 20, segment=1 << 20)
    assert ours == coefficients("bcast", "pipeline", 8, 1 << 20, segment=8192)
    given = dict(segment=4096)
    assert coefficients("bcast", "pipeline", 8, 1 << 20, **given) == coefficients(
        "bcast", "pipeline", 8, 1 << 20, library="openmpi", **given
    )


def test_two_proc_is_for_two_ranks():
    assert cost("barrier", "two_proc", 2, 0, MODEL) == MODEL.alpha
    with pytest.raises(InputError, match="ranks=3"):
        cost("barrier", "two_proc", 3, 0, MODEL)


@pytest.mark.parametrize("collective", list(OPENMPI_FORMULAS))
def test_every_formula_of_open_mpis_can_be_evaluated(collective):
    for name in OPENMPI_FORMULAS[collective]:
        a, b = coefficients(collective, name, 2, 1000, library="openmpi")
        assert a > 0 and (b > 0) == (collective != "barrier")


@pytest.mark.parametrize(
    "arguments, tuning, word",
    [
        (("alltoall", "ring", 4, 8), {}, "alltoall"),
        (("bcast", "ring", 4, 8), {}, "bcast 'ring'"),
        (("bcast", "linear", 4, 8), {"library": "openmpi"}, "basic_linear"),
        (("bcast", "linear", 4, 8), {"library": "mpich"}, "mpich"),
        (("bcast", "linear", 0, 8), {}, "ranks=0"),
        (("bcast", "linear", 4, -8), {}, "bytes=-8"),
        (("bcast", "pipeline", 4, 8), {"segment": -1}, "segment=-1"),
        (("bcast", "knomial", 4, 8), {"radix": 1}, "radix=1"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(arguments, tuning, word):
    with pytest.raises(InputError, match=word):
        coefficients(*arguments, **tuning)
