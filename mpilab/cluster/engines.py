"""The interactive ranks: ipyparallel engines under mpirun on this machine."""

import atexit
import concurrent.futures
import operator
import os
import sys
import time

from mpilab.cluster import nursery
from mpilab.cluster.processes import Processes, describe
from mpilab.errors import ClusterError, EngineDied, InputError

TICK = 0.05  # seconds between two looks at the ranks' fate and two calls of poll()
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
    """ipyparallel MPI engines on this machine: the kit's interactive ranks.

    n         number of ranks, 1 or more; they may outnumber the cores.
    progress  show a progress bar while they start.
    timeout   seconds that they may take to start.
    view      ipyparallel's DirectView on all engines, in the order of their MPI ranks.

    `Cluster(4).start()` in a notebook, or `with Cluster(4) as cluster:`. A process has one active
    cluster: starting another one stops the one before. Nothing is left behind, however the
    process ends.
    """

    def __init__(self, n=4, *, progress=True, timeout=60.0):
        self.n = _number_of_ranks(n)
        self.progress = progress
        self.timeout = timeout
        self.view = None
        self._client = None
        self._views = []  # one DirectView a rank
        self._processes = None
        self._owner = None  # the process that started it; a fork of that has no part in it
        self._unfinished = {}  # rank -> AsyncResult of a call that was given up

    def __repr__(self):
        state = "running" if self.running else "not running"
        if self.started and self._processes.deaths:
            state = describe(self._processes.deaths)
        return f"<mpilab.Cluster of {self.n} ranks: {state}>"

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
        return self.started and self.view is not None and self._processes.alive

    @property
    def log_size(self):
        """How long the log of the cluster's processes is by now, in bytes."""
        return self._processes.log_size if self.started else 0

    def log_since(self, size):
        """What the cluster's processes have printed since the log was `size` bytes long."""
        return self._processes.log_since(size) if self.started else ""

    def start(self):
        """Bring the ranks up and make this the active cluster; a running one stays as it is.

        Raises ClusterError with the end of the log where that fails, SetupError where there is no
        Open MPI.
        """
        global _active
        if self.running:
            return self
        if _active is not None:
            _active.stop()
        self.stop()
        self._processes = Processes(self.n)
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
        processes.end()

    def restart(self):
        """Bring up new ranks after a crash or a hang; what the old ones held in memory is gone."""
        if self.started:
            self._processes.take_events()
        if not self.started or self._processes.orphaned:
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
            pending[rank] = self._views[rank].apply_async(function, *args, **kwargs)
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
                f"{_names(busy)} still in a former call, which was given up: "
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
                raise _rank_error(raised[0], results[raised[0]].exception(), late)
            if not late:
                return
            if now > deadline:
                raise TimeoutError(
                    f"{_names(late)} without an answer after {timeout:g} s (cluster of {self.n}): "
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
            f"The end of its log:\n{self._processes.log_tail()}"
        )

    # Starting and connecting

    def _launch(self):
        self._disconnect()
        self._unfinished = {}
        try:
            self._processes.launch()
            self._connect(self._processes.places[0] / "profile")
        except BaseException:  # also an interrupt by the user: never half a cluster
            self.stop()
            raise

    def _connect(self, profile):
        """Wait for controller and engines, and order the engines by rank."""
        # Imported here, while the nursery imports too: it takes longer than the rest of us.
        from ipyparallel import Client
        from tqdm.auto import tqdm

        deadline = time.monotonic() + self.timeout
        bar = tqdm(
            total=self.n + 1,
            desc=f"starting {self.n} MPI ranks",
            bar_format="{desc}: {bar} {n_fmt}/{total_fmt} [{elapsed}]",
            disable=not self.progress,
            leave=False,
        )
        with bar:
            while not self._processes.controller_is_up:
                self._check_start(deadline, "the controller")
                self._processes.take_events(TICK)
            bar.update()
            self._client = client = Client(
                str(profile / "security" / "ipcontroller-client.json"),
                profile_dir=str(profile),
                ipython_dir=str(profile),
                timeout=self.timeout,
            )
            registered = client.wait_for_engines(self.n, block=False, interactive=False)
            while not registered.done():
                self._check_start(deadline, f"{self.n - len(client.ids)} of {self.n} ranks")
                concurrent.futures.wait([registered], timeout=TICK)
                bar.update(1 + len(client.ids) - bar.n)
            # Ask, rather than trust that an engine's number is its rank.
            engines = client.ids
            answers = client[engines].apply_async(nursery.rank)
            while not answers.done():
                self._check_start(deadline, "the ranks' first answer")
                concurrent.futures.wait([answers], timeout=TICK)
        by_rank = dict(zip(answers.result(), engines, strict=True))
        engines = [by_rank[rank] for rank in range(self.n)]
        self._views = [client[engine] for engine in engines]
        self.view = client[engines]
        self.view.block = True
        if sys.modules["IPython"].get_ipython():
            self.view.activate()  # %px goes to these engines, also after a restart

    def _check_start(self, deadline, what):
        """Raise ClusterError if the start has failed, or takes too long waiting for `what`."""
        processes = self._processes
        if processes.alive and time.monotonic() < deadline:
            return
        reason = processes.lost or f"{what} not there after {self.timeout:g} s"
        if processes.deaths:
            reason = describe(processes.deaths)
        raise ClusterError(
            f"the cluster of {self.n} ranks did not start: {reason}. Look for the cause in the end "
            "of its log below; on a slow machine try fewer ranks, or give more time by "
            f"mpilab.Cluster({self.n}, timeout=…).\n{processes.log_tail()}"
        )

    def _disconnect(self):
        self.view, self._views = None, []
        if self._client is not None:
            self._client.close(linger=0)
            self._client = None


def _number_of_ranks(n):
    """`n` as an int; raises InputError where it isn't a whole number from 1."""
    try:
        number = 0 if isinstance(n, bool) else operator.index(n)
    except TypeError:
        number = 0
    if number < 1:
        raise InputError(
            f"{n!r} is not a number of ranks for mpilab.Cluster: "
            "give a whole number from 1, e.g. mpilab.Cluster(4)"
        )
    return number


def _exception(result):
    return result.exception() if result.done() else None


def _rank_error(rank, error, late):
    """ClusterError for what `rank` raised, while the ranks `late` have not returned."""
    name = getattr(error, "ename", type(error).__name__)
    value = getattr(error, "evalue", error)
    message = f"rank {rank} raised {name}: {value}"
    if late:
        message += f"\n{_names(late)} still at work, perhaps waiting for it: see cluster.restart()"
    traceback = getattr(error, "traceback", None)
    if traceback:
        message += f"\nOn rank {rank}:\n{traceback}"
    failure = ClusterError(message)
    failure.__cause__ = error
    return failure


def _names(ranks):
    """[1] -> 'rank 1 is', [0, 2, 3] -> 'ranks 0, 2 and 3 are'."""
    *first, last = map(str, ranks)
    return f"ranks {', '.join(first)} and {last} are" if first else f"rank {last} is"
