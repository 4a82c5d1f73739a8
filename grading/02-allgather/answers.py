"""Right values for the Python exercise of lab 02. Handouts leave this file out.

A test compares them with what is counted in schedules, which takes too long for many ranks.
"""

from mpilab.algorithms.formula import ceil_log2
from mpilab.errors import InputError

LOGARITHMIC = ("pairwise", "recursive_doubling", "bruck")


def costs(name: str, ranks: int, block_bytes: int) -> tuple[int, int, int]:
    """(rounds, messages, bytes sent by the busiest rank) of an allgather algorithm.

    Raises InputError for an unknown name.
    """
    others, steps = ranks - 1, ceil_log2(ranks)
    if name == "nonblocking_gather_bcast":  # all messages are to or from the collecting rank
        return (2 if others else 0), 2 * others, ranks * others * block_bytes
    rounds = {
        "nonblocking_all": min(others, 1),
        "ring": others,
        "neighbor_exchange": others if ranks % 2 else ranks // 2,
        **dict.fromkeys(LOGARITHMIC, steps),
    }
    if name not in rounds:
        raise InputError(f"algorithm {name!r}: unknown; write one of {', '.join(rounds)}")
    each = others if name == "nonblocking_all" else rounds[name]
    return rounds[name], ranks * each, others * block_bytes
