"""Read and write the CSV files of data/, and examine the published timings of labs 01 and 02."""

import csv
from pathlib import Path

import numpy as np

from mpilab.algorithms import allgather
from mpilab.errors import InputError
from mpilab.util.kit import ROOT

# CSV files of data/.

DATA = ROOT / "data"


def read(path, row, example):
    """The rows of a CSV file whose header is exactly the field names of the dtype `row`.

    example   a valid line, for the error message about an invalid one.

    Returns a structured array of `row`. Raises InputError if the file is missing, or for a line
    that is not a row, with its number.
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
    """Write a structured array as CSV, with its field names as the header; the last is in seconds.

    Raises InputError if the file cannot be written.
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


# The published OSU tables of lab 01: bcast on 128 processes, latencies between two cores. Source,
# units and doubts: data/README.md.

BCAST_CSV = DATA / "bcast-osu-2024.csv"
LATENCY_CSV = DATA / "latency-osu-2024.csv"

_BCAST = np.dtype(
    [("algorithm", "U40"), ("number", "i4"), ("ranks", "i4"), ("bytes", "i8"), ("latency_us", "f8")]
)
_LATENCY = np.dtype([("cpus", "U40"), ("bytes", "i8"), ("latency_us", "f8")])

BCAST_ROW = np.dtype([*_BCAST.descr, ("mean_s", "f8")])
LATENCY_ROW = np.dtype([*_LATENCY.descr, ("seconds", "f8")])


def published_bcast(path=BCAST_CSV):
    """The exercise's two tables of osu_bcast as a structured array of BCAST_ROW (42 rows).

    algorithm and number are Open MPI's (coll_tuned_bcast_algorithm); ranks and bytes as printed;
    latency_us as printed, in microseconds; mean_s the same in seconds, under the sweep's name for
    OMB's average: the mean over the ranks of each rank's own time, not the span.
    Raises InputError if the file is missing or a row cannot be read.
    """
    return _in_seconds(read(path, _BCAST, "pipeline,3,128,1,28.93"), BCAST_ROW)


def published_latency(path=LATENCY_CSV):
    """The exercise's two tables of osu_latency as a structured array of LATENCY_ROW (6 rows).

    cpus is the --cpu-list given, or 'default'; bytes of a message; latency_us as printed: half a
    round trip, in microseconds; seconds the same in seconds.
    Raises InputError if the file is missing or a row cannot be read.
    """
    return _in_seconds(read(path, _LATENCY, '"0,8",1,0.35'), LATENCY_ROW)


def _in_seconds(read, row):
    rows = np.empty(len(read), row)
    for name in read.dtype.names:
        rows[name] = read[name]
    rows[row.names[-1]] = read["latency_us"] * 1e-6
    return rows


ALLGATHER_CSV = DATA / "allgather-huang-2021.csv"

ROW = np.dtype([("method", "U40"), ("bytes", "i8"), ("processes", "i4"), ("seconds", "f8")])

READINGS = ("per process", "in all")


def published_allgather(path=ALLGATHER_CSV):
    """The homework's two timing tables as a structured array of ROW, one row per cell (160 rows).

    method is the name of our equivalent kernel; seconds are as printed. Source, units and doubts:
    data/README.md. Raises InputError if the file is missing or a row cannot be read.
    """
    return read(path, ROW, "pairwise,32,2,3.03E-07")


def implied_bandwidth(rows, reading="per process"):
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
    for field in ROW.names:
        implied[field] = rows[field]
    implied["per_rank"] = written / rows["seconds"]
    implied["all_ranks"] = implied["per_rank"] * rows["processes"]
    return implied


def missing_factor(rows, bandwidth=100e9, latency=100e-9, reading="per process"):
    """The least possible time of each of `rows` over the printed one: float array; a value above 1
    is impossible.

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


def _written_by_a_rank(rows, reading):
    if reading not in READINGS:
        raise InputError(f"reading={reading!r} of the column bytes; take one of {READINGS}.")
    blocks = rows["processes"] if reading == "per process" else 1
    return rows["bytes"] * blocks
