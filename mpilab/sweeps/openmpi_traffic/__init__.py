"""What each of Open MPI's own algorithms must send: the matrices that a run is held against.

`expected(collective, name, shape)` gives them. The names are those that Open MPI lists itself
(`mpilab.openmpi.algorithms`). Message counts tell algorithms apart as far as these differ in what
they send: scatter's linear and linear_nb never do, and on 2 ranks many don't.
"""

from functools import cache

from mpilab.errors import InputError
from mpilab.sweeps.counted import from_messages
from mpilab.sweeps.openmpi_traffic import rooted, symmetric
from mpilab.sweeps.openmpi_traffic.shape import Shape

__all__ = ["PATTERNS", "Shape", "expected", "matching"]

PATTERNS = {
    "bcast": {
        "basic_linear": rooted.bcast_linear,
        "chain": rooted.bcast_chain,
        "pipeline": rooted.bcast_pipeline,
        "split_binary_tree": rooted.bcast_split_binary,
        "binary_tree": rooted.bcast_binary,
        "binomial": rooted.bcast_binomial,
        "knomial": rooted.bcast_knomial,
        "scatter_allgather": rooted.bcast_scatter_allgather,
        "scatter_allgather_ring": rooted.bcast_scatter_allgather_ring,
    },
    "reduce": {
        "linear": rooted.reduce_linear,
        "chain": rooted.reduce_chain,
        "pipeline": rooted.reduce_pipeline,
        "binary": rooted.reduce_binary,
        "binomial": rooted.reduce_binomial,
        "in-order_binary": rooted.reduce_in_order_binary,
        "rabenseifner": rooted.reduce_rabenseifner,
    },
    "gather": {
        "basic_linear": rooted.gather_linear,
        "binomial": rooted.gather_binomial,
        "linear_sync": rooted.gather_linear_sync,
    },
    "scatter": {
        "basic_linear": rooted.scatter_linear,
        "binomial": rooted.scatter_binomial,
        "linear_nb": rooted.scatter_linear,
    },
    "barrier": {
        "linear": symmetric.barrier_linear,
        "double_ring": symmetric.barrier_double_ring,
        "recursive_doubling": symmetric.barrier_recursive_doubling,
        "bruck": symmetric.barrier_bruck,
        "two_proc": symmetric.barrier_two_proc,
        "tree": symmetric.barrier_tree,
    },
    "allgather": {
        "linear": symmetric.allgather_linear,
        "bruck": symmetric.allgather_bruck,
        "recursive_doubling": symmetric.allgather_recursive_doubling,
        "ring": symmetric.allgather_ring,
        "neighbor": symmetric.allgather_neighbor,
        "two_proc": symmetric.allgather_two_proc,
        "sparbit": symmetric.allgather_sparbit,
    },
    "allreduce": {
        "basic_linear": symmetric.allreduce_linear,
        "nonoverlapping": symmetric.allreduce_nonoverlapping,
        "recursive_doubling": symmetric.allreduce_recursive_doubling,
        "ring": symmetric.allreduce_ring,
        "segmented_ring": symmetric.allreduce_segmented_ring,
        "rabenseifner": symmetric.allreduce_rabenseifner,
    },
}
# These call another two collectives, for which Open MPI decides by itself: lists of what may be.
_COMPOSED = (symmetric.allgather_linear, symmetric.allreduce_nonoverlapping)


@cache
def expected(collective, name, shape):
    """All that algorithm `name` of `collective` may send for this Shape: tuple of Counted.

    Mostly one; more for an algorithm that calls other collectives and lets Open MPI decide how; ()
    where it is not defined for this shape, and Open MPI runs another one in its place. One rank
    alone sends nothing. Raises InputError for an algorithm whose messages are not known here.
    """
    try:
        algorithm = PATTERNS[collective][name]
    except KeyError:
        raise InputError(
            f"Open MPI's {collective} algorithm {name!r}: what it sends is not known here, so it "
            f"cannot be told from others; known are {', '.join(PATTERNS.get(collective, ()))}"
        ) from None
    if shape.ranks == 1:
        return (from_messages(1, (), 1),)
    found = algorithm(shape)
    if found is None:
        return ()
    lists = found if algorithm in _COMPOSED else [found]
    return tuple(from_messages(shape.ranks, messages, shape.element_bytes) for messages in lists)


def matching(collective, counted, shape):
    """Names of all algorithms of `collective` that may have sent what was counted."""
    return [
        name
        for name in PATTERNS[collective]
        if any(counted == pattern for pattern in expected(collective, name, shape))
    ]
