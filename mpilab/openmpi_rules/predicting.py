"""What the α-β model says that a rule's choice costs (mpilab.models.costs)."""

from functools import cache

from mpilab import openmpi
from mpilab.models.costs import OPENMPI_FORMULAS, cost
from mpilab.openmpi_rules.vocabulary import (
    CHAINS,
    CUT,
    LEFT,
    TWO_RANKS,
    algorithm_name,
    shape_of,
    substitute,
)

# What is tried where a file may say anything: bytes of a segment, and chains.
SEGMENTS = (0, *(1 << power for power in range(9, 21)))
FANOUTS = (2, 4, 8)


@cache
def choices(collective, segments=SEGMENTS, fanouts=FANOUTS):
    """All (number, fan-out, segment) that a file may choose for a collective, and that have a
    cost: a tuple. Without two_proc, which is for two ranks only."""
    found = []
    for number, name in sorted(openmpi.algorithms().get(collective, {}).items()):
        if name not in OPENMPI_FORMULAS.get(collective, {}) or name == TWO_RANKS:
            continue
        cuts = segments if name in CUT.get(collective, ()) else (0,)
        chains = fanouts if name in CHAINS.get(collective, ()) else (0,)
        found += [(number, fanout, segment) for fanout in chains for segment in cuts]
    return tuple(found)


def seconds(collective, ranks, size, choice, model, gamma=None):
    """Predicted seconds of a choice, of what Open MPI runs in its place where it does; None where
    there is no formula: what is left to Open MPI, or what leaves its parts to it.

    size    bytes of a block (allgather, gather, scatter), or of the whole message
    choice  (number, fan-out, segment)
    model   a Hockney; or a function of the algorithm's name that returns one, or None
    gamma   see mpilab.models.costs
    """
    number, fanout, segment = choice
    name = "" if number == LEFT else algorithm_name(collective, number)
    shape = shape_of(collective, ranks, size, segment, fanout)
    instead = substitute(collective, name, shape)
    name = instead.name if instead else name
    if name not in OPENMPI_FORMULAS.get(collective, {}):
        return None
    own = model if hasattr(model, "alpha") else model(name)
    if own is None:
        return None
    heeded = segment if name in CUT.get(collective, ()) else 0
    return float(cost(collective, name, ranks, size, own, segment=heeded, fanout=shape.fanout,
                      gamma=gamma, library="openmpi"))  # fmt: skip
