"""How a matrix in a file is distributed over a grid of ranks.

src_c/include/matrix.h does the same for kernels; this code is deliberately independent of it,
because what kernels read is compared with it.

In words, a distribution is "ROWSxCOLUMNS", with plain blocks on the grid that is closest to a
square; "512x512 on 1x4" also names the grid of ranks, "512x512 by 4x2" the rows and columns of a
block of a block-cyclic one, and "512x512 by 4x2 on 2x3" both.
"""

import math
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpilab.errors import InputError

HEADER_BYTES = 8  # two int32: rows, columns
ELEMENT_BYTES = 8
_WORDS = re.compile(r"(\d+)x(\d+)(?: by (\d+)x(\d+))?(?: on (\d+)x(\d+))?")
MOST = 2**31 - 1


@dataclass(frozen=True)
class Distribution:
    """A matrix of `rows` by `columns` doubles in blocks of block_rows by block_columns.

    Block (i, j) belongs to the rank in row i mod grid_rows and column j mod grid_columns of the
    grid, whose ranks are numbered row by row.

    The *part* of a rank consists of its rows by its columns, in their order, row by row without
    gaps.

    Source: Choi et al. (1996), "ScaLAPACK: a portable linear algebra library for distributed memory
    computers", section 2.
    """

    rows: int
    columns: int
    block_rows: int
    block_columns: int
    grid_rows: int
    grid_columns: int

    def __post_init__(self) -> None:
        for name in ("block_rows", "block_columns", "grid_rows", "grid_columns"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}={getattr(self, name)}: must be 1 or more")
        if max(self.rows, self.columns, self.block_rows, self.block_columns) > MOST:
            raise InputError(
                f"matrix {self.words()!r}: rows, columns and blocks must be below 2**31"
            )
        if self.elements_of(0) > MOST:  # rank 0 gets the first blocks: no part is larger
            raise InputError(
                f"matrix {self.words()!r}: the part of rank 0 would have {self.elements_of(0)} "
                "elements, but MPI counts up to 2**31 - 1; use more ranks, or a smaller matrix"
            )

    @property
    def ranks(self) -> int:
        """Number of ranks in the grid."""
        return self.grid_rows * self.grid_columns

    @property
    def bytes(self) -> int:
        """Bytes of all elements."""
        return self.rows * self.columns * ELEMENT_BYTES

    def rows_of(self, rank: int) -> NDArray[np.int64]:
        """Indices of the rows of which a rank has elements, ascending (if it has any columns)."""
        return _dealt(self.rows, self.block_rows, self.grid_rows, rank // self.grid_columns)

    def columns_of(self, rank: int) -> NDArray[np.int64]:
        """Indices of the columns of which a rank has elements, ascending (if it has any rows)."""
        return _dealt(self.columns, self.block_columns, self.grid_columns, rank % self.grid_columns)

    def elements_of(self, rank: int) -> int:
        """Elements of a rank's part."""
        row, column = divmod(rank, self.grid_columns)
        rows = _count(self.rows, self.block_rows, self.grid_rows, row)
        return rows * _count(self.columns, self.block_columns, self.grid_columns, column)

    def indices_of(self, rank: int) -> NDArray[np.int64]:
        """Indices in the file of the elements of a rank's part, from 0.

        int64 [elements], in the order of the part.
        """
        rows, columns = self.rows_of(rank), self.columns_of(rank)
        return (rows[:, None] * self.columns + columns[None, :]).reshape(-1)

    def words(self) -> str:
        """The distribution in full, in the form that `distribution` reads."""
        return (
            f"{self.rows}x{self.columns} by {self.block_rows}x{self.block_columns} "
            f"on {self.grid_rows}x{self.grid_columns}"
        )


def distribution(words: str, ranks: int) -> Distribution:
    """The Distribution described by `words`, over `ranks` ranks.

    Raises InputError for words that do not match, or name a grid with another number of ranks.
    """
    found = _WORDS.fullmatch(words)
    if not found:
        raise InputError(
            f"matrix {words!r}: not understood; write e.g. '512x512', '512x512 on 1x4', or, "
            "block-cyclic, '512x512 by 4x2 on 2x3'"
        )
    rows, columns = int(found[1]), int(found[2])
    grid_rows, grid_columns = (int(found[5]), int(found[6])) if found[5] else squarest(ranks)
    if grid_rows * grid_columns != ranks:
        raise InputError(
            f"matrix {words!r}: a grid of {grid_rows * grid_columns} ranks, for {ranks}; "
            "omit 'on' for the grid that is nearest to a square"
        )
    if found[3]:
        block_rows, block_columns = int(found[3]), int(found[4])
    else:
        block_rows = max(1, -(-rows // grid_rows))
        block_columns = max(1, -(-columns // grid_columns))
    return Distribution(rows, columns, block_rows, block_columns, grid_rows, grid_columns)


def squarest(ranks: int) -> tuple[int, int]:
    """(rows, columns) of the grid of `ranks` ranks that is closest to a square, rows <= columns.

    Raises InputError for fewer than one rank.
    """
    if ranks < 1:
        raise InputError(f"ranks={ranks}: must be 1 or more")
    rows = next(rows for rows in range(math.isqrt(ranks), 0, -1) if ranks % rows == 0)
    return rows, ranks // rows


def _count(total: int, block: int, places: int, place: int) -> int:
    """How many of `total` indices, dealt in blocks to `places` in turn, go to `place`."""
    whole, rest = divmod(total, block)
    rounds, extra = divmod(whole, places)
    return rounds * block + (block if place < extra else rest if place == extra else 0)


def _dealt(total: int, block: int, places: int, place: int) -> NDArray[np.int64]:
    """Those indices, ascending: int64; the first of each of its blocks, and those after it."""
    firsts = np.arange(place * block, total, places * block, dtype=np.int64)
    numbers = (firsts[:, None] + np.arange(min(block, total))).reshape(-1)
    return numbers[numbers < total]
