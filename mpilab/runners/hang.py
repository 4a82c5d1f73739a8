"""Detect hangs, and distinguish deadlocks from time-outs, using the recordings.

A run hangs if no recording has grown for a while. It is a *deadlock* if every rank that is still
in the kernel is inside a blocking call (or polls without success), and no message or collective
that they wait for can still arrive. It is a *time-out* if a rank is computing outside MPI.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from mpilab.trace.callsites import lines_of
from mpilab.trace.matching import EXCHANGES, Traffic, is_complete, missing
from mpilab.trace.recording import (
    ANY,
    HEADER,
    NOBODY,
    NONE,
    POLLS,
    PROBES,
    Call,
    RankRecording,
    call_of,
    peek,
    read_rank,
)
from mpilab.util import processes

# Samples of the call sites at which ranks compute.
#
# On a real-time signal, the recorder notes the current location in the kernel's shared object
# (src_c/runtime/recorder/failures.c). The signal would kill any other process, so it is sent only
# to a process that has mapped the recording.

SIGNAL = signal.SIGRTMIN + 7 if hasattr(signal, "SIGRTMIN") else None  # MPILAB_SAMPLE_SIGNAL
LOOKS = 8
KEPT = HEADER["sample_sites"].shape[0]
ANSWER_S = 0.25  # a rank on a busy machine may have to wait for its time slice
TICK_S = 0.005
STANDSTILL_S = 1.0
WORK_LOOK_S = 0.5  # between looks at the processor time of a whole case
# A rank that has not polled for this long is computing.
POLL_FRESH_S = 0.5
FINISHED, BLOCKED, POLLING, COMPUTING, NOT_BEGUN = (
    "finished",
    "blocked",
    "polling",
    "computing",
    "not begun",
)


def sample(paths: Mapping[int, str | Path], looks: int = LOOKS) -> dict[int, list[int]]:
    """Sample, `looks` times, the ranks whose recordings are `paths` ({rank: path}).

    Returns {rank: [call sites]}, offsets into the kernel's library as in a record, 0 for a sample
    outside of it; fewer than `looks` if it answers too late, as on a busy machine. A rank that has
    ended or never answers is omitted. Of ranks that share a process, as in a simulation, the one
    that is running answers.
    """
    found: dict[int, list[int]] = {}
    if SIGNAL is None:  # macOS
        return found
    processes: dict[int | None, dict[int, str | Path]] = {}
    for rank, path in paths.items():
        processes.setdefault(process_of(path), {})[rank] = path
    for _ in range(min(looks, KEPT)):
        # All at once: each of them computes until it is asked, and while others are.
        before = {rank: _samples(path) for rank, path in paths.items()}
        processes = {process: ranks for process, ranks in processes.items() if _ask(process)}
        for rank, header in _answers(processes, before).values():
            last = (int(header["samples"]) - 1) % KEPT
            found.setdefault(rank, []).append(int(header["sample_sites"][last]))
    return found


def process_of(path: str | Path) -> int | None:
    """The number, here, of the process that writes the recording at `path`; None if it has ended.

    The number in the header is the process's own, which differs on emulated hosts.
    """
    header = peek(path)
    return None if header is None else processes.writer(path, int(header["pid"]))


def _ask(process: int | None) -> bool:
    """Send a process (None: it has ended) the signal, but never to a group, init or ourselves."""
    if SIGNAL is None or process is None or process <= 1 or process == os.getpid():
        return False
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(process, SIGNAL)
        return True
    return False


def _samples(path: str | Path) -> int:
    header = peek(path)
    return 0 if header is None else int(header["samples"])


def _answers(
    asked: Mapping[int | None, Mapping[int, str | Path]], before: Mapping[int, int]
) -> dict[int | None, tuple[int, np.void]]:
    """{process: (rank, header)} of the first rank of each whose header has more samples than
    `before`; processes that do not answer are omitted."""
    found: dict[int | None, tuple[int, np.void]] = {}
    deadline = time.monotonic() + ANSWER_S
    while len(found) < len(asked) and time.monotonic() < deadline:
        for process in asked.keys() - found.keys():
            for rank, path in asked[process].items():
                header = peek(path)
                if header is not None and int(header["samples"]) > before[rank]:
                    found[process] = rank, header
        time.sleep(TICK_S)  # the answer is a word in shared memory, so we must poll
    return found


@dataclass(frozen=True)
class RankState:
    """The state of one rank, and its current (or last) call."""

    rank: int
    state: str
    call: str = ""
    peer: int | None = None
    tag: int | None = None
    bytes: int | None = None
    line: int = 0
    since_s: float = 0.0
    waits_for: tuple[int, ...] = ()
    sends: bool = False

    def describe(self) -> str:
        """'rank 0 is blocked in MPI_Recv from rank 1 (tag 7, 40 bytes), line 12'."""
        if self.state == NOT_BEGUN:
            return f"rank {self.rank} never started"
        if self.state == FINISHED:
            return f"rank {self.rank} had returned from the kernel"
        place = f", line {self.line}" if self.line else ""
        if self.state == COMPUTING:
            after = f" after {self.call}{place}" if self.call else ", without any MPI call"
            return f"rank {self.rank} was computing{after}"
        verb = "polls in" if self.state == POLLING else "is blocked in"
        return f"rank {self.rank} {verb} {self.call}{self._partner()}{place}"

    def _partner(self) -> str:
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

    def row(self) -> dict[str, str | int]:
        """The state as a table row."""
        peer = "" if self.peer is None else "any" if self.peer == ANY else self.peer
        return {
            "rank": self.rank,
            "state": self.state,
            "call": self.call,
            "peer": peer,
            "tag": "" if self.tag in (None, NONE) else self.tag,
            "bytes": "" if self.bytes is None else self.bytes,
            "line": self.line or "",
        }


@dataclass(frozen=True)
class Hang:
    """A hang: kind is 'deadlock' or 'time-out'; states has one RankState per rank.

    is_spent   it is a time-out because no processor time was left for all cases together.
    """

    kind: str
    states: tuple[RankState, ...]
    is_spent: bool = False

    def describe(self) -> str:
        """All unfinished ranks in one sentence, with the circular wait if there is one."""
        stuck = [state for state in self.states if state.state != FINISHED]
        if self.kind == "time-out":
            stuck = [s for s in stuck if s.state == COMPUTING] or stuck
        if not stuck:
            return (
                "every rank had returned from the kernel, but MPI made no progress: a message or "
                "a request was left over"
            )
        words = "; ".join(state.describe() for state in stuck[:6])
        if len(stuck) > 6:
            words += f"; and {len(stuck) - 6} more"
        cycle = self.cycle()
        if cycle:
            words += f". Cycle: {' waits for '.join(map(str, (*cycle, cycle[0])))}"
        return words

    def cycle(self) -> tuple[int, ...]:
        """The ranks of a circular wait, or ()."""
        waits = {s.rank: s.waits_for for s in self.states if s.state in (BLOCKED, POLLING)}
        for start in waits:
            paths: list[tuple[int, ...]] = [(start,)]
            seen = set()
            while paths:
                path = paths.pop(0)
                for peer in waits.get(path[-1], ()):
                    if peer == start:
                        return path
                    if peer not in seen:
                        seen.add(peer)
                        paths.append((*path, peer))
        return ()

    def table(self) -> list[dict[str, str | int]]:
        """One row (dict) per rank."""
        return [state.row() for state in self.states]


def read_states(
    ranks: Sequence[RankRecording | None], now_ns: int | None = None
) -> tuple[RankState, ...]:
    """The RankState of each RankRecording (None for a rank that has not begun)."""
    now_ns = now_ns or time.monotonic_ns()
    traffic = Traffic(ranks)
    return tuple(_state(number, rank, traffic, now_ns) for number, rank in enumerate(ranks))


def _state(number: int, rank: RankRecording | None, traffic: Traffic, now_ns: int) -> RankState:
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
    # Show the first request of a wait for which no message is under way.
    wants = traffic.lacking.get(number) or traffic.wants.get(number, [])
    wants = [w for w in wants if w.waiting == inside]
    shown = next((w.call for w in wants if w.call != inside and w.call.name != inside.name), inside)
    if inside.name in EXCHANGES and len(wants) == 1:
        shown = wants[0].call
    name = inside.name if shown.name == inside.name else f"{inside.name} for {shown.name}"
    library = rank.header["object"].decode(errors="replace")
    has_peer = (shown.sends or shown.receives) and shown.peer != NOBODY
    return RankState(
        number,
        state,
        name,
        peer=shown.peer if has_peer else None,
        tag=shown.tag if has_peer else None,
        bytes=shown.bytes if has_peer and shown.name not in PROBES else None,
        line=lines_of(library, (inside.site,))[0][2],
        sends=shown.sends,
        since_s=(now_ns - inside.begin_ns) / 1e9,
        waits_for=_waits_for(inside, [w.call for w in wants] or [inside], state, traffic.ranks),
    )


def _waits_for(
    inside: Call, calls: list[Call], state: str, ranks: Sequence[RankRecording | None]
) -> tuple[int, ...]:
    own = ranks[inside.rank]
    if state == BLOCKED and inside.collective and own is not None:
        return missing(own.records[inside.index], ranks)
    return tuple(c.peer for c in calls if (c.sends or c.receives) and c.peer >= 0)


def can_progress(ranks: Sequence[RankRecording | None]) -> bool:
    """True if anything that these ranks wait for can still arrive.

    That is the case if a receive has a matching send and some rank waits for either, or if all
    ranks have entered a collective that some rank waits for, with the same number of bytes. When in
    doubt, it returns True: a deadlock is reported only when it is certain.
    """
    traffic = Traffic(ranks)
    return traffic.may_move(lambda call: is_complete(call, traffic.ranks))


def never_began(states: Iterable[RankState]) -> bool:
    """True if no rank reached the kernel, so that the kernel is not what hangs."""
    return all(state.state == NOT_BEGUN for state in states)


class Watch:
    """Watches the recordings of one case while it runs.

    `poll()` returns None while the case may still end, otherwise a Hang. `standstill` is the time
    without progress, in seconds, after which the ranks are examined; `limit` is the time for the
    whole case. With `work`, a case without progress is a time-out as soon as its computing ranks
    together have used that many seconds of processor time: unlike `limit`, that does not depend on
    how busy the machine is. With `most_work`, a case is a time-out once all its ranks together have
    used that many, whether they make progress or not. `left_of_all` returns the processor time that
    is left for this and all other cases: the Hang says if the case was ended for lack of it.
    """

    def __init__(
        self,
        directory: str | Path,
        number: int,
        ranks: int,
        *,
        standstill: float = STANDSTILL_S,
        limit: float = 10.0,
        work: float | None = None,
        most_work: float | None = None,
        left_of_all: Callable[[], float] | None = None,
    ) -> None:
        self.paths = [Path(directory) / f"{number}.{rank}.rec" for rank in range(ranks)]
        self.standstill, self.limit, self.work = standstill, limit, work
        self.most_work, self.work_before, self.work_seen = most_work, -1.0, time.monotonic()
        self.left_of_all, self.is_spent = left_of_all, False
        # (when the ranks last made progress, the processor time of each then, in seconds)
        self.worked: tuple[float, dict[int, float]] = (-1.0, {})
        self.processes: list[int | None] = [None] * ranks
        self.begun = self.moved = time.monotonic()
        self.seen: list[tuple[int, bool] | None] | None = None
        self.over = False  # every rank has left the kernel, and there has been no progress since

    def poll(self) -> Hang | None:
        headers = [peek(path) for path in self.paths]
        seen = [None if h is None else (int(h["progress"]), bool(h["closed_ns"])) for h in headers]
        now = self.clock()
        if seen != self.seen:
            self.seen, self.moved = seen, now
        finished = all(h is not None and h["closed_ns"] for h in headers)
        is_still = now - self.moved >= self.standstill
        self.over = finished and is_still
        if not finished and is_still and None not in seen:
            hang = self.examine(headers)
            if hang is not None:
                return hang
        if time.monotonic() - self.begun >= self.limit or self.has_overrun():
            return Hang("time-out", read_states(self.read()), self.is_spent)
        return None

    def has_overrun(self) -> bool:
        """True if the case has used `most_work` seconds of processor time, progress or not, or if
        none is left of all.

        The first look, after WORK_LOOK_S, begins the count: short cases are never looked at.
        """
        if time.monotonic() - self.work_seen < WORK_LOOK_S:
            return False
        self.work_seen = time.monotonic()
        if self.left_of_all is not None and self.left_of_all() <= 0:
            self.is_spent = True
            return True
        if self.most_work is None:
            return False
        spent = self.spent()
        if spent is None:
            return False
        if self.work_before < 0:
            self.work_before = spent
        return spent - self.work_before >= self.most_work

    def spent(self) -> float | None:
        """The processor time that the ranks have used, in seconds; None if one is not known."""
        used = self._used()
        return sum(used.values()) if len(used) == len(self.paths) else None

    def clock(self) -> float:
        """The clock that measures `standstill`, in seconds."""
        return time.monotonic()

    def examine(self, headers: Sequence[np.void | None]) -> Hang | None:
        """The hang of ranks that have all begun and made no progress for `standstill`."""
        ranks = self.read()
        states = read_states(ranks)
        stuck = all(s.state in (FINISHED, BLOCKED, POLLING) for s in states)
        if stuck and not can_progress(ranks):
            return Hang("deadlock", states)
        if not stuck and self.work is not None and self._has_worked(states, self.work):
            return Hang("time-out", states)
        return None

    def _has_worked(self, states: Iterable[RankState], work: float) -> bool:
        """True if the computing ranks have used `work` seconds of processor time since the last
        progress.

        Ranks that wait in MPI do not count: with a core each, they use much processor time, too.
        """
        used = self._used()
        if self.worked[0] != self.moved:
            self.worked = (self.moved, {})
        before = self.worked[1]
        spent = {rank: now - before.setdefault(rank, now) for rank, now in used.items()}
        computing = [state.rank for state in states if state.state == COMPUTING]
        return sum(spent.get(rank, 0.0) for rank in computing) >= work

    def _used(self) -> dict[int, float]:
        """{rank: processor time of its process, in seconds}; {} if a rank has just ended, which
        whoever started it will notice."""
        if None in self.processes:
            self.processes = [process_of(path) for path in self.paths]
        try:
            return {
                rank: sum(psutil.Process(pid).cpu_times()[:2])
                for rank, pid in enumerate(self.processes)
                if pid
            }
        except psutil.NoSuchProcess:
            return {}

    def read(self) -> list[RankRecording | None]:
        """The current recordings; None for a rank that has not begun."""
        return [read_rank(path) for path in self.paths]
