"""The least that recorded messages must have carried, as far as it follows from a case's data.

The data of each rank is random, and no other rank can know it: a rank that ends with it has
received it from a rank that had it before. So each rank must receive at least as many bytes as it
ends with from other ranks, and must send at least as many as others end with from it. And there
must be a chain of messages, in order of time, from each rank to every rank whose result depends on
it. A reduction combines data, but its result is as long as one contribution.

A recording below these bounds is incomplete: the data took a path that is not recorded, or the
recording was changed. It proves nothing about the answer, and nothing can be counted in it.

What carries data without being a message does not replace messages: the bounds must be met in any
event. But with it, useless messages could imitate an algorithm, or take less simulated time, while
the data goes another way. There are these ways:

    tag, length, number and order of messages, empty ones too; what a probe tells of them
    color, key and group of a new communicator (who is in it, in which order)

All of them are in the recording, and what a kernel does with them follows from the arguments of the
call alone, not from what is in its buffers. So one case of each item that counts messages or takes
times is run twice by the first witness, with different data: the calls must be the same
(`differing_calls`). Which case it is follows from the rubric's seed, so a kernel cannot know when
to behave. In addition, the number of communicators that a call may create is limited, in every run.

Attributes, names and info objects stay on their rank. Statuses only repeat what a message carried.
Two ways remain. A rank can delay a message, and its receiver can take the time; but what is counted
are the messages, and time spent waiting is part of the time that is compared. And a message can
carry other data than its algorithm sends; but then the chain of messages must still bring
everything to every rank in as few messages, rounds and bytes as are counted, which is what the item
asks for.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpilab.cases import counts
from mpilab.cases.case import COLLECTIVES, Case
from mpilab.cases.data import datatype
from mpilab.trace.recording import (
    ANY,
    CANCELLED,
    COLLECTIVE,
    NONE,
    RECEIVES,
    SENDS,
    UNKNOWN_REQUEST,
    RankRecording,
    Recording,
    joined,
    operations,
)

# Communicators that one call of a kernel may create. Halving a communicator until each rank is
# alone, with two kinds of halves, creates 2 log2 P; levels of nodes and groups need at most ten.
MOST_COMMUNICATORS = 64
MAKES_COMMUNICATOR = frozenset(
    f"MPI_Comm_{name}" for name in ("split", "split_type", "create", "create_group", "dup")
)

# MPI collectives that an exercise may allow, by the direction of their data. The amount for each
# rank is known only if all contribute equally; otherwise, they give no bound.
_FROM_ROOT = ("Bcast", "Scatter", "Scatterv")
_TO_ROOT = ("Gather", "Gatherv", "Reduce")
_TO_ALL = (
    *("Allgather", "Allgatherv", "Alltoall", "Alltoallv", "Alltoallw", "Allreduce"),
    *("Reduce_scatter", "Reduce_scatter_block"),
)
_UNBOUNDED = 1 << 60  # bytes

# Kinds of events at a rank; simultaneous events are in this order.
_LEAVES, _ARRIVES = range(2)


class Need(NamedTuple):
    """The least that the messages of a case must carry.

    received   bytes that each rank must receive from others: int64 [P].
    sent       bytes that each rank must send to others: int64 [P].
    reaches    bool [P, P]: the result of the second rank depends on data of the first.
    """

    received: NDArray[np.int64]
    sent: NDArray[np.int64]
    reaches: NDArray[np.bool_]


def need(case: Case) -> Need:
    """The Need of a case; zero for reads, whose data comes from files."""
    size, block = case.ranks, case.block_bytes
    about = COLLECTIVES[case.collective]
    received, sent = np.zeros(size, np.int64), np.zeros(size, np.int64)
    reaches = np.zeros((size, size), bool)
    if size == 1 or about.reads:
        return Need(received, sent, reaches)
    root, others = case.root, np.arange(size) != case.root
    if not about.has_blocks:
        reaches[:] = True
    elif about.exchanges:
        volume = counts.elements(case) * datatype(case.datatype)[1].size
        volume = np.where(np.eye(size, dtype=bool), 0, volume)
        received[:], sent[:], reaches[:] = volume.sum(axis=0), volume.sum(axis=1), volume > 0
    elif block == 0:
        pass
    elif case.collective in ("allgather", "allreduce"):
        received[:] = block if about.reduces else (size - 1) * block
        sent[:], reaches[:] = block, True
    elif case.collective in ("gather", "reduce"):
        received[root] = block if about.reduces else (size - 1) * block
        sent[others], reaches[:, root] = block, True
    else:  # bcast and scatter
        received[others], reaches[root] = block, True
        sent[root] = block if case.collective == "bcast" else (size - 1) * block
    np.fill_diagonal(reaches, False)
    return Need(received, sent, reaches)


def shortfall(case: Case, recording: Recording) -> str:
    """Why the Recording of a right result must be missing messages; "" if it may be complete.

    A clause such as 'rank 3 ended with 96 bytes from other ranks, but received 0 in messages'.
    """
    needed = need(case)
    records, ranks = joined(recording.ranks)
    if (records["flags"] & UNKNOWN_REQUEST).any():
        rank = int(ranks[np.flatnonzero(records["flags"] & UNKNOWN_REQUEST)[0]])
        return f"rank {rank} started or completed a request that no recorded call had made"
    if not (needed.received.any() or needed.sent.any() or needed.reaches.any()):
        return ""
    messages = recording.messages
    arrived = _arrived(recording)
    received, sent = np.zeros(case.ranks, np.int64), np.zeros(case.ranks, np.int64)
    np.add.at(sent, messages["source"], messages["bytes"])
    np.add.at(received, messages["dest"][arrived], messages["bytes"][arrived])
    calls = _Calls(recording)
    received, sent = received + calls.received, sent + calls.sent
    for rank in np.flatnonzero(received < needed.received)[:1].tolist():
        return (
            f"rank {rank} ended with {needed.received[rank]} bytes from other ranks, but received "
            f"{received[rank]} in messages"
        )
    for rank in np.flatnonzero(sent < needed.sent)[:1].tolist():
        return (
            f"other ranks ended with {needed.sent[rank]} bytes from rank {rank}, but it sent "
            f"{sent[rank]} in messages"
        )
    missing = needed.reaches & ~_reached(recording, arrived, calls)
    for source, dest in np.argwhere(missing)[:1].tolist():
        return (
            f"the result of rank {dest} depends on rank {source}, but no chain of messages leads "
            f"from rank {source} to rank {dest}"
        )
    return _too_many_communicators(recording, records, ranks)


# What a call says without its data; its times are left out.
_SAID = ("operation", "communicator", "peer", "tag", "bytes", "members", "offset")


def is_examined(case: Case) -> bool:
    """Whether the calls of a case could carry data in another way than in messages."""
    return bool(need(case).received.any())


def other_data(case: Case) -> Case:
    """The same case with other data in its buffers."""
    return replace(case, seed=case.seed ^ 0x5A5A5A5A)


def differing_calls(first: Recording, second: Recording) -> str:
    """How the calls depend on the data, from the recordings of a case and of `other_data` of it.

    A clause such as 'the tags, lengths or communicators of rank 2 depend on the data'; "" if they
    do not.
    """
    for one, other in zip(first.ranks, second.ranks, strict=True):
        if not np.array_equal(_said(one), _said(other)):
            return (
                f"the tags, lengths, number or communicators of the messages of rank {one.rank} "
                "depend on the data, and could carry it"
            )
    return ""


def _said(rank: RankRecording) -> NDArray[np.int64]:
    """What the calls of a rank say to others without their data: rows of int64.

    Those to one rank are in their order, in which they also arrive. Wherever a receive takes its
    message from, it tells nobody anything.
    """
    records = rank.records
    chosen = records["flags"] & (SENDS | COLLECTIVE) != 0
    chosen |= np.isin(records["operation"], _makes_communicator())
    columns = [records[name][chosen].astype(np.int64) for name in _SAID]
    rows: NDArray[np.int64] = np.stack(columns, axis=1)
    return rows[np.argsort(rows[:, _SAID.index("peer")], kind="stable")]


@cache
def _makes_communicator() -> NDArray[np.int64]:
    """The numbers of the operations that create communicators."""
    return np.array([number for number, name in operations().items() if name in MAKES_COMMUNICATOR])


def _too_many_communicators(
    recording: Recording, records: NDArray[np.void], places: NDArray[np.int64]
) -> str:
    """`records` and `places` are those of `joined`: one look at all ranks."""
    making = np.isin(records["operation"], _makes_communicator())
    by_rank = np.bincount(places[making], minlength=len(recording.ranks))
    for place in np.flatnonzero(by_rank > MOST_COMMUNICATORS)[:1].tolist():
        return (
            f"rank {recording.ranks[place].rank} created {by_rank[place]} communicators in one "
            "call, whose colors and keys can carry data"
        )
    return ""


def _arrived(recording: Recording) -> NDArray[np.bool_]:
    """bool [n]: was the message received, or was its receive posted but never waited for?"""
    messages = recording.messages
    arrived: NDArray[np.bool_] = messages["receive_record"] != NONE
    posted = cache(lambda rank: _posted(recording.ranks[rank]))
    left = np.flatnonzero(~arrived)
    sent = messages[["communicator", "source", "dest", "tag"]][left].tolist()
    for number, (comm, source, dest, tag) in zip(left.tolist(), sent, strict=True):
        arrived[number] = not posted(dest).isdisjoint(product((comm,), (ANY, source), (ANY, tag)))
    return arrived


def _posted(rank: RankRecording) -> set[tuple[int, int, int]]:
    """(communicator, peer, tag) of the receives that the rank has posted and not waited for."""
    records = rank.records
    left = (
        (records["flags"] & (RECEIVES | CANCELLED) == RECEIVES)
        & (records["done_ns"] == 0)
        & (records["error"] == 0)
    )
    return set(records[["communicator", "peer", "tag"]][left].tolist())


class _Calls:
    """The data that MPI collectives called in a kernel have carried.

    received, sent   bytes of each rank, as upper bounds.
    each             for each collective, the records, as (rank, index), of the ranks that sent data
                     and of those that received data.
    """

    def __init__(self, recording: Recording) -> None:
        size = len(recording.ranks)
        self.received, self.sent = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self.each: list[tuple[list[tuple[int, int]], list[tuple[int, int]]]] = []
        names = operations()
        met: dict[tuple[str, int, int], list[tuple[int, int]]] = {}
        for number, rank in enumerate(recording.ranks):
            for index in np.flatnonzero(rank.records["flags"] & COLLECTIVE).tolist():
                record = rank.records[index]
                name = names.get(int(record["operation"]), "").removeprefix("MPI_")
                plain = name[1:].capitalize() if name.startswith("I") else name
                if plain in (*_FROM_ROOT, *_TO_ROOT, *_TO_ALL) and not record["error"]:
                    key = plain, int(record["communicator"]), int(record["sequence"])
                    met.setdefault(key, []).append((number, index))
        for (name, *_), members in met.items():
            self._add(recording, name, members)

    def _add(self, recording: Recording, name: str, members: list[tuple[int, int]]) -> None:
        records = {rank: recording.ranks[rank].records[index] for rank, index in members}
        roots = [(rank, index) for rank, index in members if records[rank]["peer"] == rank]
        sources = roots if name in _FROM_ROOT else members
        dests = roots if name in _TO_ROOT else members
        self.each.append((sources, dests))
        most = max(int(record["bytes"]) for record in records.values())
        alike = not name.endswith(("v", "w")) and name != "Reduce_scatter"
        volume = (len(members) - 1) * most if alike else _UNBOUNDED
        for rank, _ in sources:
            self.sent[rank] += min(volume, _UNBOUNDED - int(self.sent[rank]))
        for rank, _ in dests:
            self.received[rank] += min(volume, _UNBOUNDED - int(self.received[rank]))


def _reached(recording: Recording, arrived: NDArray[np.bool_], calls: _Calls) -> NDArray[np.bool_]:
    """bool [P, P]: may the second rank know at the end what the first had at the beginning?"""
    size = len(recording.ranks)
    known = [1 << rank for rank in range(size)]  # a bit for each rank
    told: dict[int, int] = {}
    for what, rank, number in _in_order(_events(recording, arrived, calls)):
        if what == _LEAVES:
            told[number] = told.get(number, 0) | known[rank]
        else:
            known[rank] |= told[number]
    bits = [np.frombuffer(each.to_bytes(-(-size // 8), "little"), np.uint8) for each in known]
    return np.unpackbits(np.array(bits), axis=1, bitorder="little")[:, :size].T.astype(bool)


# (time, record, what, number of the message or collective, how many must have left before)
_Event = tuple[int, int, int, int, int]


def _events(recording: Recording, arrived: NDArray[np.bool_], calls: _Calls) -> list[list[_Event]]:
    """The events of each rank, in order; a collective is one message from all to all."""
    events: list[list[_Event]] = [[] for _ in recording.ranks]
    messages: NDArray[np.void] = recording.messages[arrived]
    columns = ("source", "dest", "sent_ns", "send_record", "received_ns", "receive_record")
    rows = zip(*(messages[name].tolist() for name in columns), strict=True)
    for number, (source, dest, sent_ns, sent, received_ns, received) in enumerate(rows):
        if received == NONE:  # never waited for: it may have arrived as late as the end
            received_ns = np.iinfo(np.int64).max
        events[source].append((sent_ns, sent, _LEAVES, number, 0))
        events[dest].append((received_ns, received, _ARRIVES, number, 1))
    for number, (sources, dests) in enumerate(calls.each, start=len(messages)):
        for rank, index in sources:
            begin_ns = int(recording.ranks[rank].records["begin_ns"][index])
            events[rank].append((begin_ns, index, _LEAVES, number, 0))
        for rank, index in dests:
            done_ns = int(recording.ranks[rank].records["done_ns"][index])
            if done_ns:
                events[rank].append((done_ns, index, _ARRIVES, number, len(sources)))
    for each in events:
        each.sort()
    return events


def _in_order(events: list[list[_Event]]) -> Iterator[tuple[int, int, int]]:
    """(what, rank, number) of all events, each arrival after the departures that it needs."""
    at, moved = [0] * len(events), True
    left: dict[int, int] = {}
    while moved:
        moved = False
        for rank, mine in enumerate(events):
            here, end = at[rank], len(mine)
            while here < end:
                _, _, what, number, before = mine[here]
                if what == _LEAVES:
                    left[number] = left.get(number, 0) + 1
                elif left.get(number, 0) < before:
                    break
                yield what, rank, number
                here += 1
            moved = moved or here > at[rank]
            at[rank] = here
