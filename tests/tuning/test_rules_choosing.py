"""Rules are chosen from measurements, and from models where there are none."""

import numpy as np
import pytest
from rules_made_up import ALGORITHMS, made_up
from sweeps_made_up import models, sweep

from mpilab.errors import InputError
from mpilab.models import Hockney
from mpilab.tuning import Rules
from mpilab.tuning.choosing import (
    Points,
    choose,
    expected,
    fitted,
    from_models,
    from_table,
    joined,
    roundest,
    seconds,
)


def points_of(collective, times):
    """Points of {(ranks, bytes): {number: seconds}}."""
    points = Points(collective)
    for place, each in times.items():
        points.seconds[place] = {(number, 0, 0): time for number, time in each.items()}
    return points


def said(rules):
    return [(rule.ranks, rule.bytes, rule.number) for rule in rules]


def test_the_fastest_is_chosen_and_neighbors_share_a_rule():
    points = points_of(
        "bcast",
        {
            (4, 1): {1: 1.0, 6: 2.0},
            (4, 100): {1: 1.0, 6: 1.2},
            (4, 1000): {1: 3.0, 6: 2.0},
            (4, 8000): {1: 30.0, 6: 20.0},
            (8, 1): {1: 2.0, 6: 1.0},
            (16, 1): {1: 2.0, 6: 1.0},
        },
    )
    assert said(choose(points)) == [(1, 0, 0), (4, 0, 1), (4, 256, 6), (8, 0, 6)]


def test_a_choice_that_is_nearly_as_fast_saves_a_rule():
    times = {(2, 1): {1: 1.0, 6: 1.04}, (2, 8): {1: 1.05, 6: 1.0}, (2, 64): {1: 9.0, 6: 1.0}}
    assert said(choose(points_of("bcast", times), slack=0.05)) == [(2, 0, 6)]
    assert said(choose(points_of("bcast", times), slack=0)) == [(2, 0, 1), (2, 2, 6)]


def test_what_measurements_cannot_tell_apart_saves_a_rule():
    """Medians 10 % apart, of times with a spread of half."""
    random = np.random.default_rng(3)
    table = made_up(algorithms=("binomial", "chain"), ranks=(4,), sizes=[64, 1024], repetitions=20)
    for name, size, middle in (
        ("binomial", 64, 1.0),
        ("chain", 64, 1.1),
        ("binomial", 1024, 1.1),
        ("chain", 1024, 1.0),
    ):
        chosen = (table["algorithm"] == name) & (table["bytes"] == size)
        table["span_s"][chosen] = middle * (1 + np.linspace(-0.5, 0.5, 20))[random.permutation(20)]
    points = from_table(table, "bcast")
    assert len(choose(points)) == 2  # and what is left to Open MPI
    points.tied.clear()
    assert len(choose(points)) == 3


def test_blocks_are_looked_up_together():
    times = {(6, 1024): {2: 1.0, 4: 2.0}, (6, 2048): {2: 2.0, 4: 1.0}}
    rules = choose(points_of("allgather", times))
    assert said(rules) == [(1, 0, 0), (6, 0, 2), (6, 8192, 4)]
    whole = Rules(tuple(rules))
    assert whole.deciding("allgather", 6, 1024).number == 2
    assert whole.deciding("allgather", 6, 2048).number == 4


@pytest.mark.parametrize(
    ("below", "most", "border"),
    [
        (8192, 16384, 16384),
        (1000, 5000, 2048),
        (49152, 98304, 65536),
        (5000, 7000, 6144),
        (99, 100, 100),
        (0, 1, 1),
        (64, 65, 65),
        (63, 64, 64),
    ],
)
def test_a_border_is_a_round_number_between_what_was_measured(below, most, border):
    assert roundest(below, most) == border


def test_chosen_from_a_sweep_the_rules_lose_no_more_than_the_slack():
    table = made_up(noise=0)
    points = from_table(table, "bcast")
    assert points.seconds[4, 1].keys() == {(1, 0, 0), (2, 4, 0), (6, 0, 0), (8, 0, 0)}
    rows = expected(choose(points), points)
    assert len(rows) == 3 * 12 and rows["regret"].max() <= 0.05 + 1e-9
    assert np.isnan(rows["default_s"]).all()


def test_a_segment_size_is_kept_where_it_is_heeded():
    choices = from_table(made_up(segment=64), "bcast").seconds[4, 1024].keys()
    assert choices == {(1, 0, 0), (2, 4, 64), (6, 0, 64), (8, 0, 0)}


def test_a_sweep_without_open_mpis_algorithms_is_told():
    table = sweep("bcast", models("bcast", ("binomial",)))
    with pytest.raises(InputError, match="no algorithm of Open MPI's bcast; measure some"):
        from_table(table, "bcast")


def test_models_choose_for_ranks_that_nobody_measured():
    table = made_up(noise=0)
    measured = from_table(table, "bcast")
    points = joined(measured, fitted(table, measured, (4, 64, 1024)))
    assert points.ranks == [2, 4, 8, 64, 1024] and points.by_models == {64, 1024}
    assert points.seconds[4, 1] == measured.seconds[4, 1]
    truth = models("bcast", ALGORITHMS, library="openmpi")
    for (ranks, size), each in points.seconds.items():
        for choice, time in each.items() if ranks in points.by_models else ():
            own = seconds("bcast", ranks, size, choice, lambda name: truth["openmpi", name])
            assert time == pytest.approx(own, rel=1e-3)


def test_a_model_alone_chooses_what_textbooks_say():
    sizes = [1 << power for power in range(0, 23)]
    rules = Rules(tuple(choose(from_models("bcast", [64], sizes, Hockney(20e-6, 1e-9)))))
    assert rules.deciding("bcast", 64, 8).algorithm == "binomial"
    assert rules.deciding("bcast", 64, 1 << 20).algorithm == "scatter_allgather"
    assert rules.deciding("bcast", 3, 8).is_left


def test_the_cost_of_a_substitute_counts():
    model = Hockney(20e-6, 1e-9)
    doubling, bruck = ((3, 0, 0), (2, 0, 0))
    assert seconds("allgather", 6, 64, doubling, model) == seconds("allgather", 6, 64, bruck, model)
    assert seconds("bcast", 8, 4, (8, 0, 0), model) == seconds("bcast", 8, 4, (1, 0, 0), model)
    assert seconds("bcast", 8, 64, (0, 0, 0), model) is None
