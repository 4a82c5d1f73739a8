"""ipyparallel's client of a cluster, and the wait for its engines."""

import concurrent.futures
import sys
import time

from mpilab.cluster import roles
from mpilab.cluster.words import describe
from mpilab.errors import ClusterError

TICK = 0.05  # seconds between two looks at the ranks' fate
# Until the ranks are asked anew. On a busy machine ipyparallel 9.2 lost one of a few hundred first
# calls, or its answer: nobody was woken up for it, and the next message brought it along.
ASK_AGAIN_S = 5.0


class StartTimeOut(ClusterError):
    """Nothing has failed and the controller is up, but the ranks were not there in time."""


class Connection:
    """The engines that `processes` has just launched, ordered by rank.

    view    DirectView on all engines, in the order of their MPI ranks.
    views   one DirectView a rank.
    names   the host that each rank says it runs on.

    Raises ClusterError with the end of the log where they cannot be there, or not after `timeout`
    seconds: StartTimeOut then, if it may help to launch them again.
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
            asked, answers = 0.0, []
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
            self.view.activate()  # %px goes to these engines, also after a restart

    def _check(self, deadline, what):
        """Raise ClusterError if the start has failed, or takes too long waiting for `what`."""
        processes = self.processes
        if processes.alive and time.monotonic() < deadline:
            return
        reason = processes.lost or f"{what} not there after {self.timeout:g} s"
        if processes.deaths:
            reason = describe(processes.deaths)
        failed = processes.deaths or processes.lost or not processes.controller_is_up
        raise (ClusterError if failed else StartTimeOut)(
            f"the cluster of {processes.n} ranks did not start: {reason}. Look for the cause in "
            "the end of its log below; on a slow machine try fewer ranks, or give more time by "
            f"mpilab.Cluster({processes.n}, timeout=…).\n{processes.log.tail()}"
        )
