"""Matrix files: read, write and check them, in one of two formats.

- *binary*: two int32, the numbers of rows and columns, then rows * columns doubles, row by row; all
  in the byte order of the machine.
- *text*: a line "ROWS COLUMNS", then a line for each row, its elements between blanks. Every number
  that float() takes counts: 1, 1.0, -2.5e3, inf, nan. It is written with as many digits as it takes
  to get the same double back. (Of NaN, which have many bit patterns, one is written.)

Formats of the published worksheet on MPI-IO (data/README.md). What is wrong with a file is told in
the same words by the C side (src_c/matrix/matrix_file.c).
"""

import os
import stat
from pathlib import Path

import numpy as np

from mpilab.errors import InputError
from mpilab.matrices.distribution import ELEMENT_BYTES, HEADER_BYTES, MOST

HEADER = np.dtype("i4")
ELEMENT = np.dtype("f8")
PRINTED = frozenset([*range(32, 127), *b"\t\r\n"])
LONGEST_HEADER = 64  # characters of the first line of a text file that says two numbers


def read(path):
    """The matrix of a file in either format: float64 [rows, columns], in memory.

    Raises InputError for a file that isn't whole.
    """
    return np.concatenate(list(pieces(path)))


def write(path, matrix, *, text=False):
    """Write a matrix, [rows, columns] of numbers, into a file.

    The file appears whole or not at all. Raises InputError for what is no matrix of 1 x 1 or more,
    and where the file cannot be written.
    """
    from mpilab.matrices.writing import Writer

    matrix = np.asarray(matrix)
    if matrix.ndim != 2 or not np.can_cast(matrix.dtype, ELEMENT, "same_kind"):
        raise InputError(
            f"{path}: what should be written has the shape {matrix.shape} and elements of "
            f"{matrix.dtype}; give a matrix of real numbers"
        )
    with Writer(path, *matrix.shape, text=text) as file:
        file.append(matrix)


def size(path):
    """(rows, columns) of a file in either format; only of a binary one the length is checked.

    Raises InputError where the file says no size that can be.
    """
    return _text_size(path)[:2] if is_text(path) else _binary_size(path)


def is_text(path):
    """Is it a text file? A binary one has other than ASCII characters in its header: the first
    byte or the fourth of a number of rows that can be is one.

    Raises InputError for what isn't a file that can be read, and for an empty one.
    """
    with _opened(path) as file:
        first = file.read(HEADER_BYTES)
    if not first:
        raise InputError(f"{path}: is empty; make the file again, e.g. by mpilab matrix make")
    return PRINTED.issuperset(first)


def pieces(path):
    """The rows of a file in either format, a piece at a time: float64 [some rows, columns].

    Raises InputError as `read` does, when it comes to where the file isn't right.
    """
    from mpilab.matrices import texts

    if is_text(path):
        rows, columns, _ = _text_size(path)
        with _opened(path) as file:
            file.readline()
            yield from texts.pieces(path, file, rows, columns)
        return
    rows, columns = _binary_size(path)
    with _opened(path) as file:
        file.seek(HEADER_BYTES)
        for some in rows_at_a_time(rows, columns):
            piece = np.fromfile(file, ELEMENT, some * columns)
            if len(piece) < some * columns:
                raise InputError(f"{path}: was cut short while it was read; make it again")
            yield piece.reshape(some, columns)


def rows_at_a_time(rows, columns, most_bytes=1 << 20):
    """How many rows each piece has: as many as fit into so many bytes, at least one."""
    some = max(1, most_bytes // (columns * ELEMENT_BYTES))
    yield from [some] * (rows // some)
    if rows % some:
        yield rows % some


def check_size(rows, columns, where):
    """Raise InputError, with `where` in front, for numbers of rows and columns that can't be."""
    if not (0 < rows <= MOST and 0 < columns <= MOST):
        raise InputError(
            f"{where}: {rows} rows and {columns} columns; both have to be from 1 to {MOST}"
        )


def bytes_of(rows, columns):
    """Bytes of the binary file of so many rows and columns."""
    return HEADER_BYTES + rows * columns * ELEMENT_BYTES


def _opened(path):
    """A file to read bytes from; InputError where there is none."""
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISREG(mode):
            return open(path, "rb")
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"{path}: cannot be opened: {reason}; look at its name, folder and rights"
        ) from None
    kind = "a directory" if stat.S_ISDIR(mode) else "something else"
    raise InputError(f"{path}: is {kind}, not a file; give the name of a matrix file")


def _binary_size(path):
    length = Path(path).stat().st_size
    with _opened(path) as file:
        header = np.fromfile(file, HEADER, 2)
    if len(header) < 2:
        raise InputError(
            f"{path}: has {length} bytes, too few for the header of a matrix ({HEADER_BYTES}); "
            "make the file again: mpilab matrix make"
        )
    rows, columns = map(int, header)
    there = list(map(int, header.byteswap()))
    if min(rows, columns) > 0 and bytes_of(rows, columns) == length:
        return rows, columns
    if min(there) > 0 and bytes_of(*there) == length:
        raise InputError(
            f"{path}: written on a machine of the other byte order ({there[0]} x {there[1]} "
            "there); write it as text there, and convert that: mpilab matrix to-binary"
        )
    check_size(rows, columns, f"{path}: its header is wrong")
    needed = bytes_of(rows, columns)
    what = "truncated" if length < needed else "too long"
    raise InputError(
        f"{path}: {what}: its header says {rows} x {columns}, that is {needed} bytes, and it has "
        f"{length}. Make it again, or, if it is text, begin it with a line such as '16 16'"
    )


def _text_size(path):
    """(rows, columns, bytes of the first line) of a text file."""
    with _opened(path) as file:
        line = file.readline(LONGEST_HEADER)
    words = line.split()
    try:
        rows, columns = (int(word) for word in words if word.lstrip(b"-").isdigit())
        if len(words) != 2 or len(line) == LONGEST_HEADER:
            raise ValueError
    except ValueError:
        shown = line.decode(errors="replace").strip()
        raise InputError(
            f"{path}:1: {shown!r} are not the numbers of rows and columns; write e.g. '16 16', "
            "and below it a line for each row"
        ) from None
    check_size(rows, columns, f"{path}:1")
    return rows, columns, len(line)
