"""A message cut into blocks that are scattered, swapped, reduced or gathered (src_c/tree/blocks.h).

Ranks are virtual (counted from the root): rank v < parts is the one of block v. Where a power of
two of ranks is wanted, the first `core` of them do the work; each rank v from `core` on hands its
data to v - core before (`fold`), or gets the result from there at the end (`unfold`).
"""

from mpilab.schedules.schedule import Transfer


def largest_power_of_two(ranks):
    """The largest power of two that is not above `ranks`."""
    return 1 << (ranks.bit_length() - 1)


def powers_of_two(limit):
    """1, 2, 4 … below `limit`: ceil(log2(limit)) of them."""
    return [1 << step for step in range((limit - 1).bit_length())]


def subtree(virtual, ranks):
    """The virtual ranks of `ranks` at and under one in the binomial tree: v, v + 1, …"""
    lowest_bit = virtual & -virtual or ranks
    return range(virtual, min(virtual + lowest_bit, ranks))


def binomial_sends(parts):
    """(virtual source, virtual child) of a scatter down the binomial tree, in its order: one send
    after the other, the largest part first."""
    return [
        (virtual, virtual + distance)
        for virtual in range(parts)
        for distance in reversed(powers_of_two(parts))
        if (virtual == 0 or distance < (virtual & -virtual)) and virtual + distance < parts
    ]


def scatter(call, parts):
    """Binomial scatter: the root cuts the message into `parts` blocks, and v < parts gets block v
    (and those of all ranks that it serves)."""
    return [
        [Transfer(call.real(source), call.real(child), tuple(subtree(child, parts)))]
        for source, child in binomial_sends(parts)
    ]


def gather(call, core):
    """The blocks of the virtual ranks below `core`, a power of two, go to the root."""
    return [
        [
            Transfer(
                call.real(virtual),
                call.real(virtual - distance),
                tuple(range(virtual, virtual + distance)),
            )
        ]
        for distance in powers_of_two(core)
        for virtual in range(distance, core, 2 * distance)
    ]


def double(call, core):
    """Allgather by recursive doubling: partners at distance 1, 2, 4 … swap what they have."""
    return [_swap(call, core, distance, mine=True) for distance in powers_of_two(core)]


def halve(call, core):
    """Reduce-scatter by recursive halving: partners at distance core / 2 … 2, 1 swap the halves of
    what they have that each does not keep."""
    return [_swap(call, core, distance, mine=False) for distance in reversed(powers_of_two(core))]


def _swap(call, core, distance, mine):
    def sent(virtual):
        first = (virtual if mine else virtual ^ distance) // distance * distance
        return tuple(range(first, first + distance))

    return [
        Transfer(call.real(virtual), call.real(virtual ^ distance), sent(virtual))
        for virtual in range(core)
    ]


def fold(call, core):
    """The ranks from `core` on hand all their data to the ranks that work for them."""
    everything = tuple(range(core))
    return [
        [Transfer(call.real(virtual), call.real(virtual - core), everything)]
        for virtual in range(core, call.ranks)
    ]


def unfold(call, core):
    """The ranks from `core` on get the whole result."""
    everything = tuple(range(core))
    return [
        [Transfer(call.real(virtual - core), call.real(virtual), everything)]
        for virtual in range(core, call.ranks)
    ]
