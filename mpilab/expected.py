"""What each collective must leave in memory, computed with numpy and nothing else.

`COLLECTIVES[name]` says how many blocks a rank's buffers hold, and what the receive buffers hold
after the call (MPI 4.1, chapter 6).
"""

from dataclasses import dataclass
from typing import NamedTuple

from mpilab.datatypes import datatype

GUARD_BYTES = 64


class Blocks(NamedTuple):
    """Blocks in a rank's send and receive buffer."""

    sent: int
    received: int


@dataclass(frozen=True)
class Collective:
    """blocks(case, rank) -> Blocks; after(case, before) -> receive memory of every rank.

    `before` lists (send, receive) memory of every rank, with guard zones, as uint8 arrays.
    """

    blocks: object
    after: object


def block_places(case, index):
    """Places of the data bytes of receive block `index`."""
    _, layout, _ = datatype(case.datatype)
    return GUARD_BYTES + index * case.count * layout.extent + layout.offsets(case.count)


def _allgather(case, before):
    sent_layout, _, factor = datatype(case.datatype)
    sent_places = GUARD_BYTES + sent_layout.offsets(case.count * factor)
    after = [received.copy() for _, received in before]
    for source, (sent, received) in enumerate(before):
        places = block_places(case, source)
        block = received[places] if case.in_place else sent[sent_places]
        for memory in after:
            memory[places] = block
    return after


COLLECTIVES = {
    "allgather": Collective(lambda case, rank: Blocks(1, case.ranks), _allgather),
}
