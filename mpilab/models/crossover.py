"""From which size on one broadcast costs less than a binomial tree, by the α-β model.

With L = ⌈log2 P⌉, the tree takes L (α + mβ). Against it, for a power of two P,

    scatter_allgather        2 L α + 2 (P-1)/P mβ             m = L / (L - 2 (P-1)/P) · α/β
    scatter_allgather_ring   (L + P - 1) α + 2 (P-1)/P mβ     m = (P-1) / (L - 2 (P-1)/P) · α/β
    pipeline                 (√((P-2) α) + √(mβ))²            with the best segments

The last is a quadratic equation in x = √(m β/α): (L-1) x² - 2 √(P-2) x + L - (P-2) = 0. Its larger
root counts, for below the smaller one no message is long enough for two segments.

Source: Thakur, Rabenseifner, Gropp (2005), section 4.3; for the pipeline's segments,
Pjesivac-Grbovic et al. (2007), section 3.
"""

from math import sqrt

from mpilab.counting import ceil_log2
from mpilab.errors import InputError


def crossover(algorithm, ranks, alpha, beta):
    """Bytes from which on `algorithm` costs less than the binomial tree.

    ranks         a power of two, 4 or more
    alpha, beta   seconds of a message, and of a byte

    Raises InputError for another algorithm, and for numbers that make no sense.
    """
    if ranks < 4 or ranks & (ranks - 1):
        raise InputError(f"ranks={ranks}: give a power of two, 4 or more")
    if not (alpha > 0 and beta > 0):
        raise InputError(f"alpha={alpha}, beta={beta}: have to be above 0")
    steps, twice = ceil_log2(ranks), 2 * (ranks - 1) / ranks
    if algorithm == "scatter_allgather":
        factor = steps / (steps - twice)
    elif algorithm == "scatter_allgather_ring":
        factor = (ranks - 1) / (steps - twice)
    elif algorithm == "pipeline":
        hops = ranks - 2
        factor = ((sqrt(hops) + sqrt(hops - (steps - 1) * (steps - hops))) / (steps - 1)) ** 2
    else:
        raise InputError(f"algorithm {algorithm!r}: take scatter_allgather, "
                         "scatter_allgather_ring or pipeline")  # fmt: skip
    return factor * alpha / beta
