"""The α-β model of one message: the fit recovers the parameters."""

import numpy as np
import pytest

from mpilab.errors import InputError
from mpilab.models import Hockney, fit_hockney

SIZES = np.array([2**power for power in range(21)])
MODEL = Hockney(alpha=3e-6, beta=5e-10)


def noisy(seed, sizes=SIZES, noise=0.05):
    random = np.random.default_rng(seed)
    return MODEL.time(sizes) * random.normal(1, noise, len(sizes))


def test_a_fit_of_exact_times_returns_the_model_with_no_error():
    fitted = fit_hockney(SIZES, MODEL.time(SIZES))
    assert fitted.alpha == pytest.approx(MODEL.alpha, rel=1e-9)
    assert fitted.beta == pytest.approx(MODEL.beta, rel=1e-9)
    assert fitted.alpha_error < 1e-6 * fitted.alpha
    assert fitted.beta_error < 1e-6 * fitted.beta


def test_the_standard_errors_are_the_spread_of_many_fits():
    fits = [fit_hockney(SIZES, noisy(seed)) for seed in range(400)]
    for value, error in (("alpha", "alpha_error"), ("beta", "beta_error")):
        scatter = np.std([getattr(fit, value) for fit in fits])
        claimed = np.mean([getattr(fit, error) for fit in fits])
        assert claimed == pytest.approx(scatter, rel=0.15)


def test_the_fit_equals_numpys_weighted_polynomial_fit():
    seconds = noisy(7)
    fitted = fit_hockney(SIZES, seconds)
    (beta, alpha), covariance = np.polyfit(SIZES, seconds, 1, w=1 / seconds, cov=True)
    assert fitted.alpha == pytest.approx(alpha, rel=1e-6)
    assert fitted.beta == pytest.approx(beta, rel=1e-6)
    assert fitted.beta_error == pytest.approx(covariance[0, 0] ** 0.5, rel=1e-6)
    assert fitted.alpha_error == pytest.approx(covariance[1, 1] ** 0.5, rel=1e-6)


def test_latency_survives_a_fit_over_six_decades_where_plain_least_squares_loses_it():
    sweeps = [noisy(seed) for seed in range(100)]
    fitted = np.array([fit_hockney(SIZES, seconds).alpha for seconds in sweeps])
    plain = np.array([np.polyfit(SIZES, seconds, 1)[1] for seconds in sweeps])
    assert abs(fitted - MODEL.alpha).max() < 0.1 * MODEL.alpha
    assert abs(plain - MODEL.alpha).max() > 0.5 * MODEL.alpha


@pytest.mark.parametrize(
    "sizes, seconds, word",
    [
        ([1, 2], [1e-6, 2e-6], "2 points"),
        ([8, 8, 8], [1e-6, 2e-6, 3e-6], "1 different sizes"),
        ([1, 2, 4], [1e-6, 0.0, 2e-6], "point 1"),
        ([1, 2, 4], [1e-6, 1e-6, float("nan")], "point 2"),
        ([1, 2, 4], [1e-6, 1e-6], "same length"),
    ],
)
def test_points_that_cannot_be_fitted_are_refused_by_name(sizes, seconds, word):
    with pytest.raises(InputError, match=word):
        fit_hockney(sizes, seconds)


def test_the_half_size_message_is_half_latency():
    assert MODEL.time(MODEL.half_size) == pytest.approx(2 * MODEL.alpha)
