"""What crosses nodes and groups on a regular cluster, what broadcasts take where every level has a
price of its own, and which orders of ranks suit a binomial tree: what lab 04 asks for.

A regular cluster has G groups of N nodes of Q ranks; P = G N Q. The root is rank 0.
"""

from mpilab.counting import ceil_log2
from mpilab.errors import InputError

WAYS = ("flat_seq", "flat_rr", "levels", "gather_levels")
BROADCASTS = ("flat_rr", "levels", "chains")
# The cluster of the exercise on orders: two groups of two hosts with two slots each.
HOSTS = {"n1": "left", "n2": "left", "n3": "right", "n4": "right"}
SLOTS = 2
BEST, WORST = "best", "worst"


def crossing(way, groups, nodes, ranks, byte_count):
    """[bytes between nodes, bytes between groups] on `groups` groups of `nodes` nodes of `ranks`.

    way   "flat_seq", "flat_rr"   a binomial broadcast (or reduce) of a message of m = `byte_count`
                                  bytes, in SEQ or RR order; all three numbers are powers of two.
          "levels"                the same by levels, in any order.
          "gather_levels"         a gather of blocks of m bytes: ranks send to the leader of their
                                  node, those to the leader of their group, those to the root.

    In RR order, rank v is on node v mod (G N), and its parent is v without its lowest binary digit
    1. That leads to another node where the digit is below G N, and to another group where it is
    also N or more: so all but Q ranks cross nodes, and (G-1) Q cross groups.
    """
    if way not in WAYS:
        raise InputError(f"way {way!r}: take one of {', '.join(WAYS)}")
    every, all_nodes = groups * nodes * ranks, groups * nodes
    if way == "flat_rr":
        return [(every - ranks) * byte_count, (groups - 1) * ranks * byte_count]
    if way == "gather_levels":
        leaders, group = groups * ranks, nodes * ranks
        return [(2 * every - leaders - group) * byte_count, (every - group) * byte_count]
    return [(all_nodes - 1) * byte_count, (groups - 1) * byte_count]


def bcast_seconds(way, groups, nodes, ranks, byte_count, segments, alpha, betas):
    """Seconds of a broadcast of `byte_count` bytes, where ranks of a node, nodes of a group and
    groups have a β each, and share the links between them.

    way      "flat_rr"   binomial in RR order: Q messages at a time share each link.
             "levels"    binomial over groups, then nodes, then ranks: one message a link.
             "chains"    the same with chains over groups and nodes, in `segments` equal segments.
    alpha    seconds a message, betas (between groups, between nodes, within a node) seconds a byte.

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
        raise InputError(f"way {way!r}: take one of {', '.join(BROADCASTS)}")
    hops = [groups - 1, nodes - 1, steps[2]]
    used = [beta for count, beta in zip(hops, betas, strict=True) if count]
    if not used:
        return 0.0
    piece = byte_count / segments
    return _sum(hops, piece, alpha, betas) + (segments - 1) * (alpha + piece * max(used))


def _sum(counts, byte_count, alpha, betas):
    return sum(
        count * (alpha + byte_count * beta) for count, beta in zip(counts, betas, strict=True)
    )


def cheapest_bcast(groups, nodes, ranks, byte_count, segments, alpha, *betas):
    """The place in BROADCASTS of the one that takes least; of equals the first. Arguments as for
    `bcast_seconds`."""
    seconds = [
        bcast_seconds(way, groups, nodes, ranks, byte_count, segments, alpha, betas)
        for way in BROADCASTS
    ]
    return seconds.index(min(seconds))


def order_complaint(hosts, root, goal):
    """What is wrong with `hosts`, the host of each rank on the cluster HOSTS, as an order for a
    binomial broadcast from `root`; "" if nothing is.

    goal   BEST: as few messages as possible cross groups, and nodes. WORST: all cross groups.
    """
    names, ranks = list(HOSTS), SLOTS * len(HOSTS)
    if not isinstance(hosts, list) or len(hosts) != ranks:
        raise InputError(f"{hosts!r} is no list of the hosts of {ranks} ranks")
    for name in names:
        if (found := hosts.count(name)) != SLOTS:
            raise InputError(
                f"ranks on {name}: {found}, but it has {SLOTS} slots; put each host there twice"
            )
    nodes, groups = order_crossings(hosts, root)
    wanted = (ranks - 1, ranks - 1) if goal == WORST else (len(names) - 1, 1)
    if (nodes, groups) == wanted:
        return ""
    return (
        f"from rank {root}, {nodes} of {ranks - 1} messages go between nodes and {groups} between "
        f"groups; {wanted[0]} and {wanted[1]} is what there can be"
    )


def order_crossings(hosts, root):
    """(messages between nodes, messages between groups) of a binomial broadcast from `root`, with
    the host of each rank as in HOSTS."""
    ranks = len(hosts)
    edges = [((v & (v - 1)) + root, v + root) for v in range(1, ranks)]
    pairs = [(hosts[parent % ranks], hosts[child % ranks]) for parent, child in edges]
    return (
        sum(one != other for one, other in pairs),
        sum(HOSTS[one] != HOSTS[other] for one, other in pairs),
    )
