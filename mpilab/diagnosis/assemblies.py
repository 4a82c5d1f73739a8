"""Collectives of all ranks side by side: which calls came to the same meeting, and which of these
meetings ranks disagree in, or are not all in."""

import numpy as np

from mpilab.recording import COLLECTIVE, ERR_TRUNCATE, joined, operations

LOOKED_AT = 200  # so many meetings are told, the earliest first


def conflicts(evidence):
    """[Call] of all ranks for each meeting to which they have come with different calls, roots or
    bytes, the earliest first.

    What comes after a call that failed is left out, and so are calls that failed themselves, but
    for one that met a message of another length: that is what a conflict may lead to.
    """
    failed = {
        number: int(np.flatnonzero(rank.records["error"])[0])
        for number, rank in enumerate(evidence.ranks)
        if rank is not None and rank.records["error"].any()
    }
    for calls in _meetings(evidence, _disagree):
        if all(call.error in (0, ERR_TRUNCATE)
               and call.index <= failed.get(call.rank, call.index) for call in calls):  # fmt: skip
            yield calls


def incomplete(evidence):
    """[Call] of the ranks that came to a meeting, for each meeting of fewer ranks than its
    communicator has, the earliest first."""
    return _meetings(evidence, _lack_somebody)


def _disagree(records, begins):
    differ = np.zeros(len(begins), bool)
    # In a call on a file, each rank has its own view, and asks for as much as it likes.
    of_file = [code for code, name in operations().items() if name.startswith("MPI_File_")]
    may_differ = np.isin(records["operation"][begins], of_file)
    for name, free in (("operation", False), ("peer", False), ("bytes", may_differ)):
        least = np.minimum.reduceat(records[name], begins)
        differ |= (least != np.maximum.reduceat(records[name], begins)) & ~np.asarray(free)
    return differ


def _lack_somebody(records, begins):
    return np.diff([*begins, len(records)]) < records["members"][begins]


def _meetings(evidence, chosen):
    """[Call], one a rank, for each meeting (one number on one communicator) that is `chosen`.

    `chosen` takes the records of all, and where in them each meeting begins.
    """
    records, owner, index = evidence.collectives
    if not len(records):
        return
    same = (np.diff(records["sequence"].astype("i8")) == 0) & (
        np.diff(records["communicator"].astype("i8")) == 0
    )
    begins = np.flatnonzero(np.concatenate(([True], ~same)))
    ends = np.append(begins[1:], len(records))
    # A rank comes once: twice means that two communicators have one number.
    twice = np.concatenate((same & (np.diff(owner) == 0), [False]))
    good = chosen(records, begins) & ~np.logical_or.reduceat(twice, begins)
    first = np.minimum.reduceat(records["begin_ns"], begins)
    found = np.flatnonzero(good)
    for meeting in found[np.argsort(first[found], kind="stable")][:LOOKED_AT].tolist():
        yield [evidence.calls(int(owner[at]), [int(index[at])])[0]
               for at in range(begins[meeting], ends[meeting])]  # fmt: skip


def all_collectives(ranks, *, done):
    """(records, their ranks, their indices) of all collectives of `ranks`, meeting by meeting.

    done   the run came to its end: who does not free is told of as a leak.
    """
    records, owner = joined(ranks)
    met = (records["flags"] & COLLECTIVE != 0) & (records["communicator"] != 0)
    met &= records["members"] > 1
    if done and met.any():
        freed = [number for number, name in operations().items()
                 if name in ("MPI_Comm_free", "MPI_File_close")]  # fmt: skip
        met &= ~np.isin(records["operation"], freed)
    chosen = np.flatnonzero(met)
    index = chosen - np.searchsorted(owner, owner[chosen])  # the first one of each rank is number 0
    records, owner = records[chosen], owner[chosen]
    order = np.lexsort((owner, records["sequence"], records["communicator"]))
    return records[order], owner[order], index[order]
