"""Right values for the Python exercises of lab 03. Handouts leave this file out.

The published slide with the two maps says that f_RR→SEQ(f_RR→SEQ(p)) = p, a misprint for
f_RR→SEQ(f_SEQ→RR(p)) = p. As printed, it holds only if M = Q, or if one of them is 1: with M = 2
and Q = 3, 1 becomes 3, and 3 becomes 4.
"""

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

    algorithm   of an allgather: "ring" or "recursive_doubling".
    order       "SEQ" or "RR", of M nodes of Q processes; blocks have m bytes. For
                "recursive_doubling", M and Q are powers of two.

    In the ring, whoever has a left neighbor on another node gets all blocks from there, but its
    own. In recursive doubling, all processes are alike; within its node, a process gets the Q - 1
    other blocks of it in SEQ order, and in RR order, where the steps between nodes come first, all
    but M - 1 blocks. A test counts the same in schedules, which takes too long for many processes.

    Raises InputError for another algorithm or order.
    """
    if order not in ("SEQ", "RR"):
        raise InputError(f"order {order!r}: write SEQ or RR")
    processes = M * Q
    if algorithm == "ring":
        blocks, receivers = processes - 1, M if order == "SEQ" else processes
    elif algorithm == "recursive_doubling":
        blocks, receivers = (processes - Q if order == "SEQ" else M - 1), processes
    else:
        raise InputError(f"algorithm {algorithm!r}: write ring or recursive_doubling")
    return [blocks * m, receivers * blocks * m] if M > 1 else [0, 0]
