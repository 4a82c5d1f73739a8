"""Collectives of all ranks side by side: which calls came to the same meeting, and which of these
meetings ranks disagree in, or are not all in."""

import numpy as np

from mpilab.recording import COLLECTIVE, ERR_TRUNCATE, operations
from mpilab.result import DONE

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
    for name in ("operation", "peer", "bytes"):
        least = np.minimum.reduceat(records[name], begins)
        differ |= least != np.maximum.reduceat(records[name], begins)
    return differ


def _lack_somebody(records, begins):
    return np.diff([*begins, len(records)]) < records["members"][begins]


def _meetings(evidence, chosen):
    """[Call], one a rank, for each meeting (one number on one communicator) that is `chosen`.

    `chosen` takes the records of all, and where in them each meeting begins.
    """
    records, owner, index = _records(evidence)
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


def _records(evidence):
    """(records, their ranks, their indices) of all collectives, meeting by meeting."""
    freed = [number for number, name in operations().items() if name == "MPI_Comm_free"]
    found, owners, indices = [], [], []
    for number, rank in enumerate(evidence.ranks):
        if rank is not None:
            records = rank.records
            met = (records["flags"] & COLLECTIVE != 0) & (records["communicator"] != 0)
            if evidence.result.outcome == DONE:  # who does not free is told of as a leak
                met &= ~np.isin(records["operation"], freed)
            index = np.flatnonzero(met & (records["members"] > 1))
            found.append(records[index])
            owners.append(np.full(len(index), number))
            indices.append(index)
    if not found:
        return (), (), ()
    records, owner, index = map(np.concatenate, (found, owners, indices))
    order = np.lexsort((owner, records["sequence"], records["communicator"]))
    return records[order], owner[order], index[order]
