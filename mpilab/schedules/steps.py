"""From what every rank does, one thing after the other, to rounds.

An algorithm of a collective says its messages in *steps*. The messages of one step are started
together, and every rank that takes part in a step ends it before it goes on to its next one; ranks
that take no part go ahead. So a blocking send is a step of its own, an exchange (MPI_Sendrecv) of
all ranks is one, and so are sends that are all started before the rank waits for them.
"""

from dataclasses import dataclass, field

from mpilab.schedules.schedule import Transfer


@dataclass(frozen=True)
class Call:
    """The call of a collective that a schedule is for.

    count           elements, of a block or of the whole message (see mpilab.schedules.schedule_of).
    element_bytes   of one element.
    segment, fanout, radix   as in mpilab_tuning of src_c/include/mpilab.h; 0 is the default.
    """

    ranks: int
    root: int = 0
    count: int = 1
    element_bytes: int = 1
    segment: int = 0
    fanout: int = 0
    radix: int = 0

    def real(self, virtual):
        """The rank that is `virtual` when ranks are counted from the root."""
        return (virtual + self.root) % self.ranks

    def sizes(self, elements):
        """Bytes of parts of a message of so many elements each."""
        return tuple(number * self.element_bytes for number in elements)


@dataclass(frozen=True)
class Plan:
    """What an algorithm sends: steps, and what the blocks in them are.

    steps    lists of Transfers, in an order that every rank keeps.
    sizes    bytes of each block.
    owners   the rank that has each block at the start; () where all have a part of it (reduce,
             allreduce) and where there are no blocks (barrier).
    names    of the blocks in figures; () for their numbers.
    """

    steps: list[list[Transfer]]
    sizes: tuple[int, ...] = ()
    owners: tuple[int, ...] = field(default=())
    names: tuple[str, ...] = field(default=())


def in_rounds(ranks, steps):
    """The Transfers of `steps`, each in its round, sorted by sender: a tuple of tuples.

    The round of a message is 1 + the latest round among the messages that its sender had finished
    sending or receiving before: its depth in Lamport's happens-before order, exactly as in a
    recording (mpilab.recording.Recording).
    """
    rounds = []
    depth = [0] * ranks
    for step in steps:
        begun = [(depth[transfer.source] + 1, transfer) for transfer in step]
        for number, transfer in begun:
            if number > len(rounds):
                rounds.append([])
            rounds[number - 1].append(transfer)
            for rank in (transfer.source, transfer.dest):
                depth[rank] = max(depth[rank], number)
    # A stable sort: what a rank starts first stays first.
    return tuple(tuple(sorted(one, key=lambda transfer: transfer.source)) for one in rounds)
