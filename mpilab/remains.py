"""Has a run that came to its end left something inside of MPI that could reach the next one?

Open MPI gives the number of a freed communicator to the next one that is made: a message that
nobody received could be taken for one of the next run, and a request that is still active writes
into memory that is no longer there.
"""

import numpy as np

from mpilab.recording import CANCELLED, LEAKED, NONBLOCKING, RECEIVES, SENDS, joined


def remains(result):
    """True where messages, requests or halves of collectives are left over from a recorded run."""
    from mpilab.diagnosis import assemblies  # a diagnosis is made from results
    from mpilab.diagnosis.evidence import Evidence

    ranks = [rank for rank in result.ranks if rank is not None]
    records, places = joined(ranks)
    if (records["flags"] & (LEAKED | NONBLOCKING) == LEAKED | NONBLOCKING).any():
        return True
    numbers = np.array([rank.rank for rank in ranks], np.int64)[places]
    if not np.array_equal(_sent(records, numbers), _received(records, numbers)):
        return True
    evidence = Evidence(result)
    return any(True for _ in assemblies.incomplete(evidence)) or any(
        True for _ in assemblies.conflicts(evidence)
    )


def _sent(records, ranks):
    """The messages that were sent: sorted rows of communicator, sender and receiver."""
    chosen = (records["flags"] & (SENDS | CANCELLED) == SENDS) & (records["error"] == 0)
    return _sorted(_rows(records, ranks, "peer", chosen))


def _received(records, ranks):
    # A receive that was too short has taken its message as well.
    chosen = (records["flags"] & RECEIVES != 0) & (records["done_ns"] != 0)
    return _sorted(_rows(records, ranks, "got_peer", chosen)[:, [0, 2, 1]])


def _rows(records, ranks, peer, chosen):
    """Rows of communicator, rank and the other one, of all calls that are chosen."""
    chosen = chosen & (records[peer] >= 0)
    columns = (records["communicator"][chosen], ranks[chosen], records[peer][chosen])
    return np.stack(columns, axis=1).astype(np.int64)


def _sorted(rows):
    return rows[np.lexsort(rows.T[::-1])]
