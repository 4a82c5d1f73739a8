"""Datasets: the tables in data/, their CSV files, and the programs that measure them again.

A `Dataset` knows the columns of a table. It reads and writes the CSV file, and makes the command
line of the program that measures the table (`python -m mpilab.datasets.…`). What the columns mean
is in data/README.md.
"""

import argparse
import csv
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from mpilab.errors import InputError
from mpilab.util import door
from mpilab.util.kit import ROOT

DATA = ROOT / "data"
# Columns that mean the same in every dataset. Those of one dataset only have their type there.
COLUMNS = {
    "date": "U10",
    "machine": "U160",
    "cluster": "U40",
    "collective": "U16",
    "algorithm": "U40",
    "kernel": "U40",
    "order": "U12",
    "groups": "i4",
    "nodes": "i4",
    "ppn": "i4",  # ranks on the fullest host
    "ranks": "i4",
    "bytes": "i8",
    "simulated_ns": "i8",
    "latency_us": "f8",
    "repetition": "i4",
    "seconds": "f8",
}
_CONVERTERS: dict[str, type] = {"i": int, "f": float, "U": str}


@dataclass(frozen=True)
class Dataset:
    """A table of data/.

    file      name of its CSV file.
    columns   their names, each of COLUMNS or with a type of numpy's: "kernel ranks why:U200". The
              last column is written with four digits; it is a time in seconds.
    example   a valid line, for the error message about an invalid one.
    program   the module that measures the table; "" if others published it.
    """

    file: str
    columns: str
    example: str
    program: str = ""

    @property
    def path(self) -> Path:
        """The table's own CSV file."""
        return DATA / self.file

    @property
    def row(self) -> np.dtype:
        """The dtype of a row."""
        columns = (word.partition(":") for word in self.columns.split())
        return np.dtype([(name, kind or COLUMNS[name]) for name, _, kind in columns])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(word.partition(":")[0] for word in self.columns.split())

    def array(self, rows: Iterable[tuple]) -> NDArray[Any]:
        """Rows as a structured array."""
        return np.array(list(rows), self.row)

    def read(self, path: str | Path | None = None) -> NDArray[Any]:
        """The rows of a CSV file (default: the table's own) as a structured array.

        Raises InputError if the file is missing or has other columns, or for a line that is not a
        row, with its number.
        """
        path = self.path if path is None else Path(path)
        try:
            with path.open(newline="", encoding="utf-8") as file:
                return self.array(self._rows(path, csv.reader(file)))
        except FileNotFoundError:
            raise InputError(
                f"{path}: the published timings are not there. They come with mpilab's repository, "
                "in its folder data/: run from a clone, or give the path of the file."
            ) from None

    def _rows(self, path: Path, lines: Iterator[list[str]]) -> Iterator[tuple]:
        row = self.row
        names = self.names
        header = next(lines, [])
        if tuple(header) != names:
            raise InputError(f"{path}:1: header {header}; expected {','.join(names)}.")
        kinds = [_CONVERTERS[row[name].kind] for name in names]
        for number, line in enumerate(lines, start=2):
            try:
                yield tuple(kind(word) for kind, word in zip(kinds, line, strict=True))
            except ValueError:
                raise InputError(
                    f"{path}:{number}: {','.join(line)!r} is not a row of {','.join(names)}; "
                    f"write e.g. {self.example!r}."
                ) from None

    def write(self, rows: NDArray[Any], path: str | Path | None = None) -> None:
        """Write a structured array to a CSV file (default: the table's own).

        Raises InputError if the file cannot be written.
        """
        path = self.path if path is None else Path(path)
        try:
            with path.open("w", newline="", encoding="utf-8") as file:
                out = csv.writer(file, lineterminator="\n")
                out.writerow(self.names)
                out.writerows((*row[:-1], f"{row[-1]:.3e}") for row in rows.tolist())
        except OSError as error:
            raise InputError(
                f"{path}: cannot be written: {error.strerror}; write to a folder of yours"
            ) from None

    def parser(self) -> argparse.ArgumentParser:
        """The parser of the program's arguments: the file to write, by default the table's own."""
        parser = argparse.ArgumentParser(prog=f"python -m {self.program}")
        parser.add_argument(
            "file", nargs="?", type=Path, default=self.path, help=f"default: {self.path}"
        )
        return parser

    def run(self, main: Callable[[], None]) -> NoReturn:
        """Run `main` as the program, and exit with its status."""
        sys.exit(door.run(self.program, main))


def stamp() -> tuple[str, str]:
    """The values of the columns date and machine for what is measured now and here."""
    return datetime.now(UTC).date().isoformat(), machine()


def machine() -> str:
    """This machine in one line: processor, cores, memory, system, Python."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return (
        f"{model}, {os.cpu_count()} cores, {pages / 2**30:.0f} GiB, {platform.system()} "
        f"{platform.release()}, Python {platform.python_version()}"
    )


def stamps_of(rows: NDArray[Any]) -> str:
    """A sentence that says when and on which machine rows were measured."""
    found = sorted(set(rows[["date", "machine"]].tolist()))
    return "Measured " + "; ".join(f"{date} on {where}" for date, where in found) + "."
