"""ipyparallel's client of a cluster, and the wait for its engines."""

import concurrent.futures
import sys
import time

from mpilab.cluster import roles
from mpilab.cluster.words import describe
from mpilab.errors import ClusterError

TICK = 0.05  # seconds between two looks at the ranks' fate


class Connection:
    """The engines that `processes` has just launched, ordered by rank.

    view    DirectView on all engines, in the order of their MPI ranks.
    views   one DirectView a rank.
    names   the host that each rank says it runs on.

    Raises ClusterError with the end of the log where they are not there after `timeout` seconds.
    """

    def __init__(self, processes, *, timeout, progress):
        self.processes, self.timeout = processes, timeout
        self.client = None
        try:
            self._connect(progress)
        except BaseException:
            self.close()
            raise

    def close(self):
        """Give up the client and its sockets."""
        if self.client is not None:
            self.client.close(linger=0)
            self.client = None

    def _connect(self, progress):
        # Imported here, while the nursery imports too: it takes longer than the rest of us.
        from ipyparallel import Client
        from tqdm.auto import tqdm

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
            # Ask, rather than trust that an engine's number is its rank, and its host the ordered.
            engines = client.ids
            answers = client[engines].apply_async(roles.whereabouts)
            while not answers.done():
                self._check(deadline, "the ranks' first answer")
                concurrent.futures.wait([answers], timeout=TICK)
        found = sorted(zip(answers.result(), engines, strict=True))
        self.names = tuple(host for (_, host), _ in found)
        self.views = [client[engine] for _, engine in found]
        self.view = client[[engine for _, engine in found]]
        self.view.block = True
        if sys.modules["IPython"].get_ipython():
            self.view.activate()  # %px goes to these engines, also after a restart

    def _check(self, deadline, what):
        """Raise ClusterError if the start has failed, or takes too long waiting for `what`."""
        processes = self.processes
        if processes.alive and time.monotonic() < deadline:
            return
        reason = processes.lost or f"{what} not there after {self.timeout:g} s"
        if processes.deaths:
            reason = describe(processes.deaths)
        raise ClusterError(
            f"the cluster of {processes.n} ranks did not start: {reason}. Look for the cause in "
            "the end of its log below; on a slow machine try fewer ranks, or give more time by "
            f"mpilab.Cluster({processes.n}, timeout=…).\n{processes.log.tail()}"
        )
