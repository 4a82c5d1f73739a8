"""The operations that reductions are tried with, on arrays of 32-bit words.

This is knowledge of its own, on purpose: src_c/harness/operations.c hands the same operations to
MPI, and results are compared with what *these* functions say.
"""

import numpy as np


def add(left, right):
    """left + right modulo 2^32: uint32 arrays of one shape."""
    return left + right


def compose(left, right):
    """The map left ∘ right, for maps x → a x + b modulo 2^16: uint32 arrays of one shape.

    A map's a is the lower half of its word (made odd, so that it can be undone), b the upper one.
    Composition is associative and does not commute.
    """
    sixteen = np.uint32(16)
    half = np.uint32(0xFFFF)
    left_factor, right_factor = (left & half) | np.uint32(1), (right & half) | np.uint32(1)
    factor = left_factor * right_factor
    shift = left_factor * (right >> sixteen) + (left >> sixteen)
    return (factor & half) | (shift << sixteen)


OPERATIONS = {"sum": add, "compose": compose}


def fold(name, contributions):
    """contribution 0 op contribution 1 op …: all uint8 arrays of one length, a multiple of 4."""
    words = [np.ascontiguousarray(part).view(np.uint32) for part in contributions]
    result = words[-1]
    for left in reversed(words[:-1]):
        result = OPERATIONS[name](left, result)
    return result.view(np.uint8)
