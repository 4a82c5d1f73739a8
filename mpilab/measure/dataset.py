"""Datasets: the tables in data/, their CSV files, and the programs that measure them again.

A `Dataset` defines the columns of a table. It reads and writes the CSV file, and provides the
command line of the program that measures the table (`python -m mpilab.measure.…`). data/README.md
documents the columns. The tables at the end of this module were published by others, for labs 00 to
02; they are only read.
"""

import argparse
import csv
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from mpilab.algorithms import allgather
from mpilab.errors import InputError
from mpilab.util import door
from mpilab.util.files import csv_text
from mpilab.util.kit import ROOT

DATA = ROOT / "data"
# Columns that mean the same in every dataset. A column of only one dataset has its type there.
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
    columns   their names, each from COLUMNS or with a numpy type: "kernel ranks why:U200". The last
              column is written with four digits; it is a time in seconds.
    example   a valid line, for the error message about an invalid one.
    program   the module that measures the table; "" if others published it.
    """

    file: str
    columns: str
    example: str
    program: str = ""

    @property
    def path(self) -> Path:
        """The table's CSV file."""
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
        """The rows of a CSV file (default: the table's) as a structured array.

        Raises InputError if the file is missing or has other columns, or for a line that is not a
        row, with its number.
        """
        path = self.path if path is None else Path(path)
        try:
            with path.open(newline="", encoding="utf-8") as file:
                return self.array(self._rows(path, csv.reader(file)))
        except FileNotFoundError:
            raise InputError(
                f"{path}: the published timings are missing. They are in the folder data/ of "
                "mpilab's repository: run from a clone, or give the path of the file."
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

    def text(self, rows: NDArray[Any]) -> str:
        """A structured array as the text of a CSV file."""
        body = [(*row[:-1], f"{row[-1]:.3e}") for row in rows.tolist()]
        return csv_text([self.names, *body])

    def write(self, rows: NDArray[Any], path: str | Path | None = None) -> None:
        """Write a structured array to a CSV file (default: the table's).

        Raises InputError if the file cannot be written.
        """
        path = self.path if path is None else Path(path)
        try:
            path.write_text(self.text(rows), encoding="utf-8", newline="")
        except OSError as error:
            raise InputError(
                f"{path}: cannot be written: {error.strerror}; write to a folder that you own"
            ) from None

    def parser(self) -> argparse.ArgumentParser:
        """The parser of the program's arguments: the file to write, by default the table's."""
        parser = argparse.ArgumentParser(prog=f"python -m {self.program}")
        parser.add_argument(
            "file", nargs="?", type=Path, default=self.path, help=f"default: {self.path}"
        )
        return parser

    def run(self, main: Callable[[], None]) -> NoReturn:
        """Run `main` as the program, and exit with its status."""
        sys.exit(door.run(self.program, main))


def stamp() -> tuple[str, str]:
    """The values of the columns date and machine for measurements made here and now."""
    return datetime.now(UTC).date().isoformat(), machine()


@cache
def processor() -> str:
    """The name of this machine's processor, or "unknown processor"."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown processor"


def machine() -> str:
    """This machine in one line: processor, cores, memory, system, Python."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return (
        f"{processor()}, {os.cpu_count()} cores, {pages / 2**30:.0f} GiB, {platform.system()} "
        f"{platform.release()}, Python {platform.python_version()}"
    )


def stamps_of(rows: NDArray[Any]) -> str:
    """A sentence that says when and on which machine rows were measured."""
    found = sorted(set(rows[["date", "machine"]].tolist()))
    return "Measured " + "; ".join(f"{date} on {where}" for date, where in found) + "."


# Timings that others published, for labs 00 to 02.

# For sources, units and caveats, see data/README.md. BCAST: osu_bcast on 128 processes; LATENCY:
# osu_latency between two cores; ALLGATHER: the kernels of a homework.
BCAST = Dataset(
    "bcast-osu-2024.csv",
    columns="algorithm number:i4 ranks bytes latency_us",
    example="pipeline,3,128,1,28.93",
)
LATENCY = Dataset(
    "latency-osu-2024.csv", columns="cpus:U40 bytes latency_us", example='"0,8",1,0.35'
)
BCAST_ROW = np.dtype([*BCAST.row.descr, ("mean_s", "f8")])
LATENCY_ROW = np.dtype([*LATENCY.row.descr, ("seconds", "f8")])
ALLGATHER = Dataset(
    "allgather-huang-2021.csv",
    columns="method:U40 bytes processes:i4 seconds",
    example="pairwise,32,2,3.03E-07",
)
ROW = ALLGATHER.row
# What the column `bytes` of ALLGATHER may mean.
READINGS = ("per process", "in all")


def published_bcast(path: str | Path | None = None) -> NDArray[Any]:
    """The exercise's two tables of osu_bcast as a structured array of BCAST_ROW (42 rows).

    algorithm and number are Open MPI's (coll_tuned_bcast_algorithm); ranks and bytes as printed;
    latency_us as printed, in microseconds; mean_s the same in seconds, under the sweep's name for
    OMB's average: the mean over the ranks of each rank's own time, not the span.
    Raises InputError if the file is missing or a row cannot be read.
    """
    return _in_seconds(BCAST.read(path), BCAST_ROW)


def published_latency(path: str | Path | None = None) -> NDArray[Any]:
    """The exercise's two tables of osu_latency as a structured array of LATENCY_ROW (6 rows).

    cpus is the --cpu-list given, or 'default'; bytes of a message; latency_us as printed: half a
    round trip, in microseconds; seconds the same in seconds.
    Raises InputError if the file is missing or a row cannot be read.
    """
    return _in_seconds(LATENCY.read(path), LATENCY_ROW)


def _in_seconds(read: NDArray[Any], row: np.dtype) -> NDArray[Any]:
    rows = np.empty(len(read), row)
    *printed, last = row.names or ()
    for name in printed:
        rows[name] = read[name]
    rows[last] = read["latency_us"] * 1e-6
    return rows


def published_allgather(path: str | Path | None = None) -> NDArray[Any]:
    """The homework's two timing tables as a structured array of ROW, one row per cell (160 rows).

    method is the name of our equivalent kernel; seconds are as printed. For source, units and
    caveats, see data/README.md. Raises InputError if the file is missing or a row cannot be read.
    """
    return ALLGATHER.read(path)


def implied_bandwidth(rows: NDArray[Any], reading: str = "per process") -> NDArray[Any]:
    """The memory bandwidth needed for `rows` to be correct.

    In an allgather, every rank's receive buffer is written once, whatever the algorithm: P blocks
    of `bytes` bytes if the table's bytes are "per process", `bytes` bytes if they are "in all".
    Returns a structured array, one row for each of `rows`: the fields of ROW, per_rank and
    all_ranks in bytes per second.
    """
    written = _written_by_a_rank(rows, reading)
    implied = np.empty(
        len(rows), dtype=[*ROW.descr, ("per_rank", np.float64), ("all_ranks", np.float64)]
    )
    for field in ROW.names or ():
        implied[field] = rows[field]
    implied["per_rank"] = written / rows["seconds"]
    implied["all_ranks"] = implied["per_rank"] * rows["processes"]
    return implied


def missing_factor(
    rows: NDArray[Any],
    bandwidth: float = 100e9,
    latency: float = 100e-9,
    reading: str = "per process",
) -> NDArray[np.float64]:
    """The least possible time of each of `rows` divided by the printed time: float array. A value
    above 1 means that the printed time is impossible.

    The least time is the longer of two: writing the receive buffer at `bandwidth` bytes per second,
    and one `latency` (in seconds) for each round of the algorithm. The defaults are more generous
    than real machines: one core of the processor named in the report can write about 100 GB/s, and
    two processes that share memory need 200 ns or more to pass a message.
    """
    rounds = np.array(
        [len(allgather.schedule(str(row["method"]), int(row["processes"])).rounds) for row in rows]
    )
    least = np.maximum(_written_by_a_rank(rows, reading) / bandwidth, rounds * latency)
    return least / rows["seconds"]


def _written_by_a_rank(rows: NDArray[Any], reading: str) -> NDArray[Any]:
    if reading not in READINGS:
        raise InputError(f"reading={reading!r} of the column bytes; use one of {READINGS}.")
    blocks = rows["processes"] if reading == "per process" else 1
    return rows["bytes"] * blocks
