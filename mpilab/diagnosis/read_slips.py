"""Slips of kernels that read a matrix from a file: which rule gives the wrong elements that a
part holds.

A rule says which element of the matrix a kernel that makes this mistake puts at each place of the
part. It fits where it tells every element of every rank that has something wrong.
"""

from typing import NamedTuple

import numpy as np

from mpilab.diagnosis.part_contents import UNTOUCHED, byte_of_element
from mpilab.matrices.distribution import ELEMENT_BYTES, HEADER_BYTES


class Slip(NamedTuple):
    """pattern and hint as in a Diagnosis."""

    pattern: str
    hint: str


HEADER_READ = Slip(
    "header not skipped",
    f"The file begins with a header of {HEADER_BYTES} bytes, rows and columns as two ints. Begin "
    "behind it: element_offset() in matrix.h does, and so does a view whose displacement is "
    "matrix->header_bytes.",
)
SHIFTED_ON = Slip(
    "header skipped twice",
    "Everything is one element too far in the file, as long as the header is. Does the "
    "displacement of a view skip it, and the offset once more?",
)
ROWS_AS_WIDTH = Slip(
    "rows and columns swapped",
    "A row of the matrix has as many elements as the matrix has columns: the row above begins "
    "matrix->columns elements before, not matrix->rows. In MPI_Type_create_subarray the sizes are "
    "rows, columns.",
)
FORTRAN = Slip(
    "Fortran order",
    "The file has the matrix row by row: MPI_ORDER_C. With MPI_ORDER_FORTRAN, the first index is "
    "the one that changes from an element to the next.",
)
MIRRORED = Slip(
    "rows and columns swapped",
    "Every element comes from the other side of the diagonal: row and column are mixed up where "
    "the offset in the file is computed.",
)
TURNED = Slip(
    "part stored by columns",
    "The right elements have been read, but they lie column by column: element (i, j) of a part "
    "belongs to part[i * columns + j], with the columns of the part.",
)
PLAIN = Slip(
    "blocks dealt out in one go",
    "The part was read as one rectangle, but the matrix is dealt out in blocks, in turn: from one "
    "block to the next of the same rank it is grid_rows blocks down, grid_columns blocks to the "
    "right. undealt() in matrix.h computes it.",
)
GRID_TURNED = Slip(
    "rows and columns of the grid swapped",
    "Ranks are numbered row by row of the grid: rank / grid_columns is the row, rank % "
    "grid_columns the column.",
)
ANOTHER = Slip(
    "the part of another rank",
    "Where in the grid does the rank stand? part_of() in matrix.h says.",
)
IN_ELEMENTS = Slip(
    "elements counted as bytes",
    "Offsets and displacements are in bytes as long as no view was set: an element is "
    "sizeof(double) = 8 of them. With a view, offsets count etypes.",
)
COUNT_OF_BYTES = Slip(
    "elements counted as bytes",
    "One eighth of the part was read: as many bytes as it has elements. With MPI_BYTE the count "
    "is in bytes; take MPI_DOUBLE.",
)
UNREAD = Slip(
    "part never read",
    "Nothing was written there. Does the loop go over all rows of the part, also where the blocks "
    "do not divide the matrix evenly?",
)


def recognise(parts, by_view=False):
    """The Slip that explains the wrong PartContents of all ranks, or None.

    by_view   the kernel has set a view. On a square grid, a square matrix in Fortran order gives
              every rank the part of another one: without a view that is a slip in their numbers.
    """
    found = [slip for slip, rule in _RULES if all(_fits(part, rule(part)) for part in parts)]
    whose = _owners(parts)
    if found and (by_view or found[0] != FORTRAN or not whose):
        return found[0]
    if whose:
        about = parts[0].about
        is_turned = all(
            source == rank % about.grid_rows * about.grid_columns + rank // about.grid_rows
            for rank, source in whose.items()
        )
        return GRID_TURNED if is_turned else ANOTHER
    if all(_counts_elements(part) for part in parts):
        return IN_ELEMENTS
    if all((part.got[part.wrong] == UNTOUCHED).all() for part in parts):
        is_eighth = all(part.wrong[0] == len(part.got) // ELEMENT_BYTES for part in parts)
        return COUNT_OF_BYTES if is_eighth and any(len(p.got) >= 16 for p in parts) else UNREAD
    return None


def _fits(part, told):
    """Does the part hold the elements `told`? Where there is none of that number, what was not
    written is no objection."""
    if told is None:
        return False
    outside = (told < 0) | (told >= len(part.file.elements))
    same = (part.got == told) | (outside & (part.got == UNTOUCHED))
    return bool(same.all())


def _owners(parts):
    """{rank: the rank whose part it holds}; {} where one of them holds something else."""
    found = {part.rank: _owner(part) for part in parts}
    return found if None not in found.values() else {}


def _owner(part):
    """The rank whose part this rank holds, or None."""
    for rank in range(part.about.ranks):
        indices = part.about.indices_of(rank)
        if rank != part.rank and indices.shape == part.got.shape and (indices == part.got).all():
            return rank
    return None


def _counts_elements(part):
    """Do the first wrong elements of rows come from where their numbers are taken for bytes?"""
    columns = max(part.shape[1], 1)
    firsts = [part.wrong[part.wrong // columns == row][0]
              for row in np.unique(part.wrong // columns)[:8]]  # fmt: skip
    found = [(part.byte_of(at), int(part.wanted[at])) for at in firsts]
    # The header may be skipped in bytes, in elements (one), or not at all.
    return any(
        all(byte == begin + number for byte, number in found) for begin in (HEADER_BYTES, 1, 0)
    ) and any(byte != byte_of_element(number) for byte, number in found)


def _grid(part):
    """(rows, columns) of the matrix for each element of the part, as two arrays."""
    return np.divmod(part.wanted, max(part.about.columns, 1))


def _as_wide_as_high(part):
    rows, columns = _grid(part)
    return rows * part.about.rows + columns


def _fortran(part):
    height = part.shape[0]
    inside = np.arange(len(part.wanted))
    rows = part.about.rows_of(part.rank)[inside % max(height, 1)]
    columns = part.about.columns_of(part.rank)[inside // max(height, 1)]
    return columns * part.about.rows + rows


def _mirrored(part):
    rows, columns = _grid(part)
    return columns * part.about.columns + rows


def _turned(part):
    return part.wanted.reshape(part.shape).T.reshape(-1)


def _plain(part):
    height, width = part.shape
    row, column = divmod(part.rank, part.about.grid_columns)
    rows = row * height + np.arange(height)
    columns = column * width + np.arange(width)
    return (rows[:, None] * part.about.columns + columns[None, :]).reshape(-1)


_RULES = (
    (HEADER_READ, lambda part: part.wanted - 1),
    (SHIFTED_ON, lambda part: part.wanted + 1),
    (ROWS_AS_WIDTH, _as_wide_as_high),
    (FORTRAN, _fortran),
    (MIRRORED, _mirrored),
    (TURNED, _turned),
    (PLAIN, _plain),
)
