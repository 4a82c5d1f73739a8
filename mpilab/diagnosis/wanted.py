"""What the recognisers of patterns ask of the traffic of a run."""

from mpilab.diagnosis.match import Match
from mpilab.recording import SENDS


def all_wants(evidence):
    """[Want] of all ranks, by rank."""
    wants = evidence.traffic.lacking
    return [want for rank in sorted(wants) for want in wants[rank]]


def from_another(evidence, rank):
    """(want, sent) where `rank` waits for one rank only, which has never sent to it, and a message
    that would fit has come from another one; or None."""
    for want in evidence.traffic.lacking[rank]:
        call = want.call
        if call.receives and call.peer >= 0 and not sends(evidence, call.peer, rank):
            for sent in evidence.traffic.unreceived:
                if sent.rank != call.peer and call._replace(peer=sent.rank).takes(sent):
                    return want, sent
    return None


def sends(evidence, source, dest=None):
    """How many messages `source` has begun to send (to `dest`)."""
    recorded = evidence.ranks[source] if 0 <= source < evidence.size else None
    if recorded is None:
        return 0
    records = recorded.records
    sends = (records["flags"] & SENDS != 0) & (records["error"] == 0) & (records["peer"] >= 0)
    to_others = records["peer"] != source
    return int((sends & (to_others if dest is None else records["peer"] == dest)).sum())


def of_wants(pattern, evidence, wants, hint, ranks=None):
    waiting = [want.waiting for want in wants]
    ranks = ranks if ranks is not None else [call.rank for call in waiting]
    places = evidence.places(waiting, "wait here")
    return Match(pattern, tuple(dict.fromkeys(ranks)), hint, places)
