"""What a rank's receive buffer held after each of its calls, as the recorder saw it.

The recorder (src_c/recorder/memory.c) keeps a snapshot whenever a call has ended and the buffer is
not what it was before.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mpilab.errors import InputError
from mpilab.expected import COLLECTIVES, GUARD_BYTES, block_places

AT_START, AT_FINISH = -1, -2  # in place of a record
UNTOUCHED, UNKNOWN = -1, -2  # in place of a source

_HEADER_BYTES, _WORD = 32, 8


@dataclass(frozen=True, eq=False)
class Snapshots:
    """records[n] (int64): the record after which each was taken, or AT_START, AT_FINISH;
    memory[n, bytes] (uint8): the data of the receive buffer, without guard zones."""

    records: np.ndarray
    memory: np.ndarray


def read(path):
    """The Snapshots in the file `path`, also of a rank that is still running or has crashed.

    Raises InputError if it is not such a file, or not a whole one.
    """
    data = Path(path).read_bytes()
    words = np.frombuffer(data[:_HEADER_BYTES].ljust(_HEADER_BYTES, b"\0"), np.int64)
    _, size, capacity, count = (int(word) for word in words)
    padded = -(-size // _WORD) * _WORD
    one = np.dtype([("record", "<i8"), ("reserved", "<i8"), ("memory", "u1", (max(padded, 0),))])
    whole = 0 <= count <= capacity and _HEADER_BYTES + count * one.itemsize <= len(data)
    if data[:8] != b"MPILABM1" or size < 0 or not whole:
        raise InputError(f"{path}: not a whole file of snapshots; run the case again")
    taken = np.frombuffer(data, one, count, _HEADER_BYTES)
    return Snapshots(taken["record"].copy(), taken["memory"][:, :size].copy())


def origin(case, memory, rank):
    """Whose block each slot of `rank`'s receive buffer holds.

    memory: uint8 [bytes] or [n, bytes], the data of the buffer without guard zones.
    Returns an int array [slots] or [n, slots]: the rank whose block is there, UNTOUCHED where the
    slot is as before the call, UNKNOWN for anything else (half a block, sums, other data). Only
    the data of the datatype counts, not its holes. Blocks of a few bytes may look alike: then the
    slot's right block is named before another one.
    """
    memory = np.asarray(memory, np.uint8)
    slots = COLLECTIVES[case.collective].blocks(case, rank).received
    if case.count == 0:
        return np.full((*memory.shape[:-1], slots), UNTOUCHED, np.int64)
    places = [block_places(case, slot, rank) for slot in range(slots)]
    before, right = case.regions(rank)[1], case.expected()[rank]
    contents = {slot: right[place].tobytes() for slot, place in enumerate(places)}
    return recognise(memory, places, range(slots), contents, before)


def recognise(memory, places, right, contents, before):
    """Which of `contents` each slot holds: int array [slots] or [n, slots] of their numbers.

    memory    uint8 [bytes] or [n, bytes], the data of the buffer without guard zones.
    places    of each slot's bytes, in memory with guard zones.
    right     the number that each slot should hold: of contents that look alike, it is named.
    contents  {number: bytes}.
    before    the memory before the call, with guard zones.
    """
    found = np.full((*memory.shape[:-1], len(places)), UNTOUCHED, np.int64)
    first = {content: number for number, content in reversed(contents.items())}
    for slot, place in enumerate(places):
        known = first | {before[place].tobytes(): UNTOUCHED}
        if right[slot] in contents:
            known[contents[right[slot]]] = right[slot]
        held = memory[..., place - GUARD_BYTES].reshape(found[..., slot].size, len(place))
        column = [known.get(one.tobytes(), UNKNOWN) for one in held]
        found[..., slot] = np.reshape(column, memory.shape[:-1])
    return found
