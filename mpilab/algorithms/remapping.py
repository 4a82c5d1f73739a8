"""Orders for remapping, for any topology, and remapped schedules."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import chain, zip_longest

from mpilab.algorithms import allgather
from mpilab.algorithms.algorithm import Schedule, Transfer
from mpilab.errors import InputError
from mpilab.hosts import hostfile
from mpilab.hosts.places import Levels, Place

# order[v] is the process that behaves as rank v.
Order = tuple[int, ...]
SEQ, RR = "SEQ", "RR"
REMAPPED = ("recursive_doubling", "ring", "neighbor_exchange")
RANKS, SLOTS = 8, 4
HOSTFILE = "slowest.txt"
LONGEST = 4096  # characters of a hostfile


def placement(order: str, nodes: int, each: int) -> Levels:
    """The Levels of `nodes` nodes of `each` processes in the order "SEQ" or "RR"."""
    if order not in (SEQ, RR):
        raise InputError(f"order={order!r}: use {SEQ!r} or {RR!r}")
    places = [Place(f"n{node}") for node in range(nodes)]
    return Levels(tuple(places * each if order == RR else [p for p in places for _ in range(each)]))


def by_formula(convert: Callable[[int, int, int], int], levels: Levels) -> Order:
    """The order of `convert(p, M, Q)`, a map of ranks, for ranks on these levels.

    An *order* is a tuple of all processes: order[v] is the one that behaves as v. Raises InputError
    if the number of processes is not a multiple of the nodes.
    """
    ranks, nodes = len(levels.places), levels.nodes
    if ranks % nodes:
        raise InputError(
            f"{ranks} processes on {nodes} nodes: the formulas need the same number on each; use "
            "by_node or dealt"
        )
    behaves_as = [convert(process, nodes, ranks // nodes) for process in range(ranks)]
    return tuple(sorted(range(ranks), key=behaves_as.__getitem__))


def by_node(levels: Levels) -> Order:
    """The order by group, node and rank, which suits rings and trees."""
    key = list(zip(levels.group.tolist(), levels.node.tolist(), strict=True))
    return tuple(sorted(range(len(key)), key=key.__getitem__))


def dealt(levels: Levels) -> Order:
    """The order in which groups take turns, and within each group its nodes."""
    groups: dict[int, dict[int, list[int]]] = {}
    for process in by_node(levels):
        nodes = groups.setdefault(int(levels.group[process]), {})
        nodes.setdefault(int(levels.node[process]), []).append(process)
    return tuple(_deal([_deal(nodes.values()) for nodes in groups.values()]))


def _deal(lists: Iterable[list[int]]) -> list[int]:
    turns = zip_longest(*lists)
    return [process for process in chain.from_iterable(turns) if process is not None]


def remapped(algorithm: str, order: Order) -> Schedule:
    """The Schedule of an allgather (one of REMAPPED) whose processes behave as other ranks.

    In ring and neighbor exchange, each process starts with its own block. In recursive doubling,
    each process first gets the block of the rank that it behaves as, in a round before the others.
    """
    if algorithm not in REMAPPED:
        raise InputError(f"algorithm={algorithm!r}: use one of {', '.join(REMAPPED)}")
    plain = allgather.schedule(algorithm, len(order))
    changes_data = algorithm == "recursive_doubling"

    def translate(transfer: Transfer) -> Transfer:
        blocks = transfer.blocks if changes_data else tuple(order[v] for v in transfer.blocks)
        return Transfer(order[transfer.source], order[transfer.dest], blocks)

    rounds = [tuple(map(translate, transfers)) for transfers in plain.rounds]
    first = tuple(Transfer(p, order[p], (p,)) for p in range(len(order)) if order[p] != p)
    if changes_data and first:
        rounds.insert(0, first)
    return replace(plain, rounds=tuple(rounds))


def crossing(schedule: Schedule, levels: Levels) -> tuple[int, int]:
    """(blocks between nodes, blocks between groups) of a schedule."""
    between_nodes, between_groups = levels.between_nodes(), levels.between_groups()
    sent = [(t.source, t.dest, len(t.blocks)) for t in schedule.transfers()]
    return (
        sum(blocks for source, dest, blocks in sent if between_nodes[source, dest]),
        sum(blocks for source, dest, blocks in sent if between_groups[source, dest]),
    )


def chosen(algorithm: str, levels: Levels) -> Order:
    """The order that a remapped allgather takes by default (Case.remap = 0).

    It is `by_node` for ring and neighbor exchange. For recursive doubling, it is the one of three
    orders (unchanged, `dealt`, `by_node`) in which the fewest blocks cross between nodes and
    between groups (on a tie, the first). A block that crosses to another group also crosses to
    another node, and counts twice.

    No ring crosses less often than `by_node`. In neighbor exchange, if nodes have odd numbers of
    processes, another order may be slightly better.
    """
    if algorithm != "recursive_doubling":
        return by_node(levels)
    orders = (tuple(range(len(levels.places))), dealt(levels), by_node(levels))
    return min(orders, key=lambda order: sum(crossing(remapped(algorithm, order), levels)))


# Whether a hostfile is right, for exercise 4 of lab 03.


def binomial_edges(ranks: int) -> list[tuple[int, int]]:
    """(parent, child) of each rank but 0 in the binomial tree from rank 0, by child."""
    return [(child & (child - 1), child) for child in range(1, ranks)]


def rank_hosts(text: object) -> list[str]:
    """The name of the host of each rank, from a hostfile for `--map-by seq`: list of str.

    Raises InputError, as 'FILE:LINE: what is wrong; what to write', unless the text is such a file
    of two hosts with four ranks each.
    """
    if not isinstance(text, str):
        raise InputError(f"a {type(text).__name__} is not a hostfile; return a string")
    if len(text) > LONGEST:
        raise InputError(f"{HOSTFILE}: {len(text)} characters; eight short lines are enough")
    names = hostfile.parse(text, HOSTFILE).names(policy="seq")
    found = Counter(names)
    told = ", ".join(f"{name} {times} times" for name, times in found.items())
    if len(names) != RANKS:
        raise InputError(
            f"{HOSTFILE}: {len(names)} lines name a host; write one line for each of {RANKS} ranks"
        )
    if sorted(found.values()) != [SLOTS, SLOTS]:
        raise InputError(
            f"{HOSTFILE}: it names {told}; there are two hosts with {SLOTS} slots, so name each of "
            f"them {SLOTS} times"
        )
    return names


def is_no_hostfile(text: object) -> str:
    """Check a hostfile of eight ranks on two hosts; return "".

    Raises InputError, like `rank_hosts`, for anything else.
    """
    rank_hosts(text)
    return ""


def stays_on_a_host(text: object) -> str:
    """The messages of the binomial tree from rank 0 that stay on a host, as text; "" if none do."""
    names = rank_hosts(text)
    inside = [
        f"{parent} → {child}"
        for parent, child in binomial_edges(RANKS)
        if names[parent] == names[child]
    ]
    if not inside:
        return ""
    return (
        f"{RANKS - 1 - len(inside)} of {RANKS - 1} messages cross between the hosts; "
        f"{', '.join(inside)} {'do' if len(inside) > 1 else 'does'} not."
    )
