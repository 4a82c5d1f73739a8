"""The gather algorithms, named after the C kernels `gather_<name>`: schedules and costs.

P ranks, blocks of m bytes, log to base 2:

    algorithm     rounds                       messages      bytes
    linear        1                            P-1           (P-1) m
    binomial      floor(log P)                 P-1           m x sum of the depths of the ranks
    linear_sync   2 (P-1), +1 if blocks are    2 (P-1) or    (P-1) (m + 8)
                  cut in two                   3 (P-1)

A single rank sends nothing. γ(P), which is measured at a sender, does not appear in the costs: the
root receives messages one by one.
"""

import numpy as np

from mpilab.algorithms import trees
from mpilab.algorithms.algorithm import (
    AMBER,
    BLUE,
    FIRST,
    RED,
    Algorithm,
    Call,
    Coefficients,
    ModelCall,
    Plan,
    Step,
    Transfer,
    table,
)
from mpilab.algorithms.formula import ceil_log2

FIRST_BYTES = 1024  # of src_c/gather/linear_sync.c
GO_AHEAD_BYTES = 8  # MPI_LONG


def linear(call: Call) -> Plan:
    """Every rank sends its block to the root, all at the same time."""
    step = [Transfer(rank, call.root, (rank,)) for rank in _others(call)]
    return Plan([step], call.sizes((call.count,) * call.ranks), tuple(range(call.ranks)))


def linear_cost(call: ModelCall) -> Coefficients:
    """(P-1)(α + mβ) at the root's port.

    Source: Nuriyev, Rico-Gallego, Lastovetsky (2022), whose experiments end with this gather.
    """
    others = call.ranks - 1
    return others, others * call.bytes


def binomial(call: Call) -> Plan:
    """Each rank of a binomial tree sends up the blocks of its whole subtree in one message."""
    steps: list[Step] = []
    for virtual in range(call.ranks - 1, 0, -1):
        collected = tuple(call.real(v) for v in trees.subtree(virtual, call.ranks))
        parent = virtual - (virtual & -virtual)
        steps.append([Transfer(call.real(virtual), call.real(parent), collected)])
    return Plan(steps, call.sizes((call.count,) * call.ranks), tuple(range(call.ranks)))


def binomial_cost(call: ModelCall) -> Coefficients:
    """⌈log2 P⌉ α + (P-1) mβ. Source: Thakur, Rabenseifner, Gropp (2005), section 4."""
    return ceil_log2(call.ranks), (call.ranks - 1) * call.bytes


def linear_sync(call: Call) -> Plan:
    """The root lets ranks send the first parts of blocks one by one; the remainders arrive
    meanwhile.

    Blocks 0 … P-1 are the first parts; then come the remainders, if any, and the go-aheads, one for
    each rank. Source: src_c/gather/linear_sync.c.
    """
    ranks = call.ranks
    at_once = min(call.count, max(1, (call.segment or FIRST_BYTES) // call.element_bytes))
    is_cut = at_once < call.count
    go_ahead = 2 * ranks if is_cut else ranks
    steps: list[Step] = []
    for rank in _others(call):
        steps.append([Transfer(call.root, rank, (go_ahead + rank,))])
        steps.append([Transfer(rank, call.root, (rank,))])
    if is_cut:
        # The root waits for the remainders last, so they delay no go-ahead.
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


def linear_sync_cost(call: ModelCall) -> Coefficients:
    """(P-1)(2α + (m + 8) β) for blocks in one part: a go-ahead of 8 bytes, and the block.

    With two parts, the remainder of a block arrives while the next rank gets its go-ahead; the last
    rank's remainder costs one more message. Source: Open MPI 5, coll/base, "linear_sync"; cost:
    ours.
    """
    others, size = call.ranks - 1, call.bytes
    parts, first = call.cut(size, FIRST_BYTES)
    rest = size - first
    in_two = (
        GO_AHEAD_BYTES + others * first + (others - 1) * np.maximum(GO_AHEAD_BYTES, rest) + rest
    )
    return (
        np.where(parts > 1, 2 * others + 1, 2 * others),
        np.where(parts > 1, in_two, others * (size + GO_AHEAD_BYTES)),
    )


def _others(call: Call) -> list[int]:
    return [rank for rank in range(call.ranks) if rank != call.root]


ALGORITHMS = table(
    Algorithm(linear, linear_cost, RED, openmpi="basic_linear"),
    Algorithm(binomial, binomial_cost, BLUE, openmpi="binomial"),
    Algorithm(linear_sync, linear_sync_cost, AMBER, FIRST, openmpi="linear_sync"),
)
