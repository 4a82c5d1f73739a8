"""The allgather algorithms, named after the C kernels `allgather_<name>`: schedules and costs.

On an odd number of ranks, neighbor exchange is the ring. A single rank sends nothing.

Source of the costs unless stated otherwise: Thakur, Rabenseifner, Gropp (2005), section 4.1.
"""

from mpilab.algorithms.algorithm import (
    AMBER,
    BLUE,
    GREEN,
    PINK,
    PURPLE,
    RED,
    TEAL,
    Algorithm,
    Call,
    Coefficients,
    CostFunction,
    ModelCall,
    Plan,
    Schedule,
    Step,
    Transfer,
    table,
)
from mpilab.algorithms.formula import ceil_log2, floor_log2
from mpilab.algorithms.trees import largest_power_of_two, powers_of_two
from mpilab.errors import InputError


def nonblocking_gather_bcast(call: Call) -> Plan:
    """Every rank sends its block to rank 0, which then sends all blocks to every rank."""
    everything, others = tuple(range(call.ranks)), range(1, call.ranks)
    gather = [Transfer(rank, 0, (rank,)) for rank in others]
    bcast = [Transfer(0, rank, everything) for rank in others]
    return _plan(call, [gather, bcast] if others else [])


def nonblocking_gather_bcast_cost(call: ModelCall) -> Coefficients:
    """(P-1)(α + mβ) to gather, γ(P) (α + P mβ) to send everything to every rank."""
    ranks = call.ranks
    served = call.at_once(ranks - 1)
    return ranks - 1 + served, (ranks - 1 + served * ranks) * call.bytes


def nonblocking_all(call: Call) -> Plan:
    """Every rank sends its block to all other ranks at the same time."""
    everybody = range(call.ranks)
    step = [Transfer(s, d, (s,)) for s in everybody for d in everybody if s != d]
    return _plan(call, [step] if step else [])


def nonblocking_all_cost(call: ModelCall) -> Coefficients:
    """γ(P) (α + mβ): each rank sends its block to all others at the same time.

    Source: as for the linear broadcast; γ is measured with one sender, and ignores that all ranks
    send.
    """
    served = call.at_once(call.ranks - 1)
    return served, served * call.bytes


def pairwise(call: Call) -> Plan:
    """In step i, each rank sends its blocks, its own and those of ranks below, to rank + 2^i."""
    ranks = call.ranks
    steps = [
        [
            Transfer(
                rank,
                (rank + distance) % ranks,
                tuple((rank - k) % ranks for k in range(min(distance, ranks - distance))),
            )
            for rank in range(ranks)
        ]
        for distance in powers_of_two(ranks)
    ]
    return _plan(call, steps)


def pairwise_cost(call: ModelCall) -> Coefficients:
    """⌈log2 P⌉ α + (P-1) mβ. Source: Bruck, Ho, Kipnis, Upfal, Weathersby (1997)."""
    return ceil_log2(call.ranks), (call.ranks - 1) * call.bytes


def ring(call: Call) -> Plan:
    """Each rank passes the block that it received last to its right neighbor.

    Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in
    MPICH", Int. J. High Performance Computing Applications 19(1), 2005, section 4.1.
    """
    ranks = call.ranks
    steps = [
        [
            Transfer(rank, (rank + 1) % ranks, ((rank - number + 1) % ranks,))
            for rank in range(ranks)
        ]
        for number in range(1, ranks)
    ]
    return _plan(call, steps)


def ring_cost(call: ModelCall) -> Coefficients:
    """(P-1)(α + mβ)."""
    return call.ranks - 1, (call.ranks - 1) * call.bytes


def recursive_doubling(call: Call) -> Plan:
    """Partners at distance 1, 2, 4 … exchange everything they hold.

    If P is not a power of two, let p2 be the largest one below it: each rank from p2 up first folds
    its block into rank - p2, and gets everything from there at the end. Source: Thakur,
    Rabenseifner, Gropp (2005), section 4.1; they describe the folding for allreduce.
    """
    ranks, core = call.ranks, largest_power_of_two(call.ranks)
    rest = ranks - core

    def held(rank: int, distance: int) -> tuple[int, ...]:
        base = rank - rank % distance
        aligned = range(base, base + distance)
        return (*aligned, *(core + owner for owner in aligned if owner < rest))

    fold = [Transfer(core + rank, rank, (core + rank,)) for rank in range(rest)]
    doubling = [
        [Transfer(rank, rank ^ distance, held(rank, distance)) for rank in range(core)]
        for distance in powers_of_two(core)
    ]
    unfold = [Transfer(rank, core + rank, tuple(range(ranks))) for rank in range(rest)]
    return _plan(call, [step for step in (fold, *doubling, unfold) if step])


def recursive_doubling_cost(call: ModelCall) -> Coefficients:
    """log2 P α + (P-1) mβ for a power of two.

    Otherwise C is the largest power of two below P, and R = P - C ranks fold: α + mβ before, and α
    + P mβ at the end. The first ranks then also have the blocks of those that folded: in the round
    at distance d, d + min(d, R) blocks. Source: folding as in section 4.5 of the paper.
    """
    steps = floor_log2(call.ranks)
    rest = call.ranks - (1 << steps)
    blocks = sum((1 << step) + min(1 << step, rest) for step in range(steps))
    if rest:
        return steps + 2, (1 + blocks + call.ranks) * call.bytes
    return steps, blocks * call.bytes


def bruck(call: Call) -> Plan:
    """In step i, each rank sends the blocks it holds, its own first, to rank - 2^i.

    The blocks arrive in the order rank, rank + 1, …; a local rotation at the end puts them in place
    and needs no message. Source: Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient Algorithms for
    All-to-All Communications in Multiport Message-Passing Systems", IEEE Transactions on Parallel
    and Distributed Systems 8(11), 1997.
    """
    ranks = call.ranks
    steps = [
        [
            Transfer(
                rank,
                (rank - distance) % ranks,
                tuple((rank + k) % ranks for k in range(min(distance, ranks - distance))),
            )
            for rank in range(ranks)
        ]
        for distance in powers_of_two(ranks)
    ]
    return _plan(call, steps)


def bruck_cost(call: ModelCall) -> Coefficients:
    """⌈log2 P⌉ α + (P-1) mβ. Source: Bruck, Ho, Kipnis, Upfal, Weathersby (1997)."""
    return pairwise_cost(call)


def neighbor_exchange(call: Call) -> Plan:
    """Neighbors, alternately left and right, exchange the two blocks that each received last.

    Source: Chen, Zhang, Zhang, Yuan, "Performance Evaluation of Allgather Algorithms on Terascale
    Linux Cluster with Fast Ethernet", HPC Asia 2005.
    """
    ranks = call.ranks
    if ranks % 2:
        return ring(call)
    steps = [[Transfer(rank, rank ^ 1, (rank,)) for rank in range(ranks)]]
    latest = [(rank & ~1, rank | 1) for rank in range(ranks)]
    for number in range(2, ranks // 2 + 1):
        towards_left = -1 if number % 2 == 0 else 1
        partner = [
            (rank + (towards_left if rank % 2 == 0 else -towards_left)) % ranks
            for rank in range(ranks)
        ]
        steps.append([Transfer(rank, partner[rank], latest[rank]) for rank in range(ranks)])
        latest = [latest[partner[rank]] for rank in range(ranks)]
    return _plan(call, steps)


def neighbor_exchange_cost(call: ModelCall) -> Coefficients:
    """P/2 α + (P-1) mβ for even P; odd numbers of ranks use the ring.

    Source: Chen, Zhang, Zhang, Yuan (2005).
    """
    if call.ranks % 2:
        return ring_cost(call)
    return call.ranks // 2, (call.ranks - 1) * call.bytes


def two_proc_cost(call: ModelCall) -> Coefficients:
    """α + mβ: two ranks exchange blocks; for P = 2 only. Source: Open MPI 5, coll/base."""
    return 1, call.bytes


def _plan(call: Call, steps: list[Step]) -> Plan:
    """Block i, of `call.count` elements, is rank i's."""
    return Plan(steps, call.sizes((call.count,) * call.ranks), tuple(range(call.ranks)))


ALGORITHMS = table(
    Algorithm(nonblocking_gather_bcast, nonblocking_gather_bcast_cost, RED, openmpi="linear"),
    Algorithm(nonblocking_all, nonblocking_all_cost, AMBER),
    Algorithm(pairwise, pairwise_cost, BLUE),
    Algorithm(ring, ring_cost, GREEN, openmpi="ring"),
    Algorithm(recursive_doubling, recursive_doubling_cost, PURPLE, openmpi="recursive_doubling"),
    Algorithm(bruck, bruck_cost, TEAL, openmpi="bruck"),
    Algorithm(neighbor_exchange, neighbor_exchange_cost, PINK, openmpi="neighbor"),
)
# Open MPI's algorithms that we don't have. Sparbit takes as many rounds and bytes as Bruck's.
# Source: Loch, Koslovski, "Sparbit: a new logarithmic and data locality-aware MPI Allgather
# algorithm", SBAC-PAD 2021.
OPENMPI_ONLY: dict[str, CostFunction] = {"two_proc": two_proc_cost, "sparbit": bruck_cost}


def schedule(name: str, ranks: int) -> Schedule:
    """The Schedule of allgather algorithm `name` on `ranks` ranks (1 or more).

    Its blocks have no size yet. Raises InputError for a name that is not in ALGORITHMS, and for
    fewer than one rank.
    """
    if name not in ALGORITHMS:
        raise InputError(
            f"{name!r} is not an allgather algorithm of mpilab.algorithms.allgather; use one of "
            f"{', '.join(ALGORITHMS)}."
        )
    if ranks < 1:
        raise InputError(
            f"ranks={ranks} for the schedule of allgather {name}: a communicator has at least "
            "one rank; give 1 or more."
        )
    steps = ALGORITHMS[name].plan(Call(int(ranks))).steps
    return Schedule(name, int(ranks), tuple(tuple(step) for step in steps))
