"""What the elements of a rank's part of a matrix are: where in the file they come from.

The elements in the file of a case are distinct random bits, so each tells its own place: where it
stands instead of another one, a kernel has asked for the wrong place, or put it into the wrong one.
"""

from functools import cached_property

import numpy as np

from mpilab.expected import block_places
from mpilab.matrices.distribution import ELEMENT_BYTES, HEADER_BYTES

# Where an element comes from, if not from a place in the matrix. The header is as long as one
# element: it is the one before the first.
HEADER, UNTOUCHED, UNKNOWN = -1, -2, -3


class PartContents:
    """The part of one rank after a read: `got` and `wanted` are numbers of elements of the matrix,
    in the order of the file, or one of the above: int64 [elements of the part]."""

    def __init__(self, case, rank, received, file):
        self.about, self.rank, self.file = case.distribution, rank, file
        self.wanted = self.about.indices_of(rank)
        places = block_places(case, 0, rank)
        self.bits = received[places].view(np.uint64)
        before = case.regions(rank)[1][places].view(np.uint64)
        self.got = np.where(self.bits == before, UNTOUCHED, file.find(self.bits))
        # Bits that are right are right, even if they were there before.
        self.got[self.bits == file.elements[self.wanted]] = self.wanted[
            self.bits == file.elements[self.wanted]
        ]

    @cached_property
    def wrong(self):
        """Places in the part, from 0, of the elements that are not right: int64 array."""
        return np.flatnonzero(self.got != self.wanted)

    @property
    def shape(self):
        """(rows, columns) of the part."""
        return len(self.about.rows_of(self.rank)), len(self.about.columns_of(self.rank))

    def place(self, at):
        """(row, column) of the part of its element number `at`."""
        return divmod(int(at), max(self.shape[1], 1))

    def byte_of(self, at):
        """Byte of the file from which the bits of this element come, also where they are half of
        one element and half of the next; None where they are not in the file."""
        return self.file.byte_of(self.bits[at])


class MatrixFile:
    """The file of a case: its elements as bits, and where in it bits stand."""

    def __init__(self, case):
        self.about = case.distribution
        self.elements = case.elements()
        self._order = np.argsort(self.elements)

    def find(self, bits):
        """Numbers of the elements with these bits: int64, HEADER or UNKNOWN where there is none."""
        sorted_ = self.elements[self._order]
        at = np.minimum(np.searchsorted(sorted_, bits), max(len(sorted_) - 1, 0))
        if not len(sorted_):
            return np.full(len(bits), UNKNOWN)
        found = np.where(sorted_[at] == bits, self._order[at], UNKNOWN)
        return np.where(bits == self._header.view(np.uint64)[0], HEADER, found)

    def byte_of(self, bits):
        """Byte of the file at which these bits begin, None where they are nowhere in it."""
        found = self._content.find(bits.tobytes())
        return found if found >= 0 else None

    @property
    def _header(self):
        return np.array([self.about.rows, self.about.columns], np.int32)

    @cached_property
    def _content(self):
        return self._header.tobytes() + self.elements.tobytes()


def byte_of_element(number):
    """Where in the file the element with this number begins."""
    return HEADER_BYTES + ELEMENT_BYTES * int(number)
