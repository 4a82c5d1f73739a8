"""The processes of a cluster: started together, watched, and ended together.

They are a *nursery* (the parent of the controller and of all engines, see nursery.py), mpirun with
one small process a rank (rank.py), and a *guardian* that outlives us if need be (guardian.py). They
share a private directory, whose socket files take the place of ports, so no port can be taken; and
a marker in their environment, by which whatever is left is found.

On the nodes of a Slurm job (`location.is_remote`) the nursery has the controller only, which
listens on a port: mpirun, or srun, starts each engine with a parent of its own, which leaves word
of how it ended (roles.engine_elsewhere).
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psutil

from mpilab import openmpi
from mpilab.cluster import guardian, nursery, roles, words
from mpilab.cluster.location import SHARED_MEMORY
from mpilab.cluster.log import Log
from mpilab.errors import ClusterError
from mpilab.programs import end_family

HEARTBEAT = 100  # ms; an engine is registered after one to two beats
# The exit code (MPI_ERR_UNKNOWN) of a rank whose connection to one on another host broke: Open MPI
# ends it, mostly because that other rank has died.
LOST_A_PEER = 14
LONGEST_SOCKET_PATH = 100  # bytes; Linux takes 107, macOS 103
CONTROLLER_S = 120.0  # of a controller that engines elsewhere wait for


class Processes:
    """Nursery, controller, mpirun, engines and guardian of a cluster of `n` ranks.

    location   where they run (location.py); it has begun.

    launch() starts controller and engines, and again after a crash or a hang; end() leaves nothing.

    ended             rank -> exit code, or minus the signal's number, of ranks that have ended
    lost              what else broke down, in words; empty while all is well
    orphaned          the nursery is gone: there won't be another launch
    controller_is_up  the connection files are there
    log               a Log of what all of them print

    Raises ClusterError where there is no place for the cluster's files, SetupError without mpirun.
    """

    def __init__(self, n, location):
        self.n = n
        self.location = location
        openmpi.tool("mpirun")  # raises where there is none, before anything is started
        self.identity = uuid.uuid4().hex
        self.launches = 0
        self.ended, self.lost, self.controller_is_up = {}, "", False
        self.orphaned = False
        self.nursery = self.nursery_process = self.mpirun = self.log = None
        base, name = location.folder, f"mpilab-cluster-{self.identity[:12]}"
        path = os.fsencode(base / name / "100/z-00")
        if not location.is_remote and len(path) > LONGEST_SOCKET_PATH:
            base = Path("/tmp")
        self.directories = [base / name, *self.location.shared_memory(name)]
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
        self.log = Log(self.directories[0] / "log")
        # Where no rank will ask, nobody need know its name; a shared disk may take no sockets.
        ranks.bind("" if self.location.is_remote else str(self.directories[0] / "ranks"))
        ranks.listen(self.n)
        self.nursery = self._start(
            nursery.command(
                orders=orders.fileno(),
                ranks=ranks.fileno(),
                on_hosts=self.location.on_hosts,
                has_engines=not self.location.is_remote,
            ),
            self._environment(),
            pass_fds=(orders.fileno(), ranks.fileno()),
        )

    def _start(self, command, environment, **more):
        """Start a process that writes to the cluster's log, out of reach of ^C."""
        return subprocess.Popen(
            self.location.command(command),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **more,
        )

    def _environment(self, **more):
        """The environment of the cluster's processes."""
        environment = self.location.environment(self.n)
        # A rank is one core's work; numpy's threads would only fight with the other ranks.
        environment.setdefault("OPENBLAS_NUM_THREADS", "1")
        environment[guardian.MARKER] = self.identity
        return environment | more

    @property
    def places(self):
        """Where the present controller and ranks have their files, and their shared memory."""
        return [directory / str(self.launches) for directory in self.directories]

    def _nursery_and_parents(self):
        """The nursery's process id, and those of the processes that keep it on its host."""
        found = {self.nursery.pid, self.location.process_here(self.nursery_process)}
        for process in found - {None}:
            with contextlib.suppress(psutil.NoSuchProcess):  # then launch() will find out
                found |= {parent.pid for parent in psutil.Process(process).parents()}
        return found

    def _temporary(self):
        """Settings that put mpirun's and Open MPI's own files where a sweep finds them.

        The engines set TMPDIR back.
        """
        if self.location.is_remote:  # each node has its own, which Slurm's epilog may tidy up
            return {}
        if len(self.directories) == 1:
            return {"TMPDIR": str(self.places[0])}
        # As the ranks see it: on hosts, each has its own.
        memory = str(SHARED_MEMORY / self.directories[0].name / str(self.launches))
        names = ("OMPI_MCA_btl_sm_backing_directory", "OMPI_MCA_osc_sm_backing_directory")
        # The daemons of several hosts would share one directory.
        temporary = memory if self.location.on_hosts else str(self.places[0])
        return {"TMPDIR": temporary} | dict.fromkeys(names, memory)

    @property
    def deaths(self):
        """`ended`, without those whose end is but a consequence of another one's."""
        first = {rank: status for rank, status in self.ended.items() if status != LOST_A_PEER}
        return first if first and self.location.is_spread else self.ended

    @property
    def alive(self):
        """True while nothing has ended that is needed."""
        self.take_events()
        return not (self.deaths or self.lost)

    def launch(self):
        """Start a controller and the ranks; those of a former launch are killed first."""
        if self.launches:
            self._end_elsewhere()
            # The nursery is spared: it holds all imports.
            guardian.sweep(self.identity, self.places, spare=self._nursery_and_parents())
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
        order = {
            "directory": str(place),
            "environment": self._environment(**own),
            "launch": self.launches,
            "heartbeat": HEARTBEAT,
        }
        if self.location.is_remote:
            order["address"] = self.location.address
        self.events.settimeout(None)
        self.events.sendall(json.dumps(order).encode() + b"\n")
        if self.location.is_remote:
            if not self._controller_comes():
                return
            rank = nursery.command(role="engine elsewhere", on_hosts=False, directory=os.getcwd(),
                                   ends=str(self.places[0]))  # fmt: skip
        else:
            rank = [sys.executable, "-I", "-S", nursery.__file__.replace("nursery.py", "rank.py"),
                    str(self.directories[0] / "ranks")]  # fmt: skip
        self.mpirun = self._start(
            [*self.location.mpirun(self.n), *rank],
            self._environment(
                **own,
                **self._temporary(),
                MPILAB_TMPDIR=os.environ.get("TMPDIR", ""),
                MPILAB_LAUNCH=str(self.launches),
            ),
        )

    def _controller_comes(self):
        """Wait for the connection files: engines elsewhere look for them once. False where the
        controller does not come up."""
        deadline = time.monotonic() + CONTROLLER_S
        while not self.controller_is_up and not self.lost and time.monotonic() < deadline:
            self.take_events(deadline - time.monotonic())
        return self.controller_is_up

    def _end_elsewhere(self):
        """Have mpirun, or srun, end the ranks on other nodes: were it killed, srun would not."""
        if self.location.is_remote and self.mpirun is not None and self.mpirun.poll() is None:
            end_family(self.mpirun.pid)

    def end(self):
        """Kill every process and remove every file of the cluster.

        Raises ClusterError where a process outlives SIGKILL.
        """
        self._end_elsewhere()
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
        # Looked at first: what it has left for us to read is read below.
        mpirun_ended = self.mpirun is not None and self.mpirun.poll() is not None
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
            if event["event"] == "nursery":
                self.nursery_process = event["process"]
            elif int(event["launch"]) == self.launches:  # else of ranks that a restart has replaced
                self._take(event)
        if self.location.is_remote and self.mpirun is not None:
            self.ended |= roles.ends(self.places[0])
        if mpirun_ended and not self.deaths:
            self.lost = self.lost or f"mpirun ended with exit code {self.mpirun.returncode}"

    def _take(self, event):
        if event["event"] == "controller":
            self.controller_is_up = True
        elif event["who"] == "controller":
            self.lost = f"ipyparallel's controller {words.fate(event['status'])}"
        elif not event["killed"]:
            self.ended[event["who"]] = event["status"]

    def collect_deaths(self):
        """`deaths`, after the time in which others that crash of the same mistake do so too."""
        patience = time.monotonic() + nursery.GRACE
        while (left := patience - time.monotonic()) > 0 and len(self.ended) < self.n:
            self.take_events(left)
        return self.deaths
