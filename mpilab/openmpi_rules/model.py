"""What a rules file says: rules, and which one decides a call."""

from dataclasses import dataclass
from functools import cached_property

from mpilab.openmpi_rules.vocabulary import (
    LEFT,
    TWO_RANKS,
    algorithm_name,
    looked_up_bytes,
)

# What a remark is about: the program fails, the file is not read as it was meant, or neither.
FAILS, MISREAD, NOTE = "fails", "misread", "note"


@dataclass(frozen=True)
class Rule:
    """From `ranks` ranks and `bytes` bytes on, this algorithm of a collective.

    ranks     of the communicator
    bytes     as Open MPI looks them up: of all blocks together in an allgather, gather, scatter or
              alltoall, 0 in a barrier (mpilab.openmpi_rules.vocabulary)
    number    the algorithm's, as in `mpilab.openmpi.algorithms`; 0: Open MPI decides by itself
    fanout    number of chains, heeded by chain only, where 0 means 1
    segment   bytes; 0: the message is not cut
    line      of the file, where there is one
    """

    collective: str
    ranks: int
    bytes: int
    number: int
    fanout: int = 0
    segment: int = 0
    line: int = 0

    @property
    def is_left(self):
        """Is the decision left to Open MPI?"""
        return self.number == LEFT

    @property
    def algorithm(self):
        """'binomial'; "" for a number that Open MPI does not have."""
        return algorithm_name(self.collective, self.number)

    def is_fatal(self, ranks):
        """Does a call on so many ranks fail that this rule decides?"""
        return not self.is_left and (
            not self.algorithm or (self.algorithm == TWO_RANKS and ranks != 2)
        )

    @property
    def choice(self):
        """(number, fanout, segment): what is chosen."""
        return self.number, self.fanout, self.segment


@dataclass(frozen=True)
class Remark:
    """Something about one line of a file, of `kind` FAILS, MISREAD or NOTE."""

    line: int
    text: str
    kind: str = NOTE


@dataclass(frozen=True)
class Rules:
    """The rules of a file, in the order in which Open MPI finds them: for each collective, numbers
    of ranks and for each of these bytes rise. `remarks` is what a reader should know."""

    rules: tuple
    remarks: tuple = ()
    name: str = "rules"

    @cached_property
    def collectives(self):
        """{collective: {ranks: its Rules}}."""
        found = {}
        for rule in self.rules:
            found.setdefault(rule.collective, {}).setdefault(rule.ranks, []).append(rule)
        return found

    def deciding(self, collective, ranks, size):
        """The Rule that decides a call of `size` bytes (of a block, or of the whole message); None
        where there is none, and Open MPI decides by itself.

        Numbers of ranks below the first one in the file belong to that one.
        """
        by_ranks = self.collectives.get(collective)
        if not by_ranks:
            return None
        first = min(by_ranks)
        nearest = max((one for one in by_ranks if one <= ranks), default=first)
        total = looked_up_bytes(collective, ranks, size)
        return [rule for rule in by_ranks[nearest] if rule.bytes <= total][-1]

    def reach(self, rule):
        """((least, most) ranks, (least, most) bytes) that a rule decides; most is None without end.

        Bytes are as Open MPI looks them up.
        """
        by_ranks = self.collectives[rule.collective]
        following = min((one for one in by_ranks if one > rule.ranks), default=None)
        larger = min(
            (one.bytes for one in by_ranks[rule.ranks] if one.bytes > rule.bytes), default=None
        )
        least = 1 if rule.ranks == min(by_ranks) else rule.ranks
        return (least, _below(following)), (rule.bytes, _below(larger))


def _below(number):
    return None if number is None else number - 1
