"""Who behaves as whom: the formulas, orders for any topology, and schedules that were remapped.

Their slide on the formulas says that f_RR→SEQ(f_RR→SEQ(p)) = p: a slip, for
f_RR→SEQ(f_SEQ→RR(p)) = p. As printed it holds only where M = Q, or where one of them is 1: with
M = 2 and Q = 3, 1 becomes 3, and 3 becomes 4.
"""

from dataclasses import replace
from itertools import chain, zip_longest

from mpilab.errors import InputError
from mpilab.places import Levels, Place
from mpilab.schedules import allgather
from mpilab.schedules.schedule import Transfer

SEQ, RR = "SEQ", "RR"
REMAPPED = ("recursive_doubling", "ring", "neighbor_exchange")


def seq_to_rr(rank, nodes, each):
    """The rank that stands, in RR order, where `rank` stands in SEQ order: f_SEQ→RR.

    nodes, each   M nodes of Q processes; rank is below M Q, otherwise InputError.
    """
    if nodes < 1 or each < 1 or not 0 <= rank < nodes * each:
        raise InputError(
            f"rank={rank} on {nodes} nodes of {each} processes: give nodes and processes of 1 or "
            "more, and a rank from 0 up to their product less 1"
        )
    return rank * nodes % (nodes * each) + rank // each


def rr_to_seq(rank, nodes, each):
    """The rank that stands, in SEQ order, where `rank` stands in RR order: f_RR→SEQ."""
    return seq_to_rr(rank, each, nodes)


def placement(order, nodes, each):
    """The Levels of `nodes` nodes of `each` processes in the order "SEQ" or "RR"."""
    if order not in (SEQ, RR):
        raise InputError(f"order={order!r}: take {SEQ!r} or {RR!r}")
    places = [Place(f"n{node}") for node in range(nodes)]
    return Levels(tuple(places * each if order == RR else [p for p in places for _ in range(each)]))


def by_formula(convert, levels):
    """The order of `convert` (seq_to_rr, rr_to_seq) for ranks on these levels.

    An *order* is a tuple of all processes: order[v] is the one that behaves as v. Raises InputError
    where the processes are no multiple of the nodes.
    """
    ranks, nodes = len(levels.places), levels.nodes
    if ranks % nodes:
        raise InputError(
            f"{ranks} processes on {nodes} nodes: the formulas need as many on each; take by_node "
            "or dealt"
        )
    behaves_as = [convert(process, nodes, ranks // nodes) for process in range(ranks)]
    return tuple(sorted(range(ranks), key=behaves_as.__getitem__))


def by_node(levels):
    """The order by group, node and rank: what rings and trees want."""
    key = list(zip(levels.group.tolist(), levels.node.tolist(), strict=True))
    return tuple(sorted(range(len(key)), key=key.__getitem__))


def dealt(levels):
    """The order in which groups take turns, and in each group its nodes do."""
    groups = {}
    for process in by_node(levels):
        nodes = groups.setdefault(int(levels.group[process]), {})
        nodes.setdefault(int(levels.node[process]), []).append(process)
    return tuple(_deal([_deal(nodes.values()) for nodes in groups.values()]))


def _deal(lists):
    turns = zip_longest(*lists)
    return [process for process in chain.from_iterable(turns) if process is not None]


def remapped(algorithm, order):
    """The Schedule of an allgather (one of REMAPPED) whose processes behave as others.

    Ring and neighbor exchange carry each process's own block from the start. In recursive doubling
    each process first gets the block of the rank that it behaves as: a round before the others.
    """
    if algorithm not in REMAPPED:
        raise InputError(f"algorithm={algorithm!r}: take one of {', '.join(REMAPPED)}")
    plain = allgather.schedule(algorithm, len(order))
    changes_data = algorithm == "recursive_doubling"

    def translate(transfer):
        blocks = transfer.blocks if changes_data else tuple(order[v] for v in transfer.blocks)
        return Transfer(order[transfer.source], order[transfer.dest], blocks)

    rounds = [tuple(map(translate, transfers)) for transfers in plain.rounds]
    first = tuple(Transfer(p, order[p], (p,)) for p in range(len(order)) if order[p] != p)
    if changes_data and first:
        rounds.insert(0, first)
    return replace(plain, rounds=tuple(rounds))


def crossing(schedule, levels):
    """(blocks between nodes, blocks between groups) of a schedule."""
    between_nodes, between_groups = levels.between_nodes(), levels.between_groups()
    sent = [(t.source, t.dest, len(t.blocks)) for t in schedule.transfers()]
    return (
        sum(blocks for source, dest, blocks in sent if between_nodes[source, dest]),
        sum(blocks for source, dest, blocks in sent if between_groups[source, dest]),
    )


def chosen(algorithm, levels):
    """The order that a remapped allgather takes by itself (Case.remap = 0).

    For ring and neighbor exchange `by_node`; for recursive doubling the one of three (as they are,
    `dealt`, `by_node`) in which the fewest blocks cross between nodes and between groups, the first
    of equals. A block that crosses to another group crosses to another node, and counts twice.

    No ring crosses less often than `by_node`. In neighbor exchange, where nodes have odd numbers of
    processes, another order may happen to be a little better.
    """
    if algorithm != "recursive_doubling":
        return by_node(levels)
    orders = (tuple(range(len(levels.places))), dealt(levels), by_node(levels))
    return min(orders, key=lambda order: sum(crossing(remapped(algorithm, order), levels)))
