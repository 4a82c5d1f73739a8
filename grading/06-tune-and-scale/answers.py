"""Right values for the Python exercise on the crossover of lab 06. Handouts leave this file out."""

from math import sqrt

from mpilab.algorithms.formula import ceil_log2
from mpilab.errors import InputError


def crossover(algorithm: str, ranks: int, alpha: float, beta: float) -> float:
    """Message size in bytes from which `algorithm` beats the binomial tree (α-β model).

    With L = ⌈log2 P⌉, the tree takes L (α + mβ). For a power of two P, the others take the
    following time, which equals the tree's at m:

        scatter_allgather        2 L α + 2 (P-1)/P mβ             m = L / (L - 2 (P-1)/P) · α/β
        scatter_allgather_ring   (L + P - 1) α + 2 (P-1)/P mβ     m = (P-1) / (L - 2 (P-1)/P) · α/β
        pipeline                 (√((P-2) α) + √(mβ))²            with the best segments

    The last one gives a quadratic equation in x = √(m β/α): (L-1) x² - 2 √(P-2) x + L - (P-2) = 0.
    Its larger root counts: below the smaller one, no message is long enough for two segments.

    ranks         a power of two, 4 or more
    alpha, beta   seconds per message, and per byte

    Source: Thakur, Rabenseifner, Gropp (2005), section 4.3; for the pipeline's segments,
    Pjesivac-Grbovic et al. (2007), section 3.

    Raises InputError for any other algorithm, and for invalid numbers.
    """
    if ranks < 4 or ranks & (ranks - 1):
        raise InputError(f"ranks={ranks}: give a power of two, 4 or more")
    if not (alpha > 0 and beta > 0):
        raise InputError(f"alpha={alpha}, beta={beta}: must be above 0")
    steps, twice = ceil_log2(ranks), 2 * (ranks - 1) / ranks
    if algorithm == "scatter_allgather":
        factor = steps / (steps - twice)
    elif algorithm == "scatter_allgather_ring":
        factor = (ranks - 1) / (steps - twice)
    elif algorithm == "pipeline":
        hops = ranks - 2
        factor = ((sqrt(hops) + sqrt(hops - (steps - 1) * (steps - hops))) / (steps - 1)) ** 2
    else:
        raise InputError(
            f"algorithm {algorithm!r}: use scatter_allgather, scatter_allgather_ring or pipeline"
        )
    return factor * alpha / beta
