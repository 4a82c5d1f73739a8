"""What Open MPI's collectives are called with, and how they cut a message."""

from dataclasses import dataclass

# Of Open MPI 5.0: coll_tuned_*_algorithm_chain_fanout, coll_tuned_bcast_algorithm_knomial_radix,
# and the most children that a tree may have (MAXTREEFANOUT).
CHAIN_FANOUT, RADIX, MOST_CHILDREN = 4, 4, 32


@dataclass(frozen=True)
class Shape:
    """One call: `count` elements of `element_bytes` bytes on `ranks` ranks.

    count is that of a block for allgather, gather and scatter, else that of the whole message.
    segment in bytes; segment, fanout and radix 0 are Open MPI's defaults: no segments, 4 and 4.
    """

    ranks: int
    count: int = 0
    element_bytes: int = 1
    root: int = 0
    segment: int = 0
    fanout: int = 0
    radix: int = 0

    def rank(self, virtual):
        """The rank that counts as `virtual` from the root."""
        return (virtual + self.root) % self.ranks

    def piece(self):
        """Elements of a segment: the number nearest to the segment size, or the whole message.

        A segment size below one element, or not below the message, cuts nothing.
        """
        if not self.element_bytes <= self.segment < self.element_bytes * self.count:
            return self.count
        whole, rest = divmod(self.segment, self.element_bytes)
        return whole + (rest > self.element_bytes // 2)

    def pieces(self):
        """Elements of every segment of the message, in order."""
        return cut(self.count, self.piece())


def cut(count, piece):
    """`count` elements in pieces of `piece`: list of int, the last one maybe smaller."""
    return [min(piece, count - at) for at in range(0, count, piece)] if piece else []


def spread(count, parts):
    """`count` elements over `parts` blocks, the first ones larger by one: list of int."""
    least, larger = divmod(count, parts)
    return [least + (part < larger) for part in range(parts)]
