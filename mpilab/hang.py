"""Why does nothing move? Deadlock told from a time-out, by looking at the recordings.

A run hangs when no recording has grown for a while. It is a *deadlock* when every rank that has
not left the kernel is inside a blocking call (or polls in vain), and no message or collective that
they wait for can still come about. It is a *time-out* when a rank is outside of MPI: it computes.
"""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from mpilab.recorded_calls import PROBES, call_of
from mpilab.recording import (
    ANY,
    COLLECTIVE,
    NOBODY,
    NONE,
    POLLS,
    RankRecording,
    operations,
    peek,
)
from mpilab.sampling import process_of
from mpilab.sites import lines_of
from mpilab.traffic import EXCHANGES, Traffic

STANDSTILL_S = 1.0
# A rank that has not asked again for that long is no longer polling: it computes.
POLL_FRESH_S = 0.5
FINISHED, BLOCKED, POLLING, COMPUTING, NOT_BEGUN = (
    "finished", "blocked", "polling", "computing", "not begun")  # fmt: skip


@dataclass(frozen=True)
class RankState:
    """What one rank is doing: its state, and the call it is in (or was in last)."""

    rank: int
    state: str
    call: str = ""
    peer: int | None = None
    tag: int | None = None
    bytes: int | None = None
    line: int = 0
    since_s: float = 0.0
    waits_for: tuple = ()
    sends: bool = False

    def describe(self):
        """'rank 0 is blocked in MPI_Recv from rank 1 (tag 7, 40 bytes), line 12'."""
        if self.state == NOT_BEGUN:
            return f"rank {self.rank} never began"
        if self.state == FINISHED:
            return f"rank {self.rank} had returned from the kernel"
        place = f", line {self.line}" if self.line else ""
        if self.state == COMPUTING:
            after = f" after {self.call}{place}" if self.call else ", without any MPI call"
            return f"rank {self.rank} was computing{after}"
        verb = "polls in" if self.state == POLLING else "is blocked in"
        return f"rank {self.rank} {verb} {self.call}{self._partner()}{place}"

    def _partner(self):
        if self.peer is None and self.waits_for:
            missing = ", ".join(map(str, self.waits_for))
            ranks = f"ranks {missing} have" if len(self.waits_for) > 1 else f"rank {missing} has"
            return f" ({ranks} not called it)"
        if self.peer is None:
            return ""
        whom = "any rank" if self.peer == ANY else f"rank {self.peer}"
        details = [
            f"tag {self.tag}" if self.tag not in (None, ANY) else "",
            f"{self.bytes} bytes" if self.bytes is not None else "",
        ]
        inside = ", ".join(filter(None, details))
        return f" {'to' if self.sends else 'from'} {whom}" + (f" ({inside})" if inside else "")

    def row(self):
        """The state as a table row."""
        peer = "" if self.peer is None else "any" if self.peer == ANY else self.peer
        return {
            "rank": self.rank, "state": self.state, "call": self.call, "peer": peer,
            "tag": "" if self.tag in (None, NONE) else self.tag,
            "bytes": "" if self.bytes is None else self.bytes, "line": self.line or "",
        }  # fmt: skip


@dataclass(frozen=True)
class Hang:
    """kind is 'deadlock' or 'time-out'; states has one RankState a rank."""

    kind: str
    states: tuple

    def describe(self):
        """All unfinished ranks in one sentence, and the cycle of waiting if there is one."""
        stuck = [state for state in self.states if state.state != FINISHED]
        if self.kind == "time-out":
            stuck = [s for s in stuck if s.state == COMPUTING] or stuck
        if not stuck:
            return (
                "every rank had returned from the kernel, but MPI did not get on: "
                "a message or a request was left over"
            )
        words = "; ".join(state.describe() for state in stuck[:6])
        if len(stuck) > 6:
            words += f"; and {len(stuck) - 6} more"
        cycle = self.cycle()
        if cycle:
            words += f". Cycle: {' waits for '.join(map(str, (*cycle, cycle[0])))}"
        return words

    def cycle(self):
        """Ranks that wait for one another in a circle, or ()."""
        waits = {s.rank: s.waits_for for s in self.states if s.state in (BLOCKED, POLLING)}
        for start in waits:
            paths, seen = [(start,)], set()
            while paths:
                path = paths.pop(0)
                for peer in waits.get(path[-1], ()):
                    if peer == start:
                        return path
                    if peer not in seen:
                        seen.add(peer)
                        paths.append((*path, peer))
        return ()

    def table(self):
        """One row (dict) a rank."""
        return [state.row() for state in self.states]


def read_states(ranks, now_ns=None):
    """The RankState of each RankRecording (None for a rank that has not begun)."""
    now_ns = now_ns or time.monotonic_ns()
    traffic = Traffic(ranks)
    return tuple(_state(number, rank, traffic, now_ns) for number, rank in enumerate(ranks))


def _state(number, rank, traffic, now_ns):
    if rank is None:
        return RankState(number, NOT_BEGUN)
    if rank.finished:
        return RankState(number, FINISHED)
    index = rank.current
    last = len(rank.records) - 1
    polling = (
        index is None
        and last >= 0
        and rank.records["flags"][last] & POLLS
        and now_ns - rank.records["end_ns"][last] < POLL_FRESH_S * 1e9
    )
    state = BLOCKED if index is not None else POLLING if polling else COMPUTING
    index = last if index is None else index
    if index < 0:
        return RankState(number, state)
    inside = call_of(rank, number, index)
    # A wait is for the first of its requests that nothing is under way for; that is what to show.
    wants = traffic.lacking.get(number) or traffic.wants.get(number, ())
    wants = [w for w in wants if w.waiting == inside]
    shown = next((w.call for w in wants if w.call != inside and w.call.name != inside.name), inside)
    if inside.name in EXCHANGES and len(wants) == 1:
        shown = wants[0].call
    name = inside.name if shown.name == inside.name else f"{inside.name} for {shown.name}"
    library = rank.header["object"].decode(errors="replace")
    has_peer = (shown.sends or shown.receives) and shown.peer != NOBODY
    return RankState(
        number, state, name,
        peer=shown.peer if has_peer else None,
        tag=shown.tag if has_peer else None,
        bytes=shown.bytes if has_peer and shown.name not in PROBES else None,
        line=lines_of(library, (inside.site,))[0][2],
        sends=shown.sends,
        since_s=(now_ns - inside.begin_ns) / 1e9,
        waits_for=_waits_for(inside, [w.call for w in wants] or [inside], state, traffic.ranks),
    )  # fmt: skip


def _waits_for(inside, calls, state, ranks):
    if state == BLOCKED and inside.collective:
        return _missing(ranks[inside.rank].records[inside.index], ranks)
    return tuple(c.peer for c in calls if (c.sends or c.receives) and c.peer >= 0)


# Collectives to which every rank has to bring the same number of bytes; of those with a root that
# may say MPI_IN_PLACE, the root's number means nothing.
ALIKE = {f"MPI_{i}{name.lower() if i else name}"
         for i in ("", "I")
         for name in ("Bcast", "Gather", "Scatter", "Allgather", "Alltoall", "Reduce", "Allreduce",
                      "Reduce_scatter_block", "Scan", "Exscan")}  # fmt: skip
ROOT_DIFFERS = {"MPI_Gather", "MPI_Scatter", "MPI_Igather", "MPI_Iscatter"}


def meeting(record):
    """What all ranks of a communicator have to agree on when they meet in a collective:
    (communicator, sequence, operation, root)."""
    return tuple(int(record[name]) for name in ("communicator", "sequence", "operation", "peer"))


def brought(record, rank):
    """Bytes that `rank` brings to a collective, if all ranks have to bring the same; or None."""
    name = operations().get(int(record["operation"]))
    if name not in ALIKE or (name in ROOT_DIFFERS and record["peer"] == rank):
        return None
    return int(record["bytes"])


def calls_of(meeting_of, rank):
    """Indices of the records of `rank` with which it came to the collective of this record."""
    records = rank.records
    return np.flatnonzero(
        (records["flags"] & COLLECTIVE != 0)
        & (records["communicator"] == meeting_of["communicator"])
        & (records["sequence"] == meeting_of["sequence"])
    ).tolist()


def _came(record, ranks):
    """{rank: its record} of the ranks that have entered the same collective as `record`."""
    found = {}
    for number, rank in enumerate(ranks):
        for index in () if rank is None else calls_of(record, rank):
            if meeting(rank.records[index]) == meeting(record):
                found[number] = rank.records[index]
    return found


def _missing(record, ranks):
    """Ranks that have not called this collective; () where its members are not all ranks."""
    if record["members"] != len(ranks):
        return ()
    came = _came(record, ranks)
    return tuple(number for number in range(len(ranks)) if number not in came)


def can_progress(ranks):
    """May anything that these ranks wait for still come about?

    True when a receive has a send to match and one of both is waited for, or when a collective
    that somebody waits for has been entered by all its ranks, with as many bytes. It errs on the
    side of True: a deadlock is only declared when it is certain.
    """
    traffic = Traffic(ranks)
    return traffic.may_move(lambda call: _is_complete(call, traffic.ranks))


def _is_complete(call, ranks):
    """Have all ranks come to the collective that this Call is, and is it not over?"""
    if call.done_ns:
        return False
    came = _came(ranks[call.rank].records[call.index], ranks)
    amounts = {brought(record, rank) for rank, record in came.items()} - {None}
    return len(came) >= call.members and len(amounts) <= 1


def never_began(states):
    """Did no rank come as far as the kernel? Then what hangs is not the kernel."""
    return all(state.state == NOT_BEGUN for state in states)


class Watch:
    """Watches the recordings of one case while it runs.

    `poll()` returns None as long as it may still end well, otherwise a Hang. `standstill` is how
    long nothing may happen, in seconds, before the ranks are looked at; `limit` how long the case
    may take in all. With `work`, a case in which nothing happens is a time-out as soon as those of
    its ranks that compute have used that many seconds of processor time together: unlike `limit`,
    that does not depend on how busy the machine is.
    """

    def __init__(self, directory, number, ranks, *, standstill=STANDSTILL_S, limit=10.0,
                 work=None):  # fmt: skip
        self.paths = [Path(directory) / f"{number}.{rank}.rec" for rank in range(ranks)]
        self.standstill, self.limit, self.work = standstill, limit, work
        self.worked = None
        self.processes = [None] * ranks
        self.begun = self.moved = time.monotonic()
        self.seen = None
        self.over = False  # every rank has left the kernel, and nothing has happened since

    def poll(self):
        now = time.monotonic()
        headers = [peek(path) for path in self.paths]
        seen = [h is not None and (int(h["progress"]), bool(h["closed_ns"])) for h in headers]
        if seen != self.seen:
            self.seen, self.moved = seen, now
        finished = all(has_begun and has_begun[1] for has_begun in seen)
        self.over = finished and now - self.moved >= self.standstill
        if not finished and now - self.moved >= self.standstill and False not in seen:
            ranks = self.read()
            states = read_states(ranks)
            stuck = all(s.state in (FINISHED, BLOCKED, POLLING) for s in states)
            if stuck and not can_progress(ranks):
                return Hang("deadlock", states)
            if not stuck and self.work is not None and self._has_worked(states):
                return Hang("time-out", states)
        if now - self.begun >= self.limit:
            return Hang("time-out", read_states(self.read()))
        return None

    def _has_worked(self, states):
        """Have the ranks that compute used up their processor time since nothing happens any more?

        Those that wait in MPI use much of it, too, wherever there is a core for each of them; it
        says nothing about the kernel.
        """
        if None in self.processes:
            self.processes = [process_of(path) for path in self.paths]
        try:
            used = {rank: sum(psutil.Process(pid).cpu_times()[:2])
                    for rank, pid in enumerate(self.processes) if pid}  # fmt: skip
        except psutil.NoSuchProcess:
            return False  # a rank has just ended: whoever started it will know
        if self.worked is None or self.worked[0] != self.moved:
            self.worked = (self.moved, {})
        before = self.worked[1]
        spent = {rank: now - before.setdefault(rank, now) for rank, now in used.items()}
        computing = [state.rank for state in states if state.state == COMPUTING]
        return sum(spent.get(rank, 0.0) for rank in computing) >= self.work

    def read(self):
        """The recordings at this moment; None for a rank that has not begun."""
        return [RankRecording(path) if peek(path) is not None else None for path in self.paths]
