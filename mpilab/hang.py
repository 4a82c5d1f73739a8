"""Why does nothing move? Deadlock told from a time-out, by looking at the recordings.

A run hangs when no recording has grown for a while. It is a *deadlock* when every rank that has
not left the kernel is inside a blocking call (or polls in vain), and no message or collective that
they wait for can still come about. It is a *time-out* when a rank is outside of MPI: it computes.
"""

import time
from dataclasses import dataclass
from pathlib import Path

from mpilab.recording import (
    ANY,
    COLLECTIVE,
    NONE,
    POLLS,
    RECEIVES,
    SENDS,
    RankRecording,
    operations,
    peek,
)
from mpilab.sites import lines_of

STANDSTILL_S = 1.0
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
        peer = "" if self.peer is None else " with any rank" if self.peer == ANY else (
            f" with rank {self.peer}")
        details = [f"tag {self.tag}" if self.tag not in (None, ANY) else "",
                   f"{self.bytes} bytes" if self.bytes is not None else ""]
        inside = ", ".join(filter(None, details))
        return peer + (f" ({inside})" if inside and peer else "")

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
            path, rank = [], start
            while rank in waits and rank not in path and waits[rank]:
                path.append(rank)
                rank = waits[rank][0]
            if rank in path:
                return tuple(path[path.index(rank):])
        return ()

    def table(self):
        """One row (dict) a rank."""
        return [state.row() for state in self.states]


def read_states(ranks, now_ns=None):
    """The RankState of each RankRecording (None for a rank that has not begun)."""
    now_ns = now_ns or time.monotonic_ns()
    return tuple(_state(number, rank, now_ns) for number, rank in enumerate(ranks))


def _state(number, rank, now_ns):
    if rank is None:
        return RankState(number, NOT_BEGUN)
    if rank.finished:
        return RankState(number, FINISHED)
    index = rank.current
    last = len(rank.records) - 1
    polling = index is None and last >= 0 and rank.records["flags"][last] & POLLS
    state = BLOCKED if index is not None else POLLING if polling else COMPUTING
    index = last if index is None else index
    if index < 0:
        return RankState(number, state)
    record = rank.records[index]
    # A wait is for the first of its requests that is not complete; that is what to show.
    pending = [int(i) for i in (rank.records["waiter"] == index).nonzero()[0]
               if rank.records["done_ns"][i] == 0]
    shown = rank.records[pending[0]] if pending else record
    call = operations().get(int(record["operation"]), "an unknown call")
    if pending:
        call += f" for {operations()[int(shown['operation'])]}"
    library = rank.header["object"].decode(errors="replace")
    site = lines_of(library, (int(record["site"]),))[0]
    has_peer = shown["flags"] & (SENDS | RECEIVES) and shown["peer"] != -2
    targets = [rank.records[i] for i in pending] or [record]
    return RankState(
        number, state, call,
        peer=int(shown["peer"]) if has_peer else None,
        tag=int(shown["tag"]) if has_peer else None,
        bytes=int(shown["bytes"]) if has_peer else None,
        line=site[2],
        since_s=(now_ns - int(record["begin_ns"])) / 1e9,
        waits_for=tuple(int(t["peer"]) for t in targets
                        if t["flags"] & (SENDS | RECEIVES) and t["peer"] >= 0),
    )  # fmt: skip


def can_progress(ranks):
    """May anything that these ranks wait for still come about?

    True when a pending receive has a send to match (then the send has its receive as well), or
    when a collective has been entered by all its ranks. It errs on the side of True: a
    deadlock is only declared when it is certain.
    """
    pending_receives, unmatched = [], {}
    for rank in ranks:
        for record in rank.records:
            flags = int(record["flags"])
            key = (int(record["communicator"]), rank.rank, int(record["peer"]), int(record["tag"]))
            if flags & SENDS and record["peer"] >= 0:
                # Whether complete here or not: it has left, or waits for its receiver.
                unmatched[key] = unmatched.get(key, 0) + 1
            elif flags & RECEIVES and not record["done_ns"] and record["peer"] != -2:
                pending_receives.append((rank.rank, record))
    for rank in ranks:
        for record in rank.records:
            if record["flags"] & RECEIVES and record["done_ns"] and record["got_peer"] >= 0:
                key = (int(record["communicator"]), int(record["got_peer"]), rank.rank,
                       int(record["got_tag"]))
                unmatched[key] = unmatched.get(key, 0) - 1
    for receiver, record in pending_receives:
        for (communicator, source, dest, tag), left in unmatched.items():
            if (left > 0 and dest == receiver and communicator == record["communicator"]
                    and record["peer"] in (ANY, source) and record["tag"] in (ANY, tag)):
                return True
    return _collective_complete(ranks)


def _collective_complete(ranks):
    """Is there a collective that all its ranks have entered, and that is not over?"""
    entered, open_ones = {}, {}
    for rank in ranks:
        for record in rank.records:
            if record["flags"] & COLLECTIVE:
                key = (int(record["communicator"]), int(record["sequence"]))
                entered[key] = entered.get(key, 0) + 1
                if not record["done_ns"]:
                    open_ones[key] = int(record["members"])
    return any(entered[key] >= members for key, members in open_ones.items())


class Watch:
    """Watches the recordings of one case while it runs.

    `poll()` returns None as long as it may still end well, otherwise a Hang. `standstill` is how
    long nothing may happen, in seconds, before the ranks are looked at; `limit` how long the case
    may take in all.
    """

    def __init__(self, directory, number, ranks, *, standstill=STANDSTILL_S, limit=10.0):
        self.paths = [Path(directory) / f"{number}.{rank}.rec" for rank in range(ranks)]
        self.standstill, self.limit = standstill, limit
        self.begun = self.moved = time.monotonic()
        self.seen = None

    def poll(self):
        now = time.monotonic()
        headers = [peek(path) for path in self.paths]
        seen = [h is not None and (int(h["progress"]), bool(h["closed_ns"])) for h in headers]
        if seen != self.seen:
            self.seen, self.moved = seen, now
        if all(has_begun and has_begun[1] for has_begun in seen):
            return None
        if now - self.moved >= self.standstill and False not in seen:
            ranks = self.read()
            states = read_states(ranks)
            stuck = all(s.state in (FINISHED, BLOCKED, POLLING) for s in states)
            if stuck and not can_progress(ranks):
                return Hang("deadlock", states)
        if now - self.begun >= self.limit:
            return Hang("time-out", read_states(self.read()))
        return None

    def read(self):
        """The recordings at this moment; None for a rank that has not begun."""
        return [RankRecording(path) if peek(path) is not None else None for path in self.paths]


