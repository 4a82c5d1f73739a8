"""Models of one message, and their fits: Hockney's α-β, LogP and LogGP; and a robust regression.

Hockney: a message of n bytes takes α + β n: α seconds of latency, and β seconds per byte. Source:
R. W. Hockney, "The communication challenge for MPP: Intel Paragon and Meiko CS-2", Parallel
Computing 20(3), 1994. (Hockney writes β as 1 / r∞, the asymptotic bandwidth.)

LogP and LogGP split the cost between the processors and the network:

    sender    |-- o --|                                  L  latency: time in the network
    network           |------ L ------|                  o  overhead: time a processor is busy
    receiver                          |-- o --|          g  gap: minimum time between messages
                                                         G  gap per byte of a long message

Sources: Culler, Karp, Patterson, Sahay, Schauser, Santos, Subramonian, von Eicken, "LogP: Towards a
Realistic Model of Parallel Computation", PPoPP 1993; Alexandrov, Ionescu, Schauser, Scheiman,
"LogGP: Incorporating Long Messages into the LogP Model", SPAA 1995.

The measurements follow Kielmann, Bal, Verstoep, "Fast Measurement of LogP Parameters for Message
Passing Platforms", IPDPS 2000 workshops (separate o of sender and receiver), and Hoefler, Lichei,
Rehm, "Low-Overhead LogGP Parameter Assessment for Modern Interconnection Networks", IPDPS 2007
(gaps from trains of messages with one reply).
"""

from dataclasses import dataclass
from itertools import combinations
from math import floor, hypot, isfinite, log10, nan
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
        """Bytes at which latency accounts for half of the time: α / β, Hockney's n½."""
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


# LogP and LogGP.

Measured = tuple[ArrayLike, ArrayLike]  # sizes in bytes, seconds


@dataclass(frozen=True)
class LogP:
    """L, o, g in seconds, and the bytes of the single message size in LogP.

    Each parameter has a standard error (nan if unknown).
    """

    L: float
    o: float
    g: float
    packet: int
    L_error: float = nan
    o_error: float = nan
    g_error: float = nan

    def time(self, byte_count: Quantity) -> Quantity:
        """Seconds for `byte_count` bytes (a number or an array) from one rank to another.

        They travel in k = ⌈n / packet⌉ messages (at least one), which leave the sender max(g, o)
        apart: o + (k - 1) max(g, o) + L + o. Source: Alexandrov et al. (1995), section 2.
        """
        messages = np.maximum(1, np.ceil(np.asarray(byte_count) / self.packet))
        seconds = 2 * self.o + self.L + (messages - 1) * max(self.g, self.o)
        return seconds if seconds.ndim else float(seconds)

    def __str__(self) -> str:
        return f"{_words(self)}, messages of {self.packet} B"


@dataclass(frozen=True)
class LogGP:
    """L, o, g in seconds, G in seconds per byte, each with its standard error (nan if unknown)."""

    L: float
    o: float
    g: float
    G: float
    L_error: float = nan
    o_error: float = nan
    g_error: float = nan
    G_error: float = nan

    def time(self, byte_count: Quantity) -> Quantity:
        """Seconds for one message of `byte_count` bytes (a number or an array).

        They are o + (n - 1) G + L + o; a message of no bytes takes as long as one of one byte.
        """
        seconds = 2 * self.o + self.L + np.maximum(np.asarray(byte_count) - 1, 0) * self.G
        return seconds if seconds.ndim else float(seconds)

    @property
    def alpha(self) -> float:
        """Hockney's α of the same message: L + 2o - G."""
        return self.L + 2 * self.o - self.G

    @property
    def beta(self) -> float:
        """Hockney's β of the same message: G."""
        return self.G

    def __str__(self) -> str:
        return f"{_words(self)}, G = {with_error(self.G * 1e9, self.G_error * 1e9)} ns/B"


def _words(model: LogP | LogGP) -> str:
    return ", ".join(
        f"{name} = "
        f"{with_error(getattr(model, name) * 1e6, getattr(model, f'{name}_error') * 1e6)} µs"
        for name in ("L", "o", "g")
    )


def fit_loggp(
    one_way: Measured, send_overhead: Measured, receive_overhead: Measured, gap: Measured
) -> LogGP:
    """The LogGP fitted to four measurements, each a pair (bytes, seconds) of arrays.

    one_way            half of a ping-pong's round trip.
    send_overhead      time of a call to MPI_Isend.
    receive_overhead   time of MPI_Recv for a message that has already arrived.
    gap                time between messages that are sent back to back, as many as the network
                   accepts (a flood).

    o = (o of the sender + o of the receiver) / 2, medians at the smallest size: LogGP has one o,
    which does not grow with the message. g is the value at one byte of the line through the gaps, G
    is the slope of the line through one_way, and L is what remains of that line at one byte: L =
    T(1) - 2o. Lines are those of `fit_hockney`; standard errors are those of the lines and of the
    medians, combined as independent errors.

    L can be negative: in shared memory, a receiver begins to copy before the sender is done, and
    the overlap counts in both overheads. `time` still equals that of the ping-pong.

    Raises InputError for measurements that have no points, or to which no line can be fitted.
    """
    line = fit_hockney(*one_way)
    gaps = fit_hockney(*gap)
    o, o_error = _overhead(send_overhead, receive_overhead)
    return LogGP(
        L=float(line.time(1)) - 2 * o,
        o=o,
        g=float(gaps.time(1)),
        G=line.beta,
        L_error=hypot(line.alpha_error, line.beta_error, 2 * o_error),
        o_error=o_error,
        g_error=hypot(gaps.alpha_error, gaps.beta_error),
        G_error=line.beta_error,
    )


def fit_logp(
    one_way: Measured,
    send_overhead: Measured,
    receive_overhead: Measured,
    gap: Measured,
    packet: int | None = None,
) -> LogP:
    """The LogP fitted to the four measurements that `fit_loggp` takes.

    packet   bytes of LogP's message; a size in both `one_way` and `gap`. None: the one for which
             `time` is closest to `one_way`, by the squared logarithms of the ratios.

    L and g are medians at that size, o as in `fit_loggp`. Raises InputError for a packet that was
    not measured.
    """
    sizes, seconds = (np.asarray(values, float) for values in one_way)
    check_points(sizes, seconds, "fit_logp")
    measured = np.intersect1d(sizes[sizes >= 1], np.asarray(gap[0], float))
    if packet is not None:
        if packet not in measured:
            raise InputError(
                f"packet={packet}: one-way times and gaps were not both measured at that size; use "
                f"one of {', '.join(f'{size:.0f}' for size in measured)}."
            )
        measured = np.array([packet])
    if len(measured) == 0:
        raise InputError(
            "fit_logp: one-way times and gaps have no size of 1 byte or more in common; "
            "measure both at the same sizes."
        )
    o, o_error = _overhead(send_overhead, receive_overhead)
    fits = [_logp_of(size, one_way, gap, o, o_error) for size in measured]
    return min(fits, key=lambda fit: _misfit(fit, sizes, seconds))


def _logp_of(size: float, one_way: Measured, gap: Measured, o: float, o_error: float) -> LogP:
    way, way_error = _median_at(size, *one_way)
    g, g_error = _median_at(size, *gap)
    return LogP(
        L=way - 2 * o,
        o=o,
        g=g,
        packet=int(size),
        L_error=hypot(way_error, 2 * o_error),
        o_error=o_error,
        g_error=g_error,
    )


def _misfit(fit: LogP, sizes: NDArray[np.float64], seconds: Floats) -> float:
    return float((np.log(fit.time(sizes) / seconds) ** 2).sum())


def _overhead(send: Measured, receive: Measured) -> tuple[float, float]:
    """o and its standard error: the mean of the sender's and the receiver's o at their smallest
    sizes."""
    (sending, sending_error), (receiving, receiving_error) = (
        _median_at(None, *measured) for measured in (send, receive)
    )
    return (sending + receiving) / 2, hypot(sending_error, receiving_error) / 2


def _median_at(size: float | None, sizes: ArrayLike, seconds: ArrayLike) -> tuple[float, float]:
    """Median of the times at `size` (None: the smallest one), and its standard error.

    The error of a median is √(π/2) s / √N for a normal spread s, which is estimated by 1.4826 times
    the median deviation, so that single late repetitions do not count.
    """
    sizes, seconds = np.asarray(sizes, float), np.asarray(seconds, float)
    if len(sizes) == 0 or sizes.shape != seconds.shape:
        raise InputError(
            f"overheads and gaps: {len(sizes)} sizes and {len(seconds)} times; "
            "give the same number of both, at least one."
        )
    chosen = seconds[sizes == (sizes.min() if size is None else size)]
    median = float(np.median(chosen))
    spread = 1.4826 * float(np.median(abs(chosen - median)))
    error = np.sqrt(np.pi / 2) * spread / np.sqrt(len(chosen)) if len(chosen) > 1 else nan
    return median, float(error)
