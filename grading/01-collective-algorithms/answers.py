"""Right values for the Python exercises of lab 01. Handouts leave this file out."""

from math import ceil, floor, sqrt

from mpilab.algorithms.formula import ceil_log2
from mpilab.errors import InputError

ARRIVALS = ("linear", "pipeline", "binomial")
ALGORITHMS = ("linear", "binomial", "scatter_allgather_ring", "pipeline")


def mean_arrival(
    algorithm: str, ranks: int, byte_count: int, segments: int, alpha: float, beta: float
) -> float:
    """Seconds after which a rank other than the root has a broadcast's message: the mean.

    algorithm   one of ARRIVALS.
    ranks       P, the root among them; with one rank, nobody waits: 0.
    byte_count  m.
    segments    S, 1 or more; only the pipeline uses it.
    alpha, beta seconds per message, and seconds per byte.

    Messages leave a rank one by one. The pipeline cuts the m bytes into S equal segments; place v
    has the last one after v - 1 + S rounds. In the binomial tree of L = ⌈log2 P⌉ steps, place v
    gets the message in step L - j, where j is the number of its lowest 1 bit; the sum of all j
    below P is P - 1 less the 1 bits of P - 1 (Legendre's formula).

    Sources: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in
    MPICH", IJHPCA 19(1), 2005, section 4.3; for the pipeline, Pjesivac-Grbovic et al., "Performance
    Analysis of MPI Collective Operations", Cluster Computing 10(2), 2007, section 3.

    Raises InputError for an unknown algorithm, for ranks or segments below 1.
    """
    if ranks < 1 or segments < 1:
        raise InputError(f"P={ranks}, S={segments}: both must be 1 or more")
    if algorithm not in ARRIVALS:
        raise InputError(f"algorithm {algorithm!r}: use one of {', '.join(ARRIVALS)}")
    others = ranks - 1
    if others == 0:
        return 0.0
    message = alpha + beta * byte_count
    if algorithm == "linear":
        return ranks / 2 * message
    if algorithm == "pipeline":
        return (ranks / 2 - 1 + segments) * (alpha + beta * byte_count / segments)
    return (ceil_log2(ranks) - 1 + others.bit_count() / others) * message


def best_segments(ranks: int, byte_count: int, alpha: float, beta: float) -> int:
    """The number of segments, 1 to m, for which the mean of the pipeline is the least.

    It is √((P/2 - 1) m β / α), where the derivative is 0, rounded down or up.
    """
    optimum = sqrt(max(ranks / 2 - 1, 0) * byte_count * beta / alpha)
    near = {min(max(number, 1), max(byte_count, 1)) for number in (floor(optimum), ceil(optimum))}
    return min(
        sorted(near),
        key=lambda number: mean_arrival("pipeline", ranks, byte_count, number, alpha, beta),
    )


def means(ranks: int, byte_count: int, alpha: float, beta: float) -> list[float]:
    """The mean of each of ALGORITHMS, the pipeline with the best number of segments.

    In the ring of the allgather, the last message of each rank comes in the last round.
    """
    segments = best_segments(ranks, byte_count, alpha, beta)
    rounds = ceil_log2(ranks) + ranks - 1
    at_the_end = rounds * alpha + 2 * (ranks - 1) / ranks * byte_count * beta
    return [
        at_the_end
        if algorithm == "scatter_allgather_ring"
        else mean_arrival(algorithm, ranks, byte_count, segments, alpha, beta)
        for algorithm in ALGORITHMS
    ]


def fastest_bcast(ranks: int, byte_count: int, alpha: float, beta: float) -> int:
    """The index in ALGORITHMS of the one with the least of `means`; on a tie, the first."""
    seconds = means(ranks, byte_count, alpha, beta)
    return seconds.index(min(seconds))
