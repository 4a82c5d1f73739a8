"""Runs made up for diagnoses: recordings in memory, in which a call's site is its line."""

from pathlib import Path

import numpy as np
import pytest

from mpilab.cases.case import Case
from mpilab.runners.hang import Hang, read_states
from mpilab.runners.result import DEADLOCK, Result
from mpilab.trace.recording import (
    COLLECTIVE,
    HEADER,
    NONBLOCKING,
    POLLS,
    RECEIVES,
    RECORD,
    SENDS,
    SYNCHRONOUS,
    WAITS,
    RankRecording,
    operations,
)

NUMBERS = {name: number for number, name in operations().items()}
NOW = 10**12
BEGUN = NOW - 1_500_000_000


@pytest.fixture
def sites_are_lines(monkeypatch):
    def lines_of(library, offsets):
        return tuple(("kernel", "cell", int(site)) for site in offsets)

    for module in ("mpilab.runners.hang", "mpilab.diagnosis.evidence"):
        monkeypatch.setattr(f"{module}.lines_of", lines_of)
    monkeypatch.setattr(
        "mpilab.diagnosis.evidence.source_line", lambda library, file, line: f"text {line}"
    )


def call(name, line, **values):
    """Values of a record: by default a call that has not returned."""
    return {
        "operation": NUMBERS[f"MPI_{name}"],
        "site": line,
        "communicator": 9,
        "peer": -1,
        "tag": -1,
        "waiter": -1,
        "got_peer": -1,
        "got_tag": -1,
        "begin_ns": BEGUN,
        **values,
    }


def send(peer, tag=0, line=1, name="Send", **values):
    flags = SENDS | (SYNCHRONOUS if "Ssend" in name else 0) | (NONBLOCKING if "I" in name else 0)
    return call(
        name, line, **{"flags": flags, "peer": peer, "tag": tag, "bytes": 4, "count": 1, **values}
    )


def recv(peer, tag=0, line=1, name="Recv", **values):
    flags = RECEIVES | (NONBLOCKING if "I" in name else 0)
    return call(
        name, line, **{"flags": flags, "peer": peer, "tag": tag, "bytes": 4, "count": 1, **values}
    )


def wait(line=1, name="Wait", **values):
    return call(name, line, **{"flags": WAITS, "count": 1, **values})


def poll(line=1, name="Test", **values):
    return call(name, line, **{"flags": POLLS, "count": 99, "end_ns": NOW - 10**6, **values})


def meet(name, line=1, root=-1, sequence=0, members=2, **values):
    return call(
        name,
        line,
        **{"flags": COLLECTIVE, "peer": root, "sequence": sequence, "members": members, **values},
    )


def over(record, **values):
    """The same call, returned and complete."""
    got = {"got_peer": record["peer"], "got_tag": record["tag"]}
    done = {"end_ns": NOW - 10**9, "done_ns": NOW - 10**9}
    return {**record, **done, **(got if record.get("flags", 0) & RECEIVES else {}), **values}


def rank_of(rank, size, records, **header):
    """A RankRecording of these records, inside the last one if that has not returned."""
    made = RankRecording.__new__(RankRecording)
    made.path = Path(f"0.{rank}.rec")
    made.records = np.zeros(len(records), RECORD)
    for row, values in zip(made.records, records, strict=True):
        for name, value in values.items():
            row[name] = value
    inside = bool(records) and not records[-1].get("end_ns")
    made.header = np.zeros(1, HEADER)[0]
    values = {
        "rank": rank,
        "size": size,
        "count": len(records),
        "opened_ns": 1,
        "current": len(records) - 1 if inside else -1,
    }
    for name, value in {**values, **header}.items():
        made.header[name] = value
    return made


FINISHED = {"closed_ns": NOW, "current": -1}


def run_of(*of_ranks, outcome=DEADLOCK, headers=None, finished=(), **more):
    """The Result of a run with these records on each rank, None for one that never started;
    `headers`
    {rank: fields}."""
    size, headers = len(of_ranks), headers or {}
    ranks = [
        None
        if records is None
        else rank_of(
            number,
            size,
            records,
            **(FINISHED if number in finished else {}),
            **headers.get(number, {}),
        )
        for number, records in enumerate(of_ranks)
    ]
    states = read_states(ranks, now_ns=NOW)
    case = more.pop("case", Case("allgather", size, 4))
    hang = Hang(outcome, states) if outcome in ("deadlock", "time-out") else None
    return Result(case, outcome, hang=hang, states=states, ranks=ranks, library="kernel.so", **more)
