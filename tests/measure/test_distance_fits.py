"""A model for each distance, from a table of measurements."""

import numpy as np
import pytest
from distances_made_up import TRUTH, table_of

from mpilab.errors import InputError
from mpilab.measure.distances import fit_distances
from mpilab.models import Hockney, LogGP, LogP


def test_every_distance_gets_the_loggp_that_it_was_made_of():
    fits = fit_distances(table_of(TRUTH, noise=0), "loggp")
    assert list(fits) == list(TRUTH)
    for name, fit in fits.items():
        assert isinstance(fit, LogGP)
        for parameter in "LogG":
            expected = getattr(TRUTH[name], parameter)
            assert getattr(fit, parameter) == pytest.approx(expected, rel=1e-6)


def test_hockney_and_logp_describe_the_same_ping_pong():
    table = table_of(TRUTH, noise=0)
    for name, fit in fit_distances(table).items():
        assert isinstance(fit, Hockney)
        assert fit.alpha == pytest.approx(TRUTH[name].alpha)
        assert fit.beta == pytest.approx(TRUTH[name].beta)
    for name, fit in fit_distances(table, "logp").items():
        assert isinstance(fit, LogP)
        assert fit.time(fit.packet) == pytest.approx(TRUTH[name].time(fit.packet))


def test_a_late_repetition_moves_no_parameter():
    table = table_of(TRUTH, noise=0, repetitions=5)
    table["seconds"][table["repetition"] == 0] *= 100
    fit = fit_distances(table, "loggp")["shared L3"]
    assert fit.time(4096) == pytest.approx(TRUTH["shared L3"].time(4096))


def test_hockney_needs_no_overheads_but_loggp_does():
    table = table_of(TRUTH)
    one_way = table[table["quantity"] == "one_way"]
    assert set(fit_distances(one_way)) == set(TRUTH)
    with pytest.raises(InputError, match="no rows of send_overhead, which loggp needs"):
        fit_distances(one_way, "loggp")


def test_another_model_and_another_table_are_refused():
    with pytest.raises(InputError, match="model='plogp'"):
        fit_distances(table_of(TRUTH), "plogp")
    with pytest.raises(InputError, match="of another kind"):
        fit_distances(np.zeros(3, [("bytes", "i8")]))
