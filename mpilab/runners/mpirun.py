"""Run cases of a kernel with mpirun, and ensure that every case ends.

One mpirun runs all cases with the same number of ranks. If a case hangs or crashes, the run is
ended, and a new one runs the remaining cases.
"""

import os
import re
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from mpilab.cases.case import Case, check_real
from mpilab.cluster.location import SHARED_MEMORY, InAllocation, OnHosts, ThisMachine, placed
from mpilab.cluster.supervisor import MARKER, Supervisor, kill, marked
from mpilab.errors import InputError
from mpilab.hosts import orders, slurm
from mpilab.hosts.emulated import EmulatedHosts
from mpilab.hosts.places import Place
from mpilab.kernels import build
from mpilab.runners.hang import Watch
from mpilab.runners.result import Result, paths_of, put_away, signal_name
from mpilab.runners.run import Groups, Program, run_in_turn
from mpilab.trace.recording import RankRecording
from mpilab.util.processes import end_family

LOOK_S = 1.0  # between checks for ranks; one costs some 10 ms
LOOKS = 2  # checks without a rank, before the ranks are presumed dead
# Harmless: a daemon was faster than mpirun; srun cannot bind, which it is told not to do.
_NOISE = re.compile(
    r"plm:ssh: Warning: setpgid\(|srun: cluster configuration lacks support for cpu binding"
)
# Open MPI's message for an error on a communicator with fatal errors (MPI_COMM_SELF, ...).
_MPI_ABORTED = re.compile(r"reported by process \[\d+,(\d+)\].*?\*\*\* (MPI_ERR_\w+)", re.DOTALL)
_SIGNALLED = re.compile(r"process rank (\d+) .*?exited\s+on\s+signal\s+(\d+)", re.DOTALL)


def run_cases(
    library: str | Path,
    function: str,
    cases: Sequence[Case],
    *,
    groups: Groups | None = None,
    limit: float = 10.0,
    standstill: float = 1.0,
    work: float | None = None,
    most_work: float | None = None,
    budget: float | None = None,
    on_result: Callable[[Result], object] | None = None,
    keep: str | Path | None = None,
    sanitize: bool = False,
    settings: Mapping[str, str] | None = None,
    guarded: Iterable[str | Path] | None = None,
    hosts: EmulatedHosts | slurm.Allocation | None = None,
    names: Sequence[str] | None = None,
    confined: str | Path | None = None,
    bound: Callable[[int], Sequence[str]] = lambda ranks: (),
) -> list[Result]:
    """Run `cases` of `function` in the shared object `library` with mpirun; list of Result.

    A case with its own `function` runs that function instead, so one mpirun can compare several.

    groups, on_result   see mpilab.runners.run.run_in_turn.
    limit    seconds per case.
    standstill, work   see mpilab.runners.hang.Watch.
    most_work, budget   seconds of processor time per case, and of all cases together; see
             mpilab.runners.run.run_in_turn.
    keep     a directory for the raw files of finished cases, named by the case's index in `cases`.
             The counts of a monitored case are written only there (mpilab.measure.openmpi_traffic).
    sanitize   `library` was built with sanitizers: run it in the program with their runtime.
    settings   environment variables of Open MPI in addition to the defaults; the user's values take
             precedence.
    guarded  for long runs: if this process is killed, a supervisor ends all that it started, and
             removes its files and the directories listed here.
    hosts    mpilab.hosts.emulated.EmulatedHosts that are up, or mpilab.hosts.slurm.Allocation: run
             the ranks there. Default: this machine, or as MPILAB_HOSTS says.
    names    the host of each rank of the largest case; default: host by host, by their slots.
    confined   confine the ranks, on this machine (src_c/runtime/harness/confine.c): they start no
             processes, reach no files in this folder except their own, and get no seeds.
    bound    for a number of ranks, mpirun's options that bind them on this machine, e.g.
             mpilab.measure.distances.bound_options. Default: they are not bound.
    """
    check_real(cases)

    def started(number: int) -> tuple[int, int]:
        """(ranks of MPI_COMM_WORLD, bystanders among them) of a case."""
        return cases[number].ranks + cases[number].bystanders, cases[number].bystanders

    order = sorted(range(len(cases)), key=started)
    batches = [list(numbers) for _, numbers in groupby(order, key=started)]
    hosts = slurm.wished() if hosts is None else hosts
    order_of_hosts: Sequence[str] = ()
    if hosts is not None and cases:
        order_of_hosts = _names(hosts, names, max(map(started, range(len(cases))))[0])
    folder = None if hosts is None else hosts.directory  # visible on the hosts, too
    with tempfile.TemporaryDirectory(prefix="mpilab-run-", dir=folder) as scratch:

        def start(left: dict[int, Case]) -> Mpirun:
            ranks, _ = started(next(iter(left)))
            where = ThisMachine(ranks) if hosts is None else placed(hosts, order_of_hosts[:ranks])
            return Mpirun(
                library,
                function,
                left,
                where,
                scratch,
                keep,
                sanitize,
                settings or {},
                guarded,
                confined,
                bound(ranks) if hosts is None else (),
            )

        return run_in_turn(
            cases,
            batches,
            start,
            groups=groups,
            on_result=on_result,
            limit=limit,
            standstill=standstill,
            work=work,
            most_work=most_work,
            budget=budget,
        )


def _names(
    hosts: EmulatedHosts | slurm.Allocation, names: Sequence[str] | None, ranks: int
) -> Sequence[str]:
    """The host of each rank of the largest case."""
    if names is None and isinstance(hosts, slurm.Allocation):
        return hosts.order("seq", ranks)
    if names is None:
        return orders.order(hosts.description, "seq", ranks=ranks)
    if len(names) < ranks:
        raise InputError(f"names: {len(names)} hosts for {ranks} ranks; give one for each rank")
    return names


def _serve_seeds(path: Path, cases: Mapping[int, Case], ranks: int) -> subprocess.Popen[bytes]:
    """Start mpilab-seeds, which gives the ranks that connect to `path` the contents of buffers."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen(ranks)
        seeds = subprocess.Popen(
            [str(build.need(build.SEEDS)), str(server.fileno()), str(ranks)],
            stdin=subprocess.PIPE,
            pass_fds=[server.fileno()],
            start_new_session=True,
        )
    assert seeds.stdin is not None
    with seeds.stdin as lines:
        lines.write("".join(f"{number} {case.seed}\n" for number, case in cases.items()).encode())
    return seeds


class Mpirun(Program):
    """An mpirun of the harness that runs `cases`, all with the same number of ranks.

    where     this machine, emulated hosts or a Slurm job (mpilab.cluster.location)
    scratch   the folder for its files
    bound     mpirun's options that bind the ranks
    The other arguments are those of run_cases.
    """

    def __init__(
        self,
        library: str | Path,
        function: str,
        cases: Mapping[int, Case],
        where: ThisMachine | OnHosts | InAllocation,
        scratch: str | Path,
        keep: str | Path | None,
        sanitize: bool,
        settings: Mapping[str, str],
        guarded: Iterable[str | Path] | None = None,
        confined: str | Path | None = None,
        bound: Sequence[str] = (),
    ) -> None:
        super().__init__(library, function, cases, tempfile.mkdtemp(dir=scratch), keep)
        self.where = where
        command = [*where.mpirun(len(where.names)), *bound]
        self.harness = build.sanitized_harness() if sanitize else build.need(build.HARNESS_PROGRAM)
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
        self.confined = confined is not None
        self.seeds = None
        if confined is not None:
            path = self.directory / "seeds"
            self.seeds = _serve_seeds(path, cases, len(where.names))
            own |= {"MPILAB_CONFINED": str(confined), "MPILAB_SEEDS": str(path)}
        listing = self.directory / "cases"
        lines = "".join(self.line(number, case) + "\n" for number, case in cases.items())
        listing.write_text(lines, encoding="ascii")
        self.supervisor = None
        if guarded is not None:
            self.supervisor = Supervisor(self.identity, [scratch, *self.segments, *guarded])
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
    def has_ended(self) -> bool:
        """True if mpirun has ended, or should have.

        On several hosts, mpirun of Open MPI 5.0.11 sometimes waits forever after all ranks have
        ended: after 3 of 120 crashes, and never on one host.
        """
        return self.process.poll() is not None or (self.where.on_hosts and self._is_deserted())

    def line(self, number: int, case: Case) -> str:
        # mpilab-seeds has the seeds of ranks that are confined.
        return super().line(number, replace(case, seed=0) if self.confined else case)

    def said(self) -> str:
        """The end of the output of mpirun and the harness."""
        lines = super().said().splitlines(keepends=True)
        return "".join(line for line in lines if not _NOISE.search(line))

    def end(self) -> None:
        """End everything that mpirun started, and remove its files."""
        if self.where.on_hosts:
            kill(self.identity)  # daemons on other hosts may have detached themselves
        if self.process.poll() is None:
            # Killing mpirun or srun could leave ranks on other nodes running.
            end_family(self.process.pid, politely=self.where.is_remote)
            self.process.wait()
        if self.seeds is not None:
            self.seeds.kill()
            self.seeds.wait()
        for directory in (*self.segments, self.directory):
            shutil.rmtree(directory, ignore_errors=True)
        if self.supervisor is not None:
            self.supervisor.release()

    def _is_deserted(self) -> bool:
        """True if ranks have begun, and the last LOOKS checks found none."""
        if self._empty_looks < LOOKS and time.monotonic() - self._looked >= LOOK_S:
            there = any(map(self._is_rank, marked(self.identity)))
            begun = any(path.name[0].isdigit() for path in self.directory.iterdir())
            self._empty_looks = self._empty_looks + 1 if begun and not there else 0
            self._looked = time.monotonic()
        return self._empty_looks == LOOKS

    def _is_rank(self, process: int) -> bool:
        try:
            return Path(f"/proc/{process}/exe").samefile(self.harness)
        except OSError:  # it has just ended
            return False

    def is_over(self, number: int, case: Case, watch: Watch) -> bool:
        if watch.over or super().is_over(number, case, watch):
            return True
        if case.record or number == next(reversed(self.cases)):
            return False
        # These are written last; the last case ends with its mpirun.
        return all(map(os.path.exists, paths_of(self.directory, number, case, "out")))

    def places(self, case: Case) -> Sequence[Place]:
        return self.where.places if self.where.is_spread else ()

    def result(self, number: int, case: Case, outcome: str, **more: Any) -> Result:
        """A Result with all files that the case left behind; keeps or removes the files."""
        result = super().result(number, case, outcome, **more)
        if result.recording is not None:
            self.keep_files([rank.path for rank in result.recording.ranks])
            if isinstance(self.where, InAllocation) and not case.places:
                seen = [rank.header["host"].decode() for rank in result.recording.ranks]
                result.places = self.where.places_seen(seen)
        for kind in ("txt", "mem"):
            for path in paths_of(self.directory, number, case, kind):
                Path(path).unlink(missing_ok=True)
        if result.access is not None:
            self.keep_files(paths_of(self.directory, number, case, "io"))
        return result

    def put_away(self, number: int, result: Result) -> None:
        super().put_away(number, result)
        if result.case.monitor:
            self.keep_files(paths_of(self.directory, number, result.case, "mon"))

    def keep_files(self, paths: Iterable[str | Path]) -> None:
        put_away(paths, self.keep, copied=self.confined)

    def reports(self, ranks: list[RankRecording | None]) -> dict[int, str]:
        processes = {int(rank.header["pid"]): rank.rank for rank in ranks if rank is not None}
        return build.reports(self.directory, processes)

    def culprit(self, case: Case, log: str) -> tuple[int | None, str]:
        if match := _SIGNALLED.search(log):
            return self._kernel_rank(case, int(match[1])), signal_name(int(match[2]))
        if match := _MPI_ABORTED.search(log):
            return self._kernel_rank(case, int(match[1])), match[2]
        code = self.process.poll()
        return None, "all ranks ended, mpirun did not" if code is None else f"exit status {code}"

    @staticmethod
    def _kernel_rank(case: Case, world_rank: int) -> int:
        """The kernel's rank for a rank of MPI_COMM_WORLD: its communicator may be reversed."""
        return case.ranks - 1 - world_rank if case.reversed else world_rank
