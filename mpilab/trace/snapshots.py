"""Snapshots of the receive buffers, and what their slots held.

The recorder (src_c/runtime/recorder/memory.c) takes a snapshot whenever a call has ended and the
receive buffer has changed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpilab.cases.case import COLLECTIVES, Case, block_places
from mpilab.cases.data import GUARD_BYTES
from mpilab.errors import InputError

AT_START, AT_FINISH = -1, -2  # in place of a record
UNTOUCHED, UNKNOWN = -1, -2  # in place of a source

_HEADER_BYTES, _WORD = 32, 8
MOST_PARTS = 16  # of a bcast's message
NO_SLOT = -3  # in place of a number


@dataclass(frozen=True, eq=False)
class Snapshots:
    """The snapshots of one rank's receive buffer.

    records   int64 [n]: the record after which each was taken, or AT_START, AT_FINISH.
    memory    uint8 [n, bytes]: the data of the receive buffer, without guard zones.
    """

    records: NDArray[np.int64]
    memory: NDArray[np.uint8]


def read(path: str | Path) -> Snapshots:
    """The Snapshots in the file `path`, even if the rank is still running or has crashed.

    Raises InputError if the file is invalid or incomplete.
    """
    data = Path(path).read_bytes()
    words = np.frombuffer(data[:_HEADER_BYTES].ljust(_HEADER_BYTES, b"\0"), np.int64)
    _, size, capacity, count = (int(word) for word in words)
    padded = -(-size // _WORD) * _WORD
    one = np.dtype([("record", "<i8"), ("reserved", "<i8"), ("memory", "u1", (max(padded, 0),))])
    whole = 0 <= count <= capacity and _HEADER_BYTES + count * one.itemsize <= len(data)
    if data[:8] != b"MPILABM1" or size < 0 or not whole:
        raise InputError(f"{path}: the file of snapshots is incomplete; run the case again")
    taken = np.frombuffer(data, one, count, _HEADER_BYTES)
    return Snapshots(taken["record"].copy(), taken["memory"][:, :size].copy())


def origin(case: Case, memory: NDArray[np.uint8], rank: int) -> NDArray[np.int64]:
    """The rank whose block each slot of `rank`'s receive buffer holds.

    memory: uint8 [bytes] or [n, bytes], the data of the buffer without guard zones.
    Returns an int array [slots] or [n, slots]: the rank whose block is there, UNTOUCHED if the slot
    is as before the call, UNKNOWN for anything else (half a block, sums, other data). Only the data
    of the datatype counts, not its holes. Blocks of a few bytes may be equal: then the slot's
    correct block takes precedence.
    """
    memory = np.asarray(memory, np.uint8)
    slots = COLLECTIVES[case.collective].blocks(case, rank).received
    if case.count == 0:
        return np.full((*memory.shape[:-1], slots), UNTOUCHED, np.int64)
    places = [block_places(case, slot, rank) for slot in range(slots)]
    before, right = case.regions(rank)[1], case.expected()[rank]
    contents = {slot: right[place].tobytes() for slot, place in enumerate(places)}
    return recognize(memory, places, range(slots), contents, before)


def recognize(
    memory: NDArray[np.uint8],
    places: Sequence[NDArray[np.int64]],
    right: Sequence[int] | NDArray[np.int64],
    contents: Mapping[int, bytes],
    before: NDArray[np.uint8],
) -> NDArray[np.int64]:
    """Which of `contents` each slot holds: int array [slots] or [n, slots] of their numbers.

    memory    uint8 [bytes] or [n, bytes], the data of the buffer without guard zones.
    places    the indices of each slot's bytes, in memory with guard zones.
    right     the number that each slot should hold; it takes precedence among equal contents.
    contents  {number: bytes}.
    before    the memory before the call, with guard zones.
    """
    found = np.full((*memory.shape[:-1], len(places)), UNTOUCHED, np.int64)
    first = {content: number for number, content in reversed(list(contents.items()))}
    for slot, place in enumerate(places):
        known = first | {before[place].tobytes(): UNTOUCHED}
        if right[slot] in contents:
            known[contents[right[slot]]] = right[slot]
        held = memory[..., place - GUARD_BYTES].reshape(found[..., slot].size, len(place))
        column = [known.get(one.tobytes(), UNKNOWN) for one in held]
        found[..., slot] = np.reshape(column, memory.shape[:-1])
    return found


# Receive buffers as slots with recognizable contents, for figures of a run. A *content* is data
# that an algorithm forwards unchanged, and has a number: in an allgather and a gather the block of
# that rank, in a scatter the block for that rank, in a bcast that part of the message.


class Contents(NamedTuple):
    """The contents of the receive buffers of a case.

    right    int [ranks, slots]: what each slot should hold in the end; UNTOUCHED for nothing new,
             NO_SLOT if a rank has fewer slots than others.
    owners   the rank that has each content at the start.
    word     what a content is: "block of", "block for", "part" (before its number).
    slot     what a slot is.
    sizes    bytes of each content, if a rank may receive several from the same owner.
    """

    right: NDArray[np.int64]
    owners: NDArray[np.int64]
    word: str = "block of"
    slot: str = "slot of the receive buffer"
    sizes: tuple[int, ...] = ()


def contents_of(case: Case) -> Contents:
    """The Contents of a case.

    Raises InputError for reductions, whose partial results cannot be told apart, for an alltoallv,
    which has too many contents, and for a barrier.
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
            else "each pair of ranks has its own block"
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


def held(case: Case, memory: NDArray[np.uint8], rank: int) -> NDArray[np.int64]:
    """The content that each slot of `rank`'s receive buffer holds.

    memory: uint8 [bytes] or [n, bytes], the data of the buffer without guard zones. Returns an int
    array [slots] or [n, slots] of content numbers, UNTOUCHED and UNKNOWN, as `origin` does.
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
    return recognize(memory, places, right, got, case.regions(rank)[1])


def _parts(case: Case) -> list[NDArray[np.int64]]:
    """The byte indices of the parts of a bcast's message: the pieces that algorithms forward.

    They are its elements if there are at most MOST_PARTS, else its segments if there are at most
    MOST_PARTS, else as many parts as ranks (at most MOST_PARTS).
    """
    count = case.count
    places = block_places(case, 0).reshape(max(count, 1), -1) if count else np.zeros((1, 0), int)
    each = max(1, case.segment // max(1, places.shape[1]))
    segments = -(-count // each)
    if count <= MOST_PARTS:
        cuts: Sequence[int] = range(1, count)
    elif case.segment and segments <= MOST_PARTS:
        cuts = range(each, count, each)
    else:
        parts = min(case.ranks, MOST_PARTS)
        cuts = [count * part // parts for part in range(1, parts)]
    return [part.reshape(-1) for part in np.split(places, list(cuts))]
