"""Schedules of the gather algorithms, named after the C kernels `gather_<name>`.

P ranks, blocks of m bytes, log to base 2:

    algorithm     rounds                       messages      bytes
    linear        1                            P-1           (P-1) m
    binomial      floor(log P)                 P-1           m x sum of the depths of the ranks
    linear_sync   2 (P-1), +1 if blocks are    2 (P-1) or    (P-1) (m + 8)
                  cut in two                   3 (P-1)

A single rank sends nothing.
"""

from mpilab.algorithms import trees
from mpilab.algorithms.schedule import Plan, Transfer

FIRST_BYTES = 1024  # of src_c/gather/linear_sync.c
GO_AHEAD_BYTES = 8  # MPI_LONG


def linear(call):
    """Every rank sends its block to the root, all at the same time."""
    step = [Transfer(rank, call.root, (rank,)) for rank in _others(call)]
    return Plan([step], call.sizes((call.count,) * call.ranks), tuple(range(call.ranks)))


def binomial(call):
    """Each rank of a binomial tree sends up the blocks of its whole subtree in one message."""
    steps = []
    for virtual in range(call.ranks - 1, 0, -1):
        collected = tuple(call.real(v) for v in trees.subtree(virtual, call.ranks))
        parent = virtual - (virtual & -virtual)
        steps.append([Transfer(call.real(virtual), call.real(parent), collected)])
    return Plan(steps, call.sizes((call.count,) * call.ranks), tuple(range(call.ranks)))


def linear_sync(call):
    """The root lets ranks send the first parts of blocks one by one; the rests come meanwhile.

    Blocks 0 … P-1 are the first parts; then come the rests, if any, and the go-aheads, one for each
    rank. Source: src_c/gather/linear_sync.c.
    """
    ranks = call.ranks
    at_once = min(call.count, max(1, (call.segment or FIRST_BYTES) // call.element_bytes))
    is_cut = at_once < call.count
    go_ahead = 2 * ranks if is_cut else ranks
    steps = []
    for rank in _others(call):
        steps.append([Transfer(call.root, rank, (go_ahead + rank,))])
        steps.append([Transfer(rank, call.root, (rank,))])
    if is_cut:
        # The root waits for the rests last, so they delay no go-ahead.
        steps += [[Transfer(rank, call.root, (ranks + rank,))] for rank in _others(call)]
    everybody, numbers = tuple(range(ranks)), tuple(map(str, range(ranks)))
    rests = call.sizes((call.count - at_once,) * ranks) if is_cut else ()
    return Plan(
        steps,
        call.sizes((at_once,) * ranks) + rests + (GO_AHEAD_BYTES,) * ranks,
        everybody + everybody * is_cut + (call.root,) * ranks,
        numbers
        + tuple(f"rest {name}" for name in numbers) * is_cut
        + tuple(f"go {name}" for name in numbers),
    )


def _others(call):
    return [rank for rank in range(call.ranks) if rank != call.root]


ALGORITHMS = {algorithm.__name__: algorithm for algorithm in (linear, binomial, linear_sync)}
