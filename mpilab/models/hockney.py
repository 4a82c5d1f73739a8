"""Hockney's α-β model of one message, its fit to a ping-pong, and a robust regression.

A message of n bytes takes α + β n: α seconds of latency, and β seconds per byte. Source: R. W.
Hockney, "The communication challenge for MPP: Intel Paragon and Meiko CS-2", Parallel Computing
20(3), 1994. (Hockney writes β as 1 / r∞, the asymptotic bandwidth.)
"""

from dataclasses import dataclass
from itertools import combinations
from math import floor, isfinite, log10, nan
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mpilab.algorithms.algorithm import Quantity
from mpilab.errors import InputError

Floats = NDArray[np.floating[Any]]

TUNING = 1.345  # of Huber's regression: 95 % of the efficiency of least squares for normal errors
MOST_STEPS = 100


class Model(Protocol):
    """A model of one message: seconds of latency, and seconds per byte (Hockney, LogGP)."""

    @property
    def alpha(self) -> float: ...

    @property
    def beta(self) -> float: ...


# Huber's regression: a least-squares fit in which outliers have little influence.
# Source: P. J. Huber, E. M. Ronchetti, Robust Statistics, 2nd edition, 2009, chapter 7; the
# iteration is iteratively reweighted least squares (section 7.8) with a scale from the median
# absolute deviation.


def huber(design: ArrayLike, target: ArrayLike) -> tuple[Floats, Floats]:
    """The nonnegative coefficients x of `design` x ≈ `target`, and their standard errors.

    design   array [points, parameters]; target   array [points].

    Residuals up to 1.345 σ count by their square, larger ones linearly, with σ from the median
    absolute residual. A coefficient that would be negative is 0, with standard error nan; the
    others are then fitted without it. Errors are Huber's asymptotic ones (Huber, Ronchetti, section
    7.6), nan if there are no more points than parameters.
    """
    design, target = np.asarray(design, float), np.asarray(target, float)
    parameters = design.shape[1]
    values, errors = np.zeros(parameters), np.full(parameters, nan)
    # All parameters if none is negative, else the best fit with one fewer, and so on.
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


def _unbounded(design: Floats, target: Floats) -> tuple[Floats, Floats, float]:
    points, parameters = design.shape
    x = np.linalg.lstsq(design, target, rcond=None)[0]
    # Smaller residuals are rounding errors, and must not affect the weights.
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


def _weights(residuals: Floats, scale: float) -> Floats:
    sizes = abs(residuals) / scale
    return np.where(sizes <= TUNING, 1.0, TUNING / np.maximum(sizes, TUNING))


def _errors(design: Floats, residuals: Floats, scale: float) -> Floats:
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


def with_error(value: float, error: float) -> str:
    """'87 ± 20' → '90 ± 20': a value and its standard error, rounded to the error's first digit.

    If the error is unknown (nan or 0), the value has three digits.
    """
    if not isfinite(error) or error <= 0 or not isfinite(value):
        return f"{value:.3g} ± {error:.1g}"
    place = floor(log10(error))
    if round(error, -place) >= 10 ** (place + 1):  # 0.096 is 0.1
        place += 1
    digits = max(-place, 0)
    return f"{round(value, -place):.{digits}f} ± {round(error, -place):.{digits}f}"


@dataclass(frozen=True)
class Hockney:
    """α in seconds, β in seconds per byte, each with its standard error (nan if unknown)."""

    alpha: float
    beta: float
    alpha_error: float = nan
    beta_error: float = nan

    def time(self, byte_count: Quantity) -> Quantity:
        """Seconds for one message of `byte_count` bytes (a number or an array)."""
        return self.alpha + self.beta * byte_count

    @property
    def half_size(self) -> float:
        """Bytes at which latency takes half of the time: α / β, Hockney's n½."""
        return self.alpha / self.beta

    def __str__(self) -> str:
        alpha = with_error(self.alpha * 1e6, self.alpha_error * 1e6)
        return f"α = {alpha} µs, β = {with_error(self.beta * 1e9, self.beta_error * 1e9)} ns/B"


def fit_hockney(byte_counts: ArrayLike, seconds: ArrayLike) -> Hockney:
    """The Hockney that best fits one-way times `seconds` of messages of `byte_counts` bytes.

    Best means the least sum of squared *relative* errors, Σ ((tᵢ - α - β nᵢ) / tᵢ)²: sizes that
    span six decades then count equally, whereas plain least squares would fit the largest message
    and ignore α. This is the weighted straight-line fit with σᵢ proportional to tᵢ; with wᵢ = 1 /
    tᵢ², S = Σ wᵢ, n̄ = Σ wᵢ nᵢ / S, t̄ = Σ wᵢ tᵢ / S and D = Σ wᵢ (nᵢ - n̄)²,

        β = Σ wᵢ (nᵢ - n̄) (tᵢ - t̄) / D           α = t̄ - β n̄
        se(β) = s / √D                            se(α) = s √(1 / S + n̄² / D)

    and s² = Σ wᵢ (tᵢ - α - β nᵢ)² / (N - 2), the spread estimated from the residuals. Source:
    Press, Teukolsky, Vetterling, Flannery, Numerical Recipes, 3rd edition, section 15.2.

    Raises InputError for fewer than three points, fewer than two different sizes, or a time that is
    not positive.
    """
    n = np.asarray(byte_counts, dtype=float)
    t = np.asarray(seconds, dtype=float)
    check_points(n, t)
    w = 1 / t**2
    total = w.sum()
    n_mean, t_mean = (w * n).sum() / total, (w * t).sum() / total
    spread = (w * (n - n_mean) ** 2).sum()
    beta = (w * (n - n_mean) * (t - t_mean)).sum() / spread
    alpha = t_mean - beta * n_mean
    s = np.sqrt((w * (t - alpha - beta * n) ** 2).sum() / (len(n) - 2))
    return Hockney(
        alpha=float(alpha),
        beta=float(beta),
        alpha_error=float(s * np.sqrt(1 / total + n_mean**2 / spread)),
        beta_error=float(s / np.sqrt(spread)),
    )


def check_points(n: Floats, t: Floats, of: str = "fit_hockney") -> None:
    """Raise InputError, naming the function `of`, if no line can be fitted to the points (n, t)."""
    if n.shape != t.shape or n.ndim != 1:
        raise InputError(
            f"{of}: sizes of shape {n.shape} and times of shape {t.shape}; "
            "give two one-dimensional arrays of the same length."
        )
    if len(n) < 3 or len(np.unique(n)) < 2:
        raise InputError(
            f"{of}: {len(n)} points of {len(np.unique(n))} different sizes; "
            "give at least 3 points of at least 2 sizes."
        )
    if not (np.isfinite(t) & (t > 0)).all():
        where = int(np.argmin(np.isfinite(t) & (t > 0)))
        raise InputError(
            f"{of}: time {t[where]} s at point {where} ({n[where]:.0f} bytes); "
            "every time must be a positive number of seconds."
        )
