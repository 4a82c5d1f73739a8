"""The processes of a cluster on this machine: started together, watched, and ended together.

They are a *nursery* (the parent of the controller and of all engines, see nursery.py), mpirun with
one small process a rank (rank.py), and a *guardian* that outlives us if need be (guardian.py). They
share a private directory, whose socket files take the place of ports, so no port can be taken; and
a marker in their environment, by which whatever is left is found.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

from mpilab import openmpi
from mpilab.cluster import guardian, nursery
from mpilab.errors import ClusterError

HEARTBEAT = 100  # ms; an engine is registered after one to two beats
SHARED_MEMORY = Path("/dev/shm")
LOG_TAIL = 1 << 16  # bytes
LONGEST_SOCKET_PATH = 100  # bytes; Linux takes 107, macOS 103

# What ipyparallel 9.2 logs at every start, of ipykernel 7's greeting and of the missing encryption
# (the sockets are files in a directory that only their owner can enter).
NOISE = ("Monitor message without topic", "Not using CurveZMQ security", "debugpy_stream undefined",
         "heartbeat::")  # fmt: skip


class Processes:
    """Nursery, controller, mpirun, engines and guardian of a cluster of `n` ranks.

    launch() starts controller and engines, and again after a crash or a hang; end() leaves nothing.

    deaths            rank -> exit code, or minus the signal's number, of ranks that have ended
    lost              what else broke down, in words; empty while all is well
    orphaned          the nursery is gone: there won't be another launch
    controller_is_up  the connection files are there

    Raises ClusterError where there is no place for the cluster's files, SetupError without mpirun.
    """

    def __init__(self, n):
        self.n = n
        self.tool = openmpi.tool("mpirun")
        self.identity = uuid.uuid4().hex
        self.launches = 0
        self.deaths, self.lost, self.controller_is_up = {}, "", False
        self.orphaned = False
        self.nursery = self.mpirun = self.log = None
        base, name = tempfile.gettempdir(), f"mpilab-cluster-{self.identity[:12]}"
        if len(os.fsencode(f"{base}/{name}/100/z-00")) > LONGEST_SOCKET_PATH:
            base = "/tmp"
        self.directories = [Path(base, name)]
        if os.access(SHARED_MEMORY, os.W_OK):
            self.directories.append(SHARED_MEMORY / name)
        # The guardian comes first: from here on nothing can be left behind.
        self.guardian = guardian.Guardian(self.identity, self.directories)
        self.events, orders = socket.socketpair()
        self.partial = b""
        try:
            with orders, socket.socket(socket.AF_UNIX) as ranks:
                self._prepare(orders, ranks)
        except OSError as error:
            self.end()
            raise ClusterError(
                f"the cluster's files can't be made in {base}: {error}. "
                "Free some space there, or point TMPDIR elsewhere"
            ) from error
        except BaseException:
            self.end()
            raise

    def _prepare(self, orders, ranks):
        for directory in self.directories:
            directory.mkdir(mode=0o700)
        self.log = open(self.directories[0] / "log", "w+b", buffering=0)
        ranks.bind(str(self.directories[0] / "ranks"))
        ranks.listen(self.n)
        self.nursery = self._start(
            nursery.command(orders=orders.fileno(), ranks=ranks.fileno()),
            self._environment(),
            pass_fds=(orders.fileno(), ranks.fileno()),
        )

    def _start(self, command, environment, **more):
        """Start a process that writes to the cluster's log, out of reach of ^C."""
        return subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **more,
        )

    def _environment(self, **more):
        """The environment of the cluster's processes."""
        environment = openmpi.environment(self.n)
        # A rank is one core's work; numpy's threads would only fight with the other ranks.
        environment.setdefault("OPENBLAS_NUM_THREADS", "1")
        environment[guardian.MARKER] = self.identity
        return environment | more

    @property
    def places(self):
        """Where the present controller and ranks have their files, and their shared memory."""
        return [directory / str(self.launches) for directory in self.directories]

    @property
    def alive(self):
        """True while nothing has ended that is needed."""
        self.take_events()
        return not (self.deaths or self.lost)

    def launch(self):
        """Start a controller and the ranks; those of a former launch are killed first."""
        if self.launches:
            # The nursery is spared: it holds all imports.
            guardian.sweep(self.identity, self.places, spare=(self.nursery.pid,))
            self.mpirun.wait()
        self.launches += 1
        self.deaths, self.lost, self.controller_is_up = {}, "", False
        place, *shared_memory = self.places
        for directory in self.places:
            directory.mkdir()
        for port in nursery.PORTS:
            # ipyparallel 9.2 binds ipc sockets at z-1 and connects to z:1.
            (place / f"z:{port}").symlink_to(f"z-{port}")
        own = {"IPYTHONDIR": str(place / "ipython"), "IPP_PROFILE_DIR": str(place / "profile")}
        order = {
            "directory": str(place),
            "environment": self._environment(**own),
            "launch": self.launches,
            "heartbeat": HEARTBEAT,
        }
        self.events.settimeout(None)
        self.events.sendall(json.dumps(order).encode() + b"\n")
        rank = [sys.executable, "-I", "-S", nursery.__file__.replace("nursery.py", "rank.py")]
        self.mpirun = self._start(
            [self.tool, "-n", str(self.n), *rank, str(self.directories[0] / "ranks")],
            self._environment(
                **own,
                **_backing(*shared_memory),
                TMPDIR=str(place),  # for mpirun's own files; the engines set it back
                MPILAB_TMPDIR=os.environ.get("TMPDIR", ""),
                MPILAB_LAUNCH=str(self.launches),
            ),
        )

    def end(self):
        """Kill every process and remove every file of the cluster.

        Raises ClusterError where a process outlives SIGKILL.
        """
        left = guardian.sweep(self.identity, self.directories)
        for process in (self.mpirun, self.nursery):
            if process is not None:
                process.wait()
        self.events.close()
        if self.log is not None:
            self.log.close()
        self.guardian.let_go()
        if left:
            raise ClusterError(
                f"processes {left} of the cluster did not end within {guardian.PATIENCE:g} s of "
                "SIGKILL: they hang in the operating system (a network drive?); look at them "
                "with 'ps -o pid,stat,wchan,args'"
            )

    def take_events(self, seconds=0.0):
        """Read what the nursery reports; wait for it up to `seconds`."""
        self.events.settimeout(seconds)
        try:
            while chunk := self.events.recv(65536):
                self.events.settimeout(0)
                self.partial += chunk
            self.orphaned = True
        except ConnectionError:
            self.orphaned = True
        except (BlockingIOError, TimeoutError):
            pass  # no more news
        if self.orphaned:
            self.lost = self.lost or "the parent of all engines ended (out of memory?)"
        *lines, self.partial = self.partial.split(b"\n")
        for event in map(json.loads, lines):
            if int(event["launch"]) == self.launches:  # else of ranks that a restart has replaced
                self._take(event)
        if self.mpirun is not None and self.mpirun.poll() is not None and not self.deaths:
            self.lost = self.lost or f"mpirun ended with exit code {self.mpirun.returncode}"

    def _take(self, event):
        if event["event"] == "controller":
            self.controller_is_up = True
        elif event["who"] == "controller":
            self.lost = f"ipyparallel's controller {fate(event['status'])}"
        elif not event["killed"]:
            self.deaths[event["who"]] = event["status"]

    def collect_deaths(self):
        """`deaths`, after the time in which others that crash of the same mistake do so too."""
        patience = time.monotonic() + nursery.GRACE
        while (left := patience - time.monotonic()) > 0 and len(self.deaths) < self.n:
            self.take_events(left)
        return self.deaths

    @property
    def log_size(self):
        """How long the log is by now, in bytes."""
        return os.fstat(self.log.fileno()).st_size

    def log_since(self, begin):
        """What was printed since the log was `begin` bytes long; of much of it, the end."""
        size = self.log_size
        begin = max(begin, size - LOG_TAIL)
        lines = os.pread(self.log.fileno(), size - begin, begin).decode(errors="replace")
        kept = [line for line in lines.splitlines() if not any(noise in line for noise in NOISE)]
        return "\n".join(kept)

    def log_tail(self, lines=15):
        """The last lines of what the cluster's processes have printed."""
        return "\n".join(self.log_since(0).splitlines()[-lines:]) or "(empty)"


def _backing(directory=None):
    """Settings that put Open MPI's shared memory into `directory`, where a sweep finds it."""
    names = ("OMPI_MCA_btl_sm_backing_directory", "OMPI_MCA_osc_sm_backing_directory")
    return {name: str(directory) for name in names} if directory else {}


def fate(status):
    """What an exit code, or minus a signal's number, means: 'died of SIGKILL (Killed)'."""
    if status >= 0:
        return f"ended with exit code {status}"
    try:
        return f"died of {signal.Signals(-status).name} ({signal.strsignal(-status)})"
    except ValueError:  # a real-time signal has no name
        return f"died of signal {-status}"


def describe(deaths):
    """{1: -11} -> 'rank 1 died of SIGSEGV (Segmentation fault)'."""
    return "; ".join(f"rank {rank} {fate(deaths[rank])}" for rank in sorted(deaths))
