"""What numbers and sizes in a rules file mean, as seen with Open MPI 5.0.11.

Every statement here is tried on a real Open MPI by tests/openmpi_rules.
"""

from dataclasses import dataclass

from mpilab import openmpi
from mpilab.errors import InputError
from mpilab.schedules.blocks import largest_power_of_two
from mpilab.sweeps.openmpi_traffic import Shape

# Place in this list = number of the collective in a file (COLLTYPE in Open MPI's
# ompi/mca/coll/base/coll_base_functions.h). A file that names another one is ignored as a whole.
COLLECTIVES = (
    "allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "alltoallw", "barrier",
    "bcast", "exscan", "gather", "gatherv", "reduce", "reduce_scatter", "reduce_scatter_block",
    "scan", "scatter", "scatterv", "neighbor_allgather", "neighbor_allgatherv",
    "neighbor_alltoall", "neighbor_alltoallv", "neighbor_alltoallw",
)  # fmt: skip

# The size that rules are looked up by is that of all blocks together, ...
ALL_BLOCKS = ("allgather", "gather", "scatter", "alltoall")
# ... or 0, whatever is sent: only the first rule of a number of ranks counts.
WITHOUT_SIZE = ("barrier", "alltoallv")

# Algorithms that heed a segment size, and those that heed the number of chains (fan-out).
CUT = {
    "bcast": ("chain", "pipeline", "split_binary_tree", "binary_tree", "binomial", "knomial"),
    "reduce": ("chain", "pipeline", "binary", "binomial", "in-order_binary"),
    "allreduce": ("segmented_ring",),
    "gather": ("linear_sync",),
}
CHAINS = {"bcast": ("chain",), "reduce": ("chain",)}
TWO_RANKS = "two_proc"  # any other number of ranks aborts the program
LEFT = 0  # the number of no algorithm: Open MPI decides by itself


@dataclass(frozen=True)
class Substitute:
    """What Open MPI runs without a word in place of an algorithm, and where it does."""

    name: str
    where: str


def number_of(collective):
    """The number that stands for a collective in a file; InputError for an unknown name."""
    if collective not in COLLECTIVES:
        raise InputError(f"collective {collective!r}: rules files know {', '.join(COLLECTIVES)}")
    return COLLECTIVES.index(collective)


def algorithm_name(collective, number):
    """'binomial' of bcast 6; "" where Open MPI has no algorithm of that number."""
    return openmpi.algorithms().get(collective, {}).get(number, "")


def algorithm_number(collective, name):
    """6 of bcast 'binomial'; InputError for a name that Open MPI does not have."""
    known = openmpi.algorithms().get(collective, {})
    for number, one in known.items():
        if one == name:
            return number
    raise InputError(
        f"Open MPI's {collective} {name!r}: there is none; it has {', '.join(known.values())}"
    )


def looked_up_bytes(collective, ranks, size):
    """Bytes that rules are looked up by, for `size` bytes of a block (allgather, gather, scatter,
    alltoall) or of the whole message (all others)."""
    if collective in WITHOUT_SIZE:
        return 0
    return size * ranks if collective in ALL_BLOCKS else size


def element_bytes(collective):
    """Bytes of the elements that sweeps and proofs use: what is reduced are ints."""
    return 4 if collective in ("reduce", "allreduce") else 1


def shape_of(collective, ranks, size, segment, fanout):
    """The Shape of a call of `size` bytes that a rule with this segment and fan-out decides.

    A rule's fan-out 0 is one chain; where the setting of Open MPI is not given, it is 4 chains.
    """
    element = element_bytes(collective)
    return Shape(ranks, size // element, element, segment=segment, fanout=max(1, fanout))


def substitute(collective, name, shape):
    """The Substitute of an algorithm for a Shape; None where it runs itself."""
    ranks, count = shape.ranks, shape.count
    core = largest_power_of_two(ranks)
    if (collective, name) == ("allgather", "recursive_doubling") and ranks != core:
        return Substitute("bruck", "on other than a power of two ranks")
    if (collective, name) == ("allgather", "neighbor") and ranks % 2:
        return Substitute("ring", "on an odd number of ranks")
    if collective == "bcast" and name.startswith("scatter_allgather") and count < ranks:
        return Substitute("basic_linear", "with less than an element for each rank")
    if (collective, name) == ("bcast", "split_binary_tree") and _is_not_split(shape):
        return Substitute("pipeline", "where half of the message is empty or less than a segment")
    if (collective, name) == ("reduce", "rabenseifner") and count < core:
        return Substitute("linear", "with less elements than ranks that halve")
    if (collective, name) == ("allreduce", "rabenseifner") and count < core:
        return Substitute("basic_linear", "with less elements than ranks that halve")
    if collective == "allreduce" and name in ("ring", "segmented_ring") and count < ranks:
        return Substitute("recursive_doubling", "with less than an element for each rank")
    if (collective, name) == ("allreduce", "segmented_ring") and count < ranks * shape.piece():
        return Substitute("ring", "where a rank's share is smaller than a segment")
    return None


def _is_not_split(shape):
    half = shape.count // 2
    return half == 0 or shape.segment > half * shape.element_bytes
