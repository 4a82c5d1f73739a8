"""Cost of a message sent along a tree in segments, down or up.

With S segments of s bytes, of a message of m bytes, every formula here is

    a = x + y S        b = x s + y m

where y is what the busiest rank does for each segment, and x what the first (or last) segment costs
on the rest of its way: the pipeline has to be filled once. b is exact for a shorter last segment,
and grows with m, whereas the textbook's (x + y S) (m / S) drops at each new segment.

Source: Nuriyev, Rico-Gallego, Lastovetsky (2022), section 4, with different formulas where our
kernels differ from Open MPI's; Pjesivac-Grbovic et al. (2007), section 3.
"""

from mpilab.algorithms.formula import ceil_div, ceil_log, kary_depth, knomial_depth

CHAINS, FANOUT, RADIX = 4, 2, 4  # the kernels' defaults


def pipelined(x, y, segments, piece, length):
    """(a, b) of the formula above."""
    return x + y * segments, x * piece + y * length


def chain_down(call, chains, default_segment=0):
    """x = ⌈(P-1)/K⌉ - 1, y = γ(K+1): the root serves K chains, every other rank serves one rank.

    With K = 1, the pipeline: (P - 2 + S)(α + (m/S) β). Source: Nuriyev et al. (2022), "K-chain";
    Watts, van de Geijn, "A pipelined broadcast for multidimensional meshes", Parallel Processing
    Letters 5(2), 1995.
    """
    chains = min(chains, call.ranks - 1)
    return pipelined(
        ceil_div(call.ranks - 1, chains) - 1,
        call.at_once(chains),
        *call.cut(call.bytes, default_segment),
        call.bytes,
    )


def chain_up(call, chains, default_segment=0):
    """x = ⌊(P-1)/K⌋ - 1, y = K.

    The root receives one message after the other, once the shortest chain has reached it.
    """
    chains = min(chains, call.ranks - 1)
    return pipelined(
        (call.ranks - 1) // chains - 1,
        chains,
        *call.cut(call.bytes, default_segment),
        call.bytes,
    )


def kary(call, at_once):
    """x = (D-2) w(K) + w(k), y = w(K) for a tree of depth D, where w(k) is the cost of k children.

    The deepest level may be incomplete: the first of the ranks above it has k children. On a
    complete tree this is (D - 1 + S) w(K). Source: Nuriyev et al. (2022), "binary tree", for K = 2.
    """
    fanout = min(call.fanout or FANOUT, call.ranks - 1)
    depth = kary_depth(call.ranks, fanout)
    inner = at_once(fanout)
    return pipelined(
        (depth - 2) * inner + at_once(last_level(call.ranks, fanout)) if depth > 1 else 0,
        inner,
        *call.cut(call.bytes),
        call.bytes,
    )


def last_level(ranks, fanout):
    """Children of the first rank above the deepest level of a k-ary tree."""
    first, depth = 0, kary_depth(ranks, fanout)
    for _ in range(depth - 1):
        first = fanout * first + 1
    return min(fanout, ranks - 1 - fanout * first)


def knomial_children(ranks, radix):
    """Children of the root of a k-nomial tree; no rank has more."""
    children, weight = 0, 1
    while weight < ranks:
        children += min(radix - 1, (ranks - 1) // weight)
        weight *= radix
    return children


def knomial_down(call, radix):
    """The cost if the root has c children, and each rank serves all its children at the same time.

    one by one   x = 0, y = c: while the root serves the next child, the first one serves its own;
                 ⌈log2 P⌉ (α + mβ) for one segment in a binomial tree. Source: Thakur, Rabenseifner,
                 Gropp (2005), section 4.3.
    with γ       x = Σ γ((D-j)(K-1) + 1) for j = 1 … depth-1, y = γ(c + 1), D = ⌈log_K P⌉: all
                 children of a rank get the message at the same time, and the largest of them has
                 K-1 children fewer. Source: Nuriyev et al. (2022), "binomial tree", for K = 2.
    """
    children = knomial_children(call.ranks, radix)
    digits = ceil_log(call.ranks, radix)
    rest = range(1, knomial_depth(call.ranks, radix))
    filling = sum(call.at_once((digits - level) * (radix - 1)) for level in rest)
    return pipelined(
        0 if call.gamma is None else filling,
        call.at_once(children),
        *call.cut(call.bytes),
        call.bytes,
    )
