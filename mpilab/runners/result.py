"""The result of one case: its outcome and the files that it left, the same for every runner."""

import os
import re
import shutil
import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mpilab.cases.case import Case
from mpilab.cases.output import Output
from mpilab.errors import InputError
from mpilab.hosts.places import Levels, Place
from mpilab.runners.hang import Hang, RankState
from mpilab.trace import file_access
from mpilab.trace.callsites import separate
from mpilab.trace.matching import Collectives
from mpilab.trace.recording import (
    CANCELLED,
    LEAKED,
    NONBLOCKING,
    RECEIVES,
    SENDS,
    RankRecording,
    Recording,
    cut,
    joined,
    operations,
    read_rank,
)
from mpilab.trace.snapshots import Snapshots
from mpilab.trace.snapshots import read as read_snapshot
from mpilab.util.text import plain

DONE, DEADLOCK, TIME_OUT, CRASH, TRAP, ERROR, SKIPPED, SPENT = (
    "done",
    "deadlock",
    "time-out",
    "crash",
    "trap",
    "error",
    "skipped",
    "spent",
)
# A kernel may print endlessly; the end of its output is the most informative.
PRINTED_BYTES = 1 << 16
_BLOCK_BYTES = 1 << 20
# Open MPI's crash messages begin with host and process: '[host:123] *** Process ...'.
_NOISE = re.compile(r"\[[^\]\s]+:\d+\] ")


class Explanation(Protocol):
    """The part of a mpilab.diagnosis.model.Diagnosis, itself made from Results, that a Result
    uses."""

    @property
    def kind(self) -> str:
        """What failed, such as 'deadlock'."""

    @property
    def headline(self) -> str:
        """One sentence: what happened, to which ranks."""


@dataclass
class Result:
    """The result of one case.

    outcome    DONE, DEADLOCK, TIME_OUT, CRASH, TRAP (the jail ended it), ERROR (it could not be run
               at all), SKIPPED, or SPENT: earlier cases had used up the processor time of all.
    hang       for a deadlock or time-out: the state of every rank, and what it waits for.
    crashed    for a crash: (rank, signal or 'exit status N'); rank is None if it is unknown. For a
               trap: (rank, why the kernel was ended).
    detail     further information, in words.
    outputs    one Output per rank if DONE.
    recording  of all ranks, if it was requested and every rank has one.
    ranks      RankRecording of each rank, None for one that never started.
    library, function   what was run.
    printed    rank -> the end of the kernel's output (rank of the kernel's communicator).
    log        Open MPI's output, unabridged.
    sanitizer  rank -> the report of AddressSanitizer or UndefinedBehaviorSanitizer.
    samples    rank -> call sites (offsets into `library`) at which it was found computing.
    snapshots  of each rank's receive buffer (mpilab.trace.snapshots), if the case requested them.
    places     where the ranks of the kernel's communicator really were (mpilab.hosts.places.Place);
               () if unknown, which counts as one node.
    access     the requests for the file of a read that reached the operating system
               (mpilab.trace.file_access), if the case requested them; None if a rank left none.
    diagnosis  made where the case ran, if that was elsewhere (the referee's sandbox).
    """

    case: Case
    outcome: str
    hang: Hang | None = None
    crashed: tuple[int | None, str] | None = None
    detail: str = ""
    outputs: list[Output] = field(default_factory=list)
    recording: Recording | None = None
    states: tuple[RankState, ...] = ()
    ranks: list[RankRecording | None] = field(default_factory=list)
    library: str = ""
    function: str = ""
    printed: dict[int, str] = field(default_factory=dict)
    log: str = ""
    sanitizer: dict[int, str] = field(default_factory=dict)
    samples: dict[int, list[int]] = field(default_factory=dict)
    snapshots: list[Snapshots] = field(default_factory=list)
    places: tuple[Place, ...] = ()
    access: file_access.FileAccess | None = None
    diagnosis: Explanation | None = None

    def __repr__(self) -> str:
        name = self.function or self.case.collective
        why = f": {self.detail}" if self.detail else ""
        return f"Result of {name} with {self.case.describe()}: {self.outcome}{why}"

    @property
    def last_call_ns(self) -> int:
        """Nanoseconds of the last call, from the first rank's start to the last one's end."""
        spans = [output.spans_ns[-1] for output in self.outputs]
        return int(max(span[1] for span in spans) - min(span[0] for span in spans))

    def of_last_call(self) -> "Result":
        """The same with only the MPI calls of the last call of the kernel in its recording."""
        begins = {output.rank: int(output.spans_ns[-1][0]) for output in self.outputs}
        ranks = [
            None if rank is None else rank.since(begins.get(rank.rank, 0)) for rank in self.ranks
        ]
        recording = self.recording
        if recording is not None:
            recording = Recording([r.since(begins.get(r.rank, 0)) for r in recording.ranks])
        return replace(self, ranks=ranks, recording=recording)

    @property
    def levels(self) -> Levels:
        """The mpilab.hosts.places.Levels of the ranks: the case's pretended ones, otherwise the
        real ones."""
        return Levels(self.places) if self.places and not self.case.places else self.case.levels


def gather(directory: str | Path, number: int, case: Case, outcome: str, **more: Any) -> Result:
    """The Result of case `number`, with all files in `directory`; `more` are further fields."""
    ranks = read_ranks(directory, number, case)
    begun = [rank for rank in ranks if rank is not None]
    printed, noise = read_printed(directory, number, case)
    sanitizer = more.pop("sanitizer", {})
    for rank, text in printed.items():
        # gcc's UndefinedBehaviorSanitizer cannot write its report to a file.
        printed[rank], report = separate(text)
        if report:
            sanitizer.setdefault(rank, report)
    log = "\n".join(filter(None, (more.pop("log", ""), *noise.values())))
    return Result(
        case,
        outcome,
        recording=Recording(begun) if ranks and len(begun) == len(ranks) else None,
        ranks=ranks,
        printed={rank: text for rank, text in printed.items() if text},
        sanitizer=sanitizer,
        snapshots=read_snapshots(directory, number, case),
        access=file_access.load(directory, number, case),
        log=log,
        **more,
    )


def read_ranks(directory: str | Path, number: int, case: Case) -> list[RankRecording | None]:
    """The current RankRecording of each rank; None for a rank that has not begun the case.

    An inconsistent recording (a kernel may write anywhere) counts as none. [] for a case that is
    not recorded.
    """
    if not case.record:
        return []
    return [read_rank(path) for path in paths_of(directory, number, case, "rec")]


def paths_of(directory: str | Path, number: int, case: Case, kind: str) -> list[str]:
    """The files of one kind that a case leaves: one path per rank."""
    return [f"{directory}/{number}.{rank}.{kind}" for rank in range(case.ranks)]


def put_away(paths: Iterable[str | Path], keep: str | Path | None, *, copied: bool = False) -> None:
    """Move files that have been read to the directory `keep`, or remove them if it is None: many
    cases leave many files.

    copied   keep copies: a rank that still has a file open can change the file, but not its copy.
             Recordings are cut to what is in them.
    """
    for path in map(Path, paths):
        if keep is None:
            path.unlink()
        elif copied:
            copy = f"{keep}/{path.name}"
            _copy(path, copy)
            if path.suffix == ".rec":
                cut(copy)
            path.unlink()
        else:
            shutil.move(path, f"{keep}/{path.name}")


def _copy(path: Path, to: str) -> None:
    """Copy a plain file with its holes: the recording of a rank that has ended is mostly one."""
    # Neither follows a link nor waits for a pipe.
    source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(source, "rb", buffering=0) as file, open(to, "wb", buffering=0) as copy:
        size, at = os.fstat(source).st_size, 0
        while at < size:
            try:
                at = os.lseek(source, at, os.SEEK_DATA)
            except OSError:  # only a hole is left
                break
            end = os.lseek(source, at, os.SEEK_HOLE)
            file.seek(at)
            copy.seek(at)
            while at < end and (block := file.read(min(end - at, _BLOCK_BYTES))):
                at += copy.write(block)
            at = end
        copy.truncate(size)


def read_printed(
    directory: str | Path, number: int, case: Case
) -> tuple[dict[int, str], dict[int, str]]:
    """What each rank printed, two dicts by rank: the kernel's output, and Open MPI's.

    Long output is cut to its end; a rank that printed nothing is omitted.
    """
    printed: dict[int, str] = {}
    noise: dict[int, str] = {}
    for rank, path in enumerate(paths_of(directory, number, case, "txt")):
        lines = _tail(path).splitlines(keepends=True) if Path(path).exists() else []
        for kept, is_noise in ((printed, False), (noise, True)):
            text = "".join(line for line in lines if bool(_NOISE.match(line)) == is_noise)
            if text:
                kept[rank] = text
    return printed, noise


def read_snapshots(directory: str | Path, number: int, case: Case) -> list[Snapshots]:
    """Snapshots of each rank's receive buffer; [] if there are none."""
    paths = paths_of(directory, number, case, "mem")
    if not all(Path(path).exists() for path in paths):
        return []
    try:
        return [read_snapshot(path) for path in paths]
    except InputError:
        return []


def _tail(path: str) -> str:
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - PRINTED_BYTES))
        text = file.read().decode(errors="replace")
    return text if size <= PRINTED_BYTES else "… " + text.partition("\n")[2]


def trap(ranks: Sequence[RankRecording | None]) -> tuple[int, str] | None:
    """(rank, why the jail ended its kernel), e.g. (2, 'the kernel: division by zero').

    None if the jail did not end it. Of several ranks, the lowest is returned.
    """
    for rank in ranks:
        if rank is not None and rank.header["trap"] and is_struck(rank.header):
            return rank.rank, plain(rank.header["trap"].decode("ascii", errors="replace"))
    return None


def blame(ranks: Sequence[RankRecording | None]) -> tuple[int, str] | None:
    """(rank, what ended it) according to the recordings, or None if they do not show it.

    `ranks` lists a RankRecording or None for each rank. A signal takes precedence over an exit, and
    that over MPI_Abort: the last two often end other ranks, too. On a tie, the lowest rank is
    returned: which rank failed first differs from run to run.
    """
    ended = [rank for rank in ranks if rank is not None and is_struck(rank.header)]
    for rank in ended:
        if rank.header["signal"]:
            return rank.rank, signal_name(int(rank.header["signal"]))
    for rank in ended:
        if rank.header["exited"]:
            return rank.rank, f"exit status {int(rank.header['exit_status'])}"
    for rank in [rank for rank in ranks if rank is not None and not rank.finished]:
        last = rank.records[-1] if len(rank.records) else None
        if last is not None and operations().get(int(last["operation"])) == "MPI_Abort":
            return rank.rank, f"MPI_Abort({int(last['count'])})"
    return None


def is_struck(header: np.void) -> bool:
    """Whether a signal, the jail or exit() ended a rank, according to the header of its recording.

    That may happen after the kernel has returned, before the recording is closed: to free the
    kernel's communicator calls the functions that it attached there. But a signal outside of the
    kernel's code is then one of the simulator, which copies messages for any rank.
    """
    if header["ended_ns"] or not (header["signal"] or header["trap"] or header["exited"]):
        return False
    is_by_jail = header["trap"] and not header["signal"]
    return bool(not header["closed_ns"] or header["crash_site"] or is_by_jail)


def signal_name(number: int) -> str:
    """SIGSEGV for 11."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


# Leftover MPI state that could affect the next run.
#
# Open MPI reuses the number of a freed communicator for the next one: an unreceived message could
# be matched in the next run, and an active request writes to memory that has been freed.


def leaves_state(result: Result) -> bool:
    """True if a recorded run left messages, requests or incomplete collectives."""
    ranks = [rank for rank in result.ranks if rank is not None]
    records, places = joined(ranks)
    if (records["flags"] & (LEAKED | NONBLOCKING) == LEAKED | NONBLOCKING).any():
        return True
    numbers = np.array([rank.rank for rank in ranks], np.int64)[places]
    if not np.array_equal(_sent(records, numbers), _received(records, numbers)):
        return True
    collectives = Collectives(result.ranks, completed=result.outcome == DONE)
    return any(map(any, (collectives.incomplete(), collectives.conflicts())))


def _sent(records: NDArray[np.void], ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sent messages: sorted rows of communicator, sender and receiver."""
    chosen = (records["flags"] & (SENDS | CANCELLED) == SENDS) & (records["error"] == 0)
    return _sorted(_rows(records, ranks, "peer", chosen))


def _received(records: NDArray[np.void], ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    # A receive with a buffer that was too small has consumed its message, too.
    chosen = (records["flags"] & RECEIVES != 0) & (records["done_ns"] != 0)
    return _sorted(_rows(records, ranks, "got_peer", chosen)[:, [0, 2, 1]])


def _rows(
    records: NDArray[np.void], ranks: NDArray[np.int64], peer: str, chosen: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Rows of communicator, rank and partner, for all chosen calls."""
    chosen = chosen & (records[peer] >= 0)
    columns = (records["communicator"][chosen], ranks[chosen], records[peer][chosen])
    return np.stack(columns, axis=1).astype(np.int64)


def _sorted(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    return rows[np.lexsort(rows.T[::-1])]
