"""Pending traffic of a run without progress: what ranks wait for, and sends not yet received.

Ranks are numbered by their position in the list of recordings. No number in a record is trusted: a
process may have written arbitrary data into its recording.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpilab.trace.recording import (
    ANY,
    CANCELLED,
    POLLS,
    PROBES,
    RECEIVES,
    SENDS,
    SYNCHRONOUS,
    WAITS,
    Call,
    RankRecording,
    call_of,
    joined,
)

EXCHANGES = ("MPI_Sendrecv", "MPI_Sendrecv_replace")
# Calls that wait for all of their operations, not for any one.
WANT_ALL = ("MPI_Waitall", "MPI_Testall", *EXCHANGES)
# The recorder distinguishes at most this many polls in a loop (src_c/runtime/recorder/recorder.c).
POLLS_IN_A_LOOP = 8


Key = tuple[int, int, int, int]  # communicator, source, destination, tag


class Want(NamedTuple):
    """An operation that a rank needs to proceed: `call`, for which it waits in `waiting`.

    `waiting` is the same call, or a wait or test for the request that `call` started.
    """

    call: Call
    waiting: Call


def communicator_of(members: Sequence[int], earlier: int = 0) -> int:
    """The number that records use for the communicator of these ranks.

    earlier   how many communicators with the same ranks there were before it
              (src_c/runtime/recorder/communicators.c).
    """
    number = 2166136261
    for value in (*members, earlier):
        for shift in (0, 8, 16, 24):
            number = (number ^ (value >> shift & 0xFF)) * 16777619 & 0xFFFFFFFF  # FNV-1a
    return number


class Traffic:
    """The pending traffic between `ranks`, a RankRecording or None for each."""

    def __init__(self, ranks: Sequence[RankRecording | None]) -> None:
        self.ranks = list(ranks)

    def _begun(self) -> list[tuple[int, RankRecording]]:
        return [(number, rank) for number, rank in enumerate(self.ranks) if rank is not None]

    @cached_property
    def wants(self) -> dict[int, list[Want]]:
        """{rank: [Want]} of the ranks that are in a blocking call or poll."""
        found = {number: _wants(rank, number) for number, rank in self._begun()}
        return {number: wants for number, wants in found.items() if wants}

    @cached_property
    def lacking(self) -> dict[int, list[Want]]:
        """{rank: [Want]}: `wants` without those that are already matched.

        If a rank also waits for something else, sends that may be buffered are left out.
        """
        found = {}
        for number, wants in self.wants.items():
            left = [want for want in wants if not self._is_matched(want.call)]
            other = [want for want in left if not _may_be_buffered(want)]
            found[number] = other or left
        return {number: wants for number, wants in found.items() if wants}

    @cached_property
    def posted(self) -> dict[int, list[Call]]:
        """{rank: [Call]}: receives and probes that are not complete, in call order."""
        found = {}
        for number, rank in self._begun():
            records = rank.records
            chosen = np.flatnonzero(
                (records["flags"] & (RECEIVES | CANCELLED) == RECEIVES)
                & (records["done_ns"] == 0)
                & (records["peer"] >= ANY)
                & (records["error"] == 0)
            )
            wanted = [want.call for want in self.wants.get(number, ())]
            probes = [c for c in wanted if c.name in PROBES and (not c.end_ns or c.flags & POLLS)]
            calls = [call_of(rank, number, index) for index in chosen.tolist()] + probes
            found[number] = sorted(calls, key=lambda call: call.index)
        return found

    @cached_property
    def sent(self) -> list[Call]:
        """[Call]: sends that are not known to have been received, in the order of each rank."""
        if self._all_came():
            return []
        left: Counter[Key] = Counter()
        for number, rank in self._begun():
            chosen = rank.records[_good_sends(rank.records)]
            keys = zip(
                chosen["communicator"].tolist(),
                chosen["peer"].tolist(),
                chosen["tag"].tolist(),
                strict=True,
            )
            left.update((communicator, number, peer, tag) for communicator, peer, tag in keys)
        for number, rank in self._begun():
            chosen = rank.records[_good_receives(rank.records)]
            keys = zip(
                chosen["communicator"].tolist(),
                chosen["got_peer"].tolist(),
                chosen["got_tag"].tolist(),
                strict=True,
            )
            left.subtract((communicator, peer, number, tag) for communicator, peer, tag in keys)
        left = +left
        return [call for number, rank in self._begun() for call in _last(rank, number, left)]

    def _all_came(self) -> bool:
        """Are there as many receives as sends for each communicator, pair of ranks and tag?

        That is true after most runs, and is checked for all ranks at once.
        """
        records, ranks = joined(self.ranks)
        sent, got = _good_sends(records), _good_receives(records)
        ends = (
            (
                records["communicator"][sent],
                ranks[sent],
                records["peer"][sent],
                records["tag"][sent],
            ),
            (
                records["communicator"][got],
                records["got_peer"][got],
                ranks[got],
                records["got_tag"][got],
            ),
        )
        sent_ends, got_ends = (np.stack(columns)[:, np.lexsort(columns)] for columns in ends)
        return np.array_equal(sent_ends, got_ends)

    @cached_property
    def unreceived(self) -> list[Call]:
        """[Call]: `sent` without the sends that a posted receive will match."""
        taken = {
            (sent.rank, sent.index)
            for receive, fitting in self._matches
            for sent in fitting[:1]
            if receive.name not in PROBES
        }
        return [call for call in self.sent if (call.rank, call.index) not in taken]

    def may_move(self, is_complete: Callable[[Call], bool]) -> bool:
        """Can any rank still make progress?

        `is_complete(call)` returns whether all ranks have entered the collective `call`. The result
        errs on the side of True: a receive from any rank may match one message or another.
        """
        return any(self._may_go_on(wants, is_complete) for wants in self.wants.values())

    def _may_go_on(self, wants: list[Want], is_complete: Callable[[Call], bool]) -> bool:
        for waiting in {want.waiting for want in wants}:
            here = [want for want in wants if want.waiting == waiting]
            under_way = [
                is_complete(want.call) if want.call.collective else self._is_matched(want.call)
                for want in here
            ]
            if waiting.name not in WANT_ALL:
                if any(under_way):
                    return True
            # A send that may be buffered may be complete: unknown until the call has returned.
            elif any(under_way) and all(
                under or _may_be_buffered(want) for under, want in zip(under_way, here, strict=True)
            ):
                return True
        return False

    def _is_matched(self, call: Call) -> bool:
        """Is everything that the call needs there, so that it will complete?"""
        return call.asks_disk or (call.rank, call.index) in self._matched

    @cached_property
    def _matched(self) -> set[tuple[int, int]]:
        """(rank, record) of all receives and sends that have, or may have, a match."""
        return {
            (call.rank, call.index)
            for receive, fitting in self._matches
            for call in (receive, *fitting)
        }

    @cached_property
    def _matches(self) -> list[tuple[Call, tuple[Call, ...]]]:
        """[(receive, the sends that it may match)], in matching order.

        The receive posted first matches first (MPI 4.1, section 3.5). A receive from one rank with
        one tag takes the first send. The match of any other receive is unknown, so it leaves all
        sends to the next.
        """
        arriving: defaultdict[Key, deque[Call]] = defaultdict(deque)
        for sent in self.sent:
            for peer in (sent.rank, ANY):
                for tag in (sent.tag, ANY):
                    arriving[sent.communicator, sent.peer, peer, tag].append(sent)
        found: list[tuple[Call, tuple[Call, ...]]] = []
        taken, told = set(), set()
        for number, receives in self.posted.items():
            for receive in receives:
                key = (receive.communicator, number, receive.peer, receive.tag)
                fitting = arriving.get(key, deque())
                while fitting and (fitting[0].rank, fitting[0].index) in taken:
                    fitting.popleft()
                if not fitting:
                    continue
                if receive.name not in PROBES and ANY not in (receive.peer, receive.tag):
                    taken.add((fitting[0].rank, fitting[0].index))
                    found.append((receive, (fitting[0],)))
                else:
                    # List all sends once, not again for every receive of the same kind.
                    found.append((receive, tuple(fitting) if key not in told else (fitting[0],)))
                    told.add(key)
        return found


def _may_be_buffered(want: Want) -> bool:
    """Is it a send that may complete before its message is received, in a call for several?"""
    return want.call.sends and not want.call.flags & SYNCHRONOUS and want.waiting.name in WANT_ALL


def _good_sends(records: NDArray[np.void]) -> NDArray[np.bool_]:
    return (records["flags"] & SENDS != 0) & (records["peer"] >= 0) & (records["error"] == 0)


def _good_receives(records: NDArray[np.void]) -> NDArray[np.bool_]:
    whole = (records["flags"] & (RECEIVES | CANCELLED) == RECEIVES) & (records["done_ns"] != 0)
    return whole & (records["got_peer"] >= 0)


def _last(rank: RankRecording, number: int, left: Counter[Key]) -> list[Call]:
    """The last sends for each (communicator, peer, tag), as many as `left` counts."""
    wanted = {key: count for key, count in left.items() if key[1] == number}
    missing = sum(wanted.values())
    found: list[Call] = []
    if wanted:
        for index in np.flatnonzero(_good_sends(rank.records))[::-1].tolist():
            if len(found) == missing:
                break
            record = rank.records[index]
            key = (int(record["communicator"]), number, int(record["peer"]), int(record["tag"]))
            if wanted.get(key, 0) > 0:
                wanted[key] -= 1
                found.append(call_of(rank, number, index))
    return found[::-1]


def _wants(rank: RankRecording, number: int) -> list[Want]:
    if rank.finished:
        return []
    current = rank.current
    if current is not None:
        return _inside(rank, number, current)
    found = []
    for index in range(len(rank.records) - 1, -1, -1)[:POLLS_IN_A_LOOP]:
        if not rank.records["flags"][index] & POLLS:
            break
        found += _inside(rank, number, index)
    return found


def _inside(rank: RankRecording, number: int, index: int) -> list[Want]:
    """The Wants of the call with record `index`."""
    waiting = call_of(rank, number, index)
    if waiting.flags & (WAITS | POLLS) and waiting.name not in PROBES:
        asked = (rank.records["waiter"] == index) & (rank.records["done_ns"] == 0)
        calls = [call_of(rank, number, i) for i in np.flatnonzero(asked).tolist()]
        return [Want(call, waiting) for call in calls or [waiting]]
    if waiting.name in EXCHANGES and index > 0:
        other = call_of(rank, number, index - 1)
        if other.name == waiting.name and other.site == waiting.site and not other.end_ns:
            return [Want(other, waiting), Want(waiting, waiting)]
    return [Want(waiting, waiting)]
