"""Sees where nothing moves in a simulation, which SimGrid does not: it knows deadlocks only."""

import psutil

from mpilab.hang import BLOCKED, COMPUTING, FINISHED, POLLING, can_progress, read_states
from mpilab.recording import NONE, peek
from mpilab.result import DEADLOCK, TIME_OUT, paths_of, read_ranks

WATCHED_RANKS = 256  # of more, the recordings are not looked at while they are written


class Watch:
    """Sees where nothing moves: a rank computes for ever, or ranks poll for what cannot come.

    Ranks run one at a time: while one computes, all others stand in calls. A simulation that is
    slow shows nothing of the kind, so processor time since the last recorded call counts.
    """

    def __init__(self, run, number, case, standstill):
        self.run, self.number, self.case, self.standstill = run, number, case, standstill
        self.is_on = case.record and case.ranks <= WATCHED_RANKS
        self.paths = paths_of(run.directory, number, case, "rec")
        self.seen, self.used = None, 0.0

    def look(self):
        """DEADLOCK, TIME_OUT or None."""
        if not self.is_on:
            return None
        headers = [peek(path) for path in self.paths]
        used = self._used()
        seen = [None if h is None else (int(h["progress"]), int(h["closed_ns"])) for h in headers]
        if seen != self.seen:
            self.seen, self.used = seen, used
        if None in seen or used - self.used < self.standstill or not outside(headers):
            return None
        ranks = read_ranks(self.run.directory, self.number, self.case)
        if None in ranks:
            return None
        states = {state.state for state in read_states(ranks, latest_ns(ranks))}
        if COMPUTING in states:
            return TIME_OUT
        stuck = states <= {FINISHED, BLOCKED, POLLING} and not can_progress(ranks)
        return DEADLOCK if stuck else None

    def _used(self):
        """Seconds of processor time of all that smpirun has started."""
        used = 0.0
        try:
            for process in psutil.Process(self.run.process.pid).children(recursive=True):
                used += sum(process.cpu_times()[:2])
        except psutil.NoSuchProcess:
            return self.used  # it has just ended, and that will be seen
        return used


def outside(headers):
    """Ranks that have begun and not finished the kernel, and are in no call."""
    return [i for i, h in enumerate(headers)
            if h is not None and h["closed_ns"] == 0 and h["current"] == NONE]  # fmt: skip


def latest_ns(ranks):
    """The latest simulated time that these recordings know of."""
    times = [0]
    for rank in ranks:
        if rank is not None:
            times.append(int(rank.header["opened_ns"]))
            for name in ("begin_ns", "end_ns"):
                times.append(int(rank.records[name].max(initial=0)))
    return max(times)
