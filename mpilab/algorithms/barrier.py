"""The barrier algorithms, named after the C kernels `barrier_<name>`: schedules and costs.

P ranks, log to base 2, p2 the largest power of two <= P, rest = P - p2; messages are empty:

    algorithm           rounds                        messages
    linear              2                             2 (P-1)
    double_ring         2 P                           2 P
    recursive_doubling  log p2 (+2 if rest)           p2 log p2 + 2 rest
    dissemination       ceil(log P)                   P ceil(log P)
    tree                floor(log P) + ceil(log P)    2 (P-1)

A single rank sends nothing. Source of the costs: Hensgen, Finkel, Manber, "Two algorithms for
barrier synchronization", International Journal of Parallel Programming 17(1), 1988; Open MPI 5,
coll/base.
"""

from mpilab.algorithms import trees
from mpilab.algorithms.algorithm import (
    BLUE,
    GREEN,
    PURPLE,
    RED,
    TEAL,
    Algorithm,
    Call,
    Coefficients,
    CostFunction,
    ModelCall,
    Plan,
    Transfer,
    table,
)
from mpilab.algorithms.formula import ceil_log2, floor_log2


def linear(call: Call) -> Plan:
    """Every rank reports to rank 0; when all have, rank 0 releases all others at the same time."""
    others = range(1, call.ranks)
    return Plan([[_empty(rank, 0) for rank in others], [_empty(0, rank) for rank in others]])


def linear_cost(call: ModelCall) -> Coefficients:
    """(P-1) α for the reports, γ(P) α for the release."""
    others = call.ranks - 1
    return others + call.at_once(others), 0.0


def double_ring(call: Call) -> Plan:
    """A token travels around the ring twice."""
    ranks = call.ranks
    if ranks == 1:
        return Plan([])
    return Plan([[_empty(rank, (rank + 1) % ranks)] for _ in (1, 2) for rank in range(ranks)])


def double_ring_cost(call: ModelCall) -> Coefficients:
    """2P α."""
    return 2 * call.ranks, 0.0


def recursive_doubling(call: Call) -> Plan:
    """Ranks that differ in bit i exchange messages in step i.

    The ranks from p2 up report before and are released after.
    """
    core = trees.largest_power_of_two(call.ranks)
    rest = range(core, call.ranks)
    return Plan(
        [
            [_empty(rank, rank - core) for rank in rest],
            *(
                [_empty(rank, rank ^ distance) for rank in range(core)]
                for distance in trees.powers_of_two(core)
            ),
            [_empty(rank - core, rank) for rank in rest],
        ]
    )


def recursive_doubling_cost(call: ModelCall) -> Coefficients:
    """log2 C α, and 2α to fold and unfold if P is not C, a power of two."""
    steps = floor_log2(call.ranks)
    return steps + 2 * (call.ranks != 1 << steps), 0.0


def dissemination(call: Call) -> Plan:
    """In step i each rank sends to rank + 2^i."""
    return Plan(
        [
            [_empty(rank, (rank + distance) % call.ranks) for rank in range(call.ranks)]
            for distance in trees.powers_of_two(call.ranks)
        ]
    )


def dissemination_cost(call: ModelCall) -> Coefficients:
    """⌈log2 P⌉ α."""
    return ceil_log2(call.ranks), 0.0


def tree(call: Call) -> Plan:
    """Reports go up a binomial tree; the release goes down it, to one child after another."""
    binomial = trees.knomial(call.ranks, 0, 2)
    up = [[_empty(rank, parent)] for rank, parent in binomial.edges_up]
    down = [
        [_empty(rank, child)] for rank in binomial.top_down for child in binomial.children[rank]
    ]
    return Plan(up + down)


def tree_cost(call: ModelCall) -> Coefficients:
    """2 ⌈log2 P⌉ α: what rank 0 receives, and what it sends."""
    return 2 * ceil_log2(call.ranks), 0.0


def _empty(source: int, dest: int) -> Transfer:
    return Transfer(source, dest, ())


def two_proc_cost(call: ModelCall) -> Coefficients:
    """α: two ranks exchange a message; for P = 2 only. Source: Open MPI 5, coll/base."""
    return 1, 0.0


ALGORITHMS = table(
    Algorithm(linear, linear_cost, RED, openmpi="linear"),
    Algorithm(double_ring, double_ring_cost, GREEN, openmpi="double_ring"),
    Algorithm(recursive_doubling, recursive_doubling_cost, PURPLE, openmpi="recursive_doubling"),
    Algorithm(dissemination, dissemination_cost, TEAL, openmpi="bruck"),
    Algorithm(tree, tree_cost, BLUE, openmpi="tree"),
)
OPENMPI_ONLY: dict[str, CostFunction] = {"two_proc": two_proc_cost}
