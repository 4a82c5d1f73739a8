"""What kernels took on a cluster, in one order of ranks: tables, rules, figures are made of it."""

from dataclasses import dataclass

import numpy as np

from mpilab.places import Levels

HAN, NO_HAN = "openmpi", "openmpi_no_han"


@dataclass(frozen=True)
class Timed:
    """What one kernel took, in one order of ranks, with messages of one size.

    kernel   its name; COLLECTIVE_openmpi is Open MPI's choice, COLLECTIVE_openmpi_no_han its choice
             without coll/han.
    order    of the ranks (mpilab.orders), levels where they are.
    bytes    of a block, or of the whole message in a bcast, reduce or allreduce.
    seconds  of each repetition, from the first rank's entry to the last one's exit.
    """

    collective: str
    kernel: str
    order: str
    levels: Levels
    bytes: int
    seconds: tuple

    @property
    def is_openmpis(self):
        """Is it one of Open MPI's own?"""
        return self.kernel.endswith((f"_{HAN}", f"_{NO_HAN}"))

    @property
    def median(self):
        """The median of the repetitions, in seconds."""
        return float(np.median(self.seconds))


def best(timed, wanted=lambda one: True):
    """The Timed with the least median among those that are wanted."""
    return min(filter(wanted, timed), key=lambda one: one.median)


def speed_ups(timed, other):
    """How many times faster the best of ours is than the best of those for which `other(one)`: one
    value for each repetition of `timed`, all Timed of one collective, order and size."""
    ours, against = best(timed, lambda one: not one.is_openmpis), best(timed, other)
    return [b / a for a, b in zip(ours.seconds, against.seconds, strict=True)]
