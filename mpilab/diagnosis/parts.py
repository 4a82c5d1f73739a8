"""What the elements of a rank's single block are: those of a bcast's or a scatter's buffer.

The harness fills every buffer with data of its own, so an element that is not right may still be
known: as what was there before, as another rank's, or as another element of the same message.
Reductions are read by mpilab.diagnosis.contributions, into the same Parts.
"""

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from mpilab.datatypes import datatype
from mpilab.expected import block_places

LEAST_BYTES = 4  # fewer may be alike by chance
LOOKED_AT = 1 << 16  # elements that are searched for in another place
MOST_BYTES = 1 << 27  # of all ranks' buffers, held against each rank's
RIGHT, WRONG, UNTOUCHED, OLD, BLOCK, MOVED, COMBINED = (
    "right", "wrong", "untouched", "old", "block", "moved", "combined")  # fmt: skip


class Held(NamedTuple):
    """What elements hold.

    RIGHT, WRONG (nobody knows what) or UNTOUCHED (as before the call);
    OLD       what was there in the receive buffer of `rank` before the call;
    BLOCK     the same elements of the block of `rank` (scatter);
    MOVED     what lies `shift` elements further in the message; with `begin`, in the root's send
              buffer, in which the block itself begins there (scatter);
    COMBINED  contributions: that of rank i `counts[i]` times, in this `order` where it is known
              (an operation that does not commute); with `rank`, also what was in its receive
              buffer before the call.
    """

    kind: str
    rank: int = -1
    shift: int = 0
    begin: int = -1
    counts: tuple = ()
    order: tuple = ()


class Part(NamedTuple):
    """The elements from `begin` to before `end` of a block, all of the same kind."""

    begin: int
    end: int
    held: Held

    @property
    def elements(self):
        """How many they are."""
        return self.end - self.begin


def is_single(case):
    """Has every buffer that receives one block only, which is not cut by ranks?"""
    return case.collective in ("bcast", "scatter", "reduce", "allreduce")


def elements(case, memory, block=0):
    """The data of a block as uint8 [count, bytes of an element]; `memory` with guard zones."""
    size = datatype(case.datatype)[1].size
    return memory[block_places(case, block)].reshape(case.count, size)


def parts(case, rank, received, right):
    """[Part] of the block that `rank` received in a bcast or scatter.

    received, right   its memory, and what it should be: uint8, guard zones included.
    """
    got, wanted = elements(case, received), elements(case, right)
    before = elements(case, case.regions(rank)[1])
    labels = np.full(case.count, -1)
    known = [Held(WRONG), Held(RIGHT), Held(UNTOUCHED)]
    is_right, is_before = _same(got, wanted), _same(got, before)
    labels[is_before], labels[is_right] = 2, 1
    labels[is_right & is_before] = -2
    for held, matches in _candidates(case, rank, got, labels == -1):
        labels[(labels == -1) & matches] = len(known)
        known.append(held)
    return runs(case, _without_doubt(labels), known)


def runs(case, labels, known):
    """[Part] of elements with these `labels`: indices of `known`, which begins with Held(WRONG)."""
    labels = np.where(labels < 0, 0, labels)
    size = datatype(case.datatype)[1].size
    borders = [0, *(np.flatnonzero(np.diff(labels)) + 1).tolist(), len(labels)]
    found = []
    for begin, end in zip(borders[:-1], borders[1:], strict=True):
        held = known[labels[begin]] if end > begin else None
        if held is None:
            continue
        if held.kind in (OLD, BLOCK, MOVED) and (end - begin) * size < LEAST_BYTES:
            held = known[0]
        if found and found[-1].held == held:
            begin = found.pop().begin
        found.append(Part(begin, end, held))
    return found


def _same(one, other):
    return (one == other).all(axis=1)


def _without_doubt(labels):
    """Elements that are right and were so before are untouched where those before them are."""
    doubtful = labels == -2
    sure = np.flatnonzero(~doubtful)
    if not doubtful.any() or not sure.size:
        return np.where(doubtful, 1, labels)
    nearest = np.searchsorted(sure, np.arange(len(labels)), side="right") - 1
    beside = labels[sure[np.maximum(nearest, 0)]]
    return np.where(doubtful, np.where(beside == 2, 2, 1), labels)


def _candidates(case, rank, got, unknown):
    """(Held, bool [count]) of what the `unknown` elements may be, the more telling first."""
    if not unknown.any():
        return
    is_scatter = case.collective == "scatter"
    others = [other for other in range(case.ranks) if other != rank]
    is_too_much = case.ranks**2 * case.block_bytes > MOST_BYTES
    source = sent_blocks(case) if is_scatter else elements(case, case.expected()[case.root])[None]
    found = [(Held(BLOCK, other), _same(got, source[other]) & unknown)
             for other in others if is_scatter]  # fmt: skip
    # What was in a bcast's root before the call is the message.
    found += [(Held(OLD, other), _same(got, elements(case, case.regions(other)[1])) & unknown)
              for other in others
              if not is_too_much and (is_scatter or other != case.root)]  # fmt: skip
    found = [one for one in found if one[1].any()]
    yield from sorted(found, key=lambda one: -int(one[1].sum()))
    left = unknown & ~np.logical_or.reduce([matches for _, matches in found] or [~unknown])
    own = rank * case.count if is_scatter else -1
    yield from _moved(source.reshape(-1, got.shape[1]), got, own, left)


def _moved(source, got, own, unknown):
    """(Held, matches) for elements whose data lie elsewhere in `source`; `own` is where the block
    begins in it, -1 for the beginning of a message."""
    if got.shape[1] < LEAST_BYTES or len(source) > LOOKED_AT:
        return
    place = {element.tobytes(): at for at, element in enumerate(source)}
    shifts = np.zeros(len(got), np.int64)
    for at in np.flatnonzero(unknown).tolist():
        found = place.get(got[at].tobytes())
        shifts[at] = 0 if found is None else found - max(own, 0) - at
    for shift in np.unique(shifts[shifts != 0]).tolist():
        yield Held(MOVED, shift=shift, begin=own), shifts == shift


@lru_cache(maxsize=1)
def sent_blocks(case):
    """The blocks of a scatter's root, as their receivers should get them: [P, count, bytes]."""
    right = replace(case, in_place=False).expected()
    return np.stack([elements(case, memory) for memory in right])
