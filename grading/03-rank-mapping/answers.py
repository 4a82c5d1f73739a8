"""Right values for the Python exercises of lab 03. Handouts leave this file out.

The published slide with the two maps says that f_RR→SEQ(f_RR→SEQ(p)) = p, a misprint for
f_RR→SEQ(f_SEQ→RR(p)) = p. As printed, it holds only if M = Q, or if one of them is 1: with M = 2
and Q = 3, 1 becomes 3, and 3 becomes 4.
"""

from collections import Counter

from mpilab.algorithms import allgather
from mpilab.algorithms.remapping import placement
from mpilab.errors import InputError


def seq_to_rr(rank: int, nodes: int, each: int) -> int:
    """The rank that has, in RR order, the place that `rank` has in SEQ order: f_SEQ→RR.

    nodes, each   M nodes of Q processes; rank is below M Q, otherwise InputError.
    """
    if nodes < 1 or each < 1 or not 0 <= rank < nodes * each:
        raise InputError(
            f"rank={rank} on {nodes} nodes of {each} processes: give 1 or more nodes and "
            "processes, and a rank from 0 to their product minus 1"
        )
    return rank * nodes % (nodes * each) + rank // each


def rr_to_seq(rank: int, nodes: int, each: int) -> int:
    """The rank that has, in SEQ order, the place that `rank` has in RR order: f_RR→SEQ."""
    return seq_to_rr(rank, each, nodes)


def inter_node_bytes(algorithm: str, order: str, M: int, Q: int, m: int) -> list[int]:
    """[most bytes that one process gets from other nodes, bytes that all processes get from them].

    algorithm   of an allgather: "ring", "recursive_doubling", …
    order       "SEQ" or "RR", of M nodes of Q processes; blocks have m bytes.
    """
    crosses = placement(order, M, Q).between_nodes()
    received: Counter[int] = Counter()
    for transfer in allgather.schedule(algorithm, M * Q).transfers():
        if crosses[transfer.source, transfer.dest]:
            received[transfer.dest] += len(transfer.blocks) * m
    return [max(received.values(), default=0), sum(received.values())]
