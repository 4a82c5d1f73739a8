"""The schedules of the broadcasts, in the names of the C kernels `bcast_<name>`.

P ranks, a message of m bytes in S segments, log is to base 2, p2 the largest power of two <= P,
rest = P - p2, K the fan-out or radix:

    algorithm               rounds                        messages                  bytes
    linear                  1                             P-1                       (P-1) m
    chain                   ceil((P-1)/K) + S-1           (P-1) S                   (P-1) m
    pipeline                P-2 + S                       (P-1) S                   (P-1) m
    binary                  depth of the K-ary tree + S-1 (P-1) S                   (P-1) m
    split_binary            floor(log P) + S              (P-1) (S+1), odd P        (P-1) m
    binomial                floor(log P) + S-1            (P-1) S                   (P-1) m
    knomial                 depth of the tree + S-1       (P-1) S                   (P-1) m
    scatter_allgather       2 log p2 (+1 if rest)         P-1 + p2 log p2           about 2 (P-1) m
    scatter_allgather_ring  ceil(log P) + P-1             (P-1) (P+1)               about 2 (P-1) m

split_binary has S segments a half of the message; the two last ones move (P-1) m bytes and what
their scatter does beyond m. One rank alone sends nothing. The headers of the kernels have the exact
formulas and the sources.
"""

from mpilab.schedules import blocks, cutting, trees
from mpilab.schedules.schedule import Transfer
from mpilab.schedules.steps import Plan

PIPELINE_SEGMENT = 8192  # SEGMENT_BYTES of src_c/bcast/pipeline.c


def linear(call):
    """The root sends the whole message to every other rank, all at once."""
    others = [rank for rank in range(call.ranks) if rank != call.root]
    step = [Transfer(call.root, rank, (0,)) for rank in others]
    return _from_root(call, [step], (call.count,))


def chain(call):
    """Along `fanout` chains, in segments."""
    return _along(call, trees.chain(call.ranks, call.root, call.fanout))


def pipeline(call):
    """Along one chain, in segments of 8 KiB where the call does not say."""
    tree = trees.chain(call.ranks, call.root, 1)
    return _along(call, tree, call.segment or PIPELINE_SEGMENT)


def binary(call):
    """Down a binary tree (or one of another fan-out), in segments."""
    return _along(call, trees.kary(call.ranks, call.root, call.fanout))


def binomial(call):
    """Down a binomial tree, in segments."""
    return _along(call, trees.knomial(call.ranks, call.root, 2))


def knomial(call):
    """Down a k-nomial tree, in segments."""
    return _along(call, trees.knomial(call.ranks, call.root, call.radix))


def split_binary(call):
    """One half of the message down a binary tree of the odd ranks, the other one down a tree of the
    even ones, in segments; then ranks swap halves in pairs.

    Segment s of half h is block h S + s. On an even number of ranks, the last one is a leaf in both
    trees and has nobody to swap with. Source: src_c/bcast/split_binary.c.
    """
    ranks, real = call.ranks, call.real
    longer = call.count - call.count // 2
    first = cutting.pieces(longer, call.element_bytes, call.segment)
    segments = len(first)
    second = (*first[:-1], call.count // 2 - sum(first[:-1]))
    members = ranks // 2  # of each tree

    def member(half, index):
        return real(min(2 * index + 1 + half, ranks - 1))

    steps = []
    for segment in range(segments) if ranks > 1 else ():
        block = (segment, segments + segment)
        steps.append([Transfer(call.root, member(half, 0), (block[half],)) for half in (0, 1)])
        for half in (0, 1):
            for index in range(members):
                below = [c for c in (2 * index + 1, 2 * index + 2) if c < members]
                steps.append([
                    Transfer(member(half, index), member(half, child), (block[half],))
                    for child in below
                ])  # fmt: skip
    halves = tuple(range(segments)), tuple(range(segments, 2 * segments))
    for index in range(members):
        one, other = member(0, index), member(1, index)
        if one != other:
            steps.append([Transfer(one, other, halves[0]), Transfer(other, one, halves[1])])
    return _from_root(call, steps, first + second)


def scatter_allgather(call):
    """Binomial scatter, then allgather by recursive doubling; with p2 blocks on other rank counts
    than powers of two, where the rest get the whole message at the end."""
    core = blocks.largest_power_of_two(call.ranks)
    steps = [
        *blocks.scatter(call, core),
        *blocks.double(call, core),
        *blocks.unfold(call, core),
    ]
    return _from_root(call, steps, cutting.blocks(call.count, core))


def scatter_allgather_ring(call):
    """Binomial scatter of P blocks, then allgather round the ring."""
    ranks, real = call.ranks, call.real
    steps = blocks.scatter(call, ranks)
    for number in range(1, ranks):
        steps.append([
            Transfer(real(v), real(v + 1), ((v - number + 1) % ranks,)) for v in range(ranks)
        ])  # fmt: skip
    return _from_root(call, steps, cutting.blocks(call.count, ranks))


def _along(call, tree, segment=None):
    pieces = cutting.pieces(
        call.count, call.element_bytes, call.segment if segment is None else segment
    )
    return _from_root(call, trees.down(tree, len(pieces)), pieces)


def _from_root(call, steps, elements):
    return Plan(steps, call.sizes(elements), (call.root,) * len(elements))


ALGORITHMS = {
    algorithm.__name__: algorithm
    for algorithm in (
        linear, chain, pipeline, binary, split_binary, binomial, knomial, scatter_allgather,
        scatter_allgather_ring,
    )
}  # fmt: skip
