"""Read and write the CSV files of data/: one error for a missing file, one for a line that can't be
read, one for a file that can't be written."""

import csv
from pathlib import Path

import numpy as np

from mpilab.errors import InputError

DATA = Path(__file__).resolve().parent.parent / "data"


def read(path, row, example):
    """The rows of a CSV file whose header is exactly the names of the dtype `row`.

    example   a right line, for the error of a wrong one.

    Returns a structured array of `row`. Raises InputError where the file is missing, or names the
    line that isn't a row.
    """
    path = Path(path)
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return np.array(list(_rows(path, csv.reader(file), row, example)), dtype=row)
    except FileNotFoundError:
        raise InputError(
            f"{path}: the published timings are not there. They come with mpilab's repository, "
            "in its folder data/: run from a clone, or give the path of the file."
        ) from None


def write(rows, path):
    """Write a structured array as CSV, its names as the header; its last column are seconds.

    Raises InputError where the file cannot be written.
    """
    try:
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow(rows.dtype.names)
            out.writerows((*row[:-1], f"{row[-1]:.3e}") for row in rows.tolist())
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror}; write to a folder of yours"
        ) from None


def _rows(path, lines, row, example):
    header = next(lines, [])
    if tuple(header) != row.names:
        raise InputError(f"{path}:1: header {header}; expected {','.join(row.names)}.")
    kinds = [{"i": int, "f": float, "U": str}[row[name].kind] for name in row.names]
    for number, line in enumerate(lines, start=2):
        try:
            yield tuple(kind(word) for kind, word in zip(kinds, line, strict=True))
        except ValueError:
            raise InputError(
                f"{path}:{number}: {','.join(line)!r} is not a row of {','.join(row.names)}; "
                f"write e.g. {example!r}."
            ) from None
