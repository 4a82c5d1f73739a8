"""A run followed to its end: it completes, deadlocks, takes too long or crashes.

`Run` makes Results from the files that a case leaves; `Program` follows a process that runs several
cases one after another; `run_in_turn` starts runs until every case has its Result. Each runner adds
what differs: how its program is started, watched and ended.
"""

import os
import re
import subprocess
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from mpilab.cases.case import Case
from mpilab.cases.output import Output
from mpilab.errors import InputError
from mpilab.hosts.places import Place
from mpilab.runners.hang import COMPUTING, Hang, RankState, Watch, never_began, read_states, sample
from mpilab.runners.result import (
    CRASH,
    DEADLOCK,
    DONE,
    ERROR,
    SKIPPED,
    SPENT,
    TIME_OUT,
    TRAP,
    Result,
    blame,
    gather,
    is_struck,
    leaves_state,
    paths_of,
    put_away,
    read_ranks,
    trap,
)
from mpilab.trace.recording import RankRecording, peek
from mpilab.util.processes import ProcessorTime

LOG_BYTES = 1 << 20  # a kernel may print endlessly; the end of a longer log is read
LEAST_WORK_S = 2.0  # an ordinary case takes far less processor time
TAIL_LINES = 12  # of a log, as the detail of a Result
_HARNESS = re.compile(r"^mpilab-harness: (.*)", re.MULTILINE)

Groups = Iterable[Sequence[Hashable]]
Results = Generator[tuple[int, Result], None, None]


class Run:
    """A run of `cases`, {number: Case}.

    library, function   what is run; a case with its own `function` runs that one instead.
    directory   where the cases leave their files; their names begin with its number.
    """

    def __init__(
        self, library: str | Path, function: str, cases: Mapping[int, Case], directory: str | Path
    ) -> None:
        self.library, self.function, self.cases = Path(library), function, dict(cases)
        self.directory = Path(directory)

    def results(self, **limits: float | None) -> Results:
        """(number, Result) of each case in turn, up to and including the first after which this run
        cannot continue. `limits` are those of mpilab.runners.hang.Watch."""
        raise NotImplementedError

    def places(self, case: Case) -> Sequence[Place]:
        """The places of the ranks of MPI_COMM_WORLD; () if unknown, which counts as one node."""
        raise NotImplementedError

    def said(self) -> str:
        """The end of the log of this run."""
        raise NotImplementedError

    def result(self, number: int, case: Case, outcome: str, **more: Any) -> Result:
        """A Result with all files that the case left behind, whatever the outcome."""
        places = tuple(self.places(case))[: case.ranks]
        return gather(
            self.directory,
            number,
            case,
            outcome,
            library=str(self.library),
            function=case.function or self.function,
            places=places[::-1] if case.reversed else places,
            **more,
        )

    def error(self, number: int, case: Case, **more: Any) -> Result:
        """The Result of a case that could not be run."""
        return Result(case, ERROR, **more)

    def recorded(self, number: int, case: Case) -> list[RankRecording | None]:
        """The recording of each rank, see `read_ranks`."""
        return read_ranks(self.directory, number, case)

    def hung(self, number: int, case: Case, hang: Hang) -> Result:
        """The Result of a deadlock or time-out, or of a case that no rank has begun."""
        hang, samples = self.examined(number, case, hang)
        log = self.said()
        if case.record and never_began(hang.states):
            return self.error(number, case, states=hang.states, detail=self.not_begun(log), log=log)
        return self.result(
            number, case, hang.kind, hang=hang, states=hang.states, samples=samples, log=log
        )

    def examined(self, number: int, case: Case, hang: Hang) -> tuple[Hang, dict[int, list[int]]]:
        """The hang with the state of every rank, and the call sites of those that compute."""
        if hang.kind != TIME_OUT or hang.is_spent:
            return hang, {}
        paths = paths_of(self.directory, number, case, "rec")
        computing = [state.rank for state in hang.states if state.state == COMPUTING]
        return hang, sample({rank: paths[rank] for rank in computing})

    def not_begun(self, log: str) -> str:
        """The detail of a case that no rank has begun in time."""
        return "no rank started it in time"


class Program(Run):
    """A Run in a process that runs its cases one after another, and writes to `directory`/log.

    keep   a directory for the files of finished cases; None removes them.
    """

    process: subprocess.Popen[bytes]
    poll_s = 0.03
    name = "mpirun"

    def __init__(
        self,
        library: str | Path,
        function: str,
        cases: Mapping[int, Case],
        directory: str | Path,
        keep: str | Path | None,
    ) -> None:
        super().__init__(library, function, cases, directory)
        self.keep = keep

    # What a runner may override.

    @property
    def has_ended(self) -> bool:
        """True if the process has ended, or should have."""
        return self.process.poll() is not None

    def end(self) -> None:
        """End everything that the process started, and remove its files."""
        raise NotImplementedError

    def line(self, number: int, case: Case) -> str:
        """The case as the program reads it."""
        return case.line(number)

    def culprit(self, case: Case, log: str) -> tuple[int | None, str]:
        """(rank, what ended it) after a crash that the recordings do not show."""
        raise NotImplementedError

    def watch(self, number: int, case: Case, **limits: Any) -> Watch:
        """What watches the recordings of this case."""
        return Watch(self.directory, number, case.ranks, **limits)

    def is_over(self, number: int, case: Case, watch: Watch) -> bool:
        """True if the case may have finished, so that its outputs are worth reading."""
        return self.is_past(number, range(case.ranks))

    def states(self, ranks: list[RankRecording | None]) -> tuple[RankState, ...]:
        """The state of each rank when the process has ended."""
        return read_states(ranks)

    def found_deadlock(self, log: str) -> bool:
        """True if the process has ended because of a deadlock that it found itself."""
        return False

    def refused(self, log: str) -> str:
        """Why the runner could not run the case in which its process ended; "" if it could."""
        return ""

    def reports(self, ranks: list[RankRecording | None]) -> dict[int, str]:
        """{rank: report of a sanitizer} in separate files."""
        return {}

    def outputs(self, paths: list[str]) -> list[Output]:
        """The outputs of all ranks; InputError or FileNotFoundError while one is incomplete."""
        return [Output.read(path) for path in paths]

    def put_away(self, number: int, result: Result) -> None:
        """Keep or remove the files of a finished case."""
        self.keep_files(paths_of(self.directory, number, result.case, "out"))

    def keep_files(self, paths: Iterable[str | Path]) -> None:
        """Move these files to where finished cases are kept, or remove them."""
        put_away(paths, self.keep)

    def remarks(self, log: str) -> str:
        """What of the log says why the process has ended."""
        return tail(log)

    # Following

    def said(self) -> str:
        """The end of the output of the process."""
        with open(self.directory / "log", "rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - LOG_BYTES))
            return log.read().decode(errors="replace")

    def not_begun(self, log: str) -> str:
        return f"no rank started it in time; {self.name} said: {tail(log)}"

    def _harness_said(self) -> str:
        """What the harness left about a case that it cannot run; "" if there is none."""
        try:
            return (self.directory / "refused").read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""

    def results(self, **limits: float | None) -> Results:
        """(number, Result) of each case in turn, up to and including the first that fails or
        leaves messages or requests in MPI."""
        try:
            for number, case in self.cases.items():
                result = self._follow(number, case, limits)
                yield number, result
                if result.outcome != DONE or leaves_state(result):
                    return
        finally:
            self.end()

    def _follow(self, number: int, case: Case, limits: dict[str, float | None]) -> Result:
        watch = self.watch(number, case, **limits)
        while True:
            ended = self.has_ended
            if ended or self.is_over(number, case, watch):
                done = self._done(number, case)
                if done is not None:
                    return done
            if ended:
                return self._ended(number, case)
            hang = watch.poll()
            if hang is not None:
                return self.hung(number, case, hang)
            # The wait returns early if the process ends; new files must be polled for.
            self.wait(self.poll_s)

    def wait(self, seconds: float) -> None:
        """Wait for the end of the process, for at most `seconds`."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return

    def is_past(self, number: int, ranks: Iterable[int]) -> bool:
        """True if one of `ranks` has begun the next case. Then all files of this one are complete:
        the harness synchronizes its ranks in between."""
        numbers = list(self.cases)
        following = numbers[numbers.index(number) + 1 :][:1]
        return any(
            (self.directory / f"{after}.{rank}.{kind}").exists()
            for after in following
            for rank in ranks
            for kind in ("rec", "out")
        )

    def _done(self, number: int, case: Case) -> Result | None:
        """The Result of a finished case; None while an output is incomplete, or if a rank has
        crashed when the kernel's communicator was freed."""
        try:
            outputs = self.outputs(paths_of(self.directory, number, case, "out"))
        except (InputError, FileNotFoundError):
            return None
        paths = paths_of(self.directory, number, case, "rec") if case.record else ()
        headers = map(peek, paths)
        for header in headers:  # MPI_Abort reopens a recording that was closed
            if header is not None and (is_struck(header) or not header["closed_ns"]):
                return None
        result = self.result(number, case, DONE, outputs=outputs)
        self.put_away(number, result)
        return result

    def _ended(self, number: int, case: Case) -> Result:
        """The Result of a case during which the process has ended: a crash or a deadlock."""
        log = self.said()
        ranks = self.recorded(number, case)
        states = self.states(ranks)
        harness = _HARNESS.search(self._harness_said() or log)
        # SMPI leaves ranks waiting in the harness for one that has called MPI_Abort.
        if harness is None and self.found_deadlock(log) and not blame(ranks):
            hang = Hang(DEADLOCK, states)
            return self.result(number, case, DEADLOCK, hang=hang, states=states, log=log)
        if refused := self.refused(log):
            return self.error(number, case, detail=refused, states=states, log=log)
        # Without a recording, the progress of the case is unknown.
        if harness or (case.record and never_began(states)):
            # The harness's message begins with the line from its file of cases.
            detail = (
                harness[1].removeprefix(f"{self.line(number, case)}: ")
                if harness
                else self.remarks(log)
            )
            return self.error(number, case, detail=detail, states=states, log=log)
        trapped = trap(ranks)
        return self.result(
            number,
            case,
            TRAP if trapped else CRASH,
            crashed=trapped or blame(ranks) or self.culprit(case, log),
            detail=self.remarks(log),
            states=states,
            log=log,
            sanitizer=self.reports(ranks),
        )


def run_in_turn(
    cases: Sequence[Case],
    batches: Iterable[Iterable[int]],
    start: Callable[[dict[int, Case]], Run],
    *,
    groups: Groups | None = None,
    on_result: Callable[[Result], object] | None = None,
    revised: Callable[[Result], Result] = lambda result: result,
    budget: float | None = None,
    used: Callable[[bool], float] | None = None,
    **limits: Any,
) -> list[Result]:
    """The Result of each of `cases`.

    A case that crashes, or fails before it has begun, in a process that finished another, runs
    again in a process of its own: a kernel may overwrite memory, and finish before that has any
    effect.

    batches    the numbers of the cases that one run can take, in the order in which they run
    start      starts a run of {number: Case}
    groups     for each case the groups that it is in. Once a case has not ended properly, cases
               whose groups have all failed are skipped: they would most likely take as long again.
    on_result  is called with each Result, except those of skipped cases
    revised    takes each Result and returns what replaces it
    budget     seconds of processor time of all cases together. Once it is used up, the case that
               is running is ended, and those that are left are not run: they are all SPENT.
    used       as mpilab.util.processes.ProcessorTime, which is the default
    limits     those of mpilab.runners.hang.Watch. After each time-out, `most_work` is halved, down
               to LEAST_WORK_S, so that many such cases do not add up.
    """
    memberships = [(i,) for i in range(len(cases))] if groups is None else list(groups)
    results: dict[int, Result] = {}
    failed: set[Hashable] = set()
    left_of_it = _counting_down(budget, used or ProcessorTime()) if budget is not None else None
    if left_of_it is not None:
        limits["left_of_all"] = left_of_it
    is_spent = False
    for batch in batches:
        left = list(batch)
        while left:
            for number in left:
                if failed.issuperset(memberships[number]):
                    results[number] = Result(cases[number], SKIPPED)
            left = [number for number in left if number not in results]
            if is_spent:
                for number in left:
                    results[number] = Result(cases[number], SPENT)
                    if on_result:
                        on_result(results[number])
                break
            if not left:
                break
            run = start({number: cases[number] for number in left})
            with closing(run.results(**limits)) as found:
                for number, result in found:
                    if number != left[0] and _may_be_due_to_another(result):
                        break  # the next run begins with it
                    if left_of_it is not None:
                        is_spent = left_of_it(result.outcome != DONE) <= 0
                    if result.hang is not None and result.hang.is_spent:
                        is_spent, result = True, Result(result.case, SPENT)
                    results[number] = result = revised(result)
                    if result.outcome != DONE:
                        failed.update(memberships[number])
                    most = limits.get("most_work")
                    if result.outcome == TIME_OUT and most is not None:
                        limits["most_work"] = max(most / 2, LEAST_WORK_S)
                    if on_result:
                        on_result(result)
                    if is_spent:
                        break
            if left_of_it is not None:
                is_spent = left_of_it(True) <= 0 or is_spent
            left = [number for number in left if number not in results]
    return [results[number] for number in range(len(cases))]


def _counting_down(budget: float, used: Callable[[bool], float]) -> Callable[..., float]:
    """A function that returns what is left of a budget that begins now, in seconds.

    Its argument is that of `used`: whether to look afresh.
    """
    end = used(True) + budget
    return lambda fresh=False: end - used(fresh)


def _may_be_due_to_another(result: Result) -> bool:
    """True if a case may have failed because an earlier case of its process overwrote memory of
    MPI, of the harness or of malloc: it crashed, or no rank has begun it."""
    return result.outcome == CRASH or (result.outcome == ERROR and never_began(result.states))


def tail(text: str, lines: int = TAIL_LINES) -> str:
    """The last lines of `text`."""
    return "\n".join(text.strip().splitlines()[-lines:])
