"""The datatypes that kernels are tried with, as layouts in memory.

This is knowledge of its own, on purpose: src_c/harness/datatypes.c builds the same datatypes with
MPI calls, and results are compared with what *these* layouts say.
"""

from dataclasses import dataclass

import numpy as np

from mpilab.errors import InputError


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
# name -> (layout sent, layout received, elements sent for each one received)
DATATYPES = {name: (layout, layout, 1) for name, layout in LAYOUTS.items()}
DATATYPES["mixed"] = (INT, LAYOUTS["vector"], 6)


def datatype(name):
    """(layout sent, layout received, elements sent per element received); InputError if unknown."""
    try:
        return DATATYPES[name]
    except KeyError:
        known = ", ".join(DATATYPES)
        raise InputError(f"datatype {name!r} is unknown; write one of {known}") from None
