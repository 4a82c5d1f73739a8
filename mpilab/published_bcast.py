"""The published OSU tables that lab 01 looks into: bcast on 128 processes, latencies of two cores.

Source, units and doubts: data/README.md.
"""

import numpy as np

from mpilab import published_csv

BCAST_CSV = published_csv.DATA / "bcast-osu-2024.csv"
LATENCY_CSV = published_csv.DATA / "latency-osu-2024.csv"

_BCAST = np.dtype(
    [("algorithm", "U40"), ("number", "i4"), ("ranks", "i4"), ("bytes", "i8"), ("latency_us", "f8")]
)
_LATENCY = np.dtype([("cpus", "U40"), ("bytes", "i8"), ("latency_us", "f8")])

BCAST_ROW = np.dtype([*_BCAST.descr, ("mean_s", "f8")])
LATENCY_ROW = np.dtype([*_LATENCY.descr, ("seconds", "f8")])


def published_bcast(path=BCAST_CSV):
    """The exercise's two tables of osu_bcast as a structured array of BCAST_ROW (42 rows).

    algorithm and number are Open MPI's (coll_tuned_bcast_algorithm); ranks and bytes as printed;
    latency_us as printed, in microseconds; mean_s the same in seconds, under the name that a sweep
    gives to OMB's average: the mean over the ranks of each one's own time, not the span.
    Raises InputError where the file is missing or a row can't be read.
    """
    return _in_seconds(published_csv.read(path, _BCAST, "pipeline,3,128,1,28.93"), BCAST_ROW)


def published_latency(path=LATENCY_CSV):
    """The exercise's two tables of osu_latency as a structured array of LATENCY_ROW (6 rows).

    cpus is the --cpu-list that was given, 'default' where none was; bytes of a message; latency_us
    as printed: half a round trip, in microseconds; seconds the same in seconds.
    Raises InputError where the file is missing or a row can't be read.
    """
    return _in_seconds(published_csv.read(path, _LATENCY, '"0,8",1,0.35'), LATENCY_ROW)


def _in_seconds(read, row):
    rows = np.empty(len(read), row)
    for name in read.dtype.names:
        rows[name] = read[name]
    rows[row.names[-1]] = read["latency_us"] * 1e-6
    return rows
