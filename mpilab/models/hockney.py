"""Hockney's α-β model of one message, fitted to a ping-pong.

A message of n bytes takes α + β n: α seconds to get anything across, β seconds for each byte.
Source: R. W. Hockney, "The communication challenge for MPP: Intel Paragon and Meiko CS-2",
Parallel Computing 20(3), 1994. (Hockney writes β as 1 / r∞, the asymptotic bandwidth.)
"""

from dataclasses import dataclass
from math import nan

import numpy as np

from mpilab.errors import InputError
from mpilab.models.digits import with_error


@dataclass(frozen=True)
class Hockney:
    """α in seconds, β in seconds a byte, each with its standard error (nan where unknown)."""

    alpha: float
    beta: float
    alpha_error: float = nan
    beta_error: float = nan

    def time(self, byte_count):
        """Seconds for one message of `byte_count` bytes (a number or an array)."""
        return self.alpha + self.beta * byte_count

    @property
    def half_size(self):
        """Bytes at which half of the time is latency: α / β, Hockney's n½."""
        return self.alpha / self.beta

    def __str__(self):
        alpha = with_error(self.alpha * 1e6, self.alpha_error * 1e6)
        return f"α = {alpha} µs, β = {with_error(self.beta * 1e9, self.beta_error * 1e9)} ns/B"


def fit_hockney(byte_counts, seconds):
    """The Hockney that fits one-way times `seconds` of messages of `byte_counts` bytes best.

    Best means the least sum of squared *relative* errors, Σ ((tᵢ - α - β nᵢ) / tᵢ)²: sizes that
    span six decades then count alike, where plain least squares would fit the largest message
    and ignore α. That is the weighted straight-line fit with σᵢ proportional to tᵢ; with
    wᵢ = 1 / tᵢ², S = Σ wᵢ, n̄ = Σ wᵢ nᵢ / S, t̄ = Σ wᵢ tᵢ / S and D = Σ wᵢ (nᵢ - n̄)²,

        β = Σ wᵢ (nᵢ - n̄) (tᵢ - t̄) / D           α = t̄ - β n̄
        se(β) = s / √D                            se(α) = s √(1 / S + n̄² / D)

    and s² = Σ wᵢ (tᵢ - α - β nᵢ)² / (N - 2), the spread that the residuals themselves show.
    Source: Press, Teukolsky, Vetterling, Flannery, Numerical Recipes, 3rd edition, section 15.2.

    Raises InputError for fewer than three points, fewer than two different sizes, or a time that
    isn't positive.
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


def check_points(n, t, of="fit_hockney"):
    """InputError, naming the function `of`, for points (n, t) that no line can be put through."""
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
