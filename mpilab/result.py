"""What came of one case, and what it left behind: the same for mpirun and for the engines."""

import os
import re
import shutil
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mpilab import fileaccess
from mpilab.errors import InputError
from mpilab.hang import Hang
from mpilab.harness import Case
from mpilab.places import Levels
from mpilab.recording import RankRecording, Recording, operations

if TYPE_CHECKING:  # a diagnosis is made from a result
    from mpilab.diagnosis.model import Diagnosis

DONE, DEADLOCK, TIME_OUT, CRASH, ERROR, SKIPPED = (
    "done", "deadlock", "time-out", "crash", "error", "skipped")  # fmt: skip
# A kernel may print without end; its last words are what tells something.
PRINTED_BYTES = 1 << 16
# What Open MPI prints of a crash begins with host and process: '[host:123] *** Process ...'.
_NOISE = re.compile(r"\[[^\]\s]+:\d+\] ")


@dataclass
class Result:
    """What came of one case.

    outcome    DONE, DEADLOCK, TIME_OUT, CRASH, ERROR (it could not be run at all) or SKIPPED.
    hang       for a deadlock or time-out: who waits for whom.
    crashed    for a crash: (rank, signal or 'exit status N'); rank is None where nobody said.
    detail     what else is known, in words.
    outputs    one Output a rank when DONE.
    recording  of all ranks, when it was asked for and every rank has one.
    ranks      RankRecording of each rank, None for one that never began.
    library, function   what was run.
    printed    rank -> the end of what the kernel printed there (rank of the kernel's communicator).
    log        what Open MPI said, unabridged.
    sanitizer  rank -> what AddressSanitizer or UndefinedBehaviorSanitizer reported there.
    samples    rank -> call sites (offsets into `library`) at which it was found computing.
    snapshots  of each rank's receive buffer (mpilab.snapshots), where the case asked for them.
    places     where the ranks of the kernel's communicator really were (mpilab.places.Place); ()
               where nobody knows, which counts as one node.
    access     what reached the operating system of the file of a read (mpilab.fileaccess), where
               the case asked for it; None where a rank left nothing.
    diagnosis  what was found where the case ran, if that is elsewhere (the referee's sandbox).
    """

    case: Case
    outcome: str
    hang: Hang | None = None
    crashed: tuple | None = None
    detail: str = ""
    outputs: list = field(default_factory=list)
    recording: Recording | None = None
    states: tuple = ()
    ranks: list = field(default_factory=list)
    library: str = ""
    function: str = ""
    printed: dict = field(default_factory=dict)
    log: str = ""
    sanitizer: dict = field(default_factory=dict)
    samples: dict = field(default_factory=dict)
    snapshots: list = field(default_factory=list)
    places: tuple = ()
    access: fileaccess.FileAccess | None = None
    diagnosis: "Diagnosis | None" = None

    @property
    def levels(self):
        """The mpilab.places.Levels of the ranks: as the case pretends, or else as they were."""
        return Levels(self.places) if self.places and not self.case.places else self.case.levels


def gather(directory, number, case, outcome, **more):
    """The Result of case `number`, with all that it left in `directory`; `more` are its fields."""
    from mpilab.diagnosis.reports import separate  # a diagnosis is made from results

    ranks = read_ranks(directory, number, case)
    printed, noise = read_printed(directory, number, case)
    sanitizer = more.pop("sanitizer", {})
    for rank, text in printed.items():
        # gcc's UndefinedBehaviorSanitizer knows no file for its report.
        printed[rank], report = separate(text)
        if report:
            sanitizer.setdefault(rank, report)
    log = "\n".join(filter(None, (more.pop("log", ""), *noise.values())))
    return Result(
        case,
        outcome,
        recording=Recording(ranks) if ranks and None not in ranks else None,
        ranks=ranks,
        printed={rank: text for rank, text in printed.items() if text},
        sanitizer=sanitizer,
        snapshots=read_snapshots(directory, number, case),
        access=fileaccess.load(directory, number, case),
        log=log,
        **more,
    )


def read_ranks(directory, number, case):
    """The RankRecording of each rank as it is now; None for a rank that has not begun the case.

    A recording that contradicts itself (a kernel may write anywhere) counts as none. [] for a case
    that is not recorded.
    """
    if not case.record:
        return []
    return [_read(path) for path in paths_of(directory, number, case, "rec")]


def paths_of(directory, number, case, kind):
    """The files of one kind that a case leaves: a path for each rank."""
    return [f"{directory}/{number}.{rank}.{kind}" for rank in range(case.ranks)]


def put_away(paths, keep):
    """Move files that have been read into the directory `keep`, or remove them where that is None:
    many cases leave many."""
    for path in paths:
        if keep is None:
            os.unlink(path)
        else:
            shutil.move(path, f"{keep}/{os.path.basename(path)}")


def _read(path):
    try:
        return RankRecording(path)
    except (InputError, FileNotFoundError):
        return None


def read_printed(directory, number, case):
    """What each rank printed, two dicts by rank: the kernel's own words, and Open MPI's.

    Of much the end is read; a rank that printed nothing is left out.
    """
    printed, noise = {}, {}
    for rank, path in enumerate(paths_of(directory, number, case, "txt")):
        lines = _tail(path).splitlines(keepends=True) if os.path.exists(path) else []
        for kept, is_noise in ((printed, False), (noise, True)):
            text = "".join(line for line in lines if bool(_NOISE.match(line)) == is_noise)
            if text:
                kept[rank] = text
    return printed, noise


def read_snapshots(directory, number, case):
    """Snapshots of each rank's receive buffer; [] where there are none."""
    paths = paths_of(directory, number, case, "mem")
    if not all(map(os.path.exists, paths)):
        return []
    from mpilab import snapshots

    try:
        return [snapshots.read(path) for path in paths]
    except InputError:
        return []


def _tail(path):
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - PRINTED_BYTES))
        text = file.read().decode(errors="replace")
    return text if size <= PRINTED_BYTES else "… " + text.partition("\n")[2]


def blame(ranks):
    """(rank, what ended it) by what the recordings say, or None where they don't.

    `ranks` lists a RankRecording or None for each rank. A signal is told before an exit, and that
    before MPI_Abort: the last two often end others, too. Of several ranks with the same fate the
    lowest is told: which one met it first differs from run to run.
    """
    begun = [rank for rank in ranks if rank is not None and not rank.finished]
    for rank in begun:
        if rank.header["signal"]:
            return rank.rank, signal_name(int(rank.header["signal"]))
    for rank in begun:
        if rank.header["exited"]:
            return rank.rank, f"exit status {int(rank.header['exit_status'])}"
    for rank in begun:
        last = rank.records[-1] if len(rank.records) else None
        if last is not None and operations().get(int(last["operation"])) == "MPI_Abort":
            return rank.rank, f"MPI_Abort({int(last['count'])})"
    return None


def signal_name(number):
    """SIGSEGV for 11."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
