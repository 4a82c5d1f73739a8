"""Huber's regression: a least-squares fit in which single wild points count little.

Source: P. J. Huber, E. M. Ronchetti, Robust Statistics, 2nd edition, 2009, chapter 7; the
iteration is iteratively reweighted least squares (section 7.8) with a scale from the median
absolute deviation.
"""

from itertools import combinations
from math import nan

import numpy as np

TUNING = 1.345  # 95 % of the efficiency of least squares where the errors are normal
MOST_STEPS = 100


def huber(design, target):
    """The coefficients x of `design` x ≈ `target`, and their standard errors; none below 0.

    design   array [points, parameters]; target   array [points].

    Residuals up to 1.345 σ count by their square, larger ones in proportion, with σ from the median
    absolute residual. A coefficient that would come out below 0 is 0, its standard error nan; the
    others are then fitted without it. Errors are Huber's asymptotic ones (Huber, Ronchetti, section
    7.6), nan where there are no more points than parameters.
    """
    design, target = np.asarray(design, float), np.asarray(target, float)
    parameters = design.shape[1]
    values, errors = np.zeros(parameters), np.full(parameters, nan)
    # All parameters if that will do, else the best with one of them less, and so on.
    for kept in range(parameters, 0, -1):
        fits = []
        for columns in map(list, combinations(range(parameters), kept)):
            if np.linalg.matrix_rank(design[:, columns]) == kept:
                x, deviations, loss = _unbounded(design[:, columns], target)
                if (x >= 0).all():
                    fits.append((loss, columns, x, deviations))
        if fits:
            _, columns, x, deviations = min(fits, key=lambda fit: fit[0])
            values[columns], errors[columns] = x, deviations
            break
    return values, errors


def _unbounded(design, target):
    points, parameters = design.shape
    x = np.linalg.lstsq(design, target, rcond=None)[0]
    # Rounding errors are not worth a weight.
    least = 1e-12 * float(np.median(abs(target)))
    for _ in range(MOST_STEPS):
        residuals = target - design @ x
        scale = max(1.4826 * float(np.median(abs(residuals))), least)
        weights = _weights(residuals, scale)
        root = np.sqrt(weights)
        step = np.linalg.lstsq(design * root[:, None], target * root, rcond=None)[0]
        settled = np.allclose(step, x, rtol=1e-10, atol=0)
        x = step
        if settled:
            break
    residuals = target - design @ x
    scale = max(1.4826 * float(np.median(abs(residuals))), least)
    return x, _errors(design, residuals, scale), float(abs(residuals).sum())


def _weights(residuals, scale):
    sizes = abs(residuals) / scale
    return np.where(sizes <= TUNING, 1.0, TUNING / np.maximum(sizes, TUNING))


def _errors(design, residuals, scale):
    points, parameters = design.shape
    if points <= parameters:
        return np.full(parameters, nan)
    scaled = residuals / scale
    psi = np.clip(scaled, -TUNING, TUNING)
    inside = abs(scaled) <= TUNING
    share = inside.mean()
    if share == 0:
        return np.full(parameters, nan)
    correction = 1 + parameters / points * inside.var() / share**2
    variance = correction**2 * scale**2 * (psi**2).sum() / (points - parameters) / share**2
    return np.sqrt(variance * np.diag(np.linalg.inv(design.T @ design)))
