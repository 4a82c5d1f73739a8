"""What each collective must leave in memory, computed with numpy and nothing else.

`COLLECTIVES[name]` says how many blocks a rank's buffers hold, and what the receive buffers hold
after the call (MPI 4.1, chapter 6). A bcast has one buffer, which counts as the receive buffer. A
barrier has none; `mpilab.meeting` tells from its recording whether it was one.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mpilab import exchange
from mpilab.datatypes import datatype
from mpilab.errors import InputError
from mpilab.matrices.distribution import distribution
from mpilab.operations import OPERATIONS, fold

GUARD_BYTES = 64
# Operations work on 32-bit words: the datatypes that are made of nothing else.
REDUCIBLE = ("int", "contiguous", "vector", "shifted")


class Blocks(NamedTuple):
    """Blocks in a rank's send and receive buffer."""

    sent: int
    received: int


@dataclass(frozen=True)
class Collective:
    """blocks(case, rank) -> Blocks; after(case, before) -> receive memory of every rank.

    `before` lists (send, receive) memory of every rank, with guard zones, as uint8 arrays.

    is_rooted   it has a root.
    reduces     it has an operation, one datatype, and elements that can be combined.
    one_type    it has one datatype, not one to send and one to receive.
    in_place    MPI allows MPI_IN_PLACE.
    has_blocks  it moves data at all.
    exchanges   its blocks are not alike, and lie anywhere in the buffers (mpilab.exchange).
    reads       it reads a matrix from a file: a rank's one block is its part of it, which is not
                like that of others (mpilab.matrices.distribution).
    """

    blocks: object
    after: object
    is_rooted: bool = False
    reduces: bool = False
    one_type: bool = False
    in_place: bool = True
    has_blocks: bool = True
    exchanges: bool = False
    reads: bool = False

    def check(self, case):
        """Raise InputError where this collective does not know what the case asks for."""
        name = case.collective
        if case.root and not self.is_rooted:
            raise InputError(f"root={case.root}: {name} has no root; leave it out")
        if case.in_place and not self.in_place:
            raise InputError(f"in_place: {name} takes no MPI_IN_PLACE; leave it out")
        if case.count and not self.has_blocks:
            raise InputError(f"count={case.count}: {name} moves no data; write count 0")
        self._check_matrix(case)
        exchange.check(case.pattern)
        if case.pattern != exchange.EVEN and not self.exchanges:
            raise InputError(
                f"pattern {case.pattern!r}: the blocks of {name} are all alike; leave it out"
            )
        if self.one_type and case.datatype == "mixed":
            raise InputError(f"datatype 'mixed': {name} has a single datatype; write another one")
        if case.op not in OPERATIONS:
            raise InputError(f"op {case.op!r} is unknown; write one of {', '.join(OPERATIONS)}")
        if case.op != "sum" and not self.reduces:
            raise InputError(f"op {case.op!r}: {name} has no operation; leave it out")
        if self.reduces and case.datatype not in REDUCIBLE:
            raise InputError(
                f"datatype {case.datatype!r}: {name} is tried with {', '.join(REDUCIBLE)} only"
            )

    def _check_matrix(self, case):
        name = case.collective
        if not self.reads:
            for key in ("matrix", "buffer", "aggregators", "requests", "cold"):
                if value := getattr(case, key):
                    raise InputError(f"{key}={value!r}: {name} reads no file; leave it out")
            return
        distribution(case.matrix, case.ranks)
        if (case.count, case.datatype) != (1, "double"):
            raise InputError(
                f"count={case.count}, datatype={case.datatype!r}: the matrix of a {name} is of "
                "doubles, and says how many; write count=1, datatype='double'"
            )


def collective_of(name):
    """The Collective of this name; InputError, with the known ones, where there is none."""
    try:
        return COLLECTIVES[name]
    except KeyError:
        known = ", ".join(COLLECTIVES)
        raise InputError(f"collective {name!r} is unknown; write one of {known}") from None


def room(case, rank):
    """Blocks(sent, received): the elements, of the receive datatype, that a rank's buffers hold."""
    if COLLECTIVES[case.collective].exchanges:
        return Blocks(exchange.sent(case, rank).room, exchange.received(case, rank).room)
    if COLLECTIVES[case.collective].reads:
        return Blocks(0, case.distribution.elements_of(rank))
    blocks = COLLECTIVES[case.collective].blocks(case, rank)
    return Blocks(blocks.sent * case.count, blocks.received * case.count)


def block_places(case, index, rank=0):
    """Places of the data bytes of receive block `index`, of this rank's where ranks differ."""
    begin, elements = index * case.count, case.count
    if COLLECTIVES[case.collective].exchanges:
        begin, elements = _block(exchange.received(case, rank), index)
    elif COLLECTIVES[case.collective].reads:
        elements = case.distribution.elements_of(rank)
    return _places(datatype(case.datatype)[1], begin, elements)


def sent_places(case, index, rank=0):
    """Places of the data bytes of send block `index`; in an alltoallv, of this rank's."""
    layout, _, factor = datatype(case.datatype)
    begin, elements = index * case.count, case.count
    if COLLECTIVES[case.collective].exchanges:
        begin, elements = _block(exchange.sent(case, rank), index)
    return _places(layout, begin * factor, elements * factor)


def gap_places(case, rank):
    """Places of the bytes, in the receive buffer of this rank, that lie between two blocks."""
    if not COLLECTIVES[case.collective].exchanges:
        return np.zeros(0, np.int64)
    side, extent = exchange.received(case, rank), datatype(case.datatype)[1].extent
    is_gap = np.ones(side.room * extent, bool)
    for begin, count in zip(side.begins.tolist(), side.counts.tolist(), strict=True):
        is_gap[begin * extent : (begin + count) * extent] = False
    return GUARD_BYTES + np.flatnonzero(is_gap)


def _block(side, index):
    """(first element, elements) of the block of a peer."""
    return int(side.begins[index]), int(side.counts[index])


def _places(layout, begin, elements):
    return GUARD_BYTES + begin * layout.extent + layout.offsets(elements)


def _unchanged(before):
    return [received.copy() for _, received in before]


def _allgather(case, before):
    after = _unchanged(before)
    for source, (sent, received) in enumerate(before):
        places = block_places(case, source)
        block = received[places] if case.in_place else sent[sent_places(case, 0)]
        for memory in after:
            memory[places] = block
    return after


def _bcast(case, before):
    after = _unchanged(before)
    places = block_places(case, 0)
    for memory in after:
        memory[places] = before[case.root][1][places]
    return after


def _gather(case, before):
    after = _unchanged(before)
    for source, (sent, _) in enumerate(before):
        if not (case.in_place and source == case.root):
            after[case.root][block_places(case, source)] = sent[sent_places(case, 0)]
    return after


def _scatter(case, before):
    after = _unchanged(before)
    for dest, memory in enumerate(after):
        if not (case.in_place and dest == case.root):
            memory[block_places(case, 0)] = before[case.root][0][sent_places(case, dest)]
    return after


def _combined(case, before, in_place_on):
    """What all ranks' contributions come to; those of the ranks `in_place_on` are received."""
    return fold(
        case.op,
        [
            received[block_places(case, 0)] if rank in in_place_on else sent[sent_places(case, 0)]
            for rank, (sent, received) in enumerate(before)
        ],
    )


def _reduce(case, before):
    after = _unchanged(before)
    in_place_on = {case.root} if case.in_place else set()
    after[case.root][block_places(case, 0)] = _combined(case, before, in_place_on)
    return after


def _allreduce(case, before):
    after = _unchanged(before)
    in_place_on = set(range(case.ranks)) if case.in_place else set()
    combined = _combined(case, before, in_place_on)
    for memory in after:
        memory[block_places(case, 0)] = combined
    return after


def _alltoallv(case, before):
    after = _unchanged(before)
    for dest, memory in enumerate(after):
        for source, (sent, received) in enumerate(before):
            block = (
                received[block_places(case, dest, source)]
                if case.in_place
                else sent[sent_places(case, dest, source)]
            )
            memory[block_places(case, source, dest)] = block
    return after


def _read(case, before):
    after, elements = _unchanged(before), case.elements()
    for rank, memory in enumerate(after):
        part = elements[case.distribution.indices_of(rank)]
        memory[block_places(case, 0, rank)] = part.view(np.uint8)
    return after


def _barrier(case, before):
    return _unchanged(before)


def _at_root(case, rank, there):
    return there if rank == case.root else 0


COLLECTIVES = {
    "allgather": Collective(lambda case, rank: Blocks(1, case.ranks), _allgather),
    "alltoallv": Collective(
        lambda case, rank: Blocks(case.ranks, case.ranks), _alltoallv, exchanges=True
    ),
    "bcast": Collective(
        lambda case, rank: Blocks(0, 1), _bcast, is_rooted=True, one_type=True, in_place=False
    ),
    "gather": Collective(
        lambda case, rank: Blocks(1, _at_root(case, rank, case.ranks)), _gather, is_rooted=True
    ),
    "scatter": Collective(
        lambda case, rank: Blocks(_at_root(case, rank, case.ranks), 1), _scatter, is_rooted=True
    ),
    "reduce": Collective(
        lambda case, rank: Blocks(1, _at_root(case, rank, 1)), _reduce,
        is_rooted=True, reduces=True, one_type=True,
    ),
    "allreduce": Collective(
        lambda case, rank: Blocks(1, 1), _allreduce, reduces=True, one_type=True
    ),
    "read": Collective(
        lambda case, rank: Blocks(0, 1), _read, one_type=True, in_place=False, reads=True
    ),
    "barrier": Collective(
        lambda case, rank: Blocks(0, 0), _barrier, in_place=False, has_blocks=False
    ),
}  # fmt: skip
