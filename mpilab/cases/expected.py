"""What each collective must leave in memory, computed with numpy alone, and what differs from it.

`COLLECTIVES[name]` gives the number of blocks in a rank's buffers, and the contents of the receive
buffers after the call (MPI 4.1, chapter 6). A bcast has one buffer, which counts as the receive
buffer. A barrier has none; `mpilab.diagnosis.collectives` tells from its recording whether it was
one.
"""

from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np

from mpilab.cases import counts
from mpilab.cases.datatypes import OPERATIONS, datatype, fold
from mpilab.cases.distribution import distribution
from mpilab.errors import InputError

GUARD_BYTES = 64
# The datatypes that consist of 32-bit words, which operations work on.
REDUCIBLE = ("int", "contiguous", "vector", "shifted")


class Blocks(NamedTuple):
    """Number of blocks in a rank's send and receive buffers."""

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
    exchanges   its blocks differ in size, and lie anywhere in the buffers (mpilab.cases.counts).
    reads       it reads a matrix from a file: a rank's single block is its part of the matrix,
                which differs from that of others (mpilab.cases.distribution).
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
        """Raise InputError if the case asks for something this collective does not have."""
        name = case.collective
        if case.root and not self.is_rooted:
            raise InputError(f"root={case.root}: {name} has no root; leave it out")
        if case.in_place and not self.in_place:
            raise InputError(f"in_place: {name} takes no MPI_IN_PLACE; leave it out")
        if case.count and not self.has_blocks:
            raise InputError(f"count={case.count}: {name} moves no data; write count 0")
        self._check_matrix(case)
        counts.check(case.pattern)
        if case.pattern != counts.EVEN and not self.exchanges:
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
    """The Collective of this name; InputError, listing the known ones, if there is none."""
    try:
        return COLLECTIVES[name]
    except KeyError:
        known = ", ".join(COLLECTIVES)
        raise InputError(f"collective {name!r} is unknown; write one of {known}") from None


def room(case, rank):
    """Blocks(sent, received): the elements, of the receive datatype, that a rank's buffers hold."""
    if COLLECTIVES[case.collective].exchanges:
        return Blocks(counts.sent(case, rank).room, counts.received(case, rank).room)
    if COLLECTIVES[case.collective].reads:
        return Blocks(0, case.distribution.elements_of(rank))
    blocks = COLLECTIVES[case.collective].blocks(case, rank)
    return Blocks(blocks.sent * case.count, blocks.received * case.count)


def block_places(case, index, rank=0):
    """Places of the data bytes of receive block `index`, of this rank's if ranks differ."""
    begin, elements = index * case.count, case.count
    if COLLECTIVES[case.collective].exchanges:
        begin, elements = _block(counts.received(case, rank), index)
    elif COLLECTIVES[case.collective].reads:
        elements = case.distribution.elements_of(rank)
    return _places(datatype(case.datatype)[1], begin, elements)


def sent_places(case, index, rank=0):
    """Places of the data bytes of send block `index`; in an alltoallv, of this rank's."""
    layout, _, factor = datatype(case.datatype)
    begin, elements = index * case.count, case.count
    if COLLECTIVES[case.collective].exchanges:
        begin, elements = _block(counts.sent(case, rank), index)
    return _places(layout, begin * factor, elements * factor)


def gap_places(case, rank):
    """Places of the bytes between two blocks in the receive buffer of this rank."""
    if not COLLECTIVES[case.collective].exchanges:
        return np.zeros(0, np.int64)
    side, extent = counts.received(case, rank), datatype(case.datatype)[1].extent
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
    """All ranks' contributions combined; ranks `in_place_on` contribute their receive buffer."""
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
        lambda case, rank: Blocks(1, _at_root(case, rank, 1)),
        _reduce,
        is_rooted=True,
        reduces=True,
        one_type=True,
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
}


# The contents of buffers and files before a call: pseudorandom bytes from the seed of a case, the
# same as in src_c/runtime/harness/buffers.c.

# Bytes that are generated in one numpy call: short buffers of many ranks, or few long ones.
_AT_A_TIME = 1 << 20
# The initial state of SipHash-1-3.
_SIP = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)


def words(seed, ranks, stream, count):
    """The words of a stream of each of `ranks`: uint64 [ranks, count].

    They are SipHash-1-3 (Aumasson, Bernstein 2012) of 1, 2, … keyed by seed and stream. The words
    of one stream do not reveal those of another one: see src_c/runtime/harness/buffers.c.
    """
    streams = np.array([4 * rank + stream for rank in ranks], np.uint64)[:, None]
    keys = (np.uint64(seed), streams) * 2
    v = [
        np.broadcast_to(key ^ np.uint64(begin), (len(ranks), count)).copy()
        for key, begin in zip(keys, _SIP, strict=True)
    ]
    for message in (np.arange(1, count + 1, dtype=np.uint64), np.uint64(8 << 56)):
        v[3] ^= message
        _sip_round(v)
        v[0] ^= message
    v[2] ^= np.uint64(0xFF)
    for _ in range(3):
        _sip_round(v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def _sip_round(v):
    for place, other, bits, turned in (
        (0, 1, 13, True),
        (2, 3, 16, False),
        (0, 3, 21, False),
        (2, 1, 17, True),
    ):
        v[place] += v[other]
        v[other] = _rotated(v[other], bits) ^ v[place]
        if turned:
            v[place] = _rotated(v[place], 32)


def _rotated(words, bits):
    return words << np.uint64(bits) | words >> np.uint64(64 - bits)


def fill(seed, ranks, stream, data_bytes):
    """The memory of each of `ranks`, with `data_bytes` bytes of data each: list of uint8 arrays."""
    filled = []
    for (_, data), group in groupby(
        enumerate(zip(ranks, data_bytes, strict=True)),
        lambda each: (each[0] * (each[1][1] + 2 * GUARD_BYTES) // _AT_A_TIME, each[1][1]),
    ):
        total = data + 2 * GUARD_BYTES
        rows = words(seed, [rank for _, (rank, _) in group], stream, -(-total // 8))
        filled += [row.view(np.uint8)[:total].copy() for row in rows]
    return filled


# What a kernel left behind, compared with what it should have left.


@dataclass(frozen=True)
class Difference:
    """What is wrong in one rank's memory; `blocks` are the receive blocks with wrong data."""

    rank: int
    blocks: tuple = ()
    untouched: tuple = ()
    notes: tuple = ()

    def describe(self):
        """A clause such as 'rank 2: blocks 0, 3 are wrong (3 was never written)'."""
        words = []
        if self.blocks:
            plural = len(self.blocks) > 1
            words.append(
                f"block{'s' * plural} {_listing(self.blocks)} {'are' if plural else 'is'} wrong"
            )
            if self.untouched:
                never = (
                    "none of it was"
                    if self.untouched == self.blocks and not plural
                    else (
                        "none of them was"
                        if self.untouched == self.blocks
                        else f"{_listing(self.untouched)} "
                        f"{'were' if len(self.untouched) > 1 else 'was'} never"
                    )
                )
                words[-1] += f" ({never} written)"
        return f"rank {self.rank}: " + "; ".join([*words, *self.notes])


def _listing(numbers, most=8):
    shown = ", ".join(map(str, numbers[:most]))
    return shown if len(numbers) <= most else f"{shown}, … ({len(numbers)} in all)"


def compare(case, outputs):
    """Compare the outputs of all ranks with what the case should leave: list of Difference.

    Every byte counts: the data, the holes of the datatype, the guard zones around both buffers, and
    the send buffer, which a kernel must not change.
    """
    before = case.before()
    expected = COLLECTIVES[case.collective].after(case, before)
    return [
        difference
        for rank, output in enumerate(outputs)
        if (difference := _compare_rank(case, rank, output, before[rank], expected[rank]))
        is not None
    ]


def _compare_rank(case, rank, output, before, expected):
    sent_before, received_before = before
    if output.received.shape != expected.shape or output.sent.shape != sent_before.shape:
        return Difference(rank, notes=("the output has the wrong size",))
    wrong = output.received != expected
    notes = []
    if (output.sent != sent_before).any():
        notes.append("the send buffer was changed")
    elif not wrong.any():
        return None
    data = np.zeros_like(wrong)
    blocks, untouched = [], []
    count = COLLECTIVES[case.collective].blocks(case, rank).received
    for index in range(count):
        places = block_places(case, index, rank)
        data[places] = True
        if wrong[places].any():
            blocks.append(index)
            if (output.received[places] == received_before[places]).all():
                untouched.append(index)
    outside = wrong & ~data
    guard = np.zeros_like(wrong)
    guard[:GUARD_BYTES] = guard[len(guard) - GUARD_BYTES :] = True
    if (outside & guard).any():
        notes.append("memory outside of the receive buffer was overwritten")
    gaps = np.zeros_like(wrong)
    gaps[gap_places(case, rank)] = True
    if (outside & gaps).any():
        notes.append("the gaps between the blocks were overwritten")
    if (outside & ~guard & ~gaps).any():
        notes.append("the holes between the elements of the datatype were overwritten")
    if not blocks and not notes:
        return None
    return Difference(rank, tuple(blocks), tuple(untouched), tuple(notes))
