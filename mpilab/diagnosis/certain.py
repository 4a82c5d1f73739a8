"""Mistakes that the memory alone proves, whatever the calls were: where was written that should not
be."""

from mpilab.datatypes import datatype
from mpilab.diagnosis.parts import is_single
from mpilab.expected import GUARD_BYTES, block_places

OUTSIDE = "memory outside of the receive buffer was overwritten"
SEND_CHANGED = "the send buffer was changed"
HOLES = "the holes between the elements of the datatype were overwritten"
BEYOND, CHANGED, EXTENT, OWN_MISSING = (
    "out of the receive buffer", "send buffer changed", "extent ignored", "own block missing",
)  # fmt: skip
# Every other pattern may have its cause in the calls.
PATTERNS = (BEYOND, EXTENT, CHANGED, OWN_MISSING)

# What may be written, for each collective.
SIZES = {
    "allgather": "a receive buffer of recvcount elements for each rank",
    "gather": "a receive buffer of recvcount elements for each rank, and only at the root",
    "scatter": "a receive buffer of recvcount elements, one block, on every rank",
    "bcast": "one buffer, of count elements",
    "reduce": "a receive buffer of count elements, and only at the root",
    "allreduce": "a receive buffer of count elements",
    "alltoallv": "recvcounts[i] elements from element rdispls[i] on, for each rank i",
    "read": "room for the rows of this rank's part by its columns",
    "barrier": "no buffer at all",
}
_EXTENT_HINT = (
    "From one element to the next it is MPI_Type_get_extent bytes, holes included, not "
    "MPI_Type_size; and a block has to be copied with its datatype, not with memcpy. block() and "
    "copy_local() in mpilab.h do both."
)


def explain(case, outputs, differences):
    """(pattern, hint) of `differences` (mpilab.harness.compare), ('', '') where nothing is
    proved by what lies where nothing belongs."""
    notes = {note for difference in differences for note in difference.notes}
    if OUTSIDE in notes:
        return BEYOND, (
            "The kernel writes before or behind what it was given: "
            f"{SIZES[case.collective]}. Look at the last index, and at how a block's address is "
            "computed."
        )
    wrong = [(d.rank, block) for d in differences for block in d.blocks]
    if HOLES in notes or _is_packed(case, outputs, wrong):
        return EXTENT, _EXTENT_HINT
    if SEND_CHANGED in notes:
        return CHANGED, (
            "The send buffer belongs to the caller: it may be read, never written. Take the "
            "receive buffer, or memory of your own, for what is under way."
        )
    return "", ""


def _is_packed(case, outputs, wrong):
    """Does a block, or an element of it, lie where it would if extents were sizes?"""
    layout = datatype(case.datatype)[1]
    if layout.extent == layout.size or case.count == 0:
        return False
    expected = case.expected()
    places = _packed_elements(case, layout) if is_single(case) else _packed_blocks(case, layout)
    for rank, block in wrong:
        for right, packed in places(rank, block):
            memory = outputs[rank].received
            here = expected[rank][right]
            if packed[-1] < memory.size and (memory[packed] == here).all():
                return True
    return False


def _packed_blocks(case, layout):
    def places(rank, block):
        right = block_places(case, block, rank)
        elements = len(right) // layout.size
        first = (int(right[0]) - GUARD_BYTES) // layout.extent if elements else 0
        if first:
            yield right, GUARD_BYTES + first * layout.size + layout.offsets(elements)

    return places


def _packed_elements(case, layout):
    one = layout.offsets(1)

    def places(_rank, _block):
        for element in range(1, case.count):
            begin = GUARD_BYTES + element * layout.size
            yield GUARD_BYTES + element * layout.extent + one, begin + one

    return places
