"""Read recordings: calls, messages, rounds and file requests.

Each rank has a file; a recording is the list of a run's files, in rank order. The layout is that of
src_c/runtime/recorder/record.h.
"""

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from signal import SIGBUS, SIGSEGV
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpilab.errors import InputError
from mpilab.util.kit import ROOT

(
    SENDS,
    RECEIVES,
    NONBLOCKING,
    COLLECTIVE,
    WAITS,
    POLLS,
    SYNCHRONOUS,
    CANCELLED,
    LEAKED,
    READS_FILE,
    WRITES_FILE,
    UNKNOWN_REQUEST,
    NULL_REQUESTS,
    CHANGED,
) = (1 << bit for bit in range(14))
WORLD = 1  # MPI_COMM_WORLD as a record's communicator
MAGIC = b"MPILABR5"
PROBES = ("MPI_Probe", "MPI_Mprobe", "MPI_Iprobe", "MPI_Improbe")
ANY, NOBODY, NONE = -1, -2, -1
UNKNOWN_ADDRESS = 2**64 - 1  # crash_address, see src_c/runtime/recorder/failures.c
ERR_TRUNCATE = 15  # MPI_ERR_TRUNCATE of Open MPI

RECORD = np.dtype(
    [
        ("operation", "u2"),
        ("flags", "u2"),
        ("communicator", "u4"),
        ("peer", "i4"),
        ("tag", "i4"),
        ("bytes", "i8"),
        ("begin_ns", "i8"),
        ("end_ns", "i8"),
        ("done_ns", "i8"),
        ("site", "u8"),
        ("got_bytes", "i8"),
        ("got_peer", "i4"),
        ("got_tag", "i4"),
        ("waiter", "i4"),
        ("count", "i4"),
        ("error", "i4"),
        ("sequence", "i4"),
        ("members", "i4"),
        ("file", "i4"),
        ("offset", "i8"),
    ]
)
HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("header_bytes", "u4"),
        ("record_bytes", "u4"),
        ("rank", "i4"),
        ("size", "i4"),
        ("capacity", "i8"),
        ("count", "i8"),
        ("dropped", "i8"),
        ("current", "i8"),
        ("progress", "i8"),
        ("opened_ns", "i8"),
        ("closed_ns", "i8"),
        ("pid", "i8"),
        ("strict", "i4"),
        ("signal", "i4"),
        ("object", "S1024"),
        ("host", "S128"),
        ("ended_ns", "i8"),
        ("crash_site", "u8"),
        ("crash_address", "u8"),
        ("exit_status", "i4"),
        ("exited", "i4"),
        ("samples", "i8"),
        ("sample_sites", "u8", (16,)),
        ("unknown_call", "S40"),
        ("trap", "S160"),
        ("refused_site", "u8"),
        ("refused_bytes", "i8"),
        ("held_bytes", "i8"),
    ]
)

MESSAGE = np.dtype(
    [
        ("source", "i4"),
        ("dest", "i4"),
        ("tag", "i4"),
        ("communicator", "u4"),
        ("bytes", "i8"),
        ("round", "i4"),
        ("sent_ns", "i8"),
        ("received_ns", "i8"),
        ("send_record", "i4"),
        ("receive_record", "i4"),
    ]
)

# One read or write call on a file.
REQUEST = np.dtype(
    [
        ("rank", "i4"),
        ("record", "i4"),
        ("operation", "u2"),
        ("is_write", "?"),
        ("collective", "?"),
        ("file", "i4"),
        ("offset", "i8"),
        ("bytes", "i8"),
        ("got_bytes", "i8"),
        ("begin_ns", "i8"),
        ("end_ns", "i8"),
    ]
)

# What happens to a message, in the order of events (_in_order).
_BEGAN, _SENT, _RECEIVED = range(3)
_RECORD_H = ROOT / "src_c" / "runtime" / "recorder" / "record.h"


@cache
def operations() -> dict[int, str]:
    """Names of the recorded calls by number, read from record.h: {1: 'MPI_Send', ...}.

    Those in lower case are functions of the C library.
    """
    text = _RECORD_H.read_text(encoding="utf-8")
    listing = text.split("MPILAB_OPERATIONS(X)", 1)[1].split("enum mpilab_operation", 1)[0]
    names = re.findall(r"\bX\((\w+)\)", listing)
    return {
        number: name if name.islower() else f"MPI_{name}"
        for number, name in enumerate(names, start=1)
    }


class RankRecording:
    """The file of one rank, a header and records, read at one point in time.

    data   the content of the file, if it has already been read.
    """

    def __init__(self, path: str | Path, data: bytes | None = None) -> None:
        if data is None:
            with open(path, "rb") as file:
                data = file.read()
        header = np.frombuffer(data, HEADER, 1)[0] if len(data) >= HEADER.itemsize else None
        if header is None or header["magic"] != MAGIC:
            raise InputError(
                f"{path}: not a recording, or one that was never started; run it again"
            )
        if (header["header_bytes"], header["record_bytes"]) != (HEADER.itemsize, RECORD.itemsize):
            raise InputError(f"{path}: written by another version of the recorder; build again")
        room = (len(data) - HEADER.itemsize) // RECORD.itemsize
        count = int(header["count"])
        if not 0 <= count <= room:
            raise InputError(
                f"{path}: announces {count} records, but has room for {room}; run it again"
            )
        self.path = path
        self.header = header
        self.records = np.frombuffer(data, RECORD, count, HEADER.itemsize)

    @property
    def rank(self) -> int:
        """Rank in the base communicator."""
        return int(self.header["rank"])

    def since(self, begin_ns: int) -> "RankRecording":
        """The same recording without what began before `begin_ns`."""
        later = copy(self)
        later.records = self.records[self.records["begin_ns"] >= begin_ns]
        return later

    @property
    def finished(self) -> bool:
        """Has the rank left the kernel?"""
        return self.header["closed_ns"] != 0

    @property
    def current(self) -> int | None:
        """Index of the record of the call that the rank is in, or None."""
        index = int(self.header["current"])
        return index if 0 <= index < len(self.records) else None

    @property
    def errors(self) -> NDArray[np.intp]:
        """Indices of the records whose call, or the operation that it started, failed."""
        return np.flatnonzero(self.records["error"])

    @property
    def leaked(self) -> NDArray[np.intp]:
        """Indices of the records that created objects that were never freed.

        These are requests, communicators, datatypes, groups, memory and open files.
        """
        return np.flatnonzero(self.records["flags"] & LEAKED)

    @property
    def crash(self) -> tuple[int, int, int | None] | None:
        """(signal number, call site, address accessed), or None.

        The address is None if the signal has none, or if no pointer can have it.
        """
        if not self.header["signal"]:
            return None
        address = int(self.header["crash_address"])
        known = int(self.header["signal"]) in (SIGSEGV, SIGBUS) and address != UNKNOWN_ADDRESS
        return (
            int(self.header["signal"]),
            int(self.header["crash_site"]),
            address if known else None,
        )

    @property
    def refused(self) -> tuple[int, int, int] | None:
        """(bytes, bytes that it had, call site) of the kernel's first request for memory that got
        none, or None."""
        if not self.header["refused_site"]:
            return None
        names = ("refused_bytes", "held_bytes", "refused_site")
        asked, had, site = (int(self.header[name]) for name in names)
        return asked, had, site

    @property
    def exited(self) -> tuple[int, int] | None:
        """(status, call site) if the kernel called exit(), else None."""
        if not self.header["exited"]:
            return None
        return int(self.header["exit_status"]), int(self.header["crash_site"])


def read_rank(path: str | Path) -> RankRecording | None:
    """The current RankRecording at `path`; None if its rank has not begun, or if the file
    contradicts itself: a kernel may write anywhere."""
    try:
        return RankRecording(path)
    except (InputError, FileNotFoundError):
        return None


def joined(ranks: "Sequence[RankRecording | None]") -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """(records, places) of all ranks, concatenated: `places` is each record's index in `ranks`.

    None in `ranks` has no records.
    """
    lists = [rank.records if rank is not None else np.zeros(0, RECORD) for rank in ranks]
    # np.concatenate would compare the fields of every pair.
    records = np.frombuffer(b"".join(map(np.ndarray.tobytes, lists)), RECORD)
    return records, np.repeat(np.arange(len(lists)), list(map(len, lists)))


def cut(path: str | Path) -> None:
    """Remove the room for further records, which the file of a rank that crashed still has: 2 MiB
    for each rank of a case. A file that contradicts itself stays as it is."""
    header = peek(path)
    used = HEADER.itemsize + int(header["count"]) * RECORD.itemsize if header is not None else 0
    if HEADER.itemsize <= used < Path(path).stat().st_size:
        os.truncate(path, used)


def peek(path: str | Path) -> np.void | None:
    """The header of a recording that is being written, or None if its rank has not begun it."""
    try:
        with open(path, "rb") as file:
            data = file.read(HEADER.itemsize)
    except FileNotFoundError:
        return None
    # The recorder writes the magic last.
    if len(data) < HEADER.itemsize or data[:8] != MAGIC:
        return None
    return np.frombuffer(data, HEADER, 1)[0]


@dataclass
class Recording:
    """All ranks of one run."""

    ranks: list[RankRecording]

    def __repr__(self) -> str:
        calls = sum(len(rank.records) for rank in self.ranks)
        return f"Recording of {len(self.ranks)} ranks: {calls} MPI calls"

    @classmethod
    def load(cls, directory: str | Path, number: int, size: int) -> "Recording":
        """The recording of case `number` on `size` ranks; InputError if a file is missing."""
        paths = [Path(directory) / f"{number}.{rank}.rec" for rank in range(size)]
        missing = [str(path) for path in paths if not path.exists()]
        if missing:
            raise InputError(f"{missing[0]}: no such recording; its rank never started the case")
        return cls([RankRecording(path) for path in paths])

    @property
    def complete(self) -> bool:
        """Did all calls fit into the files, and did all ranks leave the kernel?"""
        return all(rank.header["dropped"] == 0 and rank.finished for rank in self.ranks)

    @cached_property
    def messages(self) -> NDArray[np.void]:
        """All point-to-point messages between different ranks, see `messages_of`, with rounds."""
        messages = messages_of(self.ranks)
        messages["round"] = _rounds(self.ranks, messages)
        return messages

    @cached_property
    def requests(self) -> NDArray[np.void]:
        """All reads and writes of files that did not fail, as REQUEST records.

        One call is one request, even if a view or collective I/O turns it into others. offset is
        the byte of the file at which the request begins, NONE if unknown (shared file pointers); a
        view may have holes, so the bytes need not be contiguous. bytes is the amount requested,
        got_bytes the amount transferred. end_ns is when the request was known to be complete, NONE
        if it never was. file numbers the open files of a rank, from 1. Sorted by rank, then by
        order of calling.
        """
        found = []
        for number, rank in enumerate(self.ranks):
            chosen = np.flatnonzero(
                (rank.records["flags"] & (READS_FILE | WRITES_FILE) != 0)
                & (rank.records["error"] == 0)
            )
            records = rank.records[chosen]
            requests = np.zeros(len(chosen), REQUEST)
            requests["rank"], requests["record"] = number, chosen
            requests["is_write"] = records["flags"] & WRITES_FILE != 0
            requests["collective"] = records["flags"] & COLLECTIVE != 0
            for name in ("operation", "file", "offset", "bytes", "got_bytes", "begin_ns"):
                requests[name] = records[name]
            requests["end_ns"] = np.where(records["done_ns"] != 0, records["done_ns"], NONE)
            found.append(requests)
        return np.concatenate(found) if found else np.zeros(0, REQUEST)

    def heard(self) -> NDArray[np.bool_]:
        """bool [P, P]: does rank i know at its end, from messages, that rank j has begun?

        After a barrier, all entries are True: every rank's beginning happens before every rank's
        end.
        """
        known = np.eye(len(self.ranks), dtype=bool)
        told = {}
        for what, rank, number in _in_order(self.ranks, self.messages):
            if what == _BEGAN:
                told[number] = known[rank].copy()
            elif what == _RECEIVED:
                known[rank] |= told[number]
        return known

    def mixed_up(self, begins_ns: Sequence[NDArray[np.int64]]) -> list[tuple[int, int]]:
        """[(message, message of a later call)]: numbers of messages of which a receive from any
        rank got the first, and may get the second instead, or has got it (then both are the same).

        begins_ns   for each rank, when each call of the kernel begins there.

        A receive may get what is sent to its rank before its completion is known to the sender,
        with the same communicator and tag; two messages of one rank do not overtake. Whether an MPI
        collective in between orders them is not examined: with any such call, the list is empty.
        """
        if not any(map(_receives_from_any, self.ranks)) or any(map(_meets_others, self.ranks)):
            return []
        columns = ["communicator", "tag", "dest", "source", "send_record", "receive_record"]
        rows = self.messages[columns].tolist()
        sent_in = [
            _call_at(begins_ns[source], self.ranks[source].records, sent)
            for *_, source, sent, _ in rows
        ]
        # {communicator, tag, dest: {source, call: its first message}}
        first: defaultdict[tuple[int, ...], dict[tuple[int, int], int]] = defaultdict(dict)
        for number, (*key, source, _, _) in enumerate(rows):
            first[tuple(key)].setdefault((source, sent_in[number]), number)
        known, got = self._known_receives()
        found = []
        for number, (*key, source, _, received) in enumerate(rows):
            dest, records = key[-1], self.ranks[key[-1]].records
            if number not in got or records["peer"][received] != ANY:
                continue
            awaited_in = _call_at(begins_ns[dest], records, received)
            if sent_in[number] > awaited_in:
                found.append((number, number))
                continue
            others = [
                other
                for (sender, call), other in first[tuple(key)].items()
                if sender != source and call > awaited_in and known[other][dest] < got[number]
            ]
            found += [(number, min(others))] if others else []
        return found

    def _known_receives(self) -> tuple[dict[int, NDArray[np.int64]], dict[int, int]]:
        """({message: of how many receives of each rank its sender knows}, {message: its number
        among the receives of its rank, from 1}): vector clocks.

        Source: F. Mattern, "Virtual Time and Global States of Distributed Systems", 1989.
        """
        clocks = np.zeros((len(self.ranks), len(self.ranks)), np.int64)
        known, got = {}, {}
        for what, rank, number in _in_order(self.ranks, self.messages):
            if what == _BEGAN:
                known[number] = clocks[rank].copy()
            elif what == _RECEIVED:
                np.maximum(clocks[rank], known[number], out=clocks[rank])
                clocks[rank, rank] += 1
                got[number] = int(clocks[rank, rank])
        return known, got

    @property
    def rounds(self) -> int:
        """Depth of the happens-before graph of the messages; 0 without messages."""
        return int(self.messages["round"].max(initial=0))

    def matrix(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(messages, bytes) from each rank to each other: two [P, P] int64 arrays."""
        size = len(self.ranks)
        count, volume = np.zeros((size, size), np.int64), np.zeros((size, size), np.int64)
        np.add.at(count, (self.messages["source"], self.messages["dest"]), 1)
        np.add.at(volume, (self.messages["source"], self.messages["dest"]), self.messages["bytes"])
        return count, volume


def messages_of(ranks: Sequence[RankRecording | None]) -> NDArray[np.void]:
    """All point-to-point messages between different ranks, as MESSAGE records; rounds are 0.

    `ranks` lists a RankRecording, or None, for each rank. A send is matched with the receive that
    received it: same communicator, source, destination and tag, in the order of posting (MPI 4.1,
    section 3.5: messages do not overtake). A receive with a buffer that was too small has received
    its message, too. received_ns and receive_record are NONE for a message that was never received.
    Sorted by source, then by order of sending.
    """
    sends = _columns(ranks, _sends, ("peer", "tag", "begin_ns", "bytes"))
    receives = _columns(ranks, _receives, ("got_peer", "got_tag", "done_ns"))
    messages = np.zeros(len(sends["rank"]), MESSAGE)
    messages["source"], messages["dest"] = sends["rank"], sends["peer"]
    for name in ("tag", "communicator", "bytes"):
        messages[name] = sends[name]
    messages["sent_ns"], messages["send_record"] = sends["begin_ns"], sends["record"]
    messages["received_ns"] = messages["receive_record"] = NONE

    # Number the sends, and the receives, that agree in all columns; the nth matches the nth.
    columns = (("communicator",) * 2, ("rank", "got_peer"), ("peer", "rank"), ("tag", "got_tag"))
    pairs = [np.concatenate([sends[one], receives[other]]) for one, other in columns]
    split, keys = len(messages), _groups(pairs)
    of_send, of_receive = _numbered(keys[:split]), _numbered(keys[split:])
    _, sent, received = np.intersect1d(of_send, of_receive, assume_unique=True, return_indices=True)
    messages["received_ns"][sent] = receives["done_ns"][received]
    messages["receive_record"][sent] = receives["record"][received]
    return messages


def _columns(
    ranks: Sequence[RankRecording | None],
    chosen: Callable[[NDArray[np.void], int], NDArray[np.bool_]],
    names: Sequence[str],
) -> dict[str, NDArray[np.int64]]:
    """`names`, communicator, rank and index of the chosen records of all ranks: int64 arrays."""
    columns = {name: [np.zeros(0, np.int64)] for name in (*names, "communicator", "rank", "record")}
    for number, rank in enumerate(ranks):
        if rank is None:
            continue
        indices = np.flatnonzero(chosen(rank.records, number))
        for name in (*names, "communicator"):
            columns[name].append(rank.records[name][indices].astype(np.int64))
        columns["rank"].append(np.full(len(indices), number))
        columns["record"].append(indices)
    return {name: np.concatenate(parts) for name, parts in columns.items()}


def _sends(records: NDArray[np.void], rank: int) -> NDArray[np.bool_]:
    chosen = (records["flags"] & SENDS != 0) & (records["peer"] >= 0) & (records["peer"] != rank)
    return chosen & _took_place(records)


def _receives(records: NDArray[np.void], rank: int) -> NDArray[np.bool_]:
    whole = (records["flags"] & (RECEIVES | CANCELLED) == RECEIVES) & (records["done_ns"] != 0)
    return whole & (records["got_peer"] >= 0) & _took_place(records)


def _took_place(records: NDArray[np.void]) -> NDArray[np.bool_]:
    """bool [n]: neither refused nor failed. A message truncated by its receive counts as sent."""
    return (records["error"] == 0) | (records["error"] == ERR_TRUNCATE)


def _groups(columns: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """A number from 0 for each row: the same for rows that agree in all columns."""
    order = np.lexsort(columns)
    begins = np.zeros(len(order), bool)
    for column in columns:
        begins[1:] |= np.diff(column[order]) != 0
    groups = np.empty(len(order), np.int64)
    groups[order] = np.cumsum(begins)
    return groups


def _numbered(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """(group, number of rows of the same group before) of each row, as one number."""
    order = np.argsort(groups, kind="stable")
    in_order, places = groups[order], np.arange(len(groups))
    begins = np.ones(len(groups), bool)
    begins[1:] = np.diff(in_order) != 0
    first = np.maximum.accumulate(np.where(begins, places, 0))
    numbered = np.empty(len(groups), np.int64)
    numbered[order] = (in_order << 32) + places - first
    return numbered


def _call_at(begins_ns: NDArray[np.int64], records: NDArray[np.void], record: int) -> int:
    """In which call of the kernel a rank made the call to MPI of this record, from 0."""
    return int(np.searchsorted(begins_ns, records["begin_ns"][record], side="right")) - 1


def _receives_from_any(rank: RankRecording) -> bool:
    records = rank.records
    return bool(((records["flags"] & RECEIVES != 0) & (records["peer"] == ANY)).any())


def _meets_others(rank: RankRecording) -> bool:
    """Whether the rank calls a collective of MPI with others."""
    records = rank.records
    return bool(((records["flags"] & COLLECTIVE != 0) & (records["members"] != 1)).any())


# The happens-before order. Source: L. Lamport, "Time, Clocks, and the Ordering of Events in a
# Distributed System", Communications of the ACM 21(7), 1978.


def _rounds(ranks: Sequence[RankRecording], messages: NDArray[np.void]) -> NDArray[np.int32]:
    """The round of every message: int32 array.

    A round is 1 + the latest round among the messages that the sender had finished sending or
    receiving before it began to send: the depth in the happens-before order. So messages that a
    rank starts without waiting in between share a round, and a blocking send ends a round.
    """
    found = [0] * len(messages)
    depth = [0] * len(ranks)
    for what, rank, number in _in_order(ranks, messages):
        if what == _BEGAN:
            found[number] = depth[rank] + 1
        elif found[number] > depth[rank]:
            depth[rank] = found[number]
    return np.array(found, np.int32)


def _in_order(
    ranks: Sequence[RankRecording], messages: NDArray[np.void]
) -> Iterator[tuple[int, int, int]]:
    """(what, rank, message number) of all sends and receives, in happens-before order.

    _SENT is when the sender may reuse its buffer.
    """
    # Events with the same time stamp are in call order.
    events: list[list[tuple[int, int, int, int]]] = [[] for _ in ranks]
    done_ns = [rank.records["done_ns"].tolist() for rank in ranks]
    columns = ("source", "dest", "sent_ns", "send_record", "received_ns", "receive_record")
    rows = zip(*(messages[name].tolist() for name in columns), strict=True)
    for number, (source, dest, sent_ns, sent, received_ns, received) in enumerate(rows):
        events[source].append((sent_ns, sent, _BEGAN, number))
        if finished_ns := done_ns[source][sent]:
            events[source].append((finished_ns, sent, _SENT, number))
        if received >= 0:
            events[dest].append((received_ns, received, _RECEIVED, number))
    for list_of_rank in events:
        list_of_rank.sort()
    at, begun, moved = [0] * len(events), set(), True
    while moved:
        moved = False
        for rank, list_of_rank in enumerate(events):
            here, end = at[rank], len(list_of_rank)
            while here < end:
                _, _, what, number = list_of_rank[here]
                if what == _BEGAN:
                    begun.add(number)
                elif what == _RECEIVED and number not in begun:
                    break  # its send has not been visited yet
                yield what, rank, number
                here += 1
            moved = moved or here > at[rank]
            at[rank] = here


class Call(NamedTuple):
    """One record, in Python's own types; fields as in RECORD."""

    rank: int
    index: int  # type: ignore[assignment]  # hides tuple.index
    name: str
    flags: int
    communicator: int
    peer: int
    tag: int
    bytes: int
    begin_ns: int
    end_ns: int
    done_ns: int
    site: int
    got_bytes: int
    got_peer: int
    got_tag: int
    waiter: int
    count: int  # type: ignore[assignment]  # hides tuple.count
    error: int
    sequence: int
    members: int
    file: int
    offset: int

    @property
    def sends(self) -> bool:
        """Does a message leave this rank?"""
        return bool(self.flags & SENDS)

    @property
    def receives(self) -> bool:
        """Does it receive a message, or probe for one?"""
        return bool(self.flags & RECEIVES) or self.name in PROBES

    @property
    def collective(self) -> bool:
        """Must all ranks of the communicator call it?"""
        return bool(self.flags & COLLECTIVE)

    @property
    def moves_file(self) -> bool:
        """Does it read or write data of a file?"""
        return bool(self.flags & (READS_FILE | WRITES_FILE))

    @property
    def asks_disk(self) -> bool:
        """Is it a file call that is not collective? It may be slow, but waits for no other rank."""
        return self.name.startswith("MPI_File_") and not self.collective

    def takes(self, sent: "Call") -> bool:
        """Can this receive (or probe) match the send `sent`?"""
        return (
            sent.peer == self.rank
            and sent.communicator == self.communicator
            and self.peer in (ANY, sent.rank)
            and self.tag in (ANY, sent.tag)
        )


def call_of(rank: RankRecording, number: int, index: int) -> Call:
    """Record `index` of the RankRecording `rank`, whose number is `number`, as a Call."""
    operation, *rest = rank.records[index].tolist()
    name = operations().get(operation, "an unknown call")
    return Call(number, int(index), name, *rest)
