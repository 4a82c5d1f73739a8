"""Simulate cases of a kernel with SimGrid's SMPI: unchanged C sources, up to thousands of ranks.

`simulate` returns the Results of mpilab.runners.mpirun.run_cases, but in simulated time, on a
platform (mpilab.hosts.platforms); mpilab.kernels.simgrid builds the programs. One smpirun simulates
all cases with the same ranks on the same hosts, one after another. Computation is free: the time of
a case depends only on its messages, and is the same on every machine and in every run.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from mpilab.cases.case import Case, datatype, room
from mpilab.cases.output import Output
from mpilab.errors import InputError
from mpilab.hosts import orders, platforms
from mpilab.hosts.description import Description
from mpilab.hosts.places import Place
from mpilab.hosts.platforms import Platform, holding, of_places, standing, uneven
from mpilab.hosts.platforms import platform as platform_of
from mpilab.kernels.simgrid import tool, version_of
from mpilab.runners.hang import (
    BLOCKED,
    COMPUTING,
    FINISHED,
    POLLING,
    Hang,
    RankState,
    Watch,
    can_progress,
    read_states,
    sample,
)
from mpilab.runners.result import (
    DEADLOCK,
    DONE,
    ERROR,
    TIME_OUT,
    Result,
    paths_of,
    put_away,
    read_ranks,
    signal_name,
)
from mpilab.runners.run import Groups, Program, run_in_turn, tail
from mpilab.trace.recording import HEADER, NONE, RECORD, RankRecording, peek

MOST_RANKS = 4096  # more would exceed the system's limit on mappings of a process, vm.max_map_count
ONE_HOST = "flat-1x{ranks}"
WATCHED_RANKS = 256  # with more, recordings are not examined while they are written
MEMORY_LOOK_S = 0.01
IN_MEMORY = Path("/dev/shm")
MOST_RECORDED = 20_000 * RECORD.itemsize  # bytes a rank (RECORDING_CAPACITY of the harness)
LOOK_S = 0.5  # between checks for progress
_DEADLOCK = re.compile("Deadlock detected")
# SMPI ends the run at an MPI function that it does not implement.
_MISSING = re.compile(r"/CRITICAL\] Not yet implemented: P?(MPI_\w+)")
CANNOT_SIMULATE = "SimGrid cannot simulate"
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
# SimGrid's messages, which are about its own objects, and its shell's about the end.
_SIMGRIDS = re.compile(r"^(\[.*\[\w+/\w+\] .*|Segmentation fault\.?|Aborted)\n?", re.M)
_LOGS = ("smpi_config", "xbt_cfg", "smpi_utils", "smpi_coll", "smpi_colls")


def simulate(
    library: str | Path,
    function: str,
    cases: Iterable[Case],
    platform: Platform | Description | str | None = None,
    *,
    order: str | Sequence[str] = "seq",
    seed: int = 1,
    groups: Groups | None = None,
    limit: float = 60.0,
    standstill: float = 2.0,
    most_work: float | None = None,
    budget: float | None = None,
    on_result: Callable[[Result], object] | None = None,
    keep: str | Path | None = None,
) -> list[Result]:
    """Simulate `cases` of `function` in `library` (mpilab.kernels.simgrid); list of Result.

    platform   a Platform, Description or name (mpilab.hosts.platforms). Default: the case's own
               platform, nodes according to its `places`, or one host. Hosts take more ranks than
               they have slots if all take the same number (platforms.holding).
    order      on which hosts of the platform the ranks are: one of mpilab.hosts.orders.ORDERS (some
               have a `seed`), or a list with the name of each rank's host.
    groups     for each case the groups that it is in, as in mpilab.runners.mpirun.run_cases.
    limit      seconds of real time per case.
    standstill seconds of processor time without a call, after which the ranks are examined.
    most_work, budget   seconds of processor time per case, and of all cases together
               (mpilab.runners.run.run_in_turn).
    on_result, keep   as in mpilab.runners.mpirun.run_cases.

    A case without a recording that does not end is simulated again with one, so that its Result
    shows where the ranks are. If it then ends, the machine was too busy for `limit`: its outcome is
    ERROR.

    Raises SetupError without SimGrid, InputError for what cannot be simulated.
    """
    tool("smpirun")
    cases = list(cases)
    if any(case.memory for case in cases):
        raise InputError("memory: all simulated ranks share one process; use mpilab.run")
    limits: dict[str, Any] = {
        "limit": limit,
        "standstill": standstill,
        "most_work": most_work,
    }
    where = [_where(case, platform, order, seed) for case in cases]
    batches = [
        [number for number, one in enumerate(where) if one == place]
        for place in dict.fromkeys(where)
    ]
    folder = None if keep is not None else folder_in_memory(cases)
    with tempfile.TemporaryDirectory(prefix="mpilab-simulated-", dir=folder) as scratch:

        def start(left: dict[int, Case]) -> Simulation:
            return Simulation(library, function, left, *where[next(iter(left))], scratch, keep)

        def revised(result: Result) -> Result:
            if result.outcome == DONE or result.case.record:
                return result
            recorded = replace(result.case, record=True)
            place = _where(recorded, platform, order, seed)
            run = Simulation(library, function, {0: recorded}, *place, scratch, None)
            with closing(run.results(**limits)) as found:
                return _again(result, next(found)[1])

        return run_in_turn(
            cases,
            batches,
            start,
            groups=groups,
            on_result=on_result,
            revised=revised,
            budget=budget,
            **limits,
        )


def folder_in_memory(cases: Iterable[Case]) -> Path | None:
    """The folder for the files of these cases in memory; None if they belong among other temporary
    files: the user has chosen a place for those, or there is not at least twice the room.

    Two files are created and removed for each rank of each case. On a disk's file system, this
    takes most of the time of a simulation on 64 ranks.
    """
    if any(os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")):
        return None
    if not os.access(IN_MEMORY, os.W_OK | os.X_OK):
        return None
    needed = sum(_dumped(case) for case in cases) + MOST_RECORDED * max(
        (case.ranks for case in cases if case.record), default=0
    )
    found = os.statvfs(IN_MEMORY)
    return IN_MEMORY if 2 * needed <= found.f_bavail * found.f_frsize else None


def _dumped(case: Case) -> int:
    """About how many bytes a case's ranks write of their buffers: as many as the largest of a few
    ranks, for each."""
    if not case.dump:
        return 0
    blocks = [room(case, rank) for rank in {0, case.root, case.ranks - 1}]
    sent, received, factor = datatype(case.datatype)
    return case.ranks * max(
        each.sent * factor * sent.extent + each.received * received.extent for each in blocks
    )


def _again(result: Result, recorded: Result) -> Result:
    """The Result of a case, given that of the same case simulated with a recording."""
    if recorded.outcome != DONE:
        return replace(recorded, case=result.case)
    if result.outcome != TIME_OUT:
        return result
    detail = "it took too long, but finished when simulated again: a busy machine?"
    return replace(result, outcome=ERROR, detail=detail)


def _where(
    case: Case,
    platform: Platform | Description | str | None,
    order: str | Sequence[str],
    seed: int,
) -> tuple[Platform, tuple[str, ...]]:
    """(platform, name of each rank's host in MPI_COMM_WORLD) of a case; both are comparable."""
    if case.collective == "read":
        raise InputError("read: files cannot be simulated (SimGrid moves no data of MPI-IO)")
    if case.openmpi >= 0 or case.monitor:
        raise InputError(
            "openmpi=…, monitor=…: Open MPI's own algorithms and counters cannot be simulated; "
            "omit them, or run the case with mpirun"
        )
    if case.ranks > MOST_RANKS:
        raise InputError(f"ranks={case.ranks}: at most {MOST_RANKS} can be simulated")
    if (case.places or case.platform or case.latencies) and platform is not None:
        raise InputError("the case has its own places; omit them on a platform")
    if case.platform:
        return standing(case.platform)
    if case.latencies:
        return uneven(case.ranks, case.latencies)
    if case.places:
        found, names = of_places(case.places)
        # In a reversed communicator, the harness assigns places in the order of its own ranks.
        return found, tuple(names[::-1] if case.reversed else names)
    found = platform_of(ONE_HOST.format(ranks=case.ranks) if platform is None else platform)
    if not isinstance(order, str):
        chosen = tuple(order)
        known = {host.name for host in found.description.hosts}
        wrong = [name for name in chosen if name not in known]
        if wrong or len(chosen) < case.ranks:
            raise InputError(
                f"order: hosts of {len(chosen)} ranks for {case.ranks}"
                + (f", and {wrong[0]!r} is not a host of {found.name}" if wrong else "")
            )
        return found, chosen[: case.ranks]
    found = holding(found, case.ranks)
    return found, tuple(orders.order(found.description, order, ranks=case.ranks, seed=seed))


def seconds_of(result: Result) -> float:
    """Simulated seconds of the last call, from the first rank's start to the last one's end."""
    return result.last_call_ns / 1e9


class SimulationWatch(Watch):
    """Detects a lack of progress: a rank that computes forever, or ranks that poll without success.
    SimGrid itself detects only deadlocks.

    Ranks run one at a time: while one computes, all others are in calls. In a simulation that is
    merely slow, no rank is outside a call. So what counts is the processor time that all
    descendants of `process` (smpirun) have used since the last recorded call.
    """

    def __init__(self, run: "Simulation", number: int, case: Case, **limits: Any) -> None:
        super().__init__(run.directory, number, case.ranks, **limits)
        self.process, self.moved = run.process.pid, 0.0
        self.is_on = case.record and case.ranks <= WATCHED_RANKS
        self.looked = self.begun

    def poll(self) -> Hang | None:
        now = time.monotonic()
        if now - self.looked < LOOK_S:
            return None
        self.looked = now
        if now - self.begun >= self.limit or self.has_overrun():
            return Hang(TIME_OUT, (), self.is_spent)  # Simulation.examined() adds the states
        return super().poll() if self.is_on else None

    def spent(self) -> float:
        return self.clock()

    def clock(self) -> float:
        used = 0.0
        try:
            for process in psutil.Process(self.process).children(recursive=True):
                used += sum(process.cpu_times()[:2])
        except psutil.NoSuchProcess:
            return self.moved  # it has just ended, which the caller will notice
        return used

    def examine(self, headers: Sequence[np.void | None]) -> Hang | None:
        if not outside(headers):
            return None
        ranks = self.read()
        if None in ranks:
            return None
        states = read_states(ranks, latest_ns(ranks))
        kinds = {state.state for state in states}
        if COMPUTING in kinds:
            return Hang(TIME_OUT, states)
        stuck = kinds <= {FINISHED, BLOCKED, POLLING} and not can_progress(ranks)
        return Hang(DEADLOCK, states) if stuck else None


def outside(headers: Sequence[np.void | None]) -> list[int]:
    """Ranks that have begun and not finished the kernel, and are not in a call."""
    return [
        i
        for i, h in enumerate(headers)
        if h is not None and h["closed_ns"] == 0 and h["current"] == NONE
    ]


def latest_ns(ranks: Sequence[RankRecording | None]) -> int:
    """The latest simulated time in these recordings."""
    times = [0]
    for rank in ranks:
        if rank is not None:
            times.append(int(rank.header["opened_ns"]))
            for name in ("begin_ns", "end_ns"):
                times.append(int(rank.records[name].max(initial=0)))
    return max(times)


class Simulation(Program):
    """smpirun of `cases`, {number: Case} with the same ranks, on the hosts `names` of `platform`.

    library, function, keep   as in simulate; `scratch` is the folder for its files.
    """

    poll_s = 0.02
    name = "smpirun"

    def __init__(
        self,
        library: str | Path,
        function: str,
        cases: Mapping[int, Case],
        platform: Platform,
        names: Sequence[str],
        scratch: str | Path,
        keep: str | Path | None,
    ) -> None:
        super().__init__(library, function, cases, tempfile.mkdtemp(dir=scratch), keep)
        self.names = names
        self.all_places = platform.description.places(names)
        self._write_files(platform)
        smpirun = tool("smpirun")
        settings = {
            **platforms.options(platform, version_of(smpirun)),
            **_algorithms(function, cases.values()),
        }
        # smpirun splits names at blanks, so all names are short and in our own directory.
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

    def _write_files(self, platform: Platform) -> None:
        stripped = self.library.with_suffix(".run")
        (self.directory / "program").symlink_to(stripped.resolve())
        (self.directory / "library.so").symlink_to(self.library.resolve())
        for name, text in (
            ("platform.xml", platforms.xml(platform)),
            ("hosts", "".join(f"{name}\n" for name in self.names)),
            ("cases", "".join(f"{case.line(i)}\n" for i, case in self.cases.items())),
        ):
            (self.directory / name).write_text(text, encoding="ascii")

    def _environment(self) -> dict[str, str]:
        groups = dict.fromkeys(f"{place.node}={place.group}" for place in self.all_places)
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("OMPI_", "SLURM_", "PMIX_", "PRTE_"))
        }
        return {**kept, "MPILAB_GROUPS": ",".join(groups), "LC_ALL": "C", "TMPDIR": "."}

    def places(self, case: Case) -> Sequence[Place]:
        return () if case.places else self.all_places

    def said(self) -> str:
        """The end of the output of SimGrid and the harness."""
        return _NOISE.sub("", super().said())

    def end(self) -> None:
        self._kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def watch(self, number: int, case: Case, **limits: Any) -> Watch:
        return SimulationWatch(self, number, case, **limits)

    def is_over(self, number: int, case: Case, watch: Watch) -> bool:
        return self.is_past(number, (0,))  # there may be thousands of ranks

    def outputs(self, paths: list[str]) -> list[Output]:
        return as_open_mpi(super().outputs(paths))

    def put_away(self, number: int, result: Result) -> None:
        super().put_away(number, result)
        put_away([rank.path for rank in result.ranks if rank is not None], self.keep)

    def error(self, number: int, case: Case, **more: Any) -> Result:
        return self.result(number, case, ERROR, **more)

    def not_begun(self, log: str) -> str:
        return super().not_begun(log).replace(" it in time", "")

    def found_deadlock(self, log: str) -> bool:
        return _DEADLOCK.search(log) is not None

    def refused(self, log: str) -> str:
        missing = _MISSING.search(log)
        return f"{CANNOT_SIMULATE} {missing[1]}" if missing else ""

    def remarks(self, log: str) -> str:
        """The log without SimGrid's messages, which remain in the log."""
        own = tail(_SIMGRIDS.sub("", log))
        return own or f"the simulator (SimGrid) stopped: {self._end()}; its log tells more"

    def culprit(self, case: Case, log: str) -> tuple[int | None, str]:
        """SimGrid itself has ended, for example on a bad buffer."""
        return None, self._end()

    def _end(self) -> str:
        status = self.process.returncode
        return signal_name(status - 128) if status > 128 else f"exit status {status}"

    def states(self, ranks: list[RankRecording | None]) -> tuple[RankState, ...]:
        return read_states(ranks, latest_ns(ranks))

    def recorded(self, number: int, case: Case) -> list[RankRecording | None]:
        """The recordings of a run that has ended, after truncating them to their content."""
        for path in paths_of(self.directory, number, case, "rec") if case.record else ():
            header = peek(path)
            used = (
                HEADER.itemsize + int(header["count"]) * RECORD.itemsize
                if header is not None
                else 0
            )
            if HEADER.itemsize <= used < Path(path).stat().st_size:
                os.truncate(path, used)
        return read_ranks(self.directory, number, case) or [None] * case.ranks

    def examined(self, number: int, case: Case, hang: Hang) -> tuple[Hang, dict[int, list[int]]]:
        """The hang with the states after the end of smpirun, and samples from before it."""
        samples: dict[int, list[int]] = {}
        computing: list[int] = []
        recorded = paths_of(self.directory, number, case, "rec")
        if case.record and hang.kind == TIME_OUT and not hang.is_spent:
            computing = outside([peek(path) for path in recorded])
            samples = sample({rank: recorded[rank] for rank in computing})
        self._kill()
        for rank in computing:
            if samples and rank not in samples:  # ranks run one at a time, and this one has not run
                Path(recorded[rank]).unlink()
        states = self.states(self.recorded(number, case))
        return replace(hang, states=states), samples


def _algorithms(function: str, cases: Iterable[Case]) -> dict[str, str]:
    """The algorithms for SMPI's own collectives: Open MPI's choice if a collective itself is run as
    a kernel; for the harness and topologies, those with the fewest messages to simulate."""
    chosen = {"allgather": "bruck", "allreduce": "rdb"}
    for case in cases:
        if (case.function or function).endswith("_openmpi"):
            chosen[case.collective] = "ompi"
    return {f"smpi/{collective}": name for collective, name in chosen.items()}


def as_open_mpi(outputs: list[Output]) -> list[Output]:
    """The outputs, with the kernel's error codes converted to those of Open MPI.

    Return values that are not error codes, such as a rank or the number of ranks, are kept.
    """
    codes = {output.rank: output.returned for output in outputs if output.returned}
    is_rank = len(codes) > 1 and all(rank == code for rank, code in codes.items())
    if is_rank or set(codes.values()) == {len(outputs)}:
        return outputs
    return [replace(one, returned=_RETURNED.get(one.returned, one.returned)) for one in outputs]


class Memory:
    """Watches the resident memory of a process and its descendants; kills its group above `most`
    bytes.

    peak       the maximum over checks every MEMORY_LOOK_S; each process counts with its own
               maximum so far, which Linux records (VmHWM).
    exceeded   True if it was killed.
    """

    def __init__(self, pid: int, most: int) -> None:
        self._top, self.most = psutil.Process(pid), most
        self.peak, self.exceeded = 0, False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Memory":
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(MEMORY_LOOK_S) and self._look():
            pass

    def _look(self) -> bool:
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


def _resident(pid: int) -> int:
    """The largest resident memory that a process has had, in bytes; 0 if it has just ended."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        return 0
    except OSError:
        return 0
