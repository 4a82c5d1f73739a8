"""The models' choice, and its loss relative to the best algorithm measured."""

import numpy as np
import pytest
from sweeps_made_up import SIZES, models, sweep

from mpilab.errors import InputError
from mpilab.models import Hockney, choose, cost, fit_per_algorithm, regret, regret_left_out
from mpilab.models.costs import FORMULAS

MODEL = Hockney(1e-6, 1e-9)


def test_short_messages_get_few_start_ups_and_long_ones_few_bytes():
    assert choose("bcast", 16, 8, MODEL) == "binomial"
    assert choose("bcast", 16, 1 << 24, MODEL) in ("pipeline", "scatter_allgather")
    assert choose("allreduce", 16, 8, MODEL) == "recursive_doubling"
    assert choose("barrier", 16, 0, MODEL) in ("dissemination", "recursive_doubling")


def test_the_choice_costs_least_of_all():
    chosen = choose("reduce", 8, 5000, MODEL)
    costs = {name: cost("reduce", name, 8, 5000, MODEL) for name in FORMULAS["reduce"]}
    assert costs[chosen] == min(costs.values())


def test_models_may_be_given_by_name_or_by_library_and_name():
    assert choose("bcast", 8, 8, {"linear": MODEL, "binomial": MODEL}) == "binomial"
    fast = Hockney(1e-8, 1e-12)
    by_library = {("ours", "binomial"): MODEL, ("openmpi", "basic_linear"): fast}
    assert choose("bcast", 8, 8, by_library) == ("openmpi", "basic_linear")


def test_no_models_no_choice():
    with pytest.raises(InputError, match="no models"):
        choose("bcast", 8, 8, {})
    with pytest.raises(InputError, match="alltoall"):
        choose("alltoall", 8, 8, MODEL)


def test_the_models_that_made_the_times_have_no_regret():
    truth = models("bcast", FORMULAS["bcast"])
    table = regret(sweep("bcast", truth, noise=0, repetitions=1), truth)
    assert len(table) == 3 * len(SIZES)
    assert (table["regret"] == 0).all()
    assert (table["chosen"] == table["best"]).all()


def test_a_wrong_model_loses_what_the_chosen_one_takes_longer():
    truth = {("ours", "linear"): MODEL, ("ours", "binomial"): MODEL}
    table = sweep("bcast", truth, ranks=(8,), noise=0)
    # On 8 ranks, linear takes 7 messages and binomial 3; in the wrong model, linear is 10 times as
    # fast.
    wrong = {("ours", "linear"): Hockney(1e-7, 1e-10), ("ours", "binomial"): MODEL}
    (first, *_) = regret(table, wrong)
    assert (first["chosen"], first["best"]) == ("linear", "binomial")
    assert first["regret"] == pytest.approx(7 / 3 - 1)
    assert first["chosen_s"] / first["best_s"] == pytest.approx(7 / 3)


def test_what_has_no_model_can_be_best_but_not_chosen():
    known = {("ours", "linear"): MODEL}
    table = sweep("bcast", known, noise=0)
    default = table.copy()
    default["library"], default["algorithm"] = "openmpi", "default"
    default["span_s"] /= 2
    judged = regret(np.concatenate([table, default]), known)
    assert set(judged["chosen"]) == {"linear (ours)"}
    assert set(judged["best"]) == {"default (openmpi)"}
    assert judged["regret"] == pytest.approx(np.ones(len(judged)))
    with pytest.raises(InputError, match="know no algorithm"):
        regret(default, known)


def test_variants_of_an_algorithm_are_told_apart_by_their_segments():
    truth = {("ours", "pipeline"): MODEL}
    both = np.concatenate(
        [sweep("bcast", truth, ranks=(8,), noise=0, segment=segment) for segment in (1024, 65536)]
    )
    judged = regret(both, truth)
    assert set(judged["chosen"]) <= {"pipeline (segment 1024)", "pipeline (segment 65536)"}
    assert (judged["regret"] == 0).all()


def test_one_hockney_for_all_is_applied_to_our_algorithms():
    truth = models("bcast", FORMULAS["bcast"])
    judged = regret(sweep("bcast", truth, noise=0, repetitions=1), MODEL)
    assert (judged["regret"] >= 0).all() and judged["regret"].max() > 0.1
    for row in judged:
        assert row["chosen"] == choose("bcast", int(row["ranks"]), int(row["bytes"]), MODEL)


def test_sizes_that_are_left_out_are_judged_by_models_that_have_not_seen_them():
    seen = []

    def fit(table, **settings):
        seen.append(set(table["bytes"].tolist()))
        return fit_per_algorithm(table, **settings)

    table = sweep("bcast", models("bcast", FORMULAS["bcast"]))
    judged = regret_left_out(table, folds=3, fit=fit)
    assert len(judged) == 3 * len(SIZES)
    assert [set(SIZES) - sizes for sizes in seen] == [set(SIZES[fold::3]) for fold in range(3)]
    assert np.median(judged["regret"]) < 0.05


def test_by_default_one_size_is_left_out_at_a_time_and_ranks_can_be():
    fits = []

    def fit(table, **settings):
        fits.append(len(np.unique(table["ranks"])))
        return fit_per_algorithm(table, **settings)

    table = sweep("bcast", models("bcast", ["linear", "binomial"]))
    assert len(regret_left_out(table, fit=fit)) == 3 * len(SIZES)
    assert fits == [3] * len(SIZES)
    fits.clear()
    assert len(regret_left_out(table, leave="ranks", fit=fit)) == 3 * len(SIZES)
    assert fits == [2] * 3


@pytest.mark.parametrize(
    "arguments, word",
    [
        ({"leave": "algorithm"}, "leave='algorithm'"),
        ({"folds": 1}, "folds=1"),
        ({"folds": 99}, "99"),
    ],
)
def test_parts_that_cannot_be_left_out_are_refused(arguments, word):
    with pytest.raises(InputError, match=word):
        regret_left_out(sweep("bcast", models("bcast", ["linear"])), **arguments)
