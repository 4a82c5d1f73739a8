"""Requests that a wait was given although no call had started them."""

import numpy as np

from mpilab.diagnosis import words
from mpilab.recording import WAITS

PATTERN = "a request that was never started"
HINT = (
    "Set every element of the array to MPI_REQUEST_NULL before the first call, or count the "
    "requests that you start (requests[n++]) and give that number to the wait."
)


def meaning(evidence, call):
    """'MPI_Waitall got 8 requests, but only 6 of them were ever started'; '' where all were.

    MPI_REQUEST_NULL may be among them: only ask where the wait has failed.
    """
    if not call.flags & WAITS or call.rank >= len(evidence.ranks):
        return ""
    started = int(np.count_nonzero(evidence.ranks[call.rank].records["waiter"] == call.index))
    if call.count <= started:
        return ""
    got = f"{call.name} got {words.number(call.count, 'request')}"
    if call.count == 1:
        return f"{got} that no call had started"
    were = "was" if started == 1 else "were"
    return f"{got}, but only {started} of them {were} ever started" if started else (
        f"{got}, but none of them was ever started")  # fmt: skip
