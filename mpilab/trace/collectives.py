"""Collectives of a run: which calls of the ranks belong together, and which disagree."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mpilab.trace.recording import (
    COLLECTIVE,
    ERR_TRUNCATE,
    Call,
    RankRecording,
    call_of,
    joined,
    operations,
)

MOST_REPORTED = 200  # at most so many collectives are reported, the earliest first
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
