"""What a collective should cost: Hockney's α-β model, fitted to a ping-pong, applied to a schedule.

A message of n bytes takes α + β n: α seconds to get anything across, β seconds for each byte.
Source: R. W. Hockney, "The communication challenge for MPP: Intel Paragon and Meiko CS-2",
Parallel Computing 20(3), 1994. (Hockney writes β as 1 / r∞, the asymptotic bandwidth.)
"""

from dataclasses import dataclass
from math import nan

import numpy as np

from mpilab.errors import InputError
from mpilab.schedules import allgather


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
        return (
            f"α = {self.alpha * 1e6:.3g} ± {self.alpha_error * 1e6:.1g} µs, "
            f"β = {self.beta * 1e9:.3g} ± {self.beta_error * 1e9:.1g} ns/B"
        )


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
    _check_points(n, t)
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


def _check_points(n, t):
    if n.shape != t.shape or n.ndim != 1:
        raise InputError(
            f"fit_hockney: sizes of shape {n.shape} and times of shape {t.shape}; "
            "give two one-dimensional arrays of the same length."
        )
    if len(n) < 3 or len(np.unique(n)) < 2:
        raise InputError(
            f"fit_hockney: {len(n)} points of {len(np.unique(n))} different sizes; "
            "give at least 3 points of at least 2 sizes."
        )
    if not (np.isfinite(t) & (t > 0)).all():
        where = int(np.argmin(np.isfinite(t) & (t > 0)))
        raise InputError(
            f"fit_hockney: time {t[where]} s at point {where} ({n[where]:.0f} bytes); "
            "every time must be a positive number of seconds."
        )


def predict(name, ranks, block_bytes, model, cores=None):
    """Seconds that allgather algorithm `name` takes on `ranks` ranks with blocks of `block_bytes`.

    name         one of mpilab.schedules.allgather.ALGORITHMS.
    block_bytes  m, the bytes each rank contributes; a number or an array of them.
    model        a Hockney.
    cores        None: every rank has a core of its own.

    It is `predict_schedule` of that algorithm's schedule.
    """
    return predict_schedule(allgather.schedule(name, ranks), block_bytes, model, cores)


def predict_schedule(schedule, block_bytes, model, cores=None):
    """Seconds that `schedule` takes with blocks of `block_bytes` bytes (a number or an array).

    Assumptions, from the weakest to the one that is violated first:

    *Rounds.* A round begins when the one before has ended on every rank; times add up.

    *Single port, full duplex.* A rank can send one message and receive one message at a time.
    Within a round it takes α for each message and β for each byte, and the round is as long as
    the busiest direction of the busiest rank. With one message a rank and round this is the
    textbook α + β n; the P-1 messages of nonblocking_all cost (P-1)(α + m β), although all of
    them are started at once.

    *A core for each rank.* Where `cores` is given and smaller than the number of ranks, a round
    also takes at least the work of all its messages, Σ (α + β n), shared by the cores: on an
    oversubscribed machine the number of messages counts even where they could run in parallel.

    Source of the costs of ring, recursive doubling and Bruck, which this reproduces on powers of
    two: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in
    MPICH", Int. J. High Performance Computing Applications 19(1), 2005, sections 3 and 4.1.
    """
    if cores is not None and cores < 1:
        raise InputError(f"cores={cores}: give 1 or more, or None for a core for each rank.")
    sizes = np.asarray(block_bytes, dtype=float)
    seconds = np.zeros_like(sizes)
    for transfers in schedule.rounds:
        ports = _loads(transfers, schedule.ranks)
        work = [model.alpha * messages + model.beta * blocks * sizes for messages, blocks in ports]
        longest = np.max(work, axis=0)
        if cores is not None and cores < schedule.ranks:
            everything = model.alpha * len(transfers) + model.beta * sizes * sum(
                len(transfer.blocks) for transfer in transfers
            )
            longest = np.maximum(longest, everything / cores)
        seconds = seconds + longest
    return seconds if seconds.ndim else float(seconds)


def _loads(transfers, ranks):
    """The different (messages, blocks) loads of the sending and receiving ports in one round."""
    sent = [[0, 0] for _ in range(ranks)]
    received = [[0, 0] for _ in range(ranks)]
    for transfer in transfers:
        for load in (sent[transfer.source], received[transfer.dest]):
            load[0] += 1
            load[1] += len(transfer.blocks)
    return {tuple(load) for load in sent + received}
