"""The published timings that lab 02 looks into, and what they would mean if they were right."""

import numpy as np

from mpilab import published_csv
from mpilab.errors import InputError
from mpilab.schedules import allgather

ALLGATHER_CSV = published_csv.DATA / "allgather-huang-2021.csv"

ROW = np.dtype([("method", "U40"), ("bytes", "i8"), ("processes", "i4"), ("seconds", "f8")])

READINGS = ("per process", "in all")


def published_allgather(path=ALLGATHER_CSV):
    """The homework's two timing tables as a structured array of ROW, one row a cell (160 rows).

    method is the name of our kernel that does the same; seconds are as printed. Source, units and
    doubts: data/README.md. Raises InputError where the file is missing or a row can't be read.
    """
    return published_csv.read(path, ROW, "pairwise,32,2,3.03E-07")


def implied_bandwidth(rows, reading="per process"):
    """How fast memory would have to be for `rows` to be right.

    After an allgather every rank's receive buffer has been written once, by whatever algorithm:
    P blocks of `bytes` bytes where the table's bytes are meant "per process", `bytes` bytes where
    they are meant "in all". Returns a structured array, one row for each of `rows`: the fields of
    ROW, per_rank and all_ranks in bytes a second.
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
    """By how much each of `rows` is too short, at least: float array, above 1 is impossible.

    It divides the least time that is possible by the time that was printed. The least time is the
    longer of two: writing the receive buffer at `bandwidth` bytes a second, and one `latency` (in
    seconds) for each round of the algorithm. The defaults are kinder than real machines: 100 GB/s
    is about what one core of the processor that the report names can write, and two processes
    that share memory need 200 ns or more to hand over a message.
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
