"""Counts and displacements of an alltoallv: how much each rank sends to each other rank, and where
the data are.

src_c/runtime/harness/alltoallv.c computes the same arguments for the kernel; this code is
deliberately independent of it. A case's `pattern` determines how much:

    even    every pair exchanges `count` elements, and block j begins at element j * count.
    ragged  i sends j (i + 2j + 1) mod 5 halves of `count` elements: from none to 2 * count.
    sparse  every third rank sends `count` elements to itself and to the two ranks after it.

Except for "even", blocks are neither in rank order nor contiguous: first comes the block of the
preceding rank, then that of the rank before it, and so on, with a gap of two elements before each
block and after the last. MPI_IN_PLACE requires that i sends as much to j as j to i (MPI 4.1,
section 6.8): then each pair counts as if the lower rank were the sender.
"""

from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mpilab.cases.data import datatype
from mpilab.errors import InputError
from mpilab.hosts.places import Levels

EVEN, RAGGED, SPARSE = "even", "ragged", "sparse"
PATTERNS = (EVEN, RAGGED, SPARSE)
GAP = 2  # elements
_EACH, _NEXT, _RESIDUES = 3, 2, 5


Counts = NDArray[np.int64]


class Exchange(Protocol):
    """An alltoallv: the fields of a mpilab.cases.case.Case on which its counts depend."""

    @property
    def pattern(self) -> str: ...

    @property
    def ranks(self) -> int: ...

    @property
    def count(self) -> int: ...

    @property
    def in_place(self) -> bool: ...

    @property
    def datatype(self) -> str: ...


class Side(NamedTuple):
    """One buffer of one rank, in elements of the receive datatype.

    These are the elements of the block of each peer, the element at which each begins, and the
    elements for which the buffer has room.
    """

    counts: Counts
    begins: Counts
    room: int


def check(pattern: str) -> None:
    """Raise InputError for an unknown pattern."""
    if pattern not in PATTERNS:
        raise InputError(f"pattern {pattern!r} is unknown; write one of {', '.join(PATTERNS)}")


def elements(case: Exchange) -> Counts:
    """Elements that rank i sends to rank j: int64 [P, P], read-only."""
    return _elements(case.pattern, case.ranks, case.count, case.in_place)


def sent(case: Exchange, rank: int) -> Side:
    """The Side of a rank's send buffer; with MPI_IN_PLACE, of what it sends from its receive
    buffer."""
    return _side(case, rank, elements(case)[rank])


def received(case: Exchange, rank: int) -> Side:
    """The Side of a rank's receive buffer."""
    return _side(case, rank, elements(case)[:, rank])


def volumes(case: Exchange, levels: Levels) -> dict[str, int]:
    """{name: bytes} between different ranks (V), nodes (VM) and groups (VG)."""
    volume = elements(case) * datatype(case.datatype)[1].size
    between = {
        "V": ~np.eye(case.ranks, dtype=bool),
        "VM": levels.between_nodes(),
        "VG": levels.between_groups(),
    }
    return {name: int(volume[pairs].sum()) for name, pairs in between.items()}


@lru_cache(maxsize=16)
def _elements(pattern: str, ranks: int, count: int, in_place: bool) -> Counts:
    one, other = np.indices((ranks, ranks), np.int64)
    source, dest = (np.minimum(one, other), np.maximum(one, other)) if in_place else (one, other)
    if pattern == EVEN:
        found = np.full((ranks, ranks), count, np.int64)
    elif pattern == RAGGED:
        found = (source + 2 * dest + 1) % _RESIDUES * count // 2
    else:
        exchanges = (source % _EACH == 0) & ((dest - source) % ranks <= _NEXT)
        found = np.where(exchanges, count, 0)
    found.flags.writeable = False
    return found


def _side(case: Exchange, rank: int, counts: Counts) -> Side:
    if case.pattern == EVEN:
        return Side(counts, np.arange(case.ranks) * case.count, case.ranks * case.count)
    order = (rank - 1 - np.arange(case.ranks)) % case.ranks
    begins = np.empty(case.ranks, np.int64)
    ends = np.cumsum(counts[order] + GAP)
    begins[order] = ends - counts[order]
    return Side(counts, begins, int(ends[-1]) + GAP)
