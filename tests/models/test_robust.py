"""Huber's regression: like least squares for good data, and robust against a few outliers."""

import numpy as np
import pytest

from mpilab.models.point_to_point import huber

X = np.column_stack([np.ones(40), np.arange(40.0)])
TRUTH = np.array([3.0, 0.5])


def noisy(seed, noise=0.1):
    return X @ TRUTH + np.random.default_rng(seed).normal(0, noise, len(X))


def test_exact_points_give_the_exact_coefficients():
    values, errors = huber(X, X @ TRUTH)
    assert values == pytest.approx(TRUTH)
    assert (errors < 1e-9).all()


def test_wild_points_move_it_much_less_than_least_squares():
    target = noisy(1)
    target[[3, 17, 31, 38]] *= 6
    robust, _ = huber(X, target)
    plain = np.linalg.lstsq(X, target, rcond=None)[0]
    assert abs(robust - TRUTH).max() < 0.2
    assert abs(plain - TRUTH).max() > 5 * abs(robust - TRUTH).max()


def test_standard_errors_are_the_spread_of_many_fits():
    fits = [huber(X, noisy(seed)) for seed in range(300)]
    spread = np.std([values for values, _ in fits], axis=0)
    claimed = np.mean([errors for _, errors in fits], axis=0)
    assert claimed == pytest.approx(spread, rel=0.15)


def test_a_coefficient_that_would_be_negative_is_0_and_has_no_error():
    values, errors = huber(X, -1 + 0.5 * X[:, 1] + 1e-3 * np.cos(X[:, 1]))
    assert values[0] == 0 and np.isnan(errors[0])
    assert values[1] == pytest.approx(0.5, rel=0.1) and errors[1] > 0


def test_as_many_points_as_coefficients_leave_no_error():
    values, errors = huber(X[:2], X[:2] @ TRUTH)
    assert values == pytest.approx(TRUTH) and np.isnan(errors).all()


def test_a_column_of_zeros_gets_nothing():
    values, errors = huber(np.column_stack([X[:, 1], np.zeros(40)]), 2 * X[:, 1])
    assert values == pytest.approx([2, 0]) and np.isnan(errors[1])
