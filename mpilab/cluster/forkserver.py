"""The forkserver: it has imported everything that the engines need, and forks them.

Importing ipyparallel's engine, IPython and mpi4py takes each interpreter longer than all other
steps of a cluster's start. So one interpreter does it once, and the controller and every engine are
forks of it. For each rank, mpirun starts a tiny process (`rank.py`) that requests an engine and
hands over the environment of its rank; MPI does not depend on who called fork. A restart after a
crash or a hang needs no imports at all.

On emulated hosts the forkserver runs on the first host. Before anything else, an engine moves to
the host of the process that requested it, so one process is enough for the imports of all hosts.

As the parent, the forkserver also reports how each engine ended.

If fork without exec is not safe (on macOS, or with MPILAB_FORK=0), engines and controller are
started as new interpreters, with the same protocol and the time for their own imports.

Protocol, JSON lines: the cluster requests a controller, the forkserver reports
    {"event": "forkserver", "process": …}                    its process ID in its own namespace
    {"event": "controller"}                                  the controller accepts connections
    {"event": "ended", "who": …, "status": …, "killed": …}   a rank (number) or "controller" ended
status is an exit code, or minus the number of a signal.
"""

import collections
import contextlib
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

from mpilab.cluster.roles import FORK, GRACE, ROLES, preload_engine, report

# What a forked child must run; None in the forkserver itself.
Child = Callable[[], None] | None

BOOTSTRAP = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from mpilab.cluster import forkserver; forkserver.main(json.loads(sys.argv[2]))"
)


def command(**arguments: Any) -> list[str]:
    """The command line of a forkserver (or of one engine or controller, without fork).

    It includes sys.path, so that ranks can import whatever the owner can.
    """
    path = [os.path.abspath(entry) for entry in sys.path]
    return [sys.executable, "-c", BOOTSTRAP, json.dumps(path), json.dumps(arguments)]


def main(arguments: dict[str, Any]) -> None:
    """Run as a forkserver, or as the engine or controller that `arguments` describe."""
    if "role" in arguments:
        ROLES[arguments["role"]](arguments)
        return
    child = Forkserver(**arguments).run()
    if child is not None:
        child()


class Forkserver:
    """Handles orders (file descriptor `orders`) and requests of ranks (listening socket `ranks`).

    on_hosts     the ranks are on emulated hosts.
    has_engines  fork the engines here; otherwise they start on the nodes of a Slurm job.
    """

    def __init__(self, orders: int, ranks: int, on_hosts: bool, has_engines: bool = True) -> None:
        self.on_hosts, self.has_engines = on_hosts, has_engines
        self.orders = socket.socket(fileno=orders)
        self.order_lines = self.orders.makefile()
        self.ranks = socket.socket(fileno=ranks)
        # process ID -> (who, launch, connection of the rank or None)
        self.children: dict[int, tuple[int | str, int | str, socket.socket | None]] = {}
        self.killed: set[int] = set()  # process IDs that we have killed
        # (time of the report, connection, status)
        self.exits: collections.deque[tuple[float, socket.socket, int]] = collections.deque()
        self.gate: int | None = None
        self.selector = selectors.DefaultSelector()
        self.is_over = False

    def run(self) -> Child:
        """Serve until the cluster hangs up; in a forked child, return the function it must run."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        wake, self.waker = socket.socketpair()
        wake.setblocking(False)
        self.waker.setblocking(False)
        self.wake = wake
        signal.set_wakeup_fd(self.waker.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        gc.disable()
        report(self.orders, event="forkserver", process=os.getpid())
        if FORK:
            importlib.import_module("ipyparallel.controller.app")
        # The first order is a controller, which starts while the engines' modules are imported.
        child = self.handle_order()
        if child or self.gate is None:
            return child
        if FORK and self.has_engines:
            preload_engine()
        gc.freeze()
        for source, answer in (
            (self.orders, self.handle_order),
            (self.ranks, self.accept_rank),
            (wake, self.reap),
        ):
            self.selector.register(source, selectors.EVENT_READ, answer)
        self.reap()  # the controller may have ended already
        while True:
            for key, _ in self.selector.select(self.report_exits()):
                child = key.data()
                if child is not None or self.is_over:
                    return child

    def handle_order(self) -> Child:
        """Kill all children, then start a controller; at end of file, stop."""
        line = self.order_lines.readline()
        self.kill(list(self.children))
        if not line:
            self.is_over = True
            return None
        order = json.loads(line)
        if self.gate is not None:
            os.close(self.gate)
        self.gate, gate = os.pipe()
        order |= {"gate": gate, "reports": self.orders.fileno()}
        child = self.spawn("controller", order, who="controller", launch=order["launch"])
        if child is None:
            os.close(gate)
        return child

    def accept_rank(self) -> Child:
        """Start the engine that a process of mpirun requests."""
        connection, _ = self.ranks.accept()
        connection.settimeout(10)
        stream = connection.makefile("rb")
        size = int.from_bytes(stream.read(4), "big")
        request = stream.read(size)
        if not size or len(request) < size:  # it was killed during the request
            connection.close()
            return None
        order = json.loads(request) | {"gate": self.gate, "on_hosts": self.on_hosts}
        environment = order["environment"]
        who, launch = int(environment["PMIX_RANK"]), environment["MPILAB_LAUNCH"]
        return self.spawn("engine", order, who, launch, connection)

    def spawn(
        self,
        role: str,
        order: dict[str, Any],
        who: int | str,
        launch: int | str,
        connection: socket.socket | None = None,
    ) -> Child:
        """Fork (or start) a child; in the child, return the function that it must run."""
        kept = {order["gate"], order.get("reports")} - {None}
        if not FORK:
            environment = order.pop("environment")  # too long for a command line
            arguments = command(role=role, **order)
            pid = subprocess.Popen(arguments, env=environment, pass_fds=kept).pid
        else:
            pid = os.fork()
            if pid == 0:
                self.close_inherited(kept)
                if connection is not None:
                    connection.close()
                return lambda: ROLES[role](order)
        self.children[pid] = who, launch, connection
        if connection is not None:
            self.selector.register(
                connection, selectors.EVENT_READ, lambda: self.drop_rank(pid, connection)
            )
        return None

    def close_inherited(self, kept: set[int]) -> None:
        """In a forked child: close the forkserver's files, except for the descriptors `kept`.

        An open copy of a connection would hide the end of the process at its other end.
        """
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self.selector.close()
        connections = [connection for _, _, connection in self.children.values()]
        connections += [connection for _, connection, _ in self.exits]
        for socket_ in (self.ranks, self.wake, self.waker, *connections):
            if socket_ is not None:
                socket_.close()
        if self.orders.fileno() in kept:
            self.orders.detach()
        else:
            self.order_lines.close()
            self.orders.close()
        if self.gate is not None and self.gate not in kept:
            os.close(self.gate)
        gc.enable()

    def drop_rank(self, pid: int, connection: socket.socket) -> None:
        """Kill the engine of a rank whose process mpirun has ended."""
        if pid in self.children:
            self.selector.unregister(connection)
            self.kill([pid])

    def kill(self, pids: Iterable[int]) -> None:
        """SIGKILL children of ours; their end is reported as 'killed'."""
        for pid in pids:
            self.killed.add(pid)
            os.kill(pid, signal.SIGKILL)  # not reaped yet, so the number is still its own

    def reap(self) -> None:
        """Report the children that have ended."""
        with contextlib.suppress(BlockingIOError):  # until all pending wake-ups are read
            while self.wake.recv(4096):
                continue
        while self.children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            status = os.waitstatus_to_exitcode(status)
            who, launch, connection = self.children.pop(pid)
            killed = pid in self.killed
            self.killed.discard(pid)
            if connection is not None:
                if connection in self.selector.get_map():
                    self.selector.unregister(connection)
                self.exits.append((time.monotonic() + GRACE, connection, status))
            report(self.orders, event="ended", who=who, launch=launch, status=status, killed=killed)

    def report_exits(self) -> float | None:
        """Report engines that ended GRACE ago to their ranks' processes; return the seconds until
        the next report."""
        engine_left = any(connection is not None for _, _, connection in self.children.values())
        while self.exits:
            when, connection, status = self.exits[0]
            if engine_left and when > time.monotonic():
                return when - time.monotonic()
            self.exits.popleft()
            with connection, contextlib.suppress(OSError):  # the rank's process may have ended
                connection.sendall(f"{status}\n".encode())
        return None
