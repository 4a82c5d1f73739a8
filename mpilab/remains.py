"""Has a run that came to its end left something inside of MPI that could reach the next one?

Open MPI gives the number of a freed communicator to the next one that is made: a message that
nobody received could be taken for one of the next run, and a request that is still active writes
into memory that is no longer there.
"""

from collections import Counter

import numpy as np

from mpilab.recording import CANCELLED, NONBLOCKING, RECEIVES, SENDS


def remains(result):
    """True where messages, requests or halves of collectives are left over from a recorded run."""
    from mpilab.diagnosis import assemblies  # a diagnosis is made from results
    from mpilab.diagnosis.evidence import Evidence

    ranks = [rank for rank in result.ranks if rank is not None]
    if any((rank.records["flags"][rank.leaked] & NONBLOCKING).any() for rank in ranks):
        return True
    if _sent(ranks) != _received(ranks):
        return True
    evidence = Evidence(result)
    return any(True for _ in assemblies.incomplete(evidence)) or any(
        True for _ in assemblies.conflicts(evidence)
    )


def _sent(ranks):
    """How many messages went from whom to whom, by communicator."""
    return _count(ranks, SENDS, "peer", lambda r: (r["error"] == 0) & (r["flags"] & CANCELLED == 0))


def _received(ranks):
    # A receive that was too short has taken its message as well.
    return _count(ranks, RECEIVES, "got_peer", lambda r: r["done_ns"] != 0, received=True)


def _count(ranks, flag, peer, chosen, received=False):
    counted = Counter()
    for rank in ranks:
        records = rank.records
        records = records[(records["flags"] & flag != 0) & (records[peer] >= 0) & chosen(records)]
        pairs = np.stack([records["communicator"].astype("i8"), records[peer].astype("i8")], axis=1)
        for (communicator, other), number in zip(
            *np.unique(pairs, axis=0, return_counts=True), strict=True
        ):
            key = (other, rank.rank) if received else (rank.rank, other)
            counted[(int(communicator), *map(int, key))] += int(number)
    return counted
