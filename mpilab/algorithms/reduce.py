"""Schedules of the reduce algorithms, named after the C kernels `reduce_<name>`.

P ranks, a message of m bytes in S segments, log to base 2, p2 the largest power of two <= P,
rest = P - p2, K the fan-out:

    algorithm        rounds                                  messages          bytes
    linear           1                                       P-1               (P-1) m
    chain            ceil((P-1)/K) + S-1                     (P-1) S           (P-1) m
    pipeline         P-2 + S                                 (P-1) S           (P-1) m
    binary           depth of the K-ary tree + S-1           (P-1) S           (P-1) m
    binomial         floor(log P) + S-1                      (P-1) S           (P-1) m
    in_order_binary  ceil(log(max(root, P-1-root)+1)) + S-1  (P-1) S           (P-1) m
    rabenseifner     2 log p2 (+1 if rest)                   P-1 + p2 log p2   about 2 (P-1) m

Every message carries a partial result; a block is a part of the message that is reduced separately.
The operation is commutative; for one that is not, the kernels chain, pipeline, binary, binomial and
rabenseifner fall back to in_order_binary. A single rank sends nothing.
"""

from mpilab.algorithms import schedule, trees
from mpilab.algorithms.bcast import PIPELINE_SEGMENT
from mpilab.algorithms.schedule import Plan, Transfer


def linear(call):
    """Every rank sends its data to the root, all at the same time."""
    others = [rank for rank in range(call.ranks) if rank != call.root]
    step = [Transfer(rank, call.root, (0,)) for rank in others]
    return Plan([step], call.sizes((call.count,)))


def chain(call):
    """Along `fanout` chains that end at the root, in segments."""
    return _along(call, trees.chain(call.ranks, call.root, call.fanout))


def pipeline(call):
    """Along one chain, in segments of 8 KiB by default."""
    tree = trees.chain(call.ranks, call.root, 1)
    return _along(call, tree, call.segment or PIPELINE_SEGMENT)


def binary(call):
    """Up a binary tree (or one with another fan-out), in segments."""
    return _along(call, trees.kary(call.ranks, call.root, call.fanout))


def binomial(call):
    """Up a binomial tree, in segments."""
    return _along(call, trees.knomial(call.ranks, call.root, 2))


def in_order_binary(call):
    """Up an in-order binary tree of the ranks, in segments."""
    return _along(call, trees.in_order(call.ranks, call.root))


def rabenseifner(call):
    """Reduce-scatter by recursive halving, then a binomial gather.

    If P is not a power of two, there are p2 blocks, and the surplus ranks send their data before.
    """
    core = trees.largest_power_of_two(call.ranks)
    steps = [*trees.fold(call, core), *trees.halve(call, core), *trees.gather(call, core)]
    return Plan(steps, call.sizes(schedule.blocks(call.count, core)))


def _along(call, tree, segment=None):
    pieces = schedule.pieces(
        call.count, call.element_bytes, call.segment if segment is None else segment
    )
    return Plan(trees.up(tree, len(pieces)), call.sizes(pieces))


ALGORITHMS = {
    algorithm.__name__: algorithm
    for algorithm in (linear, chain, pipeline, binary, binomial, in_order_binary, rabenseifner)
}
