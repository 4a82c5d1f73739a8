"""The processes of a cluster: start them together, watch them, and end them together.

They are a *forkserver* (the parent of the controller and of all engines, see forkserver.py), mpirun
with one small process per rank (rank.py), and a *supervisor* (supervisor.py), which cleans up if we
are killed. They share a private directory, whose socket files replace ports, so that no port can be
in use already, and a marker in their environment, by which leftover processes are found.

On the nodes of a Slurm job (`location.is_remote`) the forkserver has only the controller, which
listens on a port. mpirun, or srun, starts each engine with its own parent, which records how the
engine ended (roles.engine_elsewhere).
"""

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import psutil

from mpilab.cluster import forkserver, roles, supervisor
from mpilab.cluster.location import SHARED_MEMORY, InAllocation, Location
from mpilab.cluster.supervisor import MARKER, kill, marked
from mpilab.errors import ClusterError
from mpilab.kernels import openmpi
from mpilab.util import door
from mpilab.util.namespaces import FROM_TERMINAL, PASSED_ON
from mpilab.util.processes import end_family

# Time until a cluster is ready, compared with a lower bound.
#
# The *floor* is mpirun of one interpreter per rank that only imports what an engine needs. A
# cluster whose engines do their own imports cannot be faster.

READY = """
import os, time
from mpilab.cluster.engines import Cluster
begin = time.perf_counter()
with Cluster({n}) as cluster:
    cluster.apply(os.getpid)
    print("ready", time.perf_counter() - begin)
"""

FLOOR = "import ipyparallel.engine.app, mpi4py.MPI"
TAIL_BYTES = 1 << 16  # of the log of a cluster
# What ipyparallel 9.2 logs at every start: about ipykernel 7's greeting, about missing encryption
# (the sockets are files in a directory that only their owner can enter) or, with encryption, about
# signatures, which encryption makes unnecessary.
NOISE = (
    "Monitor message without topic",
    "Not using CurveZMQ security",
    "debugpy_stream undefined",
    "Message signing is disabled",
    "heartbeat::",
)
HEARTBEAT = 100  # ms; an engine is registered after one to two beats
# The exit code (MPI_ERR_UNKNOWN) with which Open MPI ends a rank that has lost its connection to a
# rank on another host, usually because that rank died.
LOST_A_PEER = 14
LONGEST_SOCKET_PATH = 100  # bytes; Linux takes 107, macOS 103
CONTROLLER_S = 120.0  # for the controller to start before engines on other nodes do


def measure_ready(n: int = 4, repeats: int = 3) -> list[tuple[float, float]]:
    """Measure start and floor alternately, so that both see the same load of the machine.

    Each start uses a new interpreter: from `Cluster(n).start()` to the first result of a call on
    all ranks. Returns `repeats` pairs (seconds until ready, seconds of the floor). Raises
    ClusterError if a run fails.
    """
    return [(_ready(n), _floor(n)) for _ in range(repeats)]


def _ready(n: int) -> float:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    run = subprocess.run(
        [sys.executable, "-c", READY.format(n=n)], env=environment, capture_output=True, text=True
    )
    _check(run, f"starting a cluster of {n} ranks")
    return float(run.stdout.split()[-1])


def _floor(n: int) -> float:
    command = [openmpi.tool("mpirun"), "-n", str(n), sys.executable, "-c", FLOOR]
    begin = time.perf_counter()
    run = subprocess.run(command, env=openmpi.environment(n), capture_output=True, text=True)
    seconds = time.perf_counter() - begin
    _check(run, f"mpirun of {n} interpreters")
    return seconds


def _check(run: subprocess.CompletedProcess[str], what: str) -> None:
    if run.returncode:
        raise ClusterError(
            f"{what} failed with exit code {run.returncode}, so there is nothing to measure. "
            f"Its output:\n{run.stderr[-2000:]}"
        )


class Log:
    """The log of a cluster: the output of its processes, and of what runs on the ranks.

    A file at `path`: processes write to it (pass it to subprocess.Popen), and we read it.
    """

    def __init__(self, path: str | Path) -> None:
        self._file = open(path, "w+b", buffering=0)  # noqa: SIM115 - closed by `close`
        self.fileno, self.close = self._file.fileno, self._file.close

    @property
    def size(self) -> int:
        """The current size in bytes."""
        return os.fstat(self.fileno()).st_size

    def since(self, begin: int) -> str:
        """What was printed since size `begin`, without noise; at most the last TAIL_BYTES."""
        size = self.size
        begin = max(begin, size - TAIL_BYTES)
        lines = os.pread(self.fileno(), size - begin, begin).decode(errors="replace")
        kept = [line for line in lines.splitlines() if not any(noise in line for noise in NOISE)]
        return "\n".join(kept)

    def tail(self, lines: int = 15) -> str:
        """The last lines."""
        return "\n".join(self.since(0).splitlines()[-lines:]) or "(empty)"


# Messages about ranks.


def ranks_are(ranks: Sequence[int]) -> str:
    """[1] -> 'rank 1 is', [0, 2, 3] -> 'ranks 0, 2 and 3 are'."""
    *first, last = map(str, ranks)
    return f"ranks {', '.join(first)} and {last} are" if first else f"rank {last} is"


def rank_error(rank: int, error: BaseException, late: Sequence[int]) -> ClusterError:
    """ClusterError for an exception on `rank`, while the ranks `late` have not returned."""
    name = getattr(error, "ename", type(error).__name__)
    value = getattr(error, "evalue", error)
    message = f"rank {rank} raised {name}: {value}"
    if late:
        message += (
            f"\n{ranks_are(late)} still running, perhaps waiting for it: see cluster.restart()"
        )
    traceback = getattr(error, "traceback", None)
    if traceback:
        message += f"\nOn rank {rank}:\n{traceback}"
    failure = ClusterError(message)
    failure.__cause__ = error
    return failure


def ending(status: int) -> str:
    """The meaning of an exit code, or minus a signal's number: 'died of SIGKILL (Killed)'."""
    if status >= 0:
        return f"ended with exit code {status}"
    try:
        return f"died of {signal.Signals(-status).name} ({signal.strsignal(-status)})"
    except ValueError:  # a real-time signal has no name
        return f"died of signal {-status}"


def describe(deaths: Mapping[int, int]) -> str:
    """{1: -11} -> 'rank 1 died of SIGSEGV (Segmentation fault)'."""
    return "; ".join(f"rank {rank} {ending(deaths[rank])}" for rank in sorted(deaths))


class Processes:
    """Forkserver, controller, mpirun, engines and supervisor of a cluster of `n` ranks.

    location   where they run (location.py); begin() has been called.

    launch() starts controller and engines, and again after a crash or a hang; end() leaves nothing.

    ended             rank -> exit code, or minus the signal's number, of ranks that have ended
    lost              any other failure, in words; empty if there is none
    orphaned          the forkserver has ended, so another launch is impossible
    controller_is_up  the connection files exist
    log               a Log of the output of all of them

    Raises ClusterError if there is no place for the cluster's files, SetupError without mpirun.
    """

    def __init__(self, n: int, location: Location) -> None:
        self.n = n
        self.location = location
        openmpi.tool("mpirun")  # raises if there is none, before anything is started
        self.identity = uuid.uuid4().hex
        self.launches = 0
        self.ended: dict[int, int] = {}
        self.lost, self.controller_is_up, self.orphaned = "", False, False
        self.forkserver: subprocess.Popen[bytes] | None = None
        self.forkserver_process: int | None = None
        self.mpirun: subprocess.Popen[bytes] | None = None
        self._open = contextlib.ExitStack()  # files of ours
        base = location.folder or Path(tempfile.gettempdir())
        name = f"mpilab-cluster-{self.identity[:12]}"
        path = os.fsencode(base / name / "100/z-00")
        if not location.is_remote and len(path) > LONGEST_SOCKET_PATH:
            base = Path("/tmp")
        self.directories = [base / name, *self.location.shared_memory(name)]
        # Start the supervisor first: from here on it cleans up whatever happens.
        self.supervisor = supervisor.Supervisor(self.identity, self.directories)
        self.events, orders = socket.socketpair()
        self.partial = b""
        try:
            with orders, socket.socket(socket.AF_UNIX) as ranks:
                self._prepare(orders, ranks)
        except OSError as error:
            self.end()
            raise ClusterError(
                f"the cluster's files cannot be created in {base}: {error}. "
                "Free some space there, or set TMPDIR to another folder"
            ) from error
        except BaseException:
            self.end()
            raise

    def _prepare(self, orders: socket.socket, ranks: socket.socket) -> None:
        for directory in self.directories:
            directory.mkdir(mode=0o700)
        self.log = Log(self.directories[0] / "log")
        self._open.callback(self.log.close)
        # Without engines no rank connects, and a shared disk may not support sockets.
        ranks.bind("" if self.location.is_remote else str(self.directories[0] / "ranks"))
        ranks.listen(self.n)
        self.forkserver = self._start(
            forkserver.command(
                orders=orders.fileno(),
                ranks=ranks.fileno(),
                on_hosts=self.location.on_hosts,
                has_engines=not self.location.is_remote,
            ),
            self._environment(),
            pass_fds=(orders.fileno(), ranks.fileno()),
        )

    def _start(
        self, command: list[str], environment: dict[str, str], **more: Any
    ) -> subprocess.Popen[bytes]:
        """Start a process that writes to the cluster's log and does not get ^C."""
        return subprocess.Popen(
            self.location.command(command),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self.log.fileno(),
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **more,
        )

    def _environment(self, **more: str) -> dict[str, str]:
        """The environment of the cluster's processes."""
        environment = self.location.environment(self.n)
        # Each rank uses one core; numpy's threads would only compete with the other ranks.
        environment.setdefault("OPENBLAS_NUM_THREADS", "1")
        environment[supervisor.MARKER] = self.identity
        return environment | more

    @property
    def places(self) -> list[Path]:
        """The directories of the current launch: its files, and its shared memory."""
        return [directory / str(self.launches) for directory in self.directories]

    def _forkserver_and_parents(self) -> set[int]:
        """The IDs of the forkserver's process and of the processes that keep it on its host."""
        started = None if self.forkserver is None else self.forkserver.pid
        reported = self.forkserver_process and self.location.process_here(self.forkserver_process)
        found = {process for process in (started, reported) if process is not None}
        for process in tuple(found):
            with contextlib.suppress(psutil.NoSuchProcess):  # launch() will notice
                found |= {parent.pid for parent in psutil.Process(process).parents()}
        return found

    def _temporary(self) -> dict[str, str]:
        """Settings that put the files of mpirun and Open MPI where a sweep finds them.

        The engines restore TMPDIR.
        """
        if self.location.is_remote:  # each node has its own, which Slurm's epilog may clean up
            return {}
        if len(self.directories) == 1:
            return {"TMPDIR": str(self.places[0])}
        # The path as seen by the ranks: on hosts, each has its own.
        memory = str(SHARED_MEMORY / self.directories[0].name / str(self.launches))
        names = ("OMPI_MCA_btl_sm_backing_directory", "OMPI_MCA_osc_sm_backing_directory")
        # Otherwise the daemons of several hosts would share one directory.
        temporary = memory if self.location.on_hosts else str(self.places[0])
        return {"TMPDIR": temporary} | dict.fromkeys(names, memory)

    def processor_seconds(self) -> float:
        """Processor time that all processes on this machine have used so far."""
        spent = 0.0
        for process in supervisor.marked(self.identity):
            with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended
                times = psutil.Process(process).cpu_times()
                spent += times.user + times.system
        return spent

    def running(self) -> set[int]:
        """All processes on this machine that run at this moment, or could if they had a core."""
        found = set()
        for process in supervisor.marked(self.identity):
            with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended
                if psutil.Process(process).status() == psutil.STATUS_RUNNING:
                    found.add(process)
        return found

    @property
    def deaths(self) -> dict[int, int]:
        """`ended`, without ranks that ended only as a consequence of another rank's death."""
        first = {rank: status for rank, status in self.ended.items() if status != LOST_A_PEER}
        return first if first and self.location.is_spread else self.ended

    @property
    def alive(self) -> bool:
        """True if no process that is needed has ended."""
        self.take_events()
        return not (self.deaths or self.lost)

    def launch(self) -> None:
        """Start a controller and the ranks, after killing those of an earlier launch."""
        if self.launches:
            self._end_elsewhere()
            # Keep the forkserver: it holds all imports.
            supervisor.sweep(self.identity, self.places, spare=self._forkserver_and_parents())
            if self.mpirun is not None:
                self.mpirun.wait()
            self.mpirun = None
        self.launches += 1
        self.ended, self.lost, self.controller_is_up = {}, "", False
        place = self.places[0]
        for directory in self.places:
            directory.mkdir()
        for port in roles.PORTS:
            # ipyparallel 9.2 binds ipc sockets at z-1 and connects to z:1.
            (place / f"z:{port}").symlink_to(f"z-{port}")
        own = {"IPYTHONDIR": str(place / "ipython"), "IPP_PROFILE_DIR": str(place / "profile")}
        order: dict[str, Any] = {
            "directory": str(place),
            "environment": self._environment(**own),
            "launch": self.launches,
            "heartbeat": HEARTBEAT,
        }
        if isinstance(self.location, InAllocation):
            order["address"] = self.location.address
        self.events.settimeout(None)
        self.events.sendall(json.dumps(order).encode() + b"\n")
        if self.location.is_remote:
            if not self._controller_comes():
                return
            rank = forkserver.command(
                role="engine elsewhere",
                on_hosts=False,
                directory=str(Path.cwd()),
                ends=str(self.places[0]),
            )
        else:
            rank = [
                sys.executable,
                "-I",
                "-S",
                forkserver.__file__.replace("forkserver.py", "rank.py"),
                str(self.directories[0] / "ranks"),
            ]
        self.mpirun = self._start(
            [*self.location.mpirun(self.n), *rank],
            self._environment(
                **own,
                **self._temporary(),
                MPILAB_TMPDIR=os.environ.get("TMPDIR", ""),
                MPILAB_LAUNCH=str(self.launches),
            ),
        )

    def _controller_comes(self) -> bool:
        """Wait for the connection files, which engines on other nodes read only once.

        Returns False if the controller does not start.
        """
        deadline = time.monotonic() + CONTROLLER_S
        while not self.controller_is_up and not self.lost and time.monotonic() < deadline:
            self.take_events(deadline - time.monotonic())
        return self.controller_is_up

    def _end_elsewhere(self) -> None:
        """Let mpirun, or srun, end the ranks on other nodes: a killed srun would not."""
        if self.location.is_remote and self.mpirun is not None and self.mpirun.poll() is None:
            end_family(self.mpirun.pid)

    def end(self) -> None:
        """Kill every process and remove every file of the cluster.

        Raises ClusterError if a process survives SIGKILL.
        """
        self._end_elsewhere()
        left = supervisor.sweep(self.identity, self.directories)
        for process in (self.mpirun, self.forkserver):
            if process is not None and process.pid not in left:
                process.wait()
        self.events.close()
        self._open.close()
        self.supervisor.release()
        if left:
            raise ClusterError(
                f"processes {left} of the cluster did not end within {supervisor.PATIENCE_S:g} s "
                "of SIGKILL: they hang in the operating system (a network drive?); inspect them "
                "with 'ps -o pid,stat,wchan,args'"
            )

    def take_events(self, seconds: float = 0.0) -> None:
        """Read the forkserver's reports; wait for them up to `seconds`."""
        # Check first: anything that mpirun caused before its end is then read below.
        status = None if self.mpirun is None else self.mpirun.poll()
        self.events.settimeout(seconds)
        try:
            while chunk := self.events.recv(65536):
                self.events.settimeout(0)
                self.partial += chunk
            self.orphaned = True
        except ConnectionError:
            self.orphaned = True
        except (BlockingIOError, TimeoutError):
            pass  # no more reports
        if self.orphaned:
            self.lost = self.lost or "the parent of all engines ended (out of memory?)"
        *lines, self.partial = self.partial.split(b"\n")
        for event in map(json.loads, lines):
            if event["event"] == "forkserver":
                self.forkserver_process = event["process"]
            elif int(event["launch"]) == self.launches:  # ignore ranks replaced by a restart
                self._take(event)
        if self.location.is_remote and self.mpirun is not None:
            self.ended |= roles.ends(self.places[0])
        if status is not None and not self.deaths:
            self.lost = self.lost or f"mpirun ended with exit code {status}"

    def _take(self, event: dict[str, Any]) -> None:
        if event["event"] == "controller":
            self.controller_is_up = True
        elif event["who"] == "controller":
            self.lost = f"ipyparallel's controller {ending(event['status'])}"
        elif not event["killed"]:
            self.ended[event["who"]] = event["status"]

    def collect_deaths(self) -> dict[int, int]:
        """`deaths`, after giving other ranks time to crash from the same error."""
        patience = time.monotonic() + roles.GRACE
        while (left := patience - time.monotonic()) > 0 and len(self.ended) < self.n:
            self.take_events(left)
        return self.deaths


# Run a command on emulated hosts to its end, and end it if it does not end by itself.
#
# mpirun of Open MPI 5 sometimes waits forever if its program ended at once, before all daemons had
# reported: after 10 to 40 % of all `mpirun hostname` across hosts, but never after a program that
# calls MPI_Init. No process of the program is left then, and neither mpirun nor its daemons use any
# processor time.

LOOK_S = 1.0  # between checks; one costs some 10 ms
QUIET_S = 5.0  # without a process of the program, and without any work, until mpirun is ended
TELL_S = 15.0  # until the first message on what we wait for; the interval then doubles each time
PATIENCE_S = 5.0  # time for a command to end after a request
DID_NOT_END = 124  # as in timeout(1)
STARTERS = {"mpirun", "mpiexec", "prterun", "orterun"}
_DAEMONS = {"prte", "prted", "orted"}
_OF_PROGRAM = b"PMIX_RANK="  # in the environment of every process that mpirun starts


def follow(line: list[str], environment: dict[str, str], *, timeout: float | None = None) -> int:
    """Run the command line of EmulatedHosts.command to its end, with our standard streams.

    Returns its exit status, or DID_NOT_END if it had to be ended: after `timeout` seconds, or
    because its mpirun waits for nothing. The reason is printed on standard error, as is, from time
    to time, what we wait for.

    Signals are forwarded to the command. When it ends, so does everything that it has started.
    """
    return _Followed(line, environment, timeout).status()


class _Followed:
    def __init__(self, line: list[str], environment: dict[str, str], timeout: float | None) -> None:
        self.identity = secrets.token_hex(8)
        # At a terminal the command stays in the foreground group and gets the terminal's signals
        # directly. Otherwise we forward each signal, so that it arrives once.
        self.has_terminal = os.isatty(0)
        self.timeout = timeout
        self.asked: float | None = None
        self.begun = self.quiet_since = time.monotonic()
        self.tell_at = TELL_S
        self.work: list[tuple[int, int]] | None = None
        with door.deferred():
            self.process = subprocess.Popen(
                line,
                env=environment | {MARKER: self.identity},
                process_group=None if self.has_terminal else 0,
            )

    def status(self) -> int:
        try:
            with self._passing_on():
                while True:
                    try:
                        code = self.process.wait(LOOK_S)
                        return code if code >= 0 else 128 - code
                    except subprocess.TimeoutExpired:
                        why = self._why_to_end()
                    if why:
                        self._end()
                        print(f"mpilab: {why}", file=sys.stderr, flush=True)
                        return DID_NOT_END
        finally:
            if self.process.poll() is None:
                self._end()
            kill(self.identity)  # daemons may have detached themselves

    def _why_to_end(self) -> str:
        """Why the command must be ended now, in words; '' while it may continue."""
        now = time.monotonic()
        if self.timeout is not None and now - self.begun >= self.timeout:
            return (
                f"the command was stopped: it had not finished after {self.timeout:g} s, the limit "
                "of --timeout; raise the limit, or find out what it waits for"
            )
        if self.asked is not None and now - self.asked >= PATIENCE_S:
            return (
                f"the command was stopped: it was still running {PATIENCE_S:g} s after it was "
                "asked to"
            )
        seen = [_Seen(number) for number in marked(self.identity)]
        starters = [one for one in seen if one.name in STARTERS]
        programs = [one for one in seen if one.is_program]
        work = [(one.number, one.work) for one in seen if one.name in STARTERS | _DAEMONS]
        if not starters or programs or work != self.work or any(one.is_stopped for one in seen):
            self.quiet_since, self.work = now, work
        elif now - self.quiet_since >= QUIET_S:
            return (
                f"mpirun was stopped: it was still waiting {QUIET_S:g} s after its program had "
                "ended. This happens occasionally after a program that never calls MPI_Init; its "
                "output is above. Run it again, or without mpirun: mpilab hosts run --host HOST "
                "-- PROGRAM"
            )
        if starters and now - self.begun >= self.tell_at:
            self.tell_at *= 2
            count = len(programs)
            left = f"{count} process{'es' * (count != 1)} of its program"
            print(
                f"mpilab: waiting for mpirun for {now - self.begun:.0f} s; {left} still running. "
                "Ctrl-C ends it.",
                file=sys.stderr,
                flush=True,
            )
        return ""

    def _end(self) -> None:
        """End the command: SIGTERM, then SIGKILL."""
        for number in signal.SIGTERM, signal.SIGKILL:
            if self.process.poll() is None:
                self.process.send_signal(number)
                try:
                    self.process.wait(PATIENCE_S)
                except subprocess.TimeoutExpired:
                    continue

    @contextmanager
    def _passing_on(self) -> Iterator[None]:
        """Forward signals to the command within the block."""

        def passed_on(number: int, _: FrameType | None) -> None:
            if not (self.has_terminal and number in FROM_TERMINAL):
                self.process.send_signal(number)
            if number in (signal.SIGTERM, signal.SIGHUP):
                self.asked = time.monotonic()

        before = {
            name: signal.signal(name, passed_on)
            for name in PASSED_ON
            if name == signal.SIGINT or signal.getsignal(name) != signal.SIG_IGN
        }
        try:
            yield
        finally:
            for name, handler in before.items():
                signal.signal(name, signal.SIG_DFL if handler is None else handler)


class _Seen:
    """A snapshot of a process; one that has just ended has no name and no work."""

    def __init__(self, number: int) -> None:
        self.number, self.name, self.work = number, "", 0
        self.is_program = self.is_stopped = False
        try:
            folder = Path("/proc", str(number))
            self.name = (folder / "exe").readlink().name.removesuffix(" (deleted)")
            environment = (folder / "environ").read_bytes().split(b"\0")
            self.is_program = any(word.startswith(_OF_PROGRAM) for word in environment)
            fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            self.is_stopped = fields[0] in b"Tt"
            self.work = int(fields[11]) + int(fields[12])  # processor time, in ticks
        except OSError:
            return
