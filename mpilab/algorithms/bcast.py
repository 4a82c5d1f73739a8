"""Schedules of the broadcast algorithms, named after the C kernels `bcast_<name>`.

P ranks, a message of m bytes in S segments, log to base 2, p2 the largest power of two <= P,
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

split_binary cuts each half of the message into S segments; the last two algorithms move (P-1) m
bytes, plus what their scatter moves beyond m. A single rank sends nothing. The headers of the
kernels have the exact formulas and the sources.
"""

from mpilab.algorithms import schedule, trees
from mpilab.algorithms.schedule import Plan, Transfer

PIPELINE_SEGMENT = 8192  # SEGMENT_BYTES of src_c/bcast/pipeline.c


def linear(call):
    """The root sends the whole message to all other ranks at the same time."""
    others = [rank for rank in range(call.ranks) if rank != call.root]
    step = [Transfer(call.root, rank, (0,)) for rank in others]
    return _from_root(call, [step], (call.count,))


def chain(call):
    """Along `fanout` chains, in segments."""
    return _along(call, trees.chain(call.ranks, call.root, call.fanout))


def pipeline(call):
    """Along one chain, in segments of 8 KiB by default."""
    tree = trees.chain(call.ranks, call.root, 1)
    return _along(call, tree, call.segment or PIPELINE_SEGMENT)


def binary(call):
    """Down a binary tree (or one with another fan-out), in segments."""
    return _along(call, trees.kary(call.ranks, call.root, call.fanout))


def binomial(call):
    """Down a binomial tree, in segments."""
    return _along(call, trees.knomial(call.ranks, call.root, 2))


def knomial(call):
    """Down a k-nomial tree, in segments."""
    return _along(call, trees.knomial(call.ranks, call.root, call.radix))


def split_binary(call):
    """One half of the message goes down each of two binary trees; then ranks swap halves in pairs.

    One tree holds the odd ranks, the other the even ones; halves are sent in segments. Segment s of
    half h is block h S + s. On an even number of ranks, the last one is a leaf in both trees and
    has no partner to swap with. Source: src_c/bcast/split_binary.c.
    """
    ranks, real = call.ranks, call.real
    longer = call.count - call.count // 2
    first = schedule.pieces(longer, call.element_bytes, call.segment)
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
                steps.append(
                    [
                        Transfer(member(half, index), member(half, child), (block[half],))
                        for child in below
                    ]
                )
    halves = tuple(range(segments)), tuple(range(segments, 2 * segments))
    for index in range(members):
        one, other = member(0, index), member(1, index)
        if one != other:
            steps.append([Transfer(one, other, halves[0]), Transfer(other, one, halves[1])])
    return _from_root(call, steps, first + second)


def scatter_allgather(call):
    """Binomial scatter, then allgather by recursive doubling.

    If P is not a power of two, there are p2 blocks, and the surplus ranks get the whole message at
    the end.
    """
    core = trees.largest_power_of_two(call.ranks)
    steps = [
        *trees.scatter(call, core),
        *trees.double(call, core),
        *trees.unfold(call, core),
    ]
    return _from_root(call, steps, schedule.blocks(call.count, core))


def scatter_allgather_ring(call):
    """Binomial scatter of P blocks, then allgather around the ring."""
    ranks, real = call.ranks, call.real
    steps = trees.scatter(call, ranks)
    for number in range(1, ranks):
        steps.append(
            [Transfer(real(v), real(v + 1), ((v - number + 1) % ranks,)) for v in range(ranks)]
        )
    return _from_root(call, steps, schedule.blocks(call.count, ranks))


def _along(call, tree, segment=None):
    pieces = schedule.pieces(
        call.count, call.element_bytes, call.segment if segment is None else segment
    )
    return _from_root(call, trees.down(tree, len(pieces)), pieces)


def _from_root(call, steps, elements):
    return Plan(steps, call.sizes(elements), (call.root,) * len(elements))


ALGORITHMS = {
    algorithm.__name__: algorithm
    for algorithm in (
        linear,
        chain,
        pipeline,
        binary,
        split_binary,
        binomial,
        knomial,
        scatter_allgather,
        scatter_allgather_ring,
    )
}
