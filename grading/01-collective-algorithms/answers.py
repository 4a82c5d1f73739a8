"""Right values for the Python exercises of lab 01. Handouts leave this file out."""

from math import ceil, floor, sqrt

from mpilab.algorithms.formula import ceil_log2
from mpilab.errors import InputError

ALGORITHMS = ("linear", "binomial", "scatter_allgather_ring", "pipeline")


def bcast_seconds(
    algorithm: str, ranks: int, byte_count: int, segments: int, alpha: float, beta: float
) -> float:
    """Seconds of a broadcast of `byte_count` bytes (m) to `ranks` ranks (P).

    algorithm   one of ALGORITHMS.
    segments    S, 1 or more; only the pipeline uses it.
    alpha, beta seconds per message, and seconds per byte.

    Messages leave a rank one by one, and the pipeline cuts the m bytes into S equal segments. These
    are the costs of mpilab.models.costs for γ = None, with the number of segments instead of their
    size.

    Sources: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in
    MPICH", IJHPCA 19(1), 2005, section 4.3; for the pipeline, Pjesivac-Grbovic et al., "Performance
    Analysis of MPI Collective Operations", Cluster Computing 10(2), 2007, section 3.

    Raises InputError for an unknown algorithm, for ranks or segments below 1.
    """
    if ranks < 1 or segments < 1:
        raise InputError(f"P={ranks}, S={segments}: both must be 1 or more")
    if algorithm not in ALGORITHMS:
        raise InputError(f"algorithm {algorithm!r}: use one of {', '.join(ALGORITHMS)}")
    if ranks == 1:
        return 0.0
    message = alpha + beta * byte_count
    if algorithm == "linear":
        return (ranks - 1) * message
    if algorithm == "binomial":
        return ceil_log2(ranks) * message
    if algorithm == "scatter_allgather_ring":
        rounds = ceil_log2(ranks) + ranks - 1
        return rounds * alpha + 2 * (ranks - 1) / ranks * byte_count * beta
    return (ranks - 2 + segments) * (alpha + beta * byte_count / segments)


def best_segments(ranks: int, byte_count: int, alpha: float, beta: float) -> int:
    """The number of segments, 1 to m, for which the pipeline takes the shortest time.

    It is √((P-2) m β / α), where the derivative of the cost is 0, rounded down or up.
    """
    optimum = sqrt(max(ranks - 2, 0) * byte_count * beta / alpha)
    near = {min(max(number, 1), max(byte_count, 1)) for number in (floor(optimum), ceil(optimum))}
    return min(
        sorted(near),
        key=lambda number: bcast_seconds("pipeline", ranks, byte_count, number, alpha, beta),
    )


def fastest_bcast(ranks: int, byte_count: int, alpha: float, beta: float) -> int:
    """The index in ALGORITHMS of the fastest one; on a tie, the first.

    The pipeline has the best number of segments.
    """
    segments = best_segments(ranks, byte_count, alpha, beta)
    seconds = [
        bcast_seconds(algorithm, ranks, byte_count, segments, alpha, beta)
        for algorithm in ALGORITHMS
    ]
    return seconds.index(min(seconds))
