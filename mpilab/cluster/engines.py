"""The interactive ranks: ipyparallel engines under mpirun, on one machine or on several hosts."""

import atexit
import concurrent.futures
import os
import time

from mpilab.cluster import words
from mpilab.cluster.connection import TICK, Connection, StartTimeOut
from mpilab.cluster.location import locate
from mpilab.cluster.processes import Processes
from mpilab.cluster.words import describe
from mpilab.errors import ClusterError, EngineDied, InputError
from mpilab.places import Levels

# Seconds that the others get to return after a rank has raised: they may be waiting for it forever.
PATIENCE = 1.0

_active = None


def active_cluster():
    """The cluster that is up in this process. Raises ClusterError where there is none."""
    if _active is None or not _active.started:
        raise ClusterError(
            "no cluster is running in this notebook or program. "
            "Start one: cluster = mpilab.Cluster(4).start()"
        )
    return _active


class Cluster:
    """ipyparallel MPI engines, on this machine or on several hosts: the kit's interactive ranks.

    n         number of ranks, 1 or more, 4 by default; they may outnumber the cores. On hosts, as
              many as these have slots.
    hosts     None: all ranks on this machine. A cluster description (its name, such as
              "two-groups", its path or a mpilab.descriptions.Description): its hosts are emulated
              for as long as the cluster runs. mpilab.emulated.EmulatedHosts: these, which stay up
              if they were. "slurm": the nodes of the Slurm job that this runs in, which None means
              too where MPILAB_HOSTS says "slurm".
    order     which ranks are on which host: "seq", "rr", "shuffled" or "random" (mpilab.orders), or
              a list with the name of the host of each rank; `seed` is that of the last two.
    progress  show a progress bar while they start.
    timeout   seconds that they may take to start.
    view      ipyparallel's DirectView on all engines, in the order of their MPI ranks.
    names     the host of each rank.
    levels    mpilab.places.Levels of the ranks: their nodes and groups.

    `Cluster(4).start()` in a notebook, or `with Cluster(4) as cluster:`. A process has one active
    cluster: starting another one stops the one before. Nothing is left behind, however the
    process ends.
    """

    def __init__(self, n=None, *, hosts=None, order="seq", seed=1, progress=True, timeout=60.0):
        self.n, self._location = locate(n, hosts, order, seed)
        self.progress = progress
        self.timeout = timeout
        self._connection = None
        self._processes = None
        self._owner = None  # the process that started it; a fork of that has no part in it
        self._unfinished = {}  # rank -> AsyncResult of a call that was given up

    def __repr__(self):
        state = "running" if self.running else "not running"
        if self.started and self._processes.deaths:
            state = describe(self._processes.deaths)
        return f"<mpilab.Cluster of {self.n} ranks{self._location.words}: {state}>"

    def __enter__(self):
        return self.start()

    def __exit__(self, *exception):
        self.stop()

    @property
    def started(self):
        """True from start() to stop(), also when ranks have died meanwhile."""
        return self._processes is not None and self._owner == os.getpid()

    @property
    def running(self):
        """True when all ranks are there."""
        return self.started and self._connection is not None and self._processes.alive

    @property
    def view(self):
        """ipyparallel's DirectView on all engines, in rank order; None while there are none."""
        return self._connection and self._connection.view

    @property
    def hosts(self):
        """The mpilab.emulated.EmulatedHosts, or mpilab.allocation.Allocation, that the ranks run
        on; None on this machine."""
        return self._location.hosts

    @property
    def folder(self):
        """Path of a directory that all ranks and this process see, while the cluster runs."""
        return self._location.folder

    @property
    def names(self):
        """The name of the host that each rank runs on: a tuple."""
        return self._location.names

    @property
    def places(self):
        """The mpilab.places.Place (node and group) of each rank: a tuple."""
        return self._location.places

    @property
    def levels(self):
        """The mpilab.places.Levels of all ranks."""
        return Levels(self.places)

    @property
    def log_size(self):
        """How long the log of the cluster's processes is by now, in bytes."""
        return self._processes.log.size if self.started else 0

    def log_since(self, size):
        """What the cluster's processes have printed since the log was `size` bytes long."""
        return self._processes.log.since(size) if self.started else ""

    def start(self):
        """Bring the ranks up and make this the active cluster; a running one stays as it is.

        Raises ClusterError with the end of the log where that fails, SetupError where there is no
        Open MPI, or where hosts cannot be emulated.
        """
        global _active
        if self.running:
            return self
        if _active is not None:
            _active.stop()
        self.stop()
        # Hosts that come with the cluster have a guardian of their own (mpilab/emulated/keeper.py).
        self._location.begin()
        try:
            self._processes = Processes(self.n, self._location)
        except BaseException:
            self._location.end()
            raise
        self._owner = os.getpid()
        atexit.register(self.stop)
        _active = self
        self._launch()
        return self

    def stop(self):
        """End every process of the cluster and remove its files; a stopped one stays as it is."""
        global _active
        if not self.started:
            return
        atexit.unregister(self.stop)
        processes, self._processes = self._processes, None
        if _active is self:
            _active = None
        self._disconnect()
        try:
            processes.end()
        finally:
            self._location.end()

    def restart(self):
        """Bring up new ranks after a crash or a hang; what the old ones held in memory is gone."""
        if self.started:
            self._processes.take_events()
        if not self.started or self._processes.orphaned or not self._location.is_there:
            self.stop()
            return self.start()
        self._launch()
        return self

    def apply(self, function, *args, ranks=None, timeout=None, poll=None, **kwargs):
        """Call `function(*args, **kwargs)` on `ranks` (default: all); a list of their results.

        The list is in the order of `ranks`. While the ranks work, `poll()` is called every 50 ms;
        what it raises ends the wait, with the ranks still at work: restart the cluster then.

        Raises
          EngineDied    at once when a rank ends instead of returning; `ranks` names which.
          ClusterError  with the traceback of the first rank on which the function raised (at most
                        a second after it did, even if others never return); a rank that is still
                        in a former call; a cluster that isn't running.
          TimeoutError  after `timeout` seconds, naming the ranks that have not answered.
        """
        ranks = self._checked(ranks)
        self._look()
        pending = {}
        for rank in ranks:
            pending[rank] = self._connection.views[rank].apply_async(function, *args, **kwargs)
        self._unfinished.update(pending)
        try:
            self._wait(pending, timeout, poll)
        finally:
            self._forget_finished()
        return [pending[rank].result() for rank in ranks]

    # Waiting for ranks

    def _checked(self, ranks):
        """`ranks` as a list; raises where a rank doesn't exist or can't take a call."""
        if not self.started:
            raise ClusterError(
                f"the cluster of {self.n} ranks is not running. Start it: cluster.start()"
            )
        ranks = list(range(self.n)) if ranks is None else list(ranks)
        for rank in ranks:
            if rank not in range(self.n):
                raise InputError(
                    f"{rank!r} is not a rank of this cluster (ranks=…): "
                    f"give numbers from 0 to {self.n - 1}"
                )
        self._forget_finished()
        busy = [rank for rank in ranks if rank in self._unfinished]
        if busy and self._processes.alive:
            raise ClusterError(
                f"{words.names(busy)} still in a former call, which was given up: "
                "wait, or get new ranks by cluster.restart()"
            )
        return ranks

    def _forget_finished(self):
        self._unfinished = {
            rank: result for rank, result in self._unfinished.items() if not result.done()
        }

    def _wait(self, results, timeout, poll):
        """Wait until all of `results` (rank -> AsyncResult) are there; raise as apply() does."""
        deadline = time.monotonic() + (float("inf") if timeout is None else timeout)
        patience = None
        while True:
            concurrent.futures.wait(results.values(), timeout=TICK)
            late = [rank for rank in results if not results[rank].done()]
            if late:
                self._look()
            raised = [rank for rank in results if _exception(results[rank])]
            now = time.monotonic()
            if raised and patience is None:
                patience = now + PATIENCE
            if raised and (not late or now > patience):
                raise words.rank_error(raised[0], results[raised[0]].exception(), late)
            if not late:
                return
            if now > deadline:
                raise TimeoutError(
                    f"{words.names(late)} without an answer after {timeout:g} s "
                    f"(cluster of {self.n}): "
                    "computing, or waiting for a message that never comes. "
                    "Get new ranks by cluster.restart()"
                )
            if poll is not None:
                poll()

    def _look(self):
        """Raise EngineDied or ClusterError if a rank, the controller or mpirun has ended."""
        if self._processes.alive:
            return
        if self._processes.deaths:
            deaths = self._processes.collect_deaths()
            raise EngineDied(
                f"{describe(deaths)} in the cluster of {self.n}. "
                "Get new ranks by cluster.restart()",
                sorted(deaths),
            )
        raise ClusterError(
            f"the cluster of {self.n} ranks broke down: {self._processes.lost}. "
            "Get new ranks by cluster.restart(). "
            f"The end of its log:\n{self._processes.log.tail()}"
        )

    # Starting and connecting

    def _launch(self):
        self._disconnect()
        self._unfinished = {}
        try:
            try:
                self._connect()
            except StartTimeOut:
                # ipyparallel may have missed that they are there (see connection.py).
                self._connect()
            self._location.confirm(self._connection.names)
        except BaseException:  # also an interrupt by the user: never half a cluster
            self.stop()
            raise

    def _connect(self):
        self._processes.launch()
        self._connection = Connection(self._processes, timeout=self.timeout, progress=self.progress)

    def _disconnect(self):
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _exception(result):
    return result.exception() if result.done() else None
