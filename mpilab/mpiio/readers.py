"""Compare ways of reading a matrix: their requests to the operating system, and their times.

A *reader* is one of the kit's read kernels; those that leave the work to MPI-IO count twice, once
with OMPIO and once with ROMIO (mpilab.kernels.openmpi.mpi_io). An MPI program cannot switch between
them after it has started, so each has a separate mpirun.

    python -m mpilab.mpiio.readers data/reads.csv     measure, write the file (takes minutes)

This makes the table that lab 05 shows beside the student's own. Each row is one repetition of one
reader, with its requests to the operating system. Whether the page cache could be emptied depends
on the file system below TMPDIR: `resident` is the share of the file that was still cached, 1 if the
cache was left alone.
"""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from mpilab.cases.case import Case
from mpilab.cases.data import GUARD_BYTES
from mpilab.cases.output import compare
from mpilab.cluster.engines import asleep
from mpilab.errors import InputError, MpilabError
from mpilab.hosts.slurm import shared_folder
from mpilab.kernels import openmpi
from mpilab.kernels.build import KERNELS, need
from mpilab.measure.dataset import Dataset, stamp
from mpilab.models.file_access import STORAGE, modeled
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE, Result
from mpilab.trace.file_access import FileAccess
from mpilab.trace.recording import NONE
from mpilab.util.text import suggestion

OMPIO, ROMIO = "ompio", "romio"
# Algorithms of src_c/read, in the order in which they are shown, and the MPI-IO that each uses.
ALGORITHMS = {
    "scatter": (OMPIO,),
    "strided": (OMPIO,),
    "view": (OMPIO, ROMIO),
    "sieving": (OMPIO,),
    "view_all": (OMPIO, ROMIO),
    "two_phase": (OMPIO,),
    "two_phase_alltoallv": (OMPIO,),
}
# Seconds that one case may take, including the time to make its file.
LIMIT_S = 120.0


@dataclass(frozen=True)
class Reader:
    """One way of reading: an algorithm (a kernel read_ALGORITHM), and the MPI-IO that it uses."""

    algorithm: str
    mpi_io: str = OMPIO

    @property
    def name(self) -> str:
        """Name in tables: 'two_phase', 'view_all (ROMIO)'."""
        with_both = len(ALGORITHMS.get(self.algorithm, ())) > 1
        return f"{self.algorithm} ({self.mpi_io.upper()})" if with_both else self.algorithm


READERS = tuple(Reader(name, one) for name, both in ALGORITHMS.items() for one in both)


@dataclass(frozen=True)
class Account:
    """What one call of a reader requested from the operating system, all ranks together.

    requests, bytes   their number, and their bytes; `largest` is the largest request.
    most_requests     of the busiest rank; `asking` is the number of ranks that made any requests.
    read_calls        the system's own count (syscr of /proc/self/io): at least the requests, and a
                      few for pipes and sockets; None if not available.
    memory            bytes by which the memory of the rank that needs most grew; None if not
                      available. Linux is accurate to some hundred KiB.
    modeled          {name of STORAGE: seconds} that these requests would take on that storage.
    seconds           of timed calls (`time`), from the first rank's entry to the last one's exit.
    """

    reader: Reader
    requests: int
    bytes: int
    largest: int
    most_requests: int
    asking: int
    read_calls: int | None
    memory: int | None
    modeled: dict[str, float]
    seconds: tuple[float, ...] = ()


def chosen(words: str) -> list[Reader]:
    """The Readers of 'all', or of comma-separated algorithms; InputError for another name."""
    names = list(ALGORITHMS) if words == "all" else [name.strip() for name in words.split(",")]
    for name in names:
        if name not in ALGORITHMS:
            known = f"{', '.join(ALGORITHMS)}{suggestion(name, ALGORITHMS)}"
            raise InputError(f"reader {name!r}: unknown; write 'all' or some of {known}")
    return [reader for reader in READERS if reader.algorithm in names]


def count(
    matrix: str,
    ranks: int,
    readers: Sequence[Reader] = READERS,
    *,
    buffer: int = 0,
    aggregators: int = 0,
) -> list[Account]:
    """Run each reader once, compare what it read, and count its requests: list of Account.

    matrix   in the notation of mpilab.cases.distribution; buffer (bytes of a request) and
             aggregators as in Case.

    Raises MpilabError if a reader does not finish or reads something else, and if its requests
    cannot be observed.
    """
    found, parts = {}, None
    for mpi_io in (OMPIO, ROMIO):
        mine = [reader for reader in readers if reader.mpi_io == mpi_io]
        cases = [
            _case(reader, matrix, ranks, buffer, aggregators, dump=True, requests=True)
            for reader in mine
        ]
        for reader, result in zip(mine, _run(cases, mpi_io), strict=True):
            parts = parts_of(result.case) if parts is None else parts
            check(reader, result, parts)
            assert result.access is not None  # _run has checked it
            found[reader] = _account(reader, result.access)
    return [found[reader] for reader in readers]


def time(
    matrix: str,
    ranks: int,
    readers: Sequence[Reader] = READERS,
    *,
    buffer: int = 0,
    aggregators: int = 0,
    cold: bool = False,
    repetitions: int = 7,
    progress: bool = False,
) -> tuple[dict[Reader, tuple[float, ...]], float | None]:
    """Time readers in turn: ({Reader: seconds of each repetition}, share).

    `share` is the largest share of the file that was in the page cache before a call, None if the
    system does not report it; without `cold`, it is 1. A repetition is an mpirun for each MPI-IO,
    in which each of its readers reads its own file, once to warm up and once timed; with `cold`,
    the file is evicted from the page cache before both. Time is from the first rank's entry to the
    last one's exit. Nothing is recorded.

    Raises InputError for fewer than 1 repetition, MpilabError if a reader does not finish,
    ClusterError if a notebook's ranks compute meanwhile (mpilab.cluster.engines.asleep).
    """
    if repetitions < 1:
        raise InputError(f"repetitions={repetitions}: must be 1 or more")
    seconds: dict[Reader, list[float]] = {reader: [] for reader in readers}
    shares = []
    for _ in tqdm(range(repetitions), desc=f"{matrix} on {ranks}", disable=not progress):
        for mpi_io in (OMPIO, ROMIO):
            mine = [reader for reader in readers if reader.mpi_io == mpi_io]
            cases = [
                _case(
                    reader,
                    matrix,
                    ranks,
                    buffer,
                    aggregators,
                    dump=False,
                    cold=cold,
                    record=False,
                    warmup=1,
                )
                for reader in mine
            ]
            with asleep():
                results = _run(cases, mpi_io)
            for reader, result in zip(mine, results, strict=True):
                spans = np.stack([output.spans_ns[-1] for output in result.outputs])
                seconds[reader].append(float(spans[:, 1].max() - spans[:, 0].min()) / 1e9)
                if cold and result.access is not None:
                    shares.append(result.access.resident_share())
    known = [share for share in shares if share is not None]
    share = 1.0 if not cold else max(known) if len(known) == len(shares) else None
    return {reader: tuple(values) for reader, values in seconds.items()}, share


def speed_ups(seconds: Mapping[Reader, Sequence[float]]) -> list[float]:
    """How many times faster read_two_phase is than the better MPI_File_read_all, per repetition.

    seconds   {Reader: seconds}, as from `time` with `RIVALS`.

    Each MPI-IO is compared with the two-phase read of its own mpirun; the smaller ratio counts.
    """
    ratios = [
        np.array(seconds[Reader("view_all", mpi_io)]) / seconds[Reader("two_phase", mpi_io)]
        for mpi_io in (OMPIO, ROMIO)
    ]
    return np.minimum(*ratios).tolist()


RIVALS = tuple(
    Reader(name, mpi_io) for mpi_io in (OMPIO, ROMIO) for name in ("two_phase", "view_all")
)


def _case(
    reader: Reader, matrix: str, ranks: int, buffer: int, aggregators: int, **more: Any
) -> Case:
    return Case(
        "read",
        ranks,
        1,
        datatype="double",
        matrix=matrix,
        buffer=buffer,
        aggregators=aggregators,
        function=f"read_{reader.algorithm}",
        **more,
    )


def _run(cases: Sequence[Case], mpi_io: str) -> list[Result]:
    """Results of cases that all have the same number of aggregators."""
    if not cases:
        return []
    aggregators = cases[0].aggregators
    with tempfile.TemporaryDirectory(prefix="mpilab-hints-", dir=shared_folder()) as folder:
        settings = openmpi.mpi_io(mpi_io)
        if mpi_io == ROMIO and aggregators:  # ROMIO ignores those that read_view_all passes
            settings |= openmpi.romio_hints(f"{folder}/hints", aggregators=aggregators)
        results = run_cases(need(KERNELS), "", cases, settings=settings, limit=LIMIT_S)
    for result in results:
        if result.outcome != DONE or any(output.returned for output in result.outputs):
            said = result.hang or result.detail or "it returned an error"
            raise MpilabError(
                f"{result.case.function} with {result.case.describe()}: {result.outcome}: {said}"
            )
        if (result.case.requests or result.case.cold) and result.access is None:
            raise MpilabError(f"{result.case.function}: its evidence of file access is missing")
    return results


def parts_of(case: Case) -> list[NDArray[np.uint64]]:
    """The part of each rank that a case should read, as bits: list of uint64 [rows, columns]."""
    about = case.distribution
    elements = case.elements().reshape(about.rows, about.columns)
    return [
        elements[np.ix_(about.rows_of(rank), about.columns_of(rank))] for rank in range(case.ranks)
    ]


def check(reader: Reader, result: Result, parts: Sequence[NDArray[np.uint64]]) -> None:
    """Raise MpilabError if a rank does not have its part, of `parts_of` the case.

    `compare` checks every byte, which is slow for this many: it is called only to find out what is
    wrong.
    """
    for output, part in zip(result.outputs, parts, strict=True):
        data = output.received[GUARD_BYTES:-GUARD_BYTES].view(np.uint64)
        if not np.array_equal(data, part.reshape(-1)):
            (wrong, *_) = compare(result.case, result.outputs)
            raise MpilabError(f"{reader.name} of {result.case.matrix}: {wrong.describe()}")


def _account(reader: Reader, access: FileAccess) -> Account:
    requests, volume, largest = access.counts()
    read_calls = access.calls[:, -1]["syscr"]
    memory = access.memory()
    return Account(
        reader,
        requests=int(requests.sum()),
        bytes=int(volume.sum()),
        largest=int(largest.max()),
        most_requests=int(requests.max()),
        asking=int((requests > 0).sum()),
        read_calls=None if (read_calls == NONE).any() else int(read_calls.sum()),
        memory=None if memory is None else int(memory.max()),
        modeled={name: modeled(access.requests, name) for name in STORAGE},
    )


# The table data/reads.csv.

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
    program="mpilab.mpiio.readers",
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

    Raises MpilabError as `count` and `time` do.
    """
    every = list(dict.fromkeys([*READERS, *RIVALS]))
    rows = []
    for matrix in sizes:
        for number in ranks:
            accounts = count(matrix, number, every)
            for is_cold in cold:
                seconds, share = time(
                    matrix, number, every, cold=is_cold, repetitions=repetitions, progress=progress
                )
                timed = [replace(one, seconds=seconds[one.reader]) for one in accounts]
                rows.append(rows_of(timed, matrix, number, is_cold, share))
    return np.concatenate(rows)


def rows_of(
    accounts: Iterable[Account], matrix: str, ranks: int, cold: bool, share: float | None
) -> NDArray[Any]:
    """Timed Account objects, measured today on this machine: array of ROW."""
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


def seconds_of(rows: NDArray[Any]) -> dict[Reader, tuple[float, ...]]:
    """{Reader: seconds of each repetition} from rows of one matrix, number of ranks and `cold`."""
    found: dict[Reader, list[float]] = {}
    for row in rows:
        reader = Reader(str(row["algorithm"]), str(row["mpi_io"]))
        found.setdefault(reader, []).append(float(row["seconds"]))
    return {reader: tuple(values) for reader, values in found.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write the file."""
    file = TABLE.parser().parse_args(arguments).file
    write(measure(progress=True), file)


if __name__ == "__main__":
    TABLE.run(main)
