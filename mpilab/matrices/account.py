"""What is in a matrix file: checked to its end, in words, as a table of numbers."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm

from mpilab.matrices import files

SHOWN = 8  # rows and columns of a large matrix that are shown, at each end half


@dataclass(frozen=True)
class Account:
    """A matrix file that is whole.

    least, largest   of its elements that are finite; NaN where none is.
    not_finite       elements that are infinite or NaN.
    is_integer       are all its elements integers?
    """

    path: Path
    is_text: bool
    rows: int
    columns: int
    bytes: int
    least: float
    largest: float
    not_finite: int
    is_integer: bool

    def __str__(self):
        kind = "text" if self.is_text else "binary"
        parts = [f"{self.path}: {kind}, {self.rows} x {self.columns}, {self.bytes:,} bytes"]
        if not np.isnan(self.least):
            what = "integers" if self.is_integer else "elements"
            parts.append(f"{what} from {self.least:.6g} to {self.largest:.6g}")
        if self.not_finite:
            parts.append(f"{self.not_finite} infinite or NaN")
        return ", ".join(parts)


def check(path, *, progress=False):
    """Read a file to its end: its Account. Raises InputError for what is wrong with it."""
    rows, columns = files.size(path)
    least, largest, not_finite, is_integer = np.inf, -np.inf, 0, True
    with tqdm(total=rows, desc=f"check {path}", unit="row", delay=1, leave=False,
              disable=not progress) as bar:  # fmt: skip
        for piece in files.pieces(path):
            finite = piece[np.isfinite(piece)]
            least = min(least, finite.min(initial=np.inf))
            largest = max(largest, finite.max(initial=-np.inf))
            not_finite += piece.size - finite.size
            is_integer = is_integer and finite.size == piece.size and not (piece % 1).any()
            bar.update(len(piece))
    if least > largest:
        least = largest = float("nan")
    return Account(Path(path), files.is_text(path), rows, columns, Path(path).stat().st_size,
                   float(least), float(largest), not_finite, bool(is_integer))  # fmt: skip


def table(path):
    """The matrix of a file as lines of numbers below each other; of a large one, its corners.

    Reads no more than that of a binary file, and all of a text file.
    """
    rows, columns = files.size(path)
    if files.is_text(path):
        matrix = files.read(path)
    else:
        matrix = np.memmap(path, files.ELEMENT, "r", files.HEADER_BYTES, (rows, columns))
    # numpy itself would take the whole of it to find the widest number.
    few_rows, few_columns = _ends(rows), _ends(columns)
    cells = [[_number(matrix[row, column]) for column in few_columns] for row in few_rows]
    if columns > len(few_columns):
        cells = [[*row[: SHOWN // 2], "…", *row[SHOWN // 2 :]] for row in cells]
    if rows > len(few_rows):
        cells.insert(SHOWN // 2, ["…"] * len(cells[0]))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = (
        "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        for row in cells
    )
    return "\n".join([f"{rows} x {columns}", *lines])


def _ends(count):
    """Indices that are shown: all of 2 * SHOWN, otherwise the first and the last few."""
    if count <= 2 * SHOWN:
        return list(range(count))
    return [*range(SHOWN // 2), *range(count - SHOWN // 2, count)]


def _number(value):
    return f"{float(value):.6g}"
