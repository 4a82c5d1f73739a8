"""The calls and messages of a recording as plain arrays, for views of very many of them.

A list of ranks, here and in the views, holds a RankRecording for each rank, or None for a rank
that left no recording: one of a deadlock may never have begun.
"""

from functools import cache

import numpy as np

from mpilab.plots.style import CALL_COLOURS, NEVER_RETURNED, byte_size
from mpilab.recording import (
    ANY,
    CANCELLED,
    COLLECTIVE,
    MESSAGE,
    NOBODY,
    NONE,
    POLLS,
    RECEIVES,
    SENDS,
    SYNCHRONOUS,
    WAITS,
    operations,
)
from mpilab.sites import lines_of

KINDS = tuple(CALL_COLOURS)
BLOCKED = KINDS.index(NEVER_RETURNED)
EXCHANGES = ("MPI_Sendrecv", "MPI_Sendrecv_replace")
# Calls that are neither messages nor collectives, by how their names begin.
OTHERS = (
    "Send_", "Ssend_", "Recv_", "Start", "Request_", "Cancel", "Comm_", "Type_", "Abort", "Other",
)  # fmt: skip

# kind: place in KINDS; record: its (first) record in the recording of its rank.
CALL = np.dtype(
    [("rank", "i4"), ("record", "i4"), ("kind", "i1"), ("begin_ns", "i8"), ("end_ns", "i8")]
)


def ranks_of(recording):
    """The ranks of a Recording, or of a list of RankRecording and None, as a list."""
    return list(getattr(recording, "ranks", recording))


def calls_of(ranks):
    """Every call as CALL: by rank, then in the order of the calls.

    A send-receive, which has two records, is one call. end_ns is 0 where a call never returned.
    """
    return np.concatenate(
        [np.zeros(0, CALL)]
        + [_calls_of_rank(place, rank) for place, rank in enumerate(ranks) if rank is not None]
    )


def _calls_of_rank(place, rank):
    records = rank.records
    operation, flags = records["operation"], records["flags"]
    exchange = np.isin(operation, _numbers(EXCHANGES))
    second = np.zeros(len(records), bool)
    second[1:] = (exchange & (flags & RECEIVES != 0))[1:] & (exchange & (flags & SENDS != 0))[:-1]
    (kept,) = np.nonzero(~second)
    calls = np.zeros(len(kept), CALL)
    calls["rank"], calls["record"] = place, kept
    calls["begin_ns"], calls["end_ns"] = records["begin_ns"][kept], records["end_ns"][kept]
    kinds = np.array(_kind_of_operation(), np.int8)
    # A call that this version does not know is something else.
    kind = kinds[np.minimum(operation[kept], len(kinds) - 1)]
    started = np.isin(operation[kept], _numbers(("MPI_Start", "MPI_Startall")))
    to_send = flags[kept] & SENDS != 0
    kind[started] = np.where(to_send, KINDS.index("send"), KINDS.index("receive"))[started]
    kind[calls["end_ns"] == 0] = BLOCKED
    calls["kind"] = kind
    return calls


def _numbers(names):
    return [number for number, name in operations().items() if name in names]


@cache
def _kind_of_operation():
    """The place in KINDS of each operation by number; the last entry is for unknown ones."""
    return tuple(KINDS.index(_kind(operations().get(i, ""))) for i in range(len(operations()) + 2))


def _kind(name):
    name = name.removeprefix("MPI_")
    if name.startswith("Sendrecv"):
        return "send-receive"
    if name.startswith("File_"):
        return "file"
    if name.startswith(("Wait", "Test")) or name.lower().endswith("probe"):
        return "wait/test/probe"
    if name.lower().endswith("send"):
        return "send"
    if name.lower().endswith("recv"):
        return "receive"
    is_other = not name or name.startswith(OTHERS)
    return "communicator/datatype" if is_other else "collective"


def messages_of(ranks):
    """All messages between different ranks as MESSAGE, like Recording.messages but without rounds
    (they are 0), and for ranks of which some may be missing.

    The n-th send on a communicator, from and to the same ranks with the same tag, belongs to the
    n-th receive that got such a message. Sorted by source, then by order of sending.
    """
    sends = _gather(ranks, _sends, ("peer", "tag", "begin_ns", "bytes"))
    receives = _gather(ranks, _receives, ("got_peer", "got_tag", "done_ns", "bytes"))
    messages = np.zeros(len(sends["rank"]), MESSAGE)
    messages["source"], messages["dest"] = sends["rank"], sends["peer"]
    for name in ("tag", "communicator", "bytes"):
        messages[name] = sends[name]
    messages["sent_ns"], messages["send_record"] = sends["begin_ns"], sends["record"]
    messages["received_ns"] = messages["receive_record"] = NONE

    size = max(len(ranks), 1)
    pairs = np.concatenate([
        sends["rank"] * size + sends["peer"],
        receives["got_peer"] * size + receives["rank"],
    ])  # fmt: skip
    keys = _dense(
        pairs,
        np.concatenate([sends["communicator"], receives["communicator"]]),
        np.concatenate([sends["tag"], receives["got_tag"]]),
    )
    split = len(messages)
    nth_send, nth_receive = _occurrence(keys[:split]), _occurrence(keys[split:])
    most = max(split, len(keys) - split) + 1
    of_send, of_receive = keys[:split] * most + nth_send, keys[split:] * most + nth_receive
    order = np.argsort(of_receive)
    place = np.searchsorted(of_receive[order], of_send)
    inside = place < len(order)
    found = np.zeros(split, bool)
    found[inside] = of_receive[order][place[inside]] == of_send[inside]
    partner = order[place[found]]
    messages["received_ns"][found] = receives["done_ns"][partner]
    messages["receive_record"][found] = receives["record"][partner]
    return messages


def _gather(ranks, chosen, names):
    """The fields `names` of the chosen records of all ranks, as int64 arrays, and their places."""
    columns = {name: [np.zeros(0, np.int64)] for name in (*names, "communicator", "rank", "record")}
    for place, rank in enumerate(ranks):
        if rank is None:
            continue
        (indices,) = np.nonzero(chosen(rank.records, place))
        for name in (*names, "communicator"):
            columns[name].append(rank.records[name][indices].astype(np.int64))
        columns["rank"].append(np.full(len(indices), place))
        columns["record"].append(indices)
    return {name: np.concatenate(parts) for name, parts in columns.items()}


def _sends(records, rank):
    return (records["flags"] & SENDS != 0) & (records["peer"] >= 0) & (records["peer"] != rank)


def _receives(records, rank):
    flags = records["flags"]
    done = (flags & (RECEIVES | CANCELLED) == RECEIVES) & (records["done_ns"] != 0)
    return done & (records["error"] == 0) & (records["got_peer"] >= 0)


def _dense(*columns):
    """One number for each combination of values: equal where all columns are equal."""
    keys = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, dense = np.unique(column, return_inverse=True)
        keys = keys * (len(values) + 1) + dense
        if len(keys) and keys.max() > 1 << 30:
            keys = np.unique(keys, return_inverse=True)[1]
    return keys


def _occurrence(keys):
    """How many equal keys stand before each one."""
    order = np.argsort(keys, kind="stable")
    in_order = keys[order]
    is_first = np.ones(len(keys), bool)
    is_first[1:] = in_order[1:] != in_order[:-1]
    places = np.arange(len(keys))
    counted = np.zeros(len(keys), np.int64)
    counted[order] = places - np.maximum.accumulate(np.where(is_first, places, 0))
    return counted


class Wording:
    """Calls in words, with their lines of the source where those are known."""

    def __init__(self, ranks, calls):
        """Look up the lines of all `calls` at once: that costs one run of addr2line a library."""
        self.ranks = ranks
        sites = {}
        for call in calls:
            rank = ranks[call["rank"]]
            sites.setdefault(_library(rank), set()).add(int(rank.records["site"][call["record"]]))
        self.lines = {}
        for library, offsets in sites.items():
            offsets = tuple(sorted(offsets))
            for offset, (_, file, line) in zip(offsets, lines_of(library, offsets), strict=True):
                if line:
                    in_cell = file in ("", "cell")
                    words = f"line {line}" if in_cell else f"{file}, line {line}"
                    self.lines[library, offset] = words

    def call(self, call):
        """'MPI_Recv from rank 1, tag 7, 40 B, line 12'."""
        rank = self.ranks[call["rank"]]
        record = rank.records[call["record"]]
        name = operations().get(int(record["operation"]), "an unknown call")
        parts = [f"{name} {_partner(record, rank.rank)}".rstrip()]
        if name in EXCHANGES and call["record"] + 1 < len(rank.records):
            parts.append(_partner(rank.records[call["record"] + 1], rank.rank))
        if record["error"]:
            parts.append(f"failed with error class {record['error']}")
        parts.append(self.lines.get((_library(rank), int(record["site"])), ""))
        return ", ".join(filter(None, parts))

    def short(self, call):
        """'Recv from 1': as much as fits into a bar."""
        record = self.ranks[call["rank"]].records[call["record"]]
        name = operations().get(int(record["operation"]), "?").removeprefix("MPI_")
        flags = int(record["flags"])
        if name.startswith("Sendrecv") or not flags & (SENDS | RECEIVES) or record["peer"] < ANY:
            return name
        peer = "any" if record["peer"] == ANY else record["peer"]
        return f"{name} {'to' if flags & SENDS else 'from'} {peer}"


def _library(rank):
    return rank.header["object"].decode(errors="replace")


def _partner(record, own):
    """With whom, which tag, how many bytes; '' for calls that have no partner."""
    flags = int(record["flags"])
    tag = "any tag" if record["tag"] == ANY else f"tag {record['tag']}"
    if flags & SENDS:
        how = " (synchronous)" if flags & SYNCHRONOUS else ""
        return f"to {_whom(record['peer'], own)}, {tag}, {byte_size(int(record['bytes']))}{how}"
    if flags & RECEIVES:
        whom = f"from {_whom(record['peer'], own)}"
        if not record["done_ns"]:
            return f"{whom}, {tag}, room for {byte_size(int(record['bytes']))}"
        if record["peer"] == ANY and record["got_peer"] >= 0:
            whom += f" (it was {_whom(record['got_peer'], own)})"
        if record["tag"] == ANY and record["got_tag"] >= 0:
            tag += f" (it was {record['got_tag']})"
        return f"{whom}, {tag}, {byte_size(int(record['got_bytes']))}"
    if flags & COLLECTIVE:
        return f"with root {record['peer']}" if record["peer"] != NONE else ""
    if flags & WAITS:
        return f"for {record['count']} request{'' if record['count'] == 1 else 's'}"
    if record["count"] > 1 and (flags & POLLS or not record["bytes"]):
        return f"{record['count']} times"
    return ""


def _whom(peer, own):
    if peer in (ANY, NOBODY):
        return "any rank" if peer == ANY else "MPI_PROC_NULL"
    return "itself" if peer == own else f"rank {peer}"
