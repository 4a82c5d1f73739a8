"""Schedules of the allgather algorithms, named after the C kernels `allgather_<name>`.

P ranks, blocks of m bytes, log to base 2, p2 the largest power of two <= P, rest = P - p2:

    algorithm                rounds                  messages             most bytes sent by a rank
    nonblocking_gather_bcast 2                       2 (P-1)              (P-1) P m   (the root)
    nonblocking_all          1                       P (P-1)              (P-1) m
    pairwise                 ceil(log P)             P ceil(log P)        (P-1) m
    ring                     P-1                     P (P-1)              (P-1) m
    recursive_doubling       log p2 (+2 if rest)     p2 log p2 + 2 rest   (P-1) m (+ P m if rest)
    bruck                    ceil(log P)             P ceil(log P)        (P-1) m
    neighbor_exchange        P/2 (even P)            P P/2                (P-1) m

On an odd number of ranks, neighbor exchange is the ring. A single rank sends nothing.
"""

from mpilab.algorithms.schedule import Schedule, Transfer, counts
from mpilab.algorithms.trees import largest_power_of_two, powers_of_two
from mpilab.errors import InputError


def nonblocking_gather_bcast(ranks):
    """Every rank sends its block to rank 0, which then sends all blocks to every rank."""
    if ranks == 1:
        return []
    everything = tuple(range(ranks))
    return [
        [Transfer(rank, 0, (rank,)) for rank in range(1, ranks)],
        [Transfer(0, rank, everything) for rank in range(1, ranks)],
    ]


def nonblocking_all(ranks):
    """Every rank sends its block to all other ranks at the same time."""
    if ranks == 1:
        return []
    return [
        [Transfer(s, d, (s,)) for s in range(ranks) for d in range(ranks) if s != d],
    ]


def pairwise(ranks):
    """In step i, each rank sends its blocks, its own and those of ranks below, to rank + 2^i."""
    return [
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


def ring(ranks):
    """Each rank passes the block that it received last to its right neighbor.

    Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in
    MPICH", Int. J. High Performance Computing Applications 19(1), 2005, section 4.1.
    """
    return [
        [
            Transfer(rank, (rank + 1) % ranks, ((rank - number + 1) % ranks,))
            for rank in range(ranks)
        ]
        for number in range(1, ranks)
    ]


def recursive_doubling(ranks):
    """Partners at distance 1, 2, 4 … exchange everything they hold.

    If P is not a power of two, each rank from p2 up first folds its block into rank - p2, and gets
    everything from there at the end. Source: Thakur, Rabenseifner, Gropp (2005), section 4.1; they
    describe the folding for allreduce.
    """
    core = largest_power_of_two(ranks)
    rest = ranks - core

    def held(rank, distance):
        base = rank - rank % distance
        aligned = range(base, base + distance)
        return (*aligned, *(core + owner for owner in aligned if owner < rest))

    fold = [Transfer(core + rank, rank, (core + rank,)) for rank in range(rest)]
    doubling = [
        [Transfer(rank, rank ^ distance, held(rank, distance)) for rank in range(core)]
        for distance in powers_of_two(core)
    ]
    unfold = [Transfer(rank, core + rank, tuple(range(ranks))) for rank in range(rest)]
    return [transfers for transfers in [fold, *doubling, unfold] if transfers]


def bruck(ranks):
    """In step i, each rank sends the blocks it holds, its own first, to rank - 2^i.

    The blocks arrive in the order rank, rank + 1, …; a local rotation at the end puts them in place
    and needs no message. Source: Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient Algorithms for
    All-to-All Communications in Multiport Message-Passing Systems", IEEE Transactions on Parallel
    and Distributed Systems 8(11), 1997.
    """
    return [
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


def neighbor_exchange(ranks):
    """Neighbors, alternately left and right, exchange the two blocks that each received last.

    Source: Chen, Zhang, Zhang, Yuan, "Performance Evaluation of Allgather Algorithms on Terascale
    Linux Cluster with Fast Ethernet", HPC Asia 2005.
    """
    if ranks % 2:
        return ring(ranks)
    rounds = [[Transfer(rank, rank ^ 1, (rank,)) for rank in range(ranks)]]
    latest = [(rank & ~1, rank | 1) for rank in range(ranks)]
    for number in range(2, ranks // 2 + 1):
        towards_left = -1 if number % 2 == 0 else 1
        partner = [
            (rank + (towards_left if rank % 2 == 0 else -towards_left)) % ranks
            for rank in range(ranks)
        ]
        rounds.append([Transfer(rank, partner[rank], latest[rank]) for rank in range(ranks)])
        latest = [latest[partner[rank]] for rank in range(ranks)]
    return rounds


ALGORITHMS = {
    algorithm.__name__: algorithm
    for algorithm in (
        nonblocking_gather_bcast,
        nonblocking_all,
        pairwise,
        ring,
        recursive_doubling,
        bruck,
        neighbor_exchange,
    )
}


def schedule(name, ranks):
    """The Schedule of allgather algorithm `name` on `ranks` ranks (1 or more).

    Raises InputError for a name that is not in ALGORITHMS, and for fewer than one rank.
    """
    if name not in ALGORITHMS:
        raise InputError(
            f"{name!r} is not an allgather algorithm of mpilab.algorithms.allgather; "
            f"take one of {', '.join(ALGORITHMS)}."
        )
    if ranks < 1:
        raise InputError(
            f"ranks={ranks} for the schedule of allgather {name}: a communicator has at least "
            "one rank; give 1 or more."
        )
    rounds = ALGORITHMS[name](int(ranks))
    return Schedule(name, int(ranks), tuple(tuple(transfers) for transfers in rounds))


def costs(name, ranks, block_bytes):
    """(rounds, messages, bytes sent by the busiest rank) of an allgather algorithm."""
    counted = counts(schedule(name, ranks), block_bytes)
    return counted.rounds, counted.messages, counted.max_bytes_sent
