"""What buffers hold: datatypes as layouts in memory, reductions, and contents from a seed.

All three are deliberately independent of the harness (src_c/runtime/harness): its datatypes.c
builds the same datatypes with MPI calls, operations.c passes the same operations to MPI, buffers.c
fills the same buffers, and results are compared with what is computed *here*.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from mpilab.errors import InputError

Words = NDArray[np.uint32]

GUARD_BYTES = 64  # before and after every buffer
# Bytes that are generated in one numpy call: short buffers of many ranks, or few long ones.
_AT_A_TIME = 1 << 20
# The initial state of SipHash-1-3.
_SIP = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)

# The operations with which reductions are tested, on arrays of 32-bit words.


def add(left: Words, right: Words) -> Words:
    """left + right modulo 2^32: uint32 arrays of one shape."""
    return left + right


def compose(left: Words, right: Words) -> Words:
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


OPERATIONS: dict[str, Callable[[Words, Words], Words]] = {"sum": add, "compose": compose}


def fold(name: str, contributions: Iterable[NDArray[np.uint8]]) -> NDArray[np.uint8]:
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
    segments: tuple[tuple[int, int], ...]

    def offsets(self, count: int) -> NDArray[np.int64]:
        """Offsets of all data bytes of `count` elements, in the order in which MPI sends them."""
        one = np.concatenate([np.arange(at, at + length) for at, length in self.segments])
        starts = np.arange(count, dtype=np.int64) * self.extent
        return (starts[:, None] + one[None, :]).reshape(-1)

    @property
    def size(self) -> int:
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
    # From their lower bounds, where the memory of the first element begins.
    "raised": Layout(28, ((4, 4),)),
    "backward": Layout(20, ((16, 4), (8, 4), (0, 4))),
}
# name -> (layout sent, layout received, elements sent per element received)
DATATYPES = {name: (layout, layout, 1) for name, layout in LAYOUTS.items()}
DATATYPES["mixed"] = (INT, LAYOUTS["vector"], 6)


def datatype(name: str) -> tuple[Layout, Layout, int]:
    """(layout sent, layout received, elements sent per element received); InputError if unknown."""
    try:
        return DATATYPES[name]
    except KeyError:
        known = ", ".join(DATATYPES)
        raise InputError(f"datatype {name!r} is unknown; write one of {known}") from None


# The contents of buffers and files before a call: pseudorandom bytes from the seed of a case.


def words(seed: int, ranks: Sequence[int], stream: int, count: int) -> NDArray[np.uint64]:
    """The words of a stream of each of `ranks`: uint64 [ranks, count].

    They are SipHash-1-3 (Aumasson, Bernstein 2012) of 1, 2, … keyed by seed and stream. The words
    of one stream do not reveal those of another: see src_c/runtime/harness/buffers.c.
    """
    streams = np.array([4 * rank + stream for rank in ranks], np.uint64)[:, None]
    keys = (np.array(seed, np.uint64), streams) * 2
    v = [
        np.broadcast_to(key ^ np.uint64(begin), (len(ranks), count)).copy()
        for key, begin in zip(keys, _SIP, strict=True)
    ]
    for message in (np.arange(1, count + 1, dtype=np.uint64), np.uint64(8 << 56)):
        v[3] ^= message
        _sip_round(v)
        v[0] ^= message
    v[2] ^= np.uint64(0xFF)
    for _ in range(3):
        _sip_round(v)
    return np.bitwise_xor.reduce(v)


def _sip_round(v: list[NDArray[np.uint64]]) -> None:
    for place, other, bits, turned in (
        (0, 1, 13, True),
        (2, 3, 16, False),
        (0, 3, 21, False),
        (2, 1, 17, True),
    ):
        v[place] += v[other]
        v[other] = _rotated(v[other], bits) ^ v[place]
        if turned:
            v[place] = _rotated(v[place], 32)


def _rotated(words: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    return np.bitwise_or(words << np.uint64(bits), words >> np.uint64(64 - bits))


def fill(
    seed: int, ranks: Iterable[int], stream: int, data_bytes: Iterable[int]
) -> list[NDArray[np.uint8]]:
    """The memory of each of `ranks`, with `data_bytes` bytes of data each: list of uint8 arrays."""
    filled = []
    for (_, data), group in groupby(
        enumerate(zip(ranks, data_bytes, strict=True)),
        lambda each: (each[0] * (each[1][1] + 2 * GUARD_BYTES) // _AT_A_TIME, each[1][1]),
    ):
        total = data + 2 * GUARD_BYTES
        rows = words(seed, [rank for _, (rank, _) in group], stream, -(-total // 8))
        filled += [row.view(np.uint8)[:total].copy() for row in rows]
    return filled
