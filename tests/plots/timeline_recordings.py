"""Fabricated recordings for figures: in memory, with any number of ranks and calls."""

from pathlib import Path

import numpy as np

from mpilab.trace.recording import (
    COLLECTIVE,
    HEADER,
    NONBLOCKING,
    NONE,
    RECEIVES,
    RECORD,
    SENDS,
    WAITS,
    RankRecording,
    operations,
)

START = 10**12
NUMBERS = {name: number for number, name in operations().items()}


def rank_of(rank, size, records, **header):
    """A RankRecording of these records, closed when its last call ended unless told otherwise."""
    made = RankRecording.__new__(RankRecording)
    made.path = Path(f"0.{rank}.rec")
    made.records = np.array(records, RECORD)
    made.header = np.zeros(1, HEADER)[0]
    values = {
        "rank": rank,
        "size": size,
        "count": len(records),
        "current": -1,
        "opened_ns": START - 500,
        "closed_ns": START,
        "host": b"n1",
        **header,
    }
    if len(records) and "closed_ns" not in header:
        values["closed_ns"] = made.records["end_ns"].max() + 300
    for name, value in values.items():
        made.header[name] = value
    return made


def call(name, flags=0, begin=0, end=None, **fields):
    """One record; times in ns since START; end=None is a call that never returned."""
    record = np.zeros(1, RECORD)[0]
    values = {
        "operation": NUMBERS[name],
        "flags": flags,
        "communicator": 7,
        "peer": NONE,
        "tag": NONE,
        "got_peer": NONE,
        "got_tag": NONE,
        "waiter": NONE,
        "begin_ns": START + begin,
        "end_ns": 0 if end is None else START + end,
    }
    if end is not None and not flags & NONBLOCKING:
        values["done_ns"] = START + end
    if "done" in fields:
        values["done_ns"] = START + fields.pop("done")
    for field, value in {**values, **fields}.items():
        record[field] = value
    return record


def send(to, begin, end=None, tag=1, nbytes=8, name="MPI_Send", **fields):
    return call(name, SENDS, begin, end, peer=to, tag=tag, bytes=nbytes, **fields)


def receive(source, begin, end=None, tag=1, nbytes=8, name="MPI_Recv", **fields):
    if end is not None:
        fields = {"got_peer": source, "got_tag": tag, "got_bytes": nbytes, **fields}
    return call(name, RECEIVES, begin, end, peer=source, tag=tag, bytes=nbytes, **fields)


def wait(begin, end=None, count=1):
    return call("MPI_Waitall", WAITS, begin, end, count=count)


def barrier(begin, end=None, sequence=0, members=2):
    return call("MPI_Barrier", COLLECTIVE, begin, end, sequence=sequence, members=members)


def exchange(to, source, begin, end=None, tag=1, nbytes=8):
    """The two records of a send-receive."""
    name = "MPI_Sendrecv"
    return [
        send(to, begin, end, tag, nbytes, name=name),
        receive(source, begin, end, tag, nbytes, name=name),
    ]


def many(ranks, records, seed=1):
    """Ranks that send to the right, receive from the left, wait and compute, `records` records
    each: isend, irecv and a wait for both, over and over; every message is received."""
    random = np.random.default_rng(seed)
    rounds = records // 3
    made = []
    for rank in range(ranks):
        table = np.zeros(3 * rounds, RECORD)
        steps = random.integers(200, 4000, (rounds, 6))
        ends = START + np.cumsum(steps.ravel()).reshape(rounds, 6)
        for place, (name, flags, peer) in enumerate(
            [
                ("MPI_Isend", SENDS | NONBLOCKING, (rank + 1) % ranks),
                ("MPI_Irecv", RECEIVES | NONBLOCKING, (rank - 1) % ranks),
                ("MPI_Waitall", WAITS, NONE),
            ]
        ):
            part = table[place::3]
            part["operation"], part["flags"] = NUMBERS[name], flags
            part["communicator"], part["peer"], part["tag"] = 7, peer, 3
            part["begin_ns"], part["end_ns"] = ends[:, 2 * place], ends[:, 2 * place + 1]
            part["done_ns"] = ends[:, 5]
            part["bytes"] = part["got_bytes"] = 64
            part["got_peer"], part["got_tag"] = (peer, 3) if flags & RECEIVES else (NONE, NONE)
            part["waiter"] = np.arange(rounds) * 3 + 2 if place < 2 else NONE
            part["count"] = 2
        made.append(rank_of(rank, ranks, table))
    return made
