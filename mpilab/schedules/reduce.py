"""The schedules of the reductions, in the names of the C kernels `reduce_<name>`.

P ranks, a message of m bytes in S segments, log is to base 2, p2 the largest power of two <= P,
rest = P - p2, K the fan-out:

    algorithm        rounds                                  messages          bytes
    linear           1                                       P-1               (P-1) m
    chain            ceil((P-1)/K) + S-1                     (P-1) S           (P-1) m
    pipeline         P-2 + S                                 (P-1) S           (P-1) m
    binary           depth of the K-ary tree + S-1           (P-1) S           (P-1) m
    binomial         floor(log P) + S-1                      (P-1) S           (P-1) m
    in_order_binary  ceil(log(max(root, P-1-root)+1)) + S-1  (P-1) S           (P-1) m
    rabenseifner     2 log p2 (+1 if rest)                   P-1 + p2 log p2   about 2 (P-1) m

Every message carries a partial result; a block is a part of the message that is reduced on its own.
The operation commutes: for one that does not, the kernels chain, pipeline, binary, binomial and
rabenseifner do what in_order_binary does. One rank alone sends nothing.
"""

from mpilab.schedules import blocks, cutting, trees
from mpilab.schedules.bcast import PIPELINE_SEGMENT
from mpilab.schedules.schedule import Transfer
from mpilab.schedules.steps import Plan


def linear(call):
    """Every rank sends its data to the root, all at once."""
    others = [rank for rank in range(call.ranks) if rank != call.root]
    step = [Transfer(rank, call.root, (0,)) for rank in others]
    return Plan([step], call.sizes((call.count,)))


def chain(call):
    """Along `fanout` chains that end at the root, in segments."""
    return _along(call, trees.chain(call.ranks, call.root, call.fanout))


def pipeline(call):
    """Along one chain, in segments of 8 KiB where the call does not say."""
    tree = trees.chain(call.ranks, call.root, 1)
    return _along(call, tree, call.segment or PIPELINE_SEGMENT)


def binary(call):
    """Up a binary tree (or one of another fan-out), in segments."""
    return _along(call, trees.kary(call.ranks, call.root, call.fanout))


def binomial(call):
    """Up a binomial tree, in segments."""
    return _along(call, trees.knomial(call.ranks, call.root, 2))


def in_order_binary(call):
    """Up a binary tree that stands in the order of ranks, in segments."""
    return _along(call, trees.in_order(call.ranks, call.root))


def rabenseifner(call):
    """Reduce-scatter by recursive halving, then a binomial gather; with p2 blocks on other rank
    counts than powers of two, where the rest hand their data over before."""
    core = blocks.largest_power_of_two(call.ranks)
    steps = [*blocks.fold(call, core), *blocks.halve(call, core), *blocks.gather(call, core)]
    return Plan(steps, call.sizes(cutting.blocks(call.count, core)))


def _along(call, tree, segment=None):
    pieces = cutting.pieces(
        call.count, call.element_bytes, call.segment if segment is None else segment
    )
    return Plan(trees.up(tree, len(pieces)), call.sizes(pieces))


ALGORITHMS = {
    algorithm.__name__: algorithm
    for algorithm in (linear, chain, pipeline, binary, binomial, in_order_binary, rabenseifner)
}
