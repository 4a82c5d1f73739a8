"""The rows of a text file of a matrix: read with the line of what is wrong, written exactly."""

import numpy as np

from mpilab.errors import InputError

LINES_BYTES = 1 << 20


def pieces(path, file, rows, columns):
    """The rows of a text file, a piece at a time: float64 [some rows, columns].

    file   open for reading bytes, at its second line.

    Raises InputError with the number of the line that is too short, too long or not of numbers,
    and for too few or too many lines. Blank lines at the end don't count.
    """
    number, line = 1, b""
    ready, ready_bytes = [], 0
    # No right line is longer: a double has at most 24 characters, and people may add some blanks.
    longest = 64 * columns + 1024
    for row in range(rows):
        line = file.readline(longest)
        number += 1
        if not line or (not line.strip() and not file.read(1)):
            raise InputError(
                f"{path}:{number}: the file ends after {row} of {rows} rows; it is truncated, or "
                "its first line is wrong"
            )
        ready.append(_row(path, number, line, columns))
        ready_bytes += ready[-1].nbytes
        if ready_bytes >= LINES_BYTES:
            yield np.array(ready)
            ready, ready_bytes = [], 0
    if ready:
        yield np.array(ready)
    _expect_end(path, file, rows, number)


def lines(piece):
    """The lines, with their ends, of rows [some rows, columns] of float64."""
    return "".join(" ".join(map(repr, row)) + "\n" for row in piece.tolist())


def _row(path, number, line, columns):
    words = line.split()
    if len(words) != columns:
        raise InputError(
            f"{path}:{number}: a row of {len(words)} numbers, in a matrix of {columns} columns; "
            "mend the line, or the first one"
        )
    try:
        row = np.array(list(map(float, words)))
    except ValueError:
        row = None
    if row is None or b"_" in line:
        wrong = next(word for word in words if not _is_number(word)).decode(errors="replace")
        column = [_is_number(word) for word in words].index(False) + 1
        raise InputError(
            f"{path}:{number}: {wrong[:40]!r} in column {column} is not a number; write e.g. 1.5"
        )
    return row


def _is_number(word):
    try:
        float(word)
    except ValueError:
        return False
    return b"_" not in word  # Python's own: 1_000


def _expect_end(path, file, rows, number):
    for line in iter(lambda: file.readline(1024), b""):
        number += 1
        if line.strip():
            shown = line.decode(errors="replace").strip()[:40]
            raise InputError(
                f"{path}:{number}: {shown!r} stands behind the last of {rows} rows; remove it, or "
                "mend the first line"
            )
