"""Matching of calls between ranks: pending messages, and the calls of each collective.

`Traffic` holds what the ranks of a hung run wait for, and the sends not yet received. `Collectives`
holds which calls of the ranks belong together, and which disagree.

Ranks are numbered by their position in the list of recordings. No number in a record is trusted: a
process may have written arbitrary data into its recording.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpilab.trace.recording import (
    ANY,
    CANCELLED,
    COLLECTIVE,
    ERR_TRUNCATE,
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
    operations,
)

EXCHANGES = ("MPI_Sendrecv", "MPI_Sendrecv_replace")
# Calls that wait for all of their operations, rather than for any one.
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
        """Is everything that the call needs available, so that it will complete?"""
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
    """Is it a send that may complete before its message is received, in a call that waits for
    all?"""
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


# Collectives: which calls of the ranks belong together, and which disagree.

MOST_REPORTED = 200  # at most this many collectives are reported, the earliest first
# Collectives to which every rank must contribute the same number of bytes; in those of
# ROOT_DIFFERS, where the root may pass MPI_IN_PLACE, the root's number is meaningless.
ALIKE = {
    f"MPI_{i}{name.lower() if i else name}"
    for i in ("", "I")
    for name in (
        "Bcast",
        "Gather",
        "Scatter",
        "Allgather",
        "Alltoall",
        "Reduce",
        "Allreduce",
        "Reduce_scatter_block",
        "Scan",
        "Exscan",
    )
}
ROOT_DIFFERS = {"MPI_Gather", "MPI_Scatter", "MPI_Igather", "MPI_Iscatter"}

# One collective, seen from a record of it. Ranks are numbered by their position in `ranks`, a list
# of RankRecording, None for a rank that has not begun.


def entries(record: np.void, rank: RankRecording) -> list[int]:
    """Indices of the records with which `rank` entered the collective of `record`.

    Its call may be another one: it has the same number on the same communicator.
    """
    records = rank.records
    return np.flatnonzero(
        (records["flags"] & COLLECTIVE != 0)
        & (records["communicator"] == record["communicator"])
        & (records["sequence"] == record["sequence"])
    ).tolist()


def missing(record: np.void, ranks: Sequence[RankRecording | None]) -> tuple[int, ...]:
    """Ranks that have not called this collective; () if it does not involve all ranks."""
    if record["members"] != len(ranks):
        return ()
    entered = _entered(record, ranks)
    return tuple(number for number in range(len(ranks)) if number not in entered)


def is_complete(call: Call, ranks: Sequence[RankRecording | None]) -> bool:
    """True if all ranks have entered the collective of this Call, and it is not over."""
    own = ranks[call.rank]
    if call.done_ns or own is None:
        return False
    entered = _entered(own.records[call.index], ranks)
    amounts = {_contributed(record, rank) for rank, record in entered.items()} - {None}
    return len(entered) >= call.members and len(amounts) <= 1


def _entered(record: np.void, ranks: Sequence[RankRecording | None]) -> dict[int, np.void]:
    """{rank: its record} of the ranks that have entered the same collective as `record`."""
    found = {}
    for number, rank in enumerate(ranks):
        if rank is None:
            continue
        for index in entries(record, rank):
            if _agreed(rank.records[index]) == _agreed(record):
                found[number] = rank.records[index]
    return found


def _agreed(record: np.void) -> tuple[int, ...]:
    """What all ranks of a communicator must agree on in a collective."""
    return tuple(int(record[name]) for name in ("communicator", "sequence", "operation", "peer"))


def _contributed(record: np.void, rank: int) -> int | None:
    """Bytes that `rank` contributes to a collective, if all must contribute the same, or None."""
    name = operations().get(int(record["operation"]))
    if name not in ALIKE or (name in ROOT_DIFFERS and record["peer"] == rank):
        return None
    return int(record["bytes"])


class Collectives:
    """All collectives of a run.

    ranks       a RankRecording, or None, for each rank
    completed   the run completed, so a missing free or close is a leak, not a mismatch
    """

    def __init__(self, ranks: Sequence[RankRecording | None], *, completed: bool) -> None:
        self._ranks = {number: rank for number, rank in enumerate(ranks) if rank is not None}
        # Grouped by collective; `owner` is the rank of each record, `index` its index there.
        self._records, self._owner, self._index = _grouped(ranks, completed)

    def conflicts(self) -> Iterator[list[Call]]:
        """[Call] of all ranks for each collective that they entered with different calls, roots or
        bytes, the earliest first.

        Calls after a failed call are left out, and so are failed calls, except one that received a
        message of another length: a mismatch may cause that.
        """
        failed = {
            number: int(np.flatnonzero(rank.records["error"])[0])
            for number, rank in self._ranks.items()
            if rank.records["error"].any()
        }
        for calls in self._chosen(_disagree):
            if all(
                call.error in (0, ERR_TRUNCATE) and call.index <= failed.get(call.rank, call.index)
                for call in calls
            ):
                yield calls

    def incomplete(self) -> Iterator[list[Call]]:
        """[Call] of the ranks that entered, for each collective that not all ranks of its
        communicator entered, the earliest first."""
        return self._chosen(_lack_ranks)

    def _chosen(
        self, chosen: Callable[[NDArray[np.void], NDArray[np.int64]], NDArray[np.bool_]]
    ) -> Iterator[list[Call]]:
        """[Call], one per rank, for each `chosen` collective (one number on one communicator).

        `chosen` takes all records and the indices at which each collective begins.
        """
        records, owner = self._records, self._owner
        if not len(records):
            return
        same = (np.diff(records["sequence"].astype("i8")) == 0) & (
            np.diff(records["communicator"].astype("i8")) == 0
        )
        begins = np.flatnonzero(np.concatenate(([True], ~same)))
        ends = np.append(begins[1:], len(records))
        # A rank enters once; twice means that two communicators share a number.
        twice = np.concatenate((same & (np.diff(owner) == 0), [False]))
        good = chosen(records, begins) & ~np.logical_or.reduceat(twice, begins)
        first = np.minimum.reduceat(records["begin_ns"], begins)
        found = np.flatnonzero(good)
        for one in found[np.argsort(first[found], kind="stable")][:MOST_REPORTED].tolist():
            yield [self._call(at) for at in range(begins[one], ends[one])]

    def _call(self, at: int) -> Call:
        number = int(self._owner[at])
        return call_of(self._ranks[number], number, int(self._index[at]))


def _grouped(
    ranks: Sequence[RankRecording | None], completed: bool
) -> tuple[NDArray[np.void], NDArray[np.int64], NDArray[np.int64]]:
    """(records, their ranks, their indices) of all collectives of more than one rank, sorted by
    communicator, number and rank."""
    records, owner = joined(ranks)
    chosen = (records["flags"] & COLLECTIVE != 0) & (records["communicator"] != 0)
    chosen &= records["members"] > 1
    if completed and chosen.any():
        freed = [
            number
            for number, name in operations().items()
            if name in ("MPI_Comm_free", "MPI_File_close")
        ]
        chosen &= ~np.isin(records["operation"], freed)
    places = np.flatnonzero(chosen)
    index = places - np.searchsorted(owner, owner[places])  # counted from 0 on each rank
    records, owner = records[places], owner[places]
    order = np.lexsort((owner, records["sequence"], records["communicator"]))
    return records[order], owner[order], index[order]


def _disagree(records: NDArray[np.void], begins: NDArray[np.int64]) -> NDArray[np.bool_]:
    differ = np.zeros(len(begins), bool)
    # In a file call, each rank has its own view and may request any amount.
    of_file = [code for code, name in operations().items() if name.startswith("MPI_File_")]
    may_differ = np.isin(records["operation"][begins], of_file)
    for name, free in (("operation", False), ("peer", False), ("bytes", may_differ)):
        least = np.minimum.reduceat(records[name], begins)
        differ |= (least != np.maximum.reduceat(records[name], begins)) & ~np.asarray(free)
    return differ


def _lack_ranks(records: NDArray[np.void], begins: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.diff([*begins, len(records)]) < records["members"][begins]
