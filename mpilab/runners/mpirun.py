"""Run cases of a kernel with mpirun, and ensure that every case ends.

One mpirun runs all cases with the same number of ranks. If a case hangs or crashes, the run is
ended, and a new one runs the remaining cases.
"""

import os
import re
import secrets
import shutil
import subprocess
import tempfile
import time
from contextlib import closing
from itertools import groupby
from pathlib import Path

from mpilab.cases.case import check_real
from mpilab.cases.output import Output
from mpilab.cluster.guardian import MARKER, Guardian, kill, marked
from mpilab.cluster.location import SHARED_MEMORY, ThisMachine, placed
from mpilab.errors import InputError
from mpilab.hosts import orders, slurm
from mpilab.kernels import build
from mpilab.runners.hang import COMPUTING, Watch, never_began, read_states, sample
from mpilab.runners.result import (
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
    remains,
    signal_name,
)
from mpilab.util.processes import end_family

# One mpirun of the harness: its process, its files, its end.

LOG_BYTES = 1 << 20  # a kernel may print endlessly
LOOK_S = 1.0  # between checks for ranks; one costs some 10 ms
LOOKS = 2  # checks without a rank, until the ranks are given up
_NOISE = "plm:ssh: Warning: setpgid("  # harmless: a daemon was faster than mpirun


class Mpirun:
    """mpirun of the harness over `cases`, {number: Case}, at `where` (mpilab.cluster.location).

    directory   of its files, in `scratch`; the names of ranks' files begin with the case number
    The other arguments are those of mpilab.runners.mpirun.run_cases.
    """

    def __init__(self, library, function, cases, where, scratch, sanitize, settings, guarded):
        command = where.mpirun(len(where.names))
        self.harness = build.sanitized_harness() if sanitize else build.need(build.HARNESS_PROGRAM)
        self.on_hosts, self.is_remote = where.on_hosts, where.is_remote
        self.directory = Path(tempfile.mkdtemp(dir=scratch))
        self.identity = secrets.token_hex(8)
        # Otherwise segments of killed ranks would stay in shared memory forever.
        name = f"mpilab-{self.identity}"
        self.segments = where.shared_memory(name)
        own = {"TMPDIR": str(self.directory)}
        for directory in self.segments:
            directory.mkdir(mode=0o700)
            own["OMPI_MCA_btl_sm_backing_directory"] = str(SHARED_MEMORY / name)
        if where.on_hosts:  # each host needs private files for its daemon, too
            own["TMPDIR"] = str(SHARED_MEMORY / name)
        if where.on_hosts or guarded is not None:
            own[MARKER] = self.identity
        if sanitize:
            own |= build.settings(self.directory)
        listing = self.directory / "cases"
        lines = "".join(case.line(number) + "\n" for number, case in cases.items())
        listing.write_text(lines, encoding="ascii")
        self.guardian = None
        if guarded is not None:
            self.guardian = Guardian(self.identity, [scratch, *self.segments, *guarded])
        command += [str(self.harness), str(library), function, str(listing), str(self.directory)]
        with open(self.directory / "log", "wb") as log:
            self.process = subprocess.Popen(
                where.command(command),
                env=where.environment(len(where.names), **settings) | own,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._looked, self._empty_looks = time.monotonic(), 0

    @property
    def has_ended(self):
        """True if it has ended, or should have.

        On several hosts, mpirun of Open MPI 5.0.11 sometimes waits forever after all ranks have
        ended: after 3 of 120 crashes, and never on one host.
        """
        return self.process.poll() is not None or (self.on_hosts and self._is_deserted())

    @property
    def status(self):
        """Its exit status in words."""
        code = self.process.poll()
        return "all ranks ended, mpirun did not" if code is None else f"exit status {code}"

    def wait(self, seconds):
        """Wait for its end, for at most `seconds`."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return

    def said(self):
        """The end of the output of mpirun and the harness."""
        with open(self.directory / "log", "rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - LOG_BYTES))
            text = log.read().decode(errors="replace")
        return "".join(line for line in text.splitlines(keepends=True) if _NOISE not in line)

    def end(self):
        """End everything that it started, and remove its files."""
        if self.on_hosts:
            kill(self.identity)  # daemons on other hosts may have detached themselves
        if self.process.poll() is None:
            # Killing mpirun or srun could leave ranks on other nodes running.
            end_family(self.process.pid, politely=self.is_remote)
            self.process.wait()
        for directory in (*self.segments, self.directory):
            shutil.rmtree(directory, ignore_errors=True)
        if self.guardian is not None:
            self.guardian.let_go()

    def _is_deserted(self):
        """True if ranks have begun, and the last LOOKS checks found none."""
        if self._empty_looks < LOOKS and time.monotonic() - self._looked >= LOOK_S:
            there = any(map(self._is_rank, marked(self.identity)))
            begun = any(path.name[0].isdigit() for path in self.directory.iterdir())
            self._empty_looks = self._empty_looks + 1 if begun and not there else 0
            self._looked = time.monotonic()
        return self._empty_looks == LOOKS

    def _is_rank(self, process):
        try:
            return os.path.samefile(f"/proc/{process}/exe", self.harness)
        except OSError:  # it has just ended
            return False


POLL_S = 0.03
# Open MPI's message for an error on a communicator with fatal errors (MPI_COMM_SELF, ...).
_MPI_ABORTED = re.compile(r"reported by process \[\d+,(\d+)\].*?\*\*\* (MPI_ERR_\w+)", re.DOTALL)
_SIGNALLED = re.compile(r"process rank (\d+) .*?exited\s+on\s+signal\s+(\d+)", re.DOTALL)


def run_cases(
    library,
    function,
    cases,
    *,
    groups=None,
    limit=10.0,
    standstill=1.0,
    work=None,
    on_result=None,
    keep=None,
    sanitize=False,
    settings=None,
    guarded=None,
    hosts=None,
    names=None,
):
    """Run `cases` of `function` in the shared object `library` with mpirun; list of Result.

    A case with its own `function` runs that one instead: so one mpirun can compare several.

    groups   for each case the groups that it is in. Once a case has not ended properly, cases of
             which all groups have failed are skipped: they would most likely cost the same time
             again.
    limit    seconds per case.
    standstill, work   see mpilab.runners.hang.Watch.
    keep     a directory for the raw files of finished cases, named by the case's index in `cases`.
             The counts of a monitored case are only there (mpilab.measure.openmpi_traffic).
    sanitize   `library` was built with sanitizers: run it in the program with their runtime.
    settings   environment variables of Open MPI in addition to the defaults; the user's values take
             precedence.
    guarded  for long runs: if this process is killed, a guardian ends all that it started, and
             removes its files and the directories listed here.
    hosts    mpilab.hosts.emulated.EmulatedHosts that are up, or mpilab.hosts.slurm.Allocation: run
             the ranks there. Default: this machine, or as MPILAB_HOSTS says.
    names    the host of each rank of the largest case; default: host by host, by their slots.
    """
    check_real(cases)
    groups = list(groups) if groups is not None else [(i,) for i in range(len(cases))]
    results = [None] * len(cases)
    failed_groups = set()
    order = sorted(range(len(cases)), key=lambda i: cases[i].ranks)
    folder = None
    hosts = slurm.wished() if hosts is None else hosts
    if hosts is not None:
        names = _names(hosts, names, max(case.ranks for case in cases)) if cases else []
        folder = hosts.directory  # visible on the hosts, too
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
                    library,
                    function,
                    {i: cases[i] for i in left},
                    where,
                    Path(scratch),
                    keep,
                    sanitize,
                    settings or {},
                    guarded,
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


def _names(hosts, names, ranks):
    """The host of each rank of the largest case."""
    if names is None and isinstance(hosts, slurm.Allocation):
        return hosts.order("seq", ranks)
    if names is None:
        return orders.order(hosts.description, "seq", ranks=ranks)
    if len(names) < ranks:
        raise InputError(f"names: {len(names)} hosts for {ranks} ranks; give one for each rank")
    return names


class _Run:
    """One mpirun over several cases with the same number of ranks, on this machine or on hosts."""

    def __init__(
        self, library, function, cases, where, scratch, keep, sanitize, settings, guarded=None
    ):
        self.cases, self.where, self.keep = cases, where, keep
        self.ranks = len(where.names)
        self.library, self.function = str(library), function
        self.mpirun = Mpirun(library, function, cases, where, scratch, sanitize, settings, guarded)
        self.directory = self.mpirun.directory

    def results(self, **limits):
        """(number, Result) of each case in turn, up to and including the first that fails or
        leaves messages or requests in MPI."""
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
                # These are written last; the last case ends with its mpirun.
                over = all(path.exists() for path in outputs)
            done = self._done(number, case, outputs) if over else None
            if done is not None:
                return done
            if ended:
                return self._crash(number, case)
            hang = watch.poll()
            if hang is not None:
                return self._hung(number, case, hang)
            # The wait returns early if mpirun ends; new files must be polled for.
            self.mpirun.wait(POLL_S)

    def _following(self, number):
        numbers = list(self.cases)
        return numbers[numbers.index(number) + 1]

    def _is_past(self, following):
        """True if a rank has begun the next case. Then all files of this one are complete: the
        harness synchronizes its ranks in between."""
        if following is None:
            return False
        return any(
            (self.directory / f"{following}.{rank}.rec").exists()
            or (self.directory / f"{following}.{rank}.out").exists()
            for rank in range(self.ranks)
        )

    def _result(self, number, case, outcome, **more):
        """A Result with all files that the case left behind, whatever the outcome."""
        places = self.where.places if self.where.is_spread else ()
        result = gather(
            self.directory,
            number,
            case,
            outcome,
            library=self.library,
            function=case.function or self.function,
            places=places[::-1] if case.reversed else places,
            **more,
        )
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
        """The Result of a finished case; None while an output is incomplete."""
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
        # Without a recording, nobody knows how far the case came.
        if harness or (case.record and never_began(states)):
            # The harness's message begins with the line from its file of cases.
            detail = harness[1].removeprefix(f"{case.line(number)}: ") if harness else _tail(log)
            return Result(case, ERROR, detail=detail, states=states, log=log)
        crashed = blame(ranks)
        if crashed is None and (match := _SIGNALLED.search(log)):
            crashed = (self._kernel_rank(case, int(match[1])), signal_name(int(match[2])))
        elif crashed is None and (match := _MPI_ABORTED.search(log)):
            crashed = (self._kernel_rank(case, int(match[1])), match[2])
        elif crashed is None:
            crashed = (None, self.mpirun.status)
        processes = {int(rank.header["pid"]): rank.rank for rank in ranks if rank is not None}
        reports = build.reports(self.directory, processes)
        return self._result(
            number,
            case,
            CRASH,
            crashed=crashed,
            detail=_tail(log),
            states=states,
            log=log,
            sanitizer=reports,
        )

    @staticmethod
    def _kernel_rank(case, world_rank):
        """The kernel's rank for a rank of MPI_COMM_WORLD: its communicator may be reversed."""
        return case.ranks - 1 - world_rank if case.reversed else world_rank


def _tail(text, lines=12):
    return "\n".join(text.strip().splitlines()[-lines:])
