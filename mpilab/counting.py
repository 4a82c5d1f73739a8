"""The whole-number functions that formulas of rounds, messages and bytes are made of."""


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


def segments(elements, element_bytes, segment_bytes):
    """Segments that a message of `elements` elements is cut into: S in the formulas.

    A segment has as many whole elements as fit into `segment_bytes`, but at least one; with
    segment_bytes 0, or without elements, there is one segment.
    """
    if segment_bytes <= 0 or elements == 0 or element_bytes == 0:
        return 1
    return ceil_div(elements, min(elements, max(1, segment_bytes // element_bytes)))


FUNCTIONS = {
    function.__name__: function
    for function in (
        ceil_div, ceil_log2, floor_log2, ceil_log, kary_depth, knomial_depth, binomial_hops,
        min, max,
    )
}  # fmt: skip
