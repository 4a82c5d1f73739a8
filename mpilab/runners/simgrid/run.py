"""Simulate cases of a kernel with smpirun, follow each to its end, and return its Result."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psutil

from mpilab.cases.output import Output
from mpilab.errors import InputError
from mpilab.hosts import orders, platforms
from mpilab.hosts.platforms import holding, of_places, standing
from mpilab.hosts.platforms import platform as platform_of
from mpilab.kernels.simgrid import tool, version_of
from mpilab.runners.hang import (
    BLOCKED,
    COMPUTING,
    FINISHED,
    POLLING,
    Hang,
    can_progress,
    never_began,
    read_states,
    sample,
)
from mpilab.runners.result import (
    CRASH,
    DEADLOCK,
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
from mpilab.trace.recording import HEADER, NONE, RECORD, peek

# Detect a lack of progress in a simulation; SimGrid itself detects only deadlocks.

WATCHED_RANKS = 256  # with more, recordings are not examined while they are written


class Watch:
    """Detects a lack of progress: a rank computes forever, or ranks poll in vain.

    Ranks run one at a time: while one computes, all others are in calls. In a simulation that is
    merely slow, no rank is outside of a call; so what counts is processor time since the last
    recorded call.
    """

    def __init__(self, run, number, case, standstill):
        self.run, self.number, self.case, self.standstill = run, number, case, standstill
        self.is_on = case.record and case.ranks <= WATCHED_RANKS
        self.paths = paths_of(run.directory, number, case, "rec")
        self.seen, self.used = None, 0.0

    def look(self):
        """DEADLOCK, TIME_OUT or None."""
        if not self.is_on:
            return None
        headers = [peek(path) for path in self.paths]
        used = self._used()
        seen = [None if h is None else (int(h["progress"]), int(h["closed_ns"])) for h in headers]
        if seen != self.seen:
            self.seen, self.used = seen, used
        if None in seen or used - self.used < self.standstill or not outside(headers):
            return None
        ranks = read_ranks(self.run.directory, self.number, self.case)
        if None in ranks:
            return None
        states = {state.state for state in read_states(ranks, latest_ns(ranks))}
        if COMPUTING in states:
            return TIME_OUT
        stuck = states <= {FINISHED, BLOCKED, POLLING} and not can_progress(ranks)
        return DEADLOCK if stuck else None

    def _used(self):
        """Processor time, in seconds, of all processes that smpirun has started."""
        used = 0.0
        try:
            for process in psutil.Process(self.run.process.pid).children(recursive=True):
                used += sum(process.cpu_times()[:2])
        except psutil.NoSuchProcess:
            return self.used  # it has just ended, which the caller will notice
        return used


def outside(headers):
    """Ranks that have begun and not finished the kernel, and are not in a call."""
    return [
        i
        for i, h in enumerate(headers)
        if h is not None and h["closed_ns"] == 0 and h["current"] == NONE
    ]


def latest_ns(ranks):
    """The latest simulated time in these recordings."""
    times = [0]
    for rank in ranks:
        if rank is not None:
            times.append(int(rank.header["opened_ns"]))
            for name in ("begin_ns", "end_ns"):
                times.append(int(rank.records[name].max(initial=0)))
    return max(times)


# The memory of a simulation, with a limit.

MEMORY_LOOK_S = 0.01


class Memory:
    """Watches the resident memory of a process and its descendants; kills its group above `most`
    bytes.

    peak       the maximum over checks every LOOK_S; each process counts with its own maximum so
               far, which Linux records (VmHWM).
    exceeded   True if it was killed.
    """

    def __init__(self, pid, most):
        self._top, self.most = psutil.Process(pid), most
        self.peak, self.exceeded = 0, False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self):
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _watch(self):
        while not self._over.wait(MEMORY_LOOK_S) and self._look():
            pass

    def _look(self):
        """Check the memory; True if there is anything left to watch."""
        try:
            family = self._top, *self._top.children(recursive=True)
            self.peak = max(self.peak, sum(_resident(one.pid) for one in family))
            if self.peak > self.most:
                self.exceeded = True
                os.killpg(self._top.pid, signal.SIGKILL)
        except (psutil.NoSuchProcess, ProcessLookupError):
            return False  # it has ended
        return not self.exceeded


def _resident(pid):
    """The largest resident memory that a process has had, in bytes; 0 if it has just ended."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        return 0
    except OSError:
        return 0


POLL_S = 0.02
LOOK_S = 0.5  # between checks for progress
LOG_BYTES = 1 << 20
_DEADLOCK = re.compile("Deadlock detected")
_HARNESS = re.compile(r"^mpilab-harness: (.*)", re.MULTILINE)
# smpirun's echo of its command line, and SimGrid's traces.
_NOISE = re.compile(r"^(\./program .*|Execution failed with code .*|Backtrace .*|  ->.*|)\n", re.M)
# Error codes that a kernel may return: SMPI's (smpi.h) -> Open MPI's (mpi.h). The codes in
# recordings are already Open MPI's (src_c/runtime/simulated/answers.c).
_RETURNED = {
    1: 5,
    2: 13,
    3: 3,
    4: 7,
    5: 17,
    6: 2,
    7: 6,
    8: 4,
    9: 15,
    10: 9,
    11: 10,
    12: 16,
    13: 18,
    14: 19,
    15: 1,
    17: 12,
    18: 11,
    19: 39,
    24: 8,
    25: 14,
    26: 36,
}
_LOGS = ("smpi_config", "xbt_cfg", "smpi_utils", "smpi_coll", "smpi_colls")


class Run:
    """smpirun of `cases`, {number: Case} with the same ranks, on the hosts `names` of `platform`.

    library, function, keep   as in mpilab.runners.simgrid.run.simulate; `scratch` is the folder
                              for its files.
    """

    def __init__(self, library, function, cases, platform, names, scratch, keep):
        self.library, self.function, self.cases = Path(library), function, cases
        self.keep, self.names = keep, names
        self.places = platform.description.places(names)
        self.directory = Path(tempfile.mkdtemp(dir=scratch))
        self._write_files(platform)
        smpirun = tool("smpirun")
        settings = {
            **platforms.options(platform, version_of(smpirun)),
            **_algorithms(function, cases.values()),
        }
        # smpirun splits names at blanks: so all names are short, in a directory of our own.
        command = [
            smpirun,
            "-np",
            str(len(names)),
            "-platform",
            "platform.xml",
            "-hostfile",
            "hosts",
            "./program",
            "./library.so",
            function or "-",
            "cases",
            ".",
            *(f"--cfg={name}:{value}" for name, value in settings.items()),
            *(f"--log={name}.thres:warning" for name in _LOGS),
            "--cfg=smpi/tmpdir:.",
        ]
        # Every rank keeps a recording open; thousands of ranks exceed the usual limit.
        command = ["sh", "-c", 'ulimit -n "$(ulimit -H -n)"; exec "$@"', "sh", *command]
        with open(self.directory / "log", "wb") as log:
            self.process = subprocess.Popen(
                command,
                cwd=self.directory,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _write_files(self, platform):
        stripped = self.library.with_suffix(".run")
        (self.directory / "program").symlink_to(stripped.resolve())
        (self.directory / "library.so").symlink_to(self.library.resolve())
        for name, text in (
            ("platform.xml", platforms.xml(platform)),
            ("hosts", "".join(f"{name}\n" for name in self.names)),
            ("cases", "".join(f"{case.line(i)}\n" for i, case in self.cases.items())),
        ):
            (self.directory / name).write_text(text, encoding="ascii")

    def _environment(self):
        groups = dict.fromkeys(f"{place.node}={place.group}" for place in self.places)
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("OMPI_", "SLURM_", "PMIX_", "PRTE_"))
        }
        return {**kept, "MPILAB_GROUPS": ",".join(groups), "LC_ALL": "C", "TMPDIR": "."}

    def results(self, *, limit, standstill):
        """(number, Result) of each case in turn, up to and including the first that fails or
        leaves messages or requests in MPI."""
        try:
            for number, case in self.cases.items():
                result = self._follow(number, case, limit, standstill)
                yield number, result
                if result.outcome != DONE or remains(result):
                    return
        finally:
            self._end()
            shutil.rmtree(self.directory, ignore_errors=True)

    def _follow(self, number, case, limit, standstill):
        began = looked = time.monotonic()
        watch = Watch(self, number, case, standstill)
        while True:
            ended = self.process.poll() is not None
            if ended or self._is_past(number):
                done = self._done(number, case)
                if done is not None:
                    return done
                if ended:
                    return self._ended(number, case)
            now = time.monotonic()
            if now - looked >= LOOK_S:
                looked = now
                kind = TIME_OUT if now - began >= limit else watch.look()
                if kind:
                    return self._hung(number, case, kind)
            try:
                self.process.wait(POLL_S)
            except subprocess.TimeoutExpired:
                continue

    def _is_past(self, number):
        """True if a rank has begun the next case; the harness synchronizes ranks in between."""
        numbers = list(self.cases)
        after = numbers[numbers.index(number) + 1 :][:1]
        return any(
            os.path.exists(f"{self.directory}/{i}.0.{kind}")
            for i in after
            for kind in ("rec", "out")
        )

    def _done(self, number, case):
        """The Result of a finished case; None while an output is incomplete."""
        paths = paths_of(self.directory, number, case, "out")
        try:
            outputs = _as_open_mpi([Output.read(path) for path in paths])
        except (InputError, FileNotFoundError):
            return None
        result = self._result(number, case, DONE, outputs=outputs)
        recorded = [rank.path for rank in result.ranks if rank is not None]
        put_away([*paths, *recorded], self.keep)
        return result

    def _result(self, number, case, outcome, **more):
        places = () if case.places else self.places
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

    def _ended(self, number, case):
        """The Result if smpirun ended without finishing this case: a deadlock or a crash."""
        log = self._said()
        ranks = self._recorded(number, case)
        states = read_states(ranks, latest_ns(ranks))
        harness = _HARNESS.search(log)
        if harness is None and _DEADLOCK.search(log):
            return self._result(
                number, case, DEADLOCK, hang=Hang(DEADLOCK, states), states=states, log=log
            )
        if harness or (case.record and never_began(states)):
            detail = harness[1].removeprefix(f"{case.line(number)}: ") if harness else _tail(log)
            return self._result(number, case, ERROR, detail=detail, states=states, log=log)
        status = self.process.returncode
        ended = signal_name(status - 128) if status > 128 else f"exit status {status}"
        crashed = blame(ranks) or (None, ended)  # SimGrid itself, for example on a bad buffer
        return self._result(
            number, case, CRASH, crashed=crashed, detail=_tail(log), states=states, log=log
        )

    def _hung(self, number, case, kind):
        samples, computing = {}, []
        if case.record and kind == TIME_OUT:
            recorded = paths_of(self.directory, number, case, "rec")
            computing = outside(map(peek, recorded))
            samples = sample({i: recorded[i] for i in computing})
        self._end()
        for rank in computing:
            if samples and rank not in samples:  # ranks run one at a time, and this one has not run
                os.unlink(recorded[rank])
        ranks = self._recorded(number, case)
        states = read_states(ranks, latest_ns(ranks))
        log = self._said()
        if case.record and never_began(states):
            return self._result(
                number,
                case,
                ERROR,
                states=states,
                log=log,
                detail=f"no rank began; smpirun said: {_tail(log)}",
            )
        return self._result(
            number, case, kind, hang=Hang(kind, states), states=states, samples=samples, log=log
        )

    def _recorded(self, number, case):
        """read_ranks of a run that has ended, after truncating the recordings to their content."""
        for path in paths_of(self.directory, number, case, "rec") if case.record else ():
            header = peek(path)
            used = (
                HEADER.itemsize + int(header["count"]) * RECORD.itemsize
                if header is not None
                else 0
            )
            if HEADER.itemsize <= used < os.path.getsize(path):
                os.truncate(path, used)
        return read_ranks(self.directory, number, case) or [None] * case.ranks

    def _said(self):
        """The end of the output of SimGrid and the harness."""
        with open(self.directory / "log", "rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - LOG_BYTES))
            return _NOISE.sub("", log.read().decode(errors="replace"))

    def _end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def _algorithms(function, cases):
    """The algorithms for SMPI's own collectives: Open MPI's choice if a collective itself is run as
    a kernel; for the harness and topologies, those with the fewest messages to simulate."""
    chosen = {"allgather": "bruck", "allreduce": "rdb"}
    for case in cases:
        if (case.function or function).endswith("_openmpi"):
            chosen[case.collective] = "ompi"
    return {f"smpi/{collective}": name for collective, name in chosen.items()}


def _as_open_mpi(outputs):
    """The outputs, with the error codes that the kernel returned as Open MPI numbers them.

    Numbers that the kernel made up, its rank or the number of ranks, remain.
    """
    codes = {output.rank: output.returned for output in outputs if output.returned}
    is_rank = len(codes) > 1 and all(rank == code for rank, code in codes.items())
    if is_rank or set(codes.values()) == {len(outputs)}:
        return outputs
    return [replace(one, returned=_RETURNED.get(one.returned, one.returned)) for one in outputs]


def _tail(text, lines=12):
    return "\n".join(text.strip().splitlines()[-lines:])


# Cases of a kernel on a simulated platform: the Results of mpilab.runners.mpirun.run_cases, but in
# simulated time.
#
# One smpirun simulates all cases with the same ranks on the same hosts, one after the other.
# Computation is free: the time of a case depends only on its messages, and is the same on every
# machine and in every run.

MOST_RANKS = 4096  # more would exceed the system's limit on mappings of a process, vm.max_map_count
ONE_HOST = "flat-1x{ranks}"


def simulate(
    library,
    function,
    cases,
    platform=None,
    *,
    order="seq",
    seed=1,
    groups=None,
    limit=60.0,
    standstill=2.0,
    on_result=None,
    keep=None,
):
    """Simulate `cases` of `function` in `library` (mpilab.kernels.simgrid); list of Result.

    platform   a Platform, Description or name (mpilab.hosts.platforms). Default: the case's own
               platform, nodes according to its `places`, or one host. Hosts take more ranks than
               they have slots if all take the same number (platforms.holding).
    order      on which hosts of the platform the ranks are: one of mpilab.hosts.orders.ORDERS (some
               have a `seed`), or a list with the name of each rank's host.
    groups     for each case the groups that it is in, as in mpilab.runners.mpirun.run_cases.
    limit      seconds of real time per case.
    standstill seconds of processor time without a call, after which the ranks are examined.
    on_result, keep   as in mpilab.runners.mpirun.run_cases.

    A case without a recording that does not end is simulated again with one, so that its Result
    shows where the ranks are. If it then ends, the machine was too busy for `limit`: its outcome is
    ERROR.

    Raises SetupError without SimGrid, InputError for what cannot be simulated.
    """
    tool("smpirun")
    cases = list(cases)
    where = [_where(case, platform, order, seed) for case in cases]
    groups = list(groups) if groups is not None else [(i,) for i in range(len(cases))]
    results, failed = [None] * len(cases), set()
    with tempfile.TemporaryDirectory(prefix="mpilab-simulated-") as scratch:
        for place in dict.fromkeys(where):
            left = [i for i, one in enumerate(where) if one == place]
            while left:
                for number in [i for i in left if failed.issuperset(groups[i])]:
                    results[number] = Result(cases[number], SKIPPED)
                left = [i for i in left if results[i] is None]
                if not left:
                    break
                run = Run(library, function, {i: cases[i] for i in left}, *place, scratch, keep)
                with closing(run.results(limit=limit, standstill=standstill)) as came:
                    for number, result in came:
                        if result.outcome != DONE and not cases[number].record:
                            result = _again(
                                library,
                                function,
                                result,
                                place,
                                scratch,
                                limit=limit,
                                standstill=standstill,
                            )
                        results[number] = result
                        left.remove(number)
                        if result.outcome != DONE:
                            failed.update(groups[number])
                        if on_result:
                            on_result(result)
    return results


def _again(library, function, result, place, scratch, **limits):
    """The Result of the same case simulated with a recording, for the case as requested."""
    case = replace(result.case, record=True)
    with closing(
        Run(library, function, {0: case}, *place, scratch, None).results(**limits)
    ) as came:
        _, recorded = next(came)
    if recorded.outcome != DONE:
        return replace(recorded, case=result.case)
    if result.outcome != TIME_OUT:
        return result
    detail = "it took too long, but came to its end when it was simulated again: a busy machine?"
    return replace(result, outcome=ERROR, detail=detail)


def _where(case, platform, order, seed):
    """(platform, name of each rank's host in MPI_COMM_WORLD) of a case; both are comparable."""
    if case.collective == "read":
        raise InputError("read: files cannot be simulated (SimGrid moves no data of MPI-IO)")
    if case.openmpi >= 0 or case.monitor:
        raise InputError(
            "openmpi=…, monitor=…: Open MPI's own algorithms and counters cannot be simulated; "
            "leave them out, or run the case with mpirun"
        )
    if case.ranks > MOST_RANKS:
        raise InputError(f"ranks={case.ranks}: at most {MOST_RANKS} can be simulated")
    if (case.places or case.platform) and platform is not None:
        raise InputError(
            "the case has places of its own; leave them out where it runs on a platform"
        )
    if case.platform:
        return standing(case.platform)
    if case.places:
        found, names = of_places(case.places)
        # In a reversed communicator, the harness assigns places in the order of its own ranks.
        return found, tuple(names[::-1] if case.reversed else names)
    found = platform_of(ONE_HOST.format(ranks=case.ranks) if platform is None else platform)
    if not isinstance(order, str):
        names = tuple(order)
        known = {host.name for host in found.description.hosts}
        wrong = [name for name in names if name not in known]
        if wrong or len(names) < case.ranks:
            raise InputError(
                f"order: hosts of {len(names)} ranks for {case.ranks}"
                + (f", and {wrong[0]!r} is none of {found.name}" if wrong else "")
            )
        return found, names[: case.ranks]
    found = holding(found, case.ranks)
    return found, tuple(orders.order(found.description, order, ranks=case.ranks, seed=seed))


def seconds_of(result):
    """Simulated seconds of the last call, from the first rank's start to the last one's end."""
    return result.last_call_ns / 1e9
