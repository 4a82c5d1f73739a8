"""Run cases of a kernel with mpirun, and see to it that every case comes to an end.

One mpirun runs all cases of the same number of ranks. When a case hangs or crashes, the run is
ended and the cases after it get a new one.
"""

import re
import tempfile
from contextlib import closing
from itertools import groupby
from pathlib import Path

from mpilab import allocation, orders, sanitized
from mpilab.cluster.location import ThisMachine, placed
from mpilab.errors import InputError
from mpilab.hang import COMPUTING, Watch, never_began, read_states
from mpilab.harness import Output, check_real
from mpilab.mpirun import Mpirun
from mpilab.remains import remains
from mpilab.result import (
    CRASH,
    DONE,
    ERROR,
    SKIPPED,
    TIME_OUT,
    Result,
    blame,
    gather,
    paths_of,
    put_away,
    read_ranks,
    signal_name,
)
from mpilab.sampling import sample

POLL_S = 0.03
# What Open MPI says of an error on a communicator whose errors are fatal (MPI_COMM_SELF, ...).
_MPI_ABORTED = re.compile(r"reported by process \[\d+,(\d+)\].*?\*\*\* (MPI_ERR_\w+)", re.DOTALL)
_SIGNALLED = re.compile(r"process rank (\d+) .*?exited\s+on\s+signal\s+(\d+)", re.DOTALL)


def run_cases(library, function, cases, *, groups=None, limit=10.0, standstill=1.0,
              work=None, on_result=None, keep=None, sanitize=False, settings=None,
              guarded=None, hosts=None, names=None):  # fmt: skip
    """Run `cases` of `function` in the shared object `library` with mpirun; list of Result.

    A case with a `function` of its own runs that one instead: so one mpirun can compare several.

    groups   for each case the groups that it is in. Once a case of a group has not come to its
             end, cases that are in failed groups only are skipped: they would most likely cost
             the same time again.
    limit    seconds that one case may take.
    standstill, work   see mpilab.hang.Watch.
    keep     a directory for the raw files of finished cases, named by the case's place in `cases`.
             Only there are the counts of a case that was monitored (mpilab.sweeps.counted).
    sanitize   `library` was built with sanitizers: run it in the program that holds their runtime.
    settings   environment variables of Open MPI on top of the usual ones; what the user set wins.
    guarded  for long runs: should this process be killed, a guardian ends all that it started, and
             removes its files and the directories that are listed here.
    hosts    mpilab.emulated.EmulatedHosts that are up, or mpilab.allocation.Allocation: the ranks
             run there. Without it on this machine, or where MPILAB_HOSTS says.
    names    the host of each rank of the largest case; default: host by host, by their slots.
    """
    check_real(cases)
    groups = list(groups) if groups is not None else [(i,) for i in range(len(cases))]
    results = [None] * len(cases)
    failed_groups = set()
    order = sorted(range(len(cases)), key=lambda i: cases[i].ranks)
    folder = None
    hosts = allocation.wished() if hosts is None else hosts
    if hosts is not None:
        names = _names(hosts, names, max(case.ranks for case in cases)) if cases else []
        folder = hosts.directory  # the hosts see it, too
    with tempfile.TemporaryDirectory(prefix="mpilab-run-", dir=folder) as scratch:
        for ranks, numbers in groupby(order, key=lambda i: cases[i].ranks):
            left = list(numbers)
            while left:
                for number in [i for i in left if failed_groups.issuperset(groups[i])]:
                    results[number] = Result(cases[number], SKIPPED)
                left = [i for i in left if results[i] is None]
                if not left:
                    break
                where = ThisMachine(ranks) if hosts is None else placed(hosts, names[:ranks])
                run = _Run(
                    library, function, {i: cases[i] for i in left}, where, Path(scratch), keep,
                    sanitize, settings or {}, guarded,
                )  # fmt: skip
                with closing(run.results(limit=limit, standstill=standstill, work=work)) as came:
                    for number, result in came:
                        results[number] = result
                        left.remove(number)
                        if result.outcome != DONE:
                            failed_groups.update(groups[number])
                        if on_result:
                            on_result(result)
    return results


def _names(hosts, names, ranks):
    """The host of each rank, of the largest case."""
    if names is None and isinstance(hosts, allocation.Allocation):
        return hosts.order("seq", ranks)
    if names is None:
        return orders.order(hosts.description, "seq", ranks=ranks)
    if len(names) < ranks:
        raise InputError(f"names: {len(names)} hosts for {ranks} ranks; give one for each rank")
    return names


class _Run:
    """One mpirun over several cases with the same number of ranks, on this machine or on hosts."""

    def __init__(self, library, function, cases, where, scratch, keep, sanitize, settings,
                 guarded=None):  # fmt: skip
        self.cases, self.where, self.keep = cases, where, keep
        self.ranks = len(where.names)
        self.library, self.function = str(library), function
        self.mpirun = Mpirun(library, function, cases, where, scratch, sanitize, settings, guarded)
        self.directory = self.mpirun.directory

    def results(self, **limits):
        """(number, Result) of each case in turn, up to and including the first that fails or
        leaves something behind."""
        try:
            for number, case in self.cases.items():
                result = self._follow(number, case, limits)
                yield number, result
                if result.outcome != DONE or remains(result):
                    return
        finally:
            self.mpirun.end()

    def _follow(self, number, case, limits):
        watch = Watch(self.directory, number, case.ranks, **limits)
        outputs = [self.directory / f"{number}.{rank}.out" for rank in range(case.ranks)]
        is_last = number == next(reversed(self.cases))
        following = None if is_last else self._following(number)
        while True:
            ended = self.mpirun.has_ended
            over = ended or watch.over or self._is_past(following)
            if not over and not case.record and not is_last:
                # Nothing is written after these; the last case ends with its mpirun.
                over = all(path.exists() for path in outputs)
            done = self._done(number, case, outputs) if over else None
            if done is not None:
                return done
            if ended:
                return self._crash(number, case)
            hang = watch.poll()
            if hang is not None:
                return self._hung(number, case, hang)
            # The end of mpirun is an event; new files of a running one have to be looked for.
            self.mpirun.wait(POLL_S)

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

    def _result(self, number, case, outcome, **more):
        """A Result with all that the case left behind, whatever came of it."""
        places = self.where.places if self.where.is_spread else ()
        result = gather(self.directory, number, case, outcome, library=self.library,
                        function=case.function or self.function,
                        places=places[::-1] if case.reversed else places, **more)  # fmt: skip
        if result.recording is not None:
            put_away([rank.path for rank in result.ranks], self.keep)
            if self.where.is_remote and not case.places:
                seen = [rank.header["host"].decode() for rank in result.ranks]
                result.places = self.where.places_seen(seen)
        for kind in ("txt", "mem"):
            for rank in range(case.ranks):
                (self.directory / f"{number}.{rank}.{kind}").unlink(missing_ok=True)
        if result.access is not None:
            put_away(paths_of(self.directory, number, case, "io"), self.keep)
        return result

    def _done(self, number, case, paths):
        """The Result of a case that has come to its end; None while an output is not whole."""
        try:
            outputs = [Output.read(path) for path in paths]
        except (InputError, FileNotFoundError):
            return None
        result = self._result(number, case, DONE, outputs=outputs)
        put_away(paths, self.keep)
        if case.monitor:
            put_away([path.with_suffix(".mon") for path in paths], self.keep)
        return result

    def _hung(self, number, case, hang):
        log = self.mpirun.said()
        if case.record and never_began(hang.states):
            detail = f"no rank began it in time; mpirun said: {_tail(log)}"
            return Result(case, ERROR, states=hang.states, detail=detail, log=log)
        computing = [s.rank for s in hang.states if s.state == COMPUTING]
        samples = {}
        if hang.kind == TIME_OUT:
            samples = sample({rank: self.directory / f"{number}.{rank}.rec" for rank in computing})
        return self._result(
            number, case, hang.kind, hang=hang, states=hang.states, samples=samples, log=log
        )

    def _crash(self, number, case):
        log = self.mpirun.said()
        ranks = read_ranks(self.directory, number, case)
        states = read_states(ranks)
        harness = re.search(r"^mpilab-harness: (.*)", log, re.MULTILINE)
        # Of a case that is not recorded nobody knows how far it came.
        if harness or (case.record and never_began(states)):
            # The harness names the line of its file of cases first.
            detail = harness[1].removeprefix(f"{case.line(number)}: ") if harness else _tail(log)
            return Result(case, ERROR, detail=detail, states=states, log=log)
        crashed = blame(ranks)
        if crashed is None and (match := _SIGNALLED.search(log)):
            crashed = (self._kernel_rank(case, int(match[1])), signal_name(int(match[2])))
        elif crashed is None and (match := _MPI_ABORTED.search(log)):
            crashed = (self._kernel_rank(case, int(match[1])), match[2])
        elif crashed is None:
            crashed = (None, self.mpirun.status)
        reports = sanitized.reports(self.directory, ranks)
        return self._result(
            number, case, CRASH, crashed=crashed, detail=_tail(log), states=states, log=log,
            sanitizer=reports,
        )  # fmt: skip

    @staticmethod
    def _kernel_rank(case, world_rank):
        """mpirun counts in MPI_COMM_WORLD; the kernel's communicator may be reversed."""
        return case.ranks - 1 - world_rank if case.reversed else world_rank


def _tail(text, lines=12):
    return "\n".join(text.strip().splitlines()[-lines:])
