"""LogP and LogGP: the cost of a message, split between the processors and the network.

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
from math import hypot, nan

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mpilab.algorithms.algorithm import Quantity
from mpilab.errors import InputError
from mpilab.models.hockney import Floats, check_points, fit_hockney, with_error

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
    """The LogGP of four measurements, each a pair (bytes, seconds) of arrays.

    one_way            half of a ping-pong's round trip.
    send_overhead      time of a call of MPI_Isend.
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

    Raises InputError for measurements without points, or that no line can be fitted to.
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
    """The LogP of the four measurements that `fit_loggp` takes.

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
                f"packet={packet}: one-way times and gaps were not both measured at that size; "
                f"take one of {', '.join(f'{size:.0f}' for size in measured)}."
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
    """o and its standard error: the mean of sender's and receiver's o at their smallest sizes."""
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
            "give as many sizes as times, and at least one."
        )
    chosen = seconds[sizes == (sizes.min() if size is None else size)]
    median = float(np.median(chosen))
    spread = 1.4826 * float(np.median(abs(chosen - median)))
    error = np.sqrt(np.pi / 2) * spread / np.sqrt(len(chosen)) if len(chosen) > 1 else nan
    return median, float(error)
