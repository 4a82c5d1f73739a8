"""Time the matrix readers on this machine: the table that lab 05 shows beside the student's own.

    python -m mpilab.datasets.reads data/reads.csv     measure, write the file (takes minutes)

Each row is one repetition of one reader (mpilab.mpiio.readers), with its requests to the operating
system. Whether the page cache could be emptied depends on the file system below TMPDIR: `resident`
is the share of the file that was still cached, 1 if the cache was left alone.
"""

import sys
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from mpilab.measure import published
from mpilab.mpiio import readers
from mpilab.util import door

MEASURED_CSV = published.DATA / "reads.csv"
SIZES, RANKS = ("2048x2048", "4096x4096"), (4, 9, 16)
ROW = np.dtype(
    [
        ("date", "U10"),
        ("machine", "U160"),
        ("matrix", "U40"),
        ("ranks", "i4"),
        ("algorithm", "U24"),
        ("mpi_io", "U8"),
        ("cold", "i4"),
        ("resident", "f8"),
        ("requests", "i8"),
        ("most_requests", "i8"),
        ("bytes", "i8"),
        ("largest", "i8"),
        ("memory", "i8"),
        ("repetition", "i4"),
        ("seconds", "f8"),
    ]
)
UNKNOWN = -1
_EXAMPLE = (
    "2026-11-21,a machine,2048x2048,4,two_phase,ompio,0,1.0,32,33554432,1048576,2097152,1,.01"
)


def measure(sizes=SIZES, ranks=RANKS, repetitions=7, *, cold=(False, True), progress=False):
    """Count and time all readers, and the two-phase read on ROMIO too; array of ROW.

    cold   False: with the file in the page cache; True: evicted from it before each call.

    Raises MpilabError as mpilab.mpiio.readers.count and time do.
    """
    every = list(dict.fromkeys([*readers.READERS, *readers.RIVALS]))
    rows = []
    for matrix in sizes:
        for number in ranks:
            accounts = readers.count(matrix, number, every)
            for is_cold in cold:
                seconds, share = readers.time(
                    matrix, number, every, cold=is_cold, repetitions=repetitions, progress=progress
                )
                timed = [replace(one, seconds=seconds[one.reader]) for one in accounts]
                rows.append(rows_of(timed, matrix, number, is_cold, share))
    return np.concatenate(rows)


def rows_of(accounts, matrix, ranks, cold, share):
    """Timed mpilab.mpiio.readers.Account objects, measured today on this machine: array of ROW."""
    from mpilab.measure.distances import machine

    about = datetime.now(UTC).date().isoformat(), machine(), matrix, ranks
    return np.array(
        [
            (
                *about,
                one.reader.algorithm,
                one.reader.mpi_io,
                int(cold),
                UNKNOWN if share is None else share,
                one.requests,
                one.most_requests,
                one.bytes,
                one.largest,
                UNKNOWN if one.memory is None else one.memory,
                number,
                seconds,
            )
            for one in accounts
            for number, seconds in enumerate(one.seconds, start=1)
        ],
        dtype=ROW,
    )


def seconds_of(rows):
    """{Reader: seconds of each repetition} from rows of one matrix, number of ranks and `cold`."""
    found = {}
    for row in rows:
        reader = readers.Reader(str(row["algorithm"]), str(row["mpi_io"]))
        found.setdefault(reader, []).append(float(row["seconds"]))
    return {reader: tuple(values) for reader, values in found.items()}


def read(path=MEASURED_CSV):
    """The rows of a file written by `write`; InputError if it cannot be read."""
    return published.read(path, ROW, _EXAMPLE)


def write(rows, path=MEASURED_CSV):
    """Write rows of ROW as CSV; InputError if that fails."""
    published.write(rows, path)


if __name__ == "__main__":
    sys.exit(
        door.run("mpilab.datasets.reads", lambda: write(measure(progress=True), *sys.argv[1:2]))
    )
