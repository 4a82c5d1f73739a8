"""Time the matrix readers on this machine: the table that lab 05 shows beside the student's own.

    python -m mpilab.datasets.reads data/reads.csv     measure, write the file (takes minutes)

Each row is one repetition of one reader (mpilab.mpiio.readers), with its requests to the operating
system. Whether the page cache could be emptied depends on the file system below TMPDIR: `resident`
is the share of the file that was still cached, 1 if the cache was left alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilab.measure.dataset import Dataset, stamp
from mpilab.mpiio import readers

SIZES, RANKS = ("2048x2048", "4096x4096"), (4, 9, 16)
UNKNOWN = -1
TABLE = Dataset(
    "reads.csv",
    columns=(
        "date machine matrix:U40 ranks algorithm mpi_io:U8 cold:i4 resident:f8 requests:i8 "
        "most_requests:i8 bytes largest:i8 memory:i8 repetition seconds"
    ),
    example=(
        "2026-11-21,a machine,2048x2048,4,two_phase,ompio,0,1.0,32,8,33554432,1048576,2097152,1,"
        "1.0e-02"
    ),
    program="mpilab.datasets.reads",
)
ROW = TABLE.row
read, write = TABLE.read, TABLE.write


def measure(
    sizes: Sequence[str] = SIZES,
    ranks: Sequence[int] = RANKS,
    repetitions: int = 7,
    *,
    cold: Sequence[bool] = (False, True),
    progress: bool = False,
) -> NDArray[Any]:
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


def rows_of(
    accounts: Iterable[readers.Account], matrix: str, ranks: int, cold: bool, share: float | None
) -> NDArray[Any]:
    """Timed mpilab.mpiio.readers.Account objects, measured today on this machine: array of ROW."""
    about = *stamp(), matrix, ranks
    return TABLE.array(
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
    )


def seconds_of(rows: NDArray[Any]) -> dict[readers.Reader, tuple[float, ...]]:
    """{Reader: seconds of each repetition} from rows of one matrix, number of ranks and `cold`."""
    found: dict[readers.Reader, list[float]] = {}
    for row in rows:
        reader = readers.Reader(str(row["algorithm"]), str(row["mpi_io"]))
        found.setdefault(reader, []).append(float(row["seconds"]))
    return {reader: tuple(values) for reader, values in found.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write the file."""
    file = TABLE.parser().parse_args(arguments).file
    write(measure(progress=True), file)


if __name__ == "__main__":
    TABLE.run(main)
