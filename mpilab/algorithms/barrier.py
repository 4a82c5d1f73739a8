"""Schedules of the barrier algorithms, named after the C kernels `barrier_<name>`.

P ranks, log to base 2, p2 the largest power of two <= P, rest = P - p2; messages are empty:

    algorithm           rounds                        messages
    linear              2                             2 (P-1)
    double_ring         2 P                           2 P
    recursive_doubling  log p2 (+2 if rest)           p2 log p2 + 2 rest
    dissemination       ceil(log P)                   P ceil(log P)
    tree                floor(log P) + ceil(log P)    2 (P-1)

A single rank sends nothing.
"""

from mpilab.algorithms import trees
from mpilab.algorithms.schedule import Plan, Transfer


def linear(call):
    """Every rank reports to rank 0; when all have, rank 0 releases all others at the same time."""
    others = range(1, call.ranks)
    return Plan([[_empty(rank, 0) for rank in others], [_empty(0, rank) for rank in others]])


def double_ring(call):
    """A token travels around the ring twice."""
    ranks = call.ranks
    if ranks == 1:
        return Plan([])
    return Plan([[_empty(rank, (rank + 1) % ranks)] for _ in (1, 2) for rank in range(ranks)])


def recursive_doubling(call):
    """Ranks that differ in bit i exchange messages in step i.

    The ranks from p2 up report before and are released after.
    """
    core = trees.largest_power_of_two(call.ranks)
    rest = range(core, call.ranks)
    return Plan(
        [
            [_empty(rank, rank - core) for rank in rest],
            *(
                [_empty(rank, rank ^ distance) for rank in range(core)]
                for distance in trees.powers_of_two(core)
            ),
            [_empty(rank - core, rank) for rank in rest],
        ]
    )


def dissemination(call):
    """In step i each rank sends to rank + 2^i."""
    return Plan(
        [
            [_empty(rank, (rank + distance) % call.ranks) for rank in range(call.ranks)]
            for distance in trees.powers_of_two(call.ranks)
        ]
    )


def tree(call):
    """Reports go up a binomial tree; the release comes down it, to one child after the other."""
    binomial = trees.knomial(call.ranks, 0, 2)
    up = [
        [_empty(rank, binomial.parent[rank])] for rank in reversed(binomial.top_down) if rank != 0
    ]
    down = [
        [_empty(rank, child)] for rank in binomial.top_down for child in binomial.children[rank]
    ]
    return Plan(up + down)


def _empty(source, dest):
    return Transfer(source, dest, ())


ALGORITHMS = {
    algorithm.__name__: algorithm
    for algorithm in (linear, double_ring, recursive_doubling, dissemination, tree)
}
