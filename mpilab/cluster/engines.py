"""The interactive ranks: ipyparallel engines under mpirun, on this machine or on several hosts."""

import atexit
import concurrent.futures
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpilab.cluster import roles
from mpilab.cluster.location import Hosts, locate
from mpilab.cluster.processes import Processes, describe, rank_error, ranks_are
from mpilab.errors import ClusterError, EngineDied, InputError
from mpilab.hosts.emulated import EmulatedHosts
from mpilab.hosts.places import Levels, Place
from mpilab.hosts.slurm import Allocation

if TYPE_CHECKING:  # it takes longer to import than all our modules, and Cluster.start() does it
    from ipyparallel import AsyncResult, Client, DirectView

TICK = 0.05  # seconds between checks whether ranks have ended
# Seconds until the first call is repeated. On a busy machine ipyparallel 9.2 lost one of a few
# hundred first calls, or its answer, until the next message arrived.
ASK_AGAIN_S = 5.0
# Seconds that other ranks get to return after one has raised: they may be waiting for it forever.
PATIENCE_S = 1.0
# Ranks sleep between calls. Above this share of a core, all together disturb what is measured.
# Linux counts processor time in ticks of 10 ms: in a short measurement, they may use some more.
ASLEEP, TICKS_S = 0.05, 0.05
# Before a measurement, ranks get SETTLE_S seconds to fall asleep. A rank computes if it runs, or
# waits for a core, at each of LOOKS looks within LOOK_S.
SETTLE_S, LOOK_S, LOOKS = 3.0, 0.1, 5


class StartTimeOut(ClusterError):
    """Nothing has failed and the controller is up, but the ranks were not ready in time."""


class Connection:
    """The engines that `processes` has just launched, ordered by rank.

    view    DirectView on all engines, in the order of their MPI ranks.
    views   one DirectView per rank.
    names   the host of each rank, as reported by the rank.

    Raises ClusterError with the end of the log if the launch has failed, or StartTimeOut after
    `timeout` seconds if launching again may help.
    """

    def __init__(self, processes: Processes, *, timeout: float, progress: bool) -> None:
        self.processes, self.timeout = processes, timeout
        self.client: Client | None = None
        try:
            self._connect(progress)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the client and its sockets."""
        if self.client is not None:
            self.client.close(linger=0)
            self.client = None

    def _connect(self, progress: bool) -> None:
        # Imported here, while the forkserver imports too: it takes longer than our other imports.
        from ipyparallel import Client  # noqa: PLC0415
        from tqdm.auto import tqdm  # noqa: PLC0415

        n, profile = self.processes.n, self.processes.places[0] / "profile"
        deadline = time.monotonic() + self.timeout
        bar = tqdm(
            total=n + 1,
            desc=f"starting {n} MPI ranks",
            bar_format="{desc}: {bar} {n_fmt}/{total_fmt} [{elapsed}]",
            disable=not progress,
            leave=False,
        )
        with bar:
            while not self.processes.controller_is_up:
                self._check(deadline, "the controller")
                self.processes.take_events(TICK)
            bar.update()
            self.client = client = Client(
                str(profile / "security" / "ipcontroller-client.json"),
                profile_dir=str(profile),
                ipython_dir=str(profile),
                timeout=self.timeout,
            )
            registered = client.wait_for_engines(n, block=False, interactive=False)
            while not registered.done():
                self._check(deadline, f"{n - len(client.ids)} of {n} ranks")
                concurrent.futures.wait([registered], timeout=TICK)
                bar.update(1 + len(client.ids) - bar.n)
            # Ask each engine for its rank and host; its number or the requested host may differ.
            engines = client.ids
            asked = 0.0
            answers: list[AsyncResult] = []
            while not any(each.done() for each in answers):
                self._check(deadline, "the ranks' first answer")
                if time.monotonic() - asked > ASK_AGAIN_S:
                    answers.append(client[engines].apply_async(roles.whereabouts))
                    asked = time.monotonic()
                concurrent.futures.wait(answers, TICK, concurrent.futures.FIRST_COMPLETED)
            answer = next(each for each in answers if each.done())
        found = sorted(zip(answer.result(), engines, strict=True))
        self.names = tuple(host for (_, host), _ in found)
        self.views = [client[engine] for _, engine in found]
        self.view = client[[engine for _, engine in found]]
        self.view.block = True
        if sys.modules["IPython"].get_ipython():
            self.view.activate()  # %px goes to these engines, even after a restart

    def _check(self, deadline: float, what: str) -> None:
        """Raise ClusterError if the start has failed, or waiting for `what` takes too long."""
        processes = self.processes
        if processes.alive and time.monotonic() < deadline:
            return
        reason = processes.lost or f"{what} missing after {self.timeout:g} s"
        if processes.deaths:
            reason = describe(processes.deaths)
        failed = processes.deaths or processes.lost or not processes.controller_is_up
        raise (ClusterError if failed else StartTimeOut)(
            f"the cluster of {processes.n} ranks did not start: {reason}. Look for the cause in "
            "the end of its log below; on a slow machine, try fewer ranks, or allow more time "
            f"with mpilab.Cluster({processes.n}, timeout=…).\n{processes.log.tail()}"
        )


_active: "Cluster | None" = None


def active_cluster() -> "Cluster":
    """The running cluster of this process. Raises ClusterError if there is none."""
    if _active is None or not _active.started:
        raise ClusterError(
            "no cluster is running in this notebook or program. "
            "Start one: cluster = mpilab.Cluster(4).start()"
        )
    return _active


@contextmanager
def asleep() -> Iterator[None]:
    """Measure in this block, in a job of its own, while the active cluster's ranks sleep.

    Without a cluster, nothing is checked. Raises ClusterError if its ranks compute when the block
    begins and do not stop soon; warns if they have used a core during it.
    """
    try:
        cluster = active_cluster()
    except ClusterError:
        yield
        return
    deadline = time.monotonic() + SETTLE_S
    while computing := _computing(cluster):
        if time.monotonic() > deadline:
            raise ClusterError(
                f"ranks of the cluster are computing ({computing} of its processes), so times "
                "measured now would be too long. End what runs there with cluster.restart(), and "
                "measure again"
            )
    spent, began = cluster.processor_seconds(), time.monotonic()
    yield
    spent, lasted = cluster.processor_seconds() - spent, time.monotonic() - began
    if spent > ASLEEP * lasted + TICKS_S:
        warnings.warn(
            f"the ranks of the cluster used {spent / lasted:.0%} of a core during the measurement, "
            "so its times are too long; end what runs on them (cluster.restart()), and measure "
            "again",
            stacklevel=_outside(),
        )


def _computing(cluster: "Cluster") -> int:
    """How many of the cluster's processes compute. On a busy machine, that need not take much
    processor time."""
    computing = cluster.running_processes()
    for _ in range(LOOKS - 1):
        if computing:
            time.sleep(LOOK_S / LOOKS)
            computing &= cluster.running_processes()
    return len(computing)


def _outside() -> int:
    """The stacklevel of a warning of our caller that names the line which called the kit."""
    level, frame = 1, sys._getframe(1)
    inside = ("mpilab.", "contextlib")
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(inside):
        level, frame = level + 1, frame.f_back
    return level


class Cluster:
    """ipyparallel MPI engines, on this machine or on several hosts: the kit's interactive ranks.

    n         number of ranks, 1 or more, 4 by default; may exceed the number of cores. On hosts,
              the default is the number of slots.
    hosts     None: all ranks on this machine. A cluster description (its name, such as
              "two-groups", its path or a mpilab.hosts.description.Description): its hosts are
              emulated while the cluster runs. mpilab.hosts.emulated.EmulatedHosts: these hosts,
              which stay up if they were up. "slurm": the nodes of the current Slurm job, also the
              meaning of None if MPILAB_HOSTS is "slurm".
    order     which ranks are on which host: "seq", "rr", "shuffled" or "random"
              (mpilab.hosts.orders), or a list with the name of each rank's host; `seed` is for
              "shuffled" and "random".
    progress  show a progress bar during the start.
    timeout   seconds allowed for the start.
    view      ipyparallel's DirectView on all engines, in the order of their MPI ranks.
    names     the host of each rank.
    levels    mpilab.hosts.places.Levels of the ranks: their nodes and groups.

    Use `Cluster(4).start()` in a notebook, or `with Cluster(4) as cluster:`. A process has one
    active cluster: starting another stops it. Nothing is left behind, however the process ends.
    """

    def __init__(
        self,
        n: int | None = None,
        *,
        hosts: Hosts = None,
        order: str | Sequence[str] = "seq",
        seed: int = 1,
        progress: bool = True,
        timeout: float = 60.0,
    ) -> None:
        self.n, self._location = locate(n, hosts, order, seed)
        self.progress = progress
        self.timeout = timeout
        self._connection: Connection | None = None
        self._processes: Processes | None = None
        self._owner = 0  # the process that started it; its forks must not use or stop it
        self._unfinished: dict[int, AsyncResult] = {}  # rank -> an abandoned call

    def __repr__(self) -> str:
        state = "running" if self.running else "not running"
        processes = self._started_here()
        if processes is not None and processes.deaths:
            state = describe(processes.deaths)
        return f"<mpilab.Cluster of {self.n} ranks{self._location.words}: {state}>"

    def __enter__(self) -> "Cluster":
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    @property
    def started(self) -> bool:
        """True from start() to stop(), even if ranks have died."""
        return self._started_here() is not None

    def _started_here(self) -> Processes | None:
        """The processes of the cluster, unless it is stopped or this process is a fork."""
        return self._processes if self._owner == os.getpid() else None

    @property
    def running(self) -> bool:
        """True if all ranks are alive."""
        processes = self._started_here()
        return processes is not None and self._connection is not None and processes.alive

    @property
    def view(self) -> "DirectView | None":
        """ipyparallel's DirectView on all engines, in rank order; None while there are none."""
        return None if self._connection is None else self._connection.view

    @property
    def hosts(self) -> EmulatedHosts | Allocation | None:
        """The mpilab.hosts.emulated.EmulatedHosts or mpilab.hosts.slurm.Allocation on which the
        ranks run; None on this machine."""
        return self._location.hosts

    @property
    def folder(self) -> Path | None:
        """Path of a directory that all ranks and this process can access while the cluster runs;
        None if its hosts are down."""
        return self._location.folder

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each rank's host: a tuple."""
        return self._location.names

    @property
    def places(self) -> tuple[Place, ...]:
        """The mpilab.hosts.places.Place (node and group) of each rank: a tuple."""
        return self._location.places

    @property
    def levels(self) -> Levels:
        """The mpilab.hosts.places.Levels of all ranks."""
        return Levels(self.places)

    @property
    def log_size(self) -> int:
        """The current size of the log of the cluster's processes, in bytes."""
        processes = self._started_here()
        return 0 if processes is None else processes.log.size

    def log_since(self, size: int) -> str:
        """What the cluster's processes have printed since the log was `size` bytes long."""
        processes = self._started_here()
        return "" if processes is None else processes.log.since(size)

    def processor_seconds(self) -> float:
        """Processor time that the cluster's processes on this machine have used so far."""
        processes = self._started_here()
        return 0.0 if processes is None else processes.processor_seconds()

    def running_processes(self) -> set[int]:
        """The cluster's processes on this machine that run now or wait for a core."""
        processes = self._started_here()
        return set() if processes is None else processes.running()

    def start(self) -> "Cluster":
        """Start the ranks, unless they are running, and make this the active cluster; return self.

        Raises ClusterError with the end of the log if that fails, SetupError if there is no
        Open MPI or hosts cannot be emulated.
        """
        global _active
        if self.running:
            return self
        if _active is not None:
            _active.stop()
        self.stop()
        # Hosts that start with the cluster have their own supervisor
        # (mpilab/hosts/emulated/supervisor.py).
        self._location.begin()
        try:
            processes = Processes(self.n, self._location)
        except BaseException:
            self._location.end()
            raise
        self._processes, self._owner = processes, os.getpid()
        atexit.register(self.stop)
        _active = self
        self._launch(processes)
        return self

    def stop(self) -> None:
        """End every process of the cluster and remove its files; do nothing if it is stopped."""
        global _active
        processes = self._started_here()
        if processes is None:
            return
        atexit.unregister(self.stop)
        self._processes = None
        if _active is self:
            _active = None
        self._disconnect()
        try:
            processes.end()
        finally:
            self._location.end()

    def restart(self) -> "Cluster":
        """Start new ranks after a crash or a hang; the old ranks' memory is lost. Returns self."""
        processes = self._started_here()
        if processes is not None:
            processes.take_events()
        if processes is None or processes.orphaned or not self._location.is_there:
            self.stop()
            return self.start()
        self._launch(processes)
        return self

    def apply(
        self,
        function: Callable[..., Any],
        *args: Any,
        ranks: Iterable[int] | None = None,
        timeout: float | None = None,
        poll: Callable[[], object] | None = None,
        **kwargs: Any,
    ) -> list[Any]:
        """Call `function(*args, **kwargs)` on `ranks` (default: all); a list of their results.

        The list is in the order of `ranks`. While the ranks work, `poll()` is called every 50 ms;
        an exception from it ends the wait but not the ranks' work: then restart the cluster.

        Raises
          EngineDied    at once when a rank ends instead of returning; `ranks` lists the ranks that
                        ended.
          ClusterError  with the traceback of the first rank on which the function raised (at most
                        a second after it did, even if others never return); if a rank is still
                        in an earlier call; if the cluster is not running.
          TimeoutError  after `timeout` seconds, naming the ranks that have not answered.
        """
        processes, connection = self._started_here(), self._connection
        if processes is None or connection is None:
            raise ClusterError(
                f"the cluster of {self.n} ranks is not running. Start it: cluster.start()"
            )
        ranks = self._checked(ranks, processes)
        self._look(processes)
        pending = {}
        for rank in ranks:
            pending[rank] = connection.views[rank].apply_async(function, *args, **kwargs)
        self._unfinished.update(pending)
        try:
            self._wait(processes, pending, timeout, poll)
        finally:
            self._forget_finished()
        return [pending[rank].result() for rank in ranks]

    # Waiting for ranks

    def _checked(self, ranks: Iterable[int] | None, processes: Processes) -> list[int]:
        """`ranks` as a list; raises if a rank does not exist or cannot take a call."""
        ranks = list(range(self.n)) if ranks is None else list(ranks)
        for rank in ranks:
            if rank not in range(self.n):
                raise InputError(
                    f"{rank!r} is not a rank of this cluster (ranks=…): "
                    f"give numbers from 0 to {self.n - 1}"
                )
        self._forget_finished()
        busy = [rank for rank in ranks if rank in self._unfinished]
        if busy and processes.alive:
            raise ClusterError(
                f"{ranks_are(busy)} still in an earlier, abandoned call: wait, or get new ranks "
                "with cluster.restart()"
            )
        return ranks

    def _forget_finished(self) -> None:
        self._unfinished = {
            rank: result for rank, result in self._unfinished.items() if not result.done()
        }

    def _wait(
        self,
        processes: Processes,
        results: Mapping[int, "AsyncResult"],
        timeout: float | None,
        poll: Callable[[], object] | None,
    ) -> None:
        """Wait for all of `results` (rank -> AsyncResult); raises as apply() does."""
        deadline = time.monotonic() + (float("inf") if timeout is None else timeout)
        patience = float("inf")
        while True:
            concurrent.futures.wait(results.values(), timeout=TICK)
            late = [rank for rank in results if not results[rank].done()]
            if late:
                self._look(processes)
            raised = [rank for rank in results if _exception(results[rank])]
            now = time.monotonic()
            if raised:
                patience = min(patience, now + PATIENCE_S)
            if raised and (not late or now > patience):
                raise rank_error(raised[0], results[raised[0]].exception(), late)
            if not late:
                return
            if now > deadline:
                raise TimeoutError(
                    f"{ranks_are(late)} without an answer after {timeout:g} s "
                    f"(cluster of {self.n}): "
                    "computing, or waiting for a message that never comes. "
                    "Get new ranks with cluster.restart()"
                )
            if poll is not None:
                poll()

    def _look(self, processes: Processes) -> None:
        """Raise EngineDied or ClusterError if a rank, the controller or mpirun has ended."""
        if processes.alive:
            return
        if processes.deaths:
            deaths = processes.collect_deaths()
            raise EngineDied(
                f"{describe(deaths)} in the cluster of {self.n}. "
                "Get new ranks with cluster.restart()",
                sorted(deaths),
            )
        raise ClusterError(
            f"the cluster of {self.n} ranks failed: {processes.lost}. "
            "Get new ranks with cluster.restart(). "
            f"The end of its log:\n{processes.log.tail()}"
        )

    # Starting and connecting

    def _launch(self, processes: Processes) -> None:
        self._disconnect()
        self._unfinished = {}
        try:
            try:
                connection = self._connect(processes)
            except StartTimeOut:
                # ipyparallel may have missed the ranks' registration.
                connection = self._connect(processes)
            self._location.confirm(connection.names)
        except BaseException:  # including an interrupt by the user: leave no partial cluster
            self.stop()
            raise

    def _connect(self, processes: Processes) -> Connection:
        processes.launch()
        connection = Connection(processes, timeout=self.timeout, progress=self.progress)
        self._connection = connection
        return connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _exception(result: "AsyncResult") -> BaseException | None:
    return result.exception() if result.done() else None
