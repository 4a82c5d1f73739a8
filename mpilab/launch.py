"""Run cases of a kernel with mpirun, and see to it that every case comes to an end.

One mpirun runs all cases of the same number of ranks. When a case hangs or crashes, the run is
ended and the cases after it get a new one.
"""

import re
import shutil
import signal
import subprocess
import tempfile
from contextlib import closing
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import psutil

from mpilab import openmpi
from mpilab.build import HARNESS_PROGRAM, need
from mpilab.diagnosis.model import Diagnosis
from mpilab.errors import InputError
from mpilab.hang import Hang, Watch, never_began, read_states
from mpilab.harness import Case, Output
from mpilab.recording import RankRecording, Recording, peek

DONE, DEADLOCK, TIME_OUT, CRASH, ERROR, SKIPPED = (
    "done", "deadlock", "time-out", "crash", "error", "skipped")  # fmt: skip
POLL_S = 0.03
LOG_BYTES = 1 << 20  # a kernel may print without end
# What Open MPI says of an error on a communicator whose errors are fatal (MPI_COMM_SELF, ...).
_MPI_ABORTED = re.compile(r"reported by process \[\d+,(\d+)\].*?\*\*\* (MPI_ERR_\w+)", re.DOTALL)
_SIGNALLED = re.compile(r"process rank (\d+) .*?exited\s+on\s+signal\s+(\d+)", re.DOTALL)


@dataclass
class Result:
    """What came of one case.

    outcome    DONE, DEADLOCK, TIME_OUT, CRASH, ERROR (it could not be run at all) or SKIPPED.
    hang       for a deadlock or time-out: who waits for whom.
    crashed    for a crash: (rank, signal or MPI_ERR_... name); rank is None where nobody said.
    detail     what else is known, in words.
    outputs    one Output a rank when DONE.
    recording  of all ranks, when it was asked for and every rank has one.
    ranks      RankRecording of each rank, None for one that never began; also when some are missing.
    library, function   what was run.
    printed    rank -> the end of what the kernel printed there (rank of the kernel's communicator).
    log        what Open MPI said, unabridged.
    sanitizer  rank -> what AddressSanitizer or UndefinedBehaviorSanitizer reported there.
    samples    rank -> call sites (offsets into `library`) at which it was found computing.
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
    diagnosis: Diagnosis | None = None


def run_cases(library, function, cases, *, groups=None, limit=10.0, standstill=1.0,
              work=None, on_result=None, keep=None):  # fmt: skip
    """Run `cases` of `function` in the shared object `library` with mpirun; list of Result.

    groups   for each case the groups that it is in. Once a case of a group has not come to its
             end, cases that are in failed groups only are skipped: they would most likely cost
             the same time again.
    limit    seconds that one case may take.
    standstill, work   see mpilab.hang.Watch.
    keep     a directory for the raw files of finished cases, named by the case's place in `cases`.
    """
    groups = list(groups) if groups is not None else [(i,) for i in range(len(cases))]
    results = [None] * len(cases)
    failed_groups = set()
    order = sorted(range(len(cases)), key=lambda i: cases[i].ranks)
    with tempfile.TemporaryDirectory(prefix="mpilab-run-") as scratch:
        for ranks, numbers in groupby(order, key=lambda i: cases[i].ranks):
            left = list(numbers)
            while left:
                for number in [i for i in left if failed_groups.issuperset(groups[i])]:
                    results[number] = Result(cases[number], SKIPPED)
                left = [i for i in left if results[i] is None]
                if not left:
                    break
                run = _Run(
                    library, function, {i: cases[i] for i in left}, ranks, Path(scratch), keep
                )
                with closing(run.results(limit=limit, standstill=standstill, work=work)) as came:
                    for number, result in came:
                        results[number] = result
                        left.remove(number)
                        if result.outcome != DONE:
                            failed_groups.update(groups[number])
                        if on_result:
                            on_result(result)
    return results


class _Run:
    """One mpirun over several cases with the same number of ranks."""

    def __init__(self, library, function, cases, ranks, scratch, keep):
        self.cases, self.ranks, self.keep = cases, ranks, keep
        mpirun, harness = openmpi.tool("mpirun"), need(HARNESS_PROGRAM)
        self.directory = Path(tempfile.mkdtemp(dir=scratch))
        self.segments = Path(tempfile.mkdtemp(prefix="mpilab-", dir=_shared_memory()))
        listing = self.directory / "cases"
        lines = [case.line(number) + "\n" for number, case in cases.items()]
        listing.write_text("".join(lines), encoding="ascii")
        self.log = self.directory / "log"
        environment = openmpi.environment(ranks) | {
            "TMPDIR": str(self.directory),
            # Segments of killed ranks would otherwise stay in /dev/shm for ever.
            "OMPI_MCA_btl_sm_backing_directory": str(self.segments),
        }
        command = [mpirun, "-n", str(ranks), str(harness), str(library), function, str(listing),
                   str(self.directory)]  # fmt: skip
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def results(self, **limits):
        """(number, Result) of each case in turn, up to and including the first that fails."""
        try:
            for number, case in self.cases.items():
                result = self._follow(number, case, limits)
                yield number, result
                if result.outcome != DONE:
                    return
        finally:
            self._end()

    def _follow(self, number, case, limits):
        watch = Watch(self.directory, number, case.ranks, **limits)
        outputs = [self.directory / f"{number}.{rank}.out" for rank in range(case.ranks)]
        is_last = number == next(reversed(self.cases))
        following = None if is_last else self._following(number)
        while True:
            ended = self.process.poll() is not None
            over = ended or watch.over or self._is_past(following)
            done = self._done(number, case, outputs) if over else None
            if done is not None:
                return done
            if ended:
                return self._crash(number, case)
            hang = watch.poll()
            if hang is not None:
                return self._hung(number, case, hang)
            try:
                # The end of mpirun is an event; new files of a running one have to be looked for.
                self.process.wait(POLL_S)
            except subprocess.TimeoutExpired:
                continue

    def _following(self, number):
        numbers = list(self.cases)
        return numbers[numbers.index(number) + 1]

    def _is_past(self, following):
        """Has a rank begun the case after? Then all files of this one are whole: the harness
        synchronises its ranks in between."""
        if following is None:
            return False
        return any(
            (self.directory / f"{following}.{rank}.rec").exists()
            or (self.directory / f"{following}.{rank}.out").exists()
            for rank in range(self.ranks)
        )

    def _done(self, number, case, paths):
        """The Result of a case that has come to its end; None while an output is not whole."""
        try:
            outputs = [Output.read(path) for path in paths]
        except (InputError, FileNotFoundError):
            return None
        recording = self._recording(number, case)
        self._put_away(paths)
        return Result(case, DONE, outputs=outputs, recording=recording)

    def _recording(self, number, case):
        if not case.record:
            return None
        try:
            recording = Recording.load(self.directory, number, case.ranks)
        except InputError:
            return None
        self._put_away([rank.path for rank in recording.ranks])
        return recording

    def _put_away(self, paths):
        """Files that have been read are kept elsewhere or removed: many cases leave many."""
        for path in paths:
            if self.keep is None:
                path.unlink()
            else:
                shutil.move(path, Path(self.keep) / path.name)

    def _hung(self, number, case, hang):
        if case.record and never_began(hang.states):
            return Result(
                case,
                ERROR,
                states=hang.states,
                detail=f"no rank began it in time; mpirun said: {_tail(self._said())}",
            )
        recording = self._recording(number, case)
        return Result(case, hang.kind, hang=hang, recording=recording, states=hang.states)

    def _said(self):
        """The end of what mpirun and the ranks have printed."""
        with open(self.log, "rb") as log:
            log.seek(max(0, self.log.stat().st_size - LOG_BYTES))
            return log.read().decode(errors="replace")

    def _crash(self, number, case):
        log = self._said()
        paths = [self.directory / f"{number}.{rank}.rec" for rank in range(case.ranks)]
        ranks = [RankRecording(path) if peek(path) is not None else None for path in paths]
        states = read_states(ranks)
        harness = re.search(r"^mpilab-harness: (.*)", log, re.MULTILINE)
        if harness or never_began(states):
            return Result(case, ERROR, detail=harness[1] if harness else _tail(log), states=states)
        crashed = (None, f"exit status {self.process.returncode}")
        if match := _SIGNALLED.search(log):
            crashed = (self._kernel_rank(case, int(match[1])), _signal_name(int(match[2])))
        elif match := _MPI_ABORTED.search(log):
            crashed = (self._kernel_rank(case, int(match[1])), match[2])
        recording = self._recording(number, case)
        return Result(
            case, CRASH, crashed=crashed, detail=_tail(log), recording=recording, states=states
        )

    @staticmethod
    def _kernel_rank(case, world_rank):
        """mpirun counts in MPI_COMM_WORLD; the kernel's communicator may be reversed."""
        return case.ranks - 1 - world_rank if case.reversed else world_rank

    def _end(self):
        """End everything that this mpirun started, and give back what it held."""
        if self.process.poll() is None:
            try:
                parent = psutil.Process(self.process.pid)
                family = [*parent.children(recursive=True), parent]
            except psutil.NoSuchProcess:
                family = []
            for process in family:
                try:
                    process.kill()
                except psutil.NoSuchProcess:
                    continue  # it ended by itself meanwhile
            psutil.wait_procs(family, timeout=5)
            self.process.wait()
        shutil.rmtree(self.segments, ignore_errors=True)
        shutil.rmtree(self.directory, ignore_errors=True)


def _shared_memory():
    """A directory in memory for Open MPI's segments, or None for the usual temporary one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _tail(text, lines=12):
    return "\n".join(text.strip().splitlines()[-lines:])
