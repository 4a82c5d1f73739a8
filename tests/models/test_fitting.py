"""Fits per algorithm: they recover the α and β that generated a sweep."""

import numpy as np
import pytest
from sweeps_made_up import models, sweep

from mpilab.errors import InputError
from mpilab.measure.sweep_table import ROW
from mpilab.models import fit_per_algorithm
from mpilab.models.costs import FORMULAS, OPENMPI_FORMULAS


def assert_alike(fitted, truth, rel):
    assert set(fitted) == set(truth)
    for key, model in truth.items():
        assert fitted[key].alpha == pytest.approx(model.alpha, rel=rel), key
        if fitted[key].beta:
            assert fitted[key].beta == pytest.approx(model.beta, rel=rel), key


@pytest.mark.parametrize("collective", list(FORMULAS))
def test_every_algorithm_gets_its_alpha_and_beta_back(collective):
    truth = models(collective, FORMULAS[collective])
    sizes = {"sizes": [0]} if collective == "barrier" else {}
    table = sweep(collective, truth, noise=1e-6, repetitions=3, **sizes)
    assert_alike(fit_per_algorithm(table), truth, rel=1e-3)


def test_open_mpis_algorithms_are_fitted_under_its_names():
    names = [name for name in OPENMPI_FORMULAS["bcast"] if name != "two_proc"]
    truth = models("bcast", names, library="openmpi")
    fitted = fit_per_algorithm(sweep("bcast", truth, noise=1e-6, segment=4096))
    assert_alike(fitted, truth, rel=1e-3)


def test_a_barrier_has_no_beta():
    truth = models("barrier", ["tree"])
    fit = fit_per_algorithm(sweep("barrier", truth, sizes=[0]))["ours", "tree"]
    assert fit.beta == 0 and np.isnan(fit.beta_error) and fit.alpha_error > 0


def test_wild_points_are_outvoted():
    truth = models("bcast", FORMULAS["bcast"])
    fitted = fit_per_algorithm(sweep("bcast", truth, noise=0.02, wild=0.08))
    assert_alike(fitted, truth, rel=0.1)


def test_standard_errors_cover_the_truth_about_as_often_as_they_should():
    truth = models("bcast", ["linear"])
    within = []
    for seed in range(100):
        table = sweep("bcast", truth, noise=0.05, repetitions=1, seed=seed)
        fit = fit_per_algorithm(table)["ours", "linear"]
        within.append(abs(fit.alpha - truth["ours", "linear"].alpha) < 2 * fit.alpha_error)
    assert 0.85 < np.mean(within) <= 1


def test_the_gamma_of_the_runs_has_to_be_that_of_the_fit():
    def gamma(ranks):
        return 1 + 0.3 * (ranks - 2)

    truth = models("bcast", ["linear", "binary", "binomial", "chain"])
    table = sweep("bcast", truth, gamma=gamma, noise=1e-6)
    assert_alike(fit_per_algorithm(table, gamma=gamma), truth, rel=1e-3)
    without = fit_per_algorithm(table)
    assert without["ours", "linear"].alpha < 0.8 * truth["ours", "linear"].alpha


def test_one_rank_alone_tells_nothing_and_does_no_harm():
    truth = models("bcast", ["linear"])
    assert_alike(fit_per_algorithm(sweep("bcast", truth, ranks=(1, 2, 4), noise=1e-6)), truth, 1e-3)


def test_another_measure_is_fitted_if_asked_for():
    truth = models("bcast", ["linear"])
    table = sweep("bcast", truth, noise=1e-6)
    half = fit_per_algorithm(table, measure="mean_s")["ours", "linear"]
    assert half.alpha == pytest.approx(truth["ours", "linear"].alpha / 2, rel=1e-3)


def test_algorithms_without_a_formula_are_left_out():
    truth = models("bcast", ["linear"])
    table = sweep("bcast", truth)
    other = table.copy()
    other["library"], other["algorithm"] = "openmpi", "default"
    assert set(fit_per_algorithm(np.concatenate([table, other]))) == set(truth)
    with pytest.raises(InputError, match="only default"):
        fit_per_algorithm(other)


def test_one_size_leaves_alpha_and_beta_open():
    table = sweep("bcast", models("bcast", ["linear"]), sizes=[1024])
    with pytest.raises(InputError, match="ours linear: 3 points that do not determine α and β"):
        fit_per_algorithm(table)


def test_a_table_of_two_collectives_wants_to_know_which():
    both = np.concatenate(
        [sweep(name, models(name, ["binomial"])) for name in ("gather", "scatter")]
    )
    with pytest.raises(InputError, match="gather, scatter"):
        fit_per_algorithm(both)
    assert set(fit_per_algorithm(both, collective="gather")) == {("ours", "binomial")}
    with pytest.raises(InputError, match="'bcast' is not in"):
        fit_per_algorithm(both, collective="bcast")


def test_tables_without_rows_fields_or_time_are_refused():
    table = sweep("bcast", models("bcast", ["linear"]))
    with pytest.raises(InputError, match="empty"):
        fit_per_algorithm(np.empty(0, ROW))
    with pytest.raises(InputError, match="no field segment"):
        fit_per_algorithm(table[[name for name in ROW.names if name != "segment"]])
    table["span_s"] = 0
    with pytest.raises(InputError, match="median time 0.0 s"):
        fit_per_algorithm(table)
