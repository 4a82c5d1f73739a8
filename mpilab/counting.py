"""The whole-number functions that formulas of rounds, messages, bytes and requests are made of."""


def _positive(number):
    if number < 1:
        raise ValueError(f"the logarithm of {number}")
    return number


def _base(number):
    if number < 2:
        raise ValueError(f"a logarithm to base {number}")
    return number


def ceil_div(number, divisor):
    """⌈number / divisor⌉ of two integers."""
    return -(-number // divisor)


def ceil_log2(number):
    """⌈log2 number⌉ of a positive integer."""
    return (_positive(number) - 1).bit_length()


def floor_log2(number):
    """⌊log2 number⌋ of a positive integer."""
    return _positive(number).bit_length() - 1


def ceil_log(number, base):
    """⌈log number⌉ of a positive integer to a base of 2 or more."""
    power, exponent = 1, 0
    while power < _positive(number):
        power, exponent = power * _base(base), exponent + 1
    return exponent


def kary_depth(ranks, fanout):
    """Depth of the K-ary tree in which rank v has the children K v + 1 … K v + K."""
    deepest, depth = _positive(ranks) - 1, 0
    while deepest > 0:
        deepest, depth = (deepest - 1) // max(1, fanout), depth + 1
    return depth


def knomial_depth(ranks, radix):
    """Depth of the k-nomial tree: the most digits that are not 0, to this base, in a v < ranks."""
    limit, power, depth = _positive(ranks) - 1, 1, 0
    # The numbers 1, 11, 111, … are the smallest with so many digits that are not 0.
    while power <= limit:
        power, depth = power * _base(radix) + 1, depth + 1
    return depth


def binomial_hops(ranks, elements):
    """Elements that are sent when `elements` are scattered, in blocks, down a binomial tree.

    Block v is ⌊elements (v+1) / ranks⌋ - ⌊elements v / ranks⌋ elements long and is sent once for
    each 1 among the binary digits of v: that is how far v is from the root.
    """
    return sum(
        v.bit_count() * (elements * (v + 1) // ranks - elements * v // ranks) for v in range(ranks)
    )


def binomial_crossings(runs):
    """Edges of binomial trees that lead from one run of members to another (mpilab.layout.Runs).

    The parent of member v is v without the lowest 1 among its binary digits. At least one edge
    enters every run but the first, and at most ⌊log2 k⌋ + 1 enter a run of k: for each place of
    that 1 there is at most one v in a run whose parent comes before it, and those v lie apart by 1,
    2, 4, … at least. Runs of one length, if it is a power of two, have one each.
    """
    crossings = 0
    for lengths in runs.trees:
        run_of = [run for run, length in enumerate(lengths) for _ in range(length)]
        crossings += sum(run_of[v] != run_of[v & (v - 1)] for v in range(1, len(run_of)))
    return crossings


def crossing_hops(runs):
    """Blocks that go from one run of members to another (mpilab.layout.Runs), counted at each hop,
    when every member's block goes up a binomial tree.

    Member v hands up the blocks of all that are under it.
    """
    hops = 0
    for lengths in runs.trees:
        run_of = [run for run, length in enumerate(lengths) for _ in range(length)]
        for v in range(1, len(run_of)):
            under = min(v & -v, len(run_of) - v)
            hops += under * (run_of[v] != run_of[v & (v - 1)])
    return hops


def doubling_rounds(ranks):
    """Rounds of recursive doubling where every message is as long: two more than log2 of the ranks
    that take part, if the others hand them their data before, and get the result after.
    """
    steps = floor_log2(ranks)
    return steps + 2 * (ranks != 2**steps)


def doubling_messages(ranks):
    """Messages of the same: one in each step from all that take part, two for each other rank."""
    steps = floor_log2(ranks)
    return 2**steps * steps + 2 * (ranks - 2**steps)


def circulant_rounds(ranks, pieces):
    """Fewest rounds in which so many pieces reach all ranks: each sends and receives one a round.

    Source: Bar-Noy, Kipnis (1994), "Broadcasting multiple messages in simultaneous send/receive
    systems"; reached by circulant graphs.
    """
    return ceil_log2(ranks) + pieces - 1 if ranks > 1 else 0


def segments(elements, element_bytes, segment_bytes):
    """Segments that a message of `elements` elements is cut into: S in the formulas.

    A segment has as many whole elements as fit into `segment_bytes`, but at least one; with
    segment_bytes 0, or without elements, there is one segment.
    """
    if segment_bytes <= 0 or elements == 0 or element_bytes == 0:
        return 1
    return ceil_div(elements, min(elements, max(1, segment_bytes // element_bytes)))


def pieces(lengths, piece):
    """Requests for stretches of these lengths, each in pieces that are so long at most."""
    return sum(ceil_div(length, piece) for length in lengths)


def most_pieces(lengths, piece):
    """Requests for the longest of them."""
    return max((ceil_div(length, piece) for length in lengths), default=0)


def total(lengths):
    """All lengths together."""
    return sum(lengths)


FUNCTIONS = {
    function.__name__: function
    for function in (
        ceil_div, ceil_log2, floor_log2, ceil_log, kary_depth, knomial_depth, binomial_hops,
        binomial_crossings, crossing_hops, circulant_rounds, doubling_rounds,
        doubling_messages, pieces, most_pieces, total,
        min, max,
    )
}  # fmt: skip
