"""The nursery: one process that has imported everything, from which the engines are forked.

Importing ipyparallel's engine, IPython and mpi4py costs each interpreter more than everything else
that happens while a cluster starts. So one interpreter does it once, and every engine, and the
controller, is a fork of it. mpirun starts a tiny process for each rank (`rank.py`) that asks here
for an engine and hands over the environment of its rank; to MPI it makes no difference who called
fork. A restart after a crash or a hang needs no imports at all.

On emulated hosts the nursery runs on the first one, and an engine moves to the host of the process
that asked for it before it does anything else: so one process has imported everything there, too.

The nursery is also who knows first and best how an engine ended: it is the parent.

Where fork without exec isn't safe (macOS; or with MPILAB_FORK=0), engines and controller are
started the ordinary way, with the same protocol; they then take the time of their imports.

Protocol, JSON lines: the cluster orders a controller, the nursery reports
    {"event": "nursery", "process": …}                       its process id, as it knows it itself
    {"event": "controller"}                                  the controller takes connections
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

from mpilab.cluster.roles import FORK, ROLES, preload_engine, report

# Seconds between the end of an engine and mpirun's being told, which then ends all others: ranks
# that are about to crash of the same mistake get the time to do so, and are reported too. Where all
# engines have ended, nobody waits. On a busy machine, 0.1 s was too short now and then.
GRACE = 0.5

BOOTSTRAP = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from mpilab.cluster import nursery; nursery.main(json.loads(sys.argv[2]))"
)


def command(**arguments):
    """The command line of a nursery process (or of one engine or controller, where not forked).

    sys.path goes along, so that whatever can be imported by the owner can be imported by a rank.
    """
    path = [os.path.abspath(entry) for entry in sys.path]
    return [sys.executable, "-c", BOOTSTRAP, json.dumps(path), json.dumps(arguments)]


def main(arguments):
    """Be a nursery, or the engine or controller that `arguments` describe."""
    if "role" in arguments:
        ROLES[arguments["role"]](arguments)
        return
    child = Nursery(**arguments).run()
    if child is not None:
        child()


class Nursery:
    """Waits for orders (file descriptor `orders`) and for ranks (listening socket `ranks`).

    on_hosts     the ranks are on emulated hosts.
    has_engines  engines are born here; else on the nodes of a Slurm job, without us.
    """

    def __init__(self, orders, ranks, on_hosts, has_engines=True):
        self.on_hosts, self.has_engines = on_hosts, has_engines
        self.orders = socket.socket(fileno=orders)
        self.order_lines = self.orders.makefile()
        self.ranks = socket.socket(fileno=ranks)
        self.children = {}  # process id -> (who, launch, connection of the rank or None)
        self.doomed = set()  # process ids that we killed ourselves
        self.fates = collections.deque()  # (when to tell, connection, status)
        self.gate = None

    def run(self):
        """Serve until the cluster hangs up; in a forked child, return what the child is to do."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        wake, self.waker = socket.socketpair()
        wake.setblocking(False)
        self.waker.setblocking(False)
        self.wake = wake
        signal.set_wakeup_fd(self.waker.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        gc.disable()
        report(self.orders, event="nursery", process=os.getpid())
        if FORK:
            import ipyparallel.controller.app  # noqa: F401
        # The first order is a controller, which starts up while the engines' imports go on.
        child = self.take_order()
        if child or self.gate is None:
            return child
        if FORK and self.has_engines:
            preload_engine()
            if self.on_hosts:
                importlib.import_module("mpilab.emulated.namespaces")
        gc.freeze()
        self.selector = selectors.DefaultSelector()
        for source, answer in (
            (self.orders, self.take_order),
            (self.ranks, self.take_rank),
            (wake, self.take_ends),
        ):
            self.selector.register(source, selectors.EVENT_READ, answer)
        self.take_ends()  # a controller that has ended already
        while True:
            for key, _ in self.selector.select(self.tell_fates()):
                child = key.data()
                if child is not None or self.orders is None:
                    return child or None

    def take_order(self):
        """Start a controller; kill the one before and all engines. Hang up at end of file."""
        line = self.order_lines.readline()
        self.kill(list(self.children))
        if not line:
            self.orders = None
            return None
        order = json.loads(line)
        if self.gate is not None:
            os.close(self.gate)
        self.gate, gate = os.pipe()
        order |= {"gate": gate, "reports": self.orders.fileno()}
        child = self.bear("controller", order, who="controller", launch=order["launch"])
        if child is None:
            os.close(gate)
        return child

    def take_rank(self):
        """A process of mpirun asks for its engine."""
        connection, _ = self.ranks.accept()
        connection.settimeout(10)
        stream = connection.makefile("rb")
        size = int.from_bytes(stream.read(4), "big")
        request = stream.read(size)
        if not size or len(request) < size:  # it was killed while it asked
            connection.close()
            return None
        order = json.loads(request) | {"gate": self.gate, "on_hosts": self.on_hosts}
        environment = order["environment"]
        who, launch = int(environment["PMIX_RANK"]), environment["MPILAB_LAUNCH"]
        return self.bear("engine", order, who, launch, connection)

    def bear(self, role, order, who, launch, connection=None):
        """Fork (or start) a child; in the child, return what it has to do."""
        kept = {order["gate"], order.get("reports")} - {None}
        if not FORK:
            environment = order.pop("environment")  # too long for a command line
            arguments = command(role=role, **order)
            pid = subprocess.Popen(arguments, env=environment, pass_fds=kept).pid
        else:
            pid = os.fork()
            if pid == 0:
                self.forget_everything(kept)
                if connection is not None:
                    connection.close()
                return lambda: ROLES[role](order)
        self.children[pid] = who, launch, connection
        if connection is not None:
            self.selector.register(
                connection, selectors.EVENT_READ, lambda: self.lose_rank(pid, connection)
            )
        return None

    def forget_everything(self, kept):
        """In a forked child: give back what belongs to the nursery, but the descriptors `kept`.

        A connection left open here would hide the end of a process at its other end.
        """
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if hasattr(self, "selector"):
            self.selector.close()
        connections = [connection for _, _, connection in self.children.values()]
        connections += [connection for _, connection, _ in self.fates]
        for socket_ in (self.ranks, self.wake, self.waker, *connections):
            if socket_ is not None:
                socket_.close()
        if self.orders.fileno() in kept:
            self.orders.detach()
        else:
            self.order_lines.close()
            self.orders.close()
        if self.gate not in kept:
            os.close(self.gate)
        gc.enable()

    def lose_rank(self, pid, connection):
        """mpirun has ended a rank's process: its engine has to end too."""
        if pid in self.children:
            self.selector.unregister(connection)
            self.kill([pid])

    def kill(self, pids):
        """SIGKILL children of ours; their end is reported as 'killed'."""
        for pid in pids:
            self.doomed.add(pid)
            os.kill(pid, signal.SIGKILL)  # not waited for yet, so the number is still its own

    def take_ends(self):
        """Report the children that have ended."""
        with contextlib.suppress(BlockingIOError):  # until all former wake-up calls are read
            while self.wake.recv(4096):
                continue
        while self.children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            status = os.waitstatus_to_exitcode(status)
            who, launch, connection = self.children.pop(pid)
            killed = pid in self.doomed
            self.doomed.discard(pid)
            if connection is not None:
                if connection in self.selector.get_map():
                    self.selector.unregister(connection)
                self.fates.append((time.monotonic() + GRACE, connection, status))
            report(self.orders, event="ended", who=who, launch=launch, status=status, killed=killed)

    def tell_fates(self):
        """Tell the ranks' processes of engines that ended GRACE ago; return seconds to the next."""
        engine_left = any(connection is not None for _, _, connection in self.children.values())
        while self.fates:
            when, connection, status = self.fates[0]
            if engine_left and when > time.monotonic():
                return when - time.monotonic()
            self.fates.popleft()
            with connection, contextlib.suppress(OSError):  # it may have ended by itself
                connection.sendall(f"{status}\n".encode())
        return None
