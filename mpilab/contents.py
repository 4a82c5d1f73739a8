"""A rank's receive buffer as slots whose contents can be recognised, for pictures of a run.

A *content* is what an algorithm hands on as it is, and has a number: in an allgather and a gather
the block of that rank, in a scatter the block for that rank, in a bcast that part of the message.
"""

from typing import NamedTuple

import numpy as np

from mpilab.errors import InputError
from mpilab.expected import COLLECTIVES, block_places
from mpilab.snapshots import UNTOUCHED, recognise

MOST_PARTS = 16  # of the message of a bcast
NO_SLOT = -3  # in place of a number


class Contents(NamedTuple):
    """What the receive buffers of a case are made of.

    right    int [ranks, slots]: what each slot should hold in the end; UNTOUCHED for nothing new,
             NO_SLOT where a rank has fewer slots than others.
    owners   for each content the rank that has it at the start.
    word     what a content is: "block of", "block for", "part" (before its number).
    slot     what a slot is.
    sizes    bytes of each content, where one rank may get several from the same owner.
    """

    right: np.ndarray
    owners: np.ndarray
    word: str = "block of"
    slot: str = "slot of the receive buffer"
    sizes: tuple = ()


def contents_of(case):
    """The Contents of a case.

    Raises InputError for reductions, whose partial results cannot be told apart, for an alltoallv,
    in which there are too many, and for a barrier.
    """
    ranks = np.arange(case.ranks)
    if case.collective == "bcast":
        sizes = tuple(map(len, _parts(case)))
        right = np.tile(np.arange(len(sizes)), (case.ranks, 1))
        owners = np.full(len(sizes), case.root)
        return Contents(right, owners, "part", "part of the message", sizes)
    if case.collective == "scatter":
        right = ranks[:, None].copy()
        if case.in_place:
            right[case.root] = UNTOUCHED
        return Contents(right, np.full(case.ranks, case.root), "block for")
    about = COLLECTIVES[case.collective]
    if about.reduces or about.exchanges or not about.has_blocks:
        why = (
            "partial results of a reduction cannot be told apart in a buffer"
            if about.reduces
            else "each pair of ranks has a block of its own"
            if about.exchanges
            else "it moves no data"
        )
        raise InputError(
            f"{case.collective}, round by round: {why}; look at the view 'timeline' or 'matrix'"
        )
    right = np.tile(ranks, (case.ranks, 1))
    if case.collective == "gather":
        right[ranks != case.root] = NO_SLOT
    return Contents(right, ranks)


def held(case, memory, rank):
    """Which content each slot of `rank`'s receive buffer holds.

    memory: uint8 [bytes] or [n, bytes], the data of the buffer without guard zones. Returns an int
    array [slots] or [n, slots] of numbers, UNTOUCHED and mpilab.snapshots.UNKNOWN, as `origin`.
    """
    memory = np.asarray(memory, np.uint8)
    right = contents_of(case).right[rank]
    slots = int((right != NO_SLOT).sum())
    if case.count == 0:
        return np.full((*memory.shape[:-1], slots), UNTOUCHED, np.int64)
    after = case.expected()
    if case.collective == "scatter":
        places = [block_places(case, 0)]
        got = {dest: memory[places[0]].tobytes() for dest, memory in enumerate(after)}
        if case.in_place:
            del got[case.root]
    else:
        places = (
            _parts(case)
            if case.collective == "bcast"
            else [block_places(case, slot) for slot in range(slots)]
        )
        got = {number: after[rank][place].tobytes() for number, place in enumerate(places)}
    return recognise(memory, places, right, got, case.regions(rank)[1])


def _parts(case):
    """Places of the parts of a bcast's message.

    They are its elements, if they are few; else the segments, or else as many parts as there are
    ranks: the pieces that algorithms hand on.
    """
    count = case.count
    places = block_places(case, 0).reshape(max(count, 1), -1) if count else np.zeros((1, 0), int)
    each = max(1, case.segment // max(1, places.shape[1]))
    segments = -(-count // each)
    if count <= MOST_PARTS:
        cuts = range(1, count)
    elif case.segment and segments <= MOST_PARTS:
        cuts = range(each, count, each)
    else:
        parts = min(case.ranks, MOST_PARTS)
        cuts = [count * part // parts for part in range(1, parts)]
    return [part.reshape(-1) for part in np.split(places, list(cuts))]
