"""Right values for the Python exercises of lab 04. Handouts leave this file out.

They are traffic between nodes and groups of a regular cluster, and broadcasts with a β for each
level. A regular cluster has G groups of N nodes of Q ranks; P = G N Q. The root is rank 0.
"""

from collections.abc import Sequence

from mpilab.algorithms.formula import ceil_log2
from mpilab.errors import InputError

WAYS = ("flat_seq", "flat_rr", "levels", "gather_levels")
BROADCASTS = ("flat_rr", "levels", "chains")


def crossing(way: str, groups: int, nodes: int, ranks: int, byte_count: int) -> list[int]:
    """[bytes between nodes, bytes between groups] on `groups` groups of `nodes` nodes of `ranks`.

    way   "flat_seq", "flat_rr"   a binomial broadcast (or reduce) of a message of m = `byte_count`
                                  bytes, in SEQ or RR order; all three numbers are powers of two.
          "levels"                the same level by level, in any order.
          "gather_levels"         a gather of blocks of m bytes: ranks send to the leader of their
                                  node, node leaders to the leader of their group, group leaders to
                                  the root.

    In RR order, rank v is on node v mod (G N), and its parent is v with its lowest 1 bit cleared.
    The parent is on another node if the value of that bit is below G N, and in another group if it
    is also N or more: so all but Q ranks cross nodes, and (G-1) Q cross groups.
    """
    if way not in WAYS:
        raise InputError(f"way {way!r}: use one of {', '.join(WAYS)}")
    every, all_nodes = groups * nodes * ranks, groups * nodes
    if way == "flat_rr":
        return [(every - ranks) * byte_count, (groups - 1) * ranks * byte_count]
    if way == "gather_levels":
        leaders, group = groups * ranks, nodes * ranks
        return [(2 * every - leaders - group) * byte_count, (every - group) * byte_count]
    return [(all_nodes - 1) * byte_count, (groups - 1) * byte_count]


def bcast_seconds_by_level(
    way: str,
    groups: int,
    nodes: int,
    ranks: int,
    byte_count: int,
    segments: int,
    alpha: float,
    betas: Sequence[float],
) -> float:
    """Seconds of a broadcast of `byte_count` bytes with a β for each level, and shared links.

    way      "flat_rr"   binomial in RR order: Q messages at a time share each link.
             "levels"    binomial over groups, then nodes, then ranks: one message per link.
             "chains"    the same with chains over groups and nodes, in `segments` equal segments.
    alpha    seconds per message
    betas    seconds per byte: (between groups, between nodes, within a node)

    The three numbers of the cluster are powers of two for "flat_rr".
    """
    between_groups, between_nodes, within = betas
    steps = [ceil_log2(number) for number in (groups, nodes, ranks)]
    if way == "flat_rr":
        shared = (ranks * between_groups, ranks * between_nodes, within)
        return _sum(steps, byte_count, alpha, shared)
    if way == "levels":
        return _sum(steps, byte_count, alpha, betas)
    if way != "chains":
        raise InputError(f"way {way!r}: use one of {', '.join(BROADCASTS)}")
    hops = [groups - 1, nodes - 1, steps[2]]
    used = [beta for count, beta in zip(hops, betas, strict=True) if count]
    if not used:
        return 0.0
    piece = byte_count / segments
    return _sum(hops, piece, alpha, betas) + (segments - 1) * (alpha + piece * max(used))


def _sum(counts: Sequence[int], byte_count: float, alpha: float, betas: Sequence[float]) -> float:
    return sum(
        count * (alpha + byte_count * beta) for count, beta in zip(counts, betas, strict=True)
    )


def cheapest_bcast(
    groups: int, nodes: int, ranks: int, byte_count: int, segments: int, alpha: float, *betas: float
) -> int:
    """The index in BROADCASTS of the fastest one; on a tie, the first.

    Arguments as for `bcast_seconds_by_level`.
    """
    seconds = [
        bcast_seconds_by_level(way, groups, nodes, ranks, byte_count, segments, alpha, betas)
        for way in BROADCASTS
    ]
    return seconds.index(min(seconds))
