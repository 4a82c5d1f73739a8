"""What calls tell about data that did not come: who has sent and who has received."""

import numpy as np

from mpilab.diagnosis import wanted, words
from mpilab.recording import COLLECTIVE, RECEIVES, SENDS


def sends(evidence, rank):
    """A send of each line of `rank` that sends to others."""
    recorded = evidence.ranks[rank]
    if recorded is None:
        return []
    records = recorded.records
    chosen = (records["flags"] & SENDS != 0) & (records["peer"] >= 0) & (records["peer"] != rank)
    _, first = np.unique(records["site"][chosen], return_index=True)
    return evidence.calls(rank, np.flatnonzero(chosen)[first].tolist())


def of_one_line(evidence, ranks):
    """(' (line 17)', Places) of the sends of these ranks; ('', ()) where several lines send."""
    calls = [call for rank in sorted(ranks)[:64] for call in sends(evidence, rank)]
    if len({evidence.spot(call.site) for call in calls}) != 1:
        return "", ()  # which of several lines it was, nobody knows
    return evidence.at(calls[0]), evidence.places(calls, "send it here")


def arrived(evidence, rank):
    """'No message came to rank 2.', 'Rank 2 has received 1 message …', or '' where nobody knows."""
    if not _knows(evidence, rank):
        return ""
    got = wanted.received(evidence, rank)
    if got == 0:
        sent = sum(wanted.sends(evidence, other, rank) for other in range(evidence.size))
        if not sent:
            return f"Rank {rank} has received no message, and nobody has sent one to it."
        were = "was" if sent == 1 else "were"
        return f"Rank {rank} has received no message; {sent} to it {were} sent."
    records = evidence.ranks[rank].records
    taken = (records["flags"] & RECEIVES != 0) & (records["done_ns"] != 0)
    taken &= (records["got_peer"] >= 0) & (records["got_peer"] != rank)
    total = int(records["got_bytes"][taken].sum())
    return (
        f"Rank {rank} has received {words.number(got, 'message')} with "
        f"{words.number(total, 'byte')} in all."
    )


def sent_by(evidence, rank):
    """'Rank 3 has sent nothing.', 'Rank 3 has sent to rank 2 only.', or ''."""
    if not _knows(evidence, rank):
        return ""
    records = evidence.ranks[rank].records
    chosen = (records["flags"] & SENDS != 0) & (records["peer"] >= 0) & (records["error"] == 0)
    peers = set(records["peer"][chosen & (records["peer"] != rank)].tolist())
    if not peers:
        return f"Rank {rank} has sent no message."
    number = wanted.sends(evidence, rank)
    return f"Rank {rank} has sent {words.number(number, 'message')}, to {words.ranks(peers)}."


def _knows(evidence, rank):
    """Is the whole recording there, and without collectives, in which data may have moved too?"""
    recorded = evidence.ranks[rank]
    if recorded is None or recorded.header["dropped"] or not recorded.finished:
        return False
    return not (recorded.records["flags"] & COLLECTIVE != 0).any()
