"""The datatypes (as layouts in memory) and the reductions that kernels are tested with.

Both are independent of the harness on purpose: src_c/runtime/harness/datatypes.c builds the same
datatypes with MPI calls, src_c/runtime/harness/operations.c passes the same operations to MPI, and
results are compared with *these* layouts and functions.
"""

from dataclasses import dataclass

import numpy as np

from mpilab.errors import InputError

# The operations that reductions are tested with, on arrays of 32-bit words.


def add(left, right):
    """left + right modulo 2^32: uint32 arrays of one shape."""
    return left + right


def compose(left, right):
    """The map left ∘ right, for maps x → a x + b modulo 2^16: uint32 arrays of one shape.

    A map's a is the lower half of its word (made odd, so that it is invertible), b the upper half.
    Composition is associative but not commutative.
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


@dataclass(frozen=True)
class Layout:
    """One element: its extent in bytes, and its data as (offset, length) in bytes."""

    extent: int
    segments: tuple

    def offsets(self, count):
        """Offsets of all data bytes of `count` elements, in the order in which MPI sends them."""
        one = np.concatenate([np.arange(at, at + length) for at, length in self.segments])
        starts = np.arange(count, dtype=np.int64) * self.extent
        return (starts[:, None] + one[None, :]).reshape(-1)

    @property
    def size(self):
        """Bytes of data in one element."""
        return sum(length for _, length in self.segments)


INT = Layout(4, ((0, 4),))
LAYOUTS = {
    "byte": Layout(1, ((0, 1),)),
    "int": INT,
    "double": Layout(8, ((0, 8),)),
    "contiguous": Layout(12, ((0, 12),)),
    "vector": Layout(32, ((0, 12), (20, 12))),
    "struct": Layout(24, ((0, 1), (8, 8), (16, 4))),
    "shifted": Layout(16, ((8, 4),)),
}
# name -> (layout sent, layout received, elements sent per element received)
DATATYPES = {name: (layout, layout, 1) for name, layout in LAYOUTS.items()}
DATATYPES["mixed"] = (INT, LAYOUTS["vector"], 6)


def datatype(name):
    """(layout sent, layout received, elements sent per element received); InputError if unknown."""
    try:
        return DATATYPES[name]
    except KeyError:
        known = ", ".join(DATATYPES)
        raise InputError(f"datatype {name!r} is unknown; write one of {known}") from None
