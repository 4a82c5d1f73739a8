"""Timings that others published, for labs 00 to 02: read them, and examine those of allgather."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilab.algorithms import allgather
from mpilab.errors import InputError
from mpilab.measure.dataset import Dataset

# Source, units and doubts of each: data/README.md. BCAST: osu_bcast on 128 processes; LATENCY:
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

    method is the name of our equivalent kernel; seconds are as printed. Source, units and doubts:
    data/README.md. Raises InputError if the file is missing or a row cannot be read.
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


def _written_by_a_rank(rows: NDArray[Any], reading: str) -> NDArray[Any]:
    if reading not in READINGS:
        raise InputError(f"reading={reading!r} of the column bytes; take one of {READINGS}.")
    blocks = rows["processes"] if reading == "per process" else 1
    return rows["bytes"] * blocks
