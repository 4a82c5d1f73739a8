"""What the recognisers of patterns ask of the traffic of a run."""

from dataclasses import replace

import numpy as np

from mpilab.diagnosis.match import Match
from mpilab.diagnosis.model import SANITIZER
from mpilab.recording import RECEIVES, SENDS


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


def sends(evidence, source, dest=None, communicator=None):
    """How many messages `source` has begun to send (to `dest`) (on `communicator`)."""
    recorded = evidence.ranks[source] if 0 <= source < evidence.size else None
    if recorded is None:
        return 0
    records = recorded.records
    sends = (records["flags"] & SENDS != 0) & (records["error"] == 0) & (records["peer"] >= 0)
    if communicator is not None:
        sends &= records["communicator"] == communicator
    to_others = records["peer"] != source
    return int((sends & (to_others if dest is None else records["peer"] == dest)).sum())


def received(evidence, rank, source=None):
    """How many messages `rank` is known to have got from others (from `source`)."""
    recorded = evidence.ranks[rank] if 0 <= rank < evidence.size else None
    if recorded is None:
        return 0
    records = recorded.records
    got = (records["flags"] & RECEIVES != 0) & (records["done_ns"] != 0) & (records["error"] == 0)
    sources = records["got_peer"]
    from_others = (sources >= 0) & (sources != rank)
    return int((got & (from_others if source is None else sources == source)).sum())


def receives_at(evidence, rank, site):
    """Sources of the receives that `rank` has begun at this call site, an array."""
    recorded = evidence.ranks[rank] if 0 <= rank < evidence.size else None
    if recorded is None or not site:
        return np.empty(0, int)
    records = recorded.records
    chosen = (records["flags"] & RECEIVES != 0) & (records["site"] == site)
    return records["peer"][chosen & (records["error"] == 0)]


def of_wants(pattern, evidence, wants, hint, ranks=None):
    waiting = [want.waiting for want in wants]
    ranks = ranks if ranks is not None else [call.rank for call in waiting]
    places = (*evidence.places(waiting, "wait here"), *started(evidence, wants))
    return Match(pattern, tuple(dict.fromkeys(ranks)), hint, places)


def with_requests(found, access, evidence):
    """The Diagnosis `found` of a report by a sanitizer; where it was met in a wait, with the lines
    that started what is waited for: the buffer stands there. `access` begins with READ or WRITE."""
    if found.kind != SANITIZER or not found.places:
        return found
    here, reads = found.places[0], access.startswith("READ")
    chosen = [want for want in evidence.traffic.wants.get(found.ranks[0], ())
              if evidence.line(want.waiting) == here.line
              and (want.call.sends if reads else want.call.receives)]  # fmt: skip
    # A report names the cell's own file in its own way.
    more = [replace(place, file=here.file) for place in started(evidence, chosen)]
    return replace(found, places=(*found.places, *more))


def started(evidence, wants):
    """Places at which the requests that these wants wait for were started."""
    calls = [want.call for want in wants
             if want.call.index != want.waiting.index
             and evidence.spot(want.call.site) != evidence.spot(want.waiting.site)]  # fmt: skip
    return evidence.places(calls, "have started it here")
