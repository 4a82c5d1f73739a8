"""Patterns of deadlocks in which ranks wait for one another, or for an answer that never comes.

Each recogniser takes the Evidence and returns a Match or None.
"""

from mpilab.diagnosis import wanted, words
from mpilab.diagnosis.evidence import conjugated
from mpilab.diagnosis.match import Match
from mpilab.hang import POLLING
from mpilab.recording import ANY, POLLS, WAITS
from mpilab.traffic import EXCHANGES

SHOWN = 3  # so many ranks are told one by one


def polling_in_vain(evidence):
    """A rank asks again and again for what never comes."""
    polling = [state for state in evidence.states if state.state == POLLING]
    if not polling:
        return None
    wants = [
        evidence.traffic.lacking[s.rank][0] for s in polling if s.rank in evidence.traffic.lacking
    ]
    first = polling[0]
    what = "a message" if not wants or wants[0].call.receives else "its request"
    hint = (
        f"Rank {first.rank} asks with {first.call.partition(' ')[0]}{_line(first.line)} again and "
        f"again for {what} {_origin(wants)}that never comes. A loop that only tests has to end, or "
        "to do what the others wait for (send, for instance) before it."
    )
    return wanted.of_wants("polling in vain", evidence, wants, hint,
                     ranks=tuple(state.rank for state in polling))  # fmt: skip


def head_to_head(evidence):
    """Ranks in a circle: each waits to receive before it sends what the next one waits for."""
    receiving = _blocked_in(evidence, lambda want: want.call.receives and want.call.peer >= 0)
    targets = {rank: [want.call.peer for want in wants] for rank, wants in receiving.items()}
    cycle = _cycle(targets)
    if not cycle or any(wanted.from_another(evidence, rank) for rank in cycle):
        return None
    waiting = [receiving[rank][0].waiting for rank in _circles(targets, cycle)]
    if len({bool(receiving[rank][0].waiting.flags & WAITS) for rank in cycle}) > 1:
        return None  # not the same code on both sides: the request is the better hint
    ranks = tuple(call.rank for call in waiting)
    hint = (
        f"{_with_lines(evidence, waiting)} {'both' if len(ranks) == 2 else 'all'} receive before "
        "they send, so nobody ever sends. Let one of them send first, or use MPI_Sendrecv."
    )
    wants = [want for rank in ranks for want in receiving[rank]]
    places = (*evidence.places(waiting, "wait here"), *wanted.started(evidence, wants))
    return Match("head-to-head receives", ranks, hint, places)


def relying_on_buffering(evidence):
    """Ranks in a circle, at least one of them inside a send that waits for its receiver."""
    wants = evidence.traffic.lacking
    targets = {rank: _targets(evidence, rank) for rank in wants}
    cycle = _cycle(targets)
    ranks = _circles(targets, cycle)
    sending = [want for rank in ranks for want in wants[rank]
               if want.call.sends and want.call.peer in targets
               and want.call.name not in EXCHANGES]  # fmt: skip
    if len(cycle) < 2 or not sending:
        return None
    calls = [want.waiting for want in sending]
    names = words.listing(sorted({want.call.name for want in sending}))
    standard = any(want.call.name in ("MPI_Send", "MPI_Isend") for want in sending)
    who = {call.rank for call in calls}
    hint = (
        f"{_with_lines(evidence, calls)} {conjugated('wait in', len(who))} {names} for a receiver "
        "that does not receive yet. "
        + ("MPI_Send may wait for its receiver; only short messages may be buffered, and nobody "
           "promises it. " if standard else "")
        + "Let one side receive first, or use MPI_Sendrecv or MPI_Isend."
    )  # fmt: skip
    places = (*evidence.places(calls, "wait here"), *wanted.started(evidence, sending))
    return Match("sends that rely on buffering", ranks, hint, places)


def request_never_completed(evidence):
    """A rank waits for a request that nobody answers."""
    wants = [w for w in wanted.all_wants(evidence) if w.waiting.flags & WAITS]
    if not wants:
        return None
    call, waiting = wants[0].call, wants[0].waiting
    if call is waiting:
        what = "a request"
    else:
        made = "" if evidence.spot(call.site) == evidence.spot(waiting.site) else evidence.at(call)
        what = f"the {call.name}{_towards(call)}{made}"
    reason = (
        "which is the rank itself: it never sends that"
        if call.receives and call.peer == call.rank
        else "but nobody sends such a message"
        if call.receives
        else "but nobody receives it"
    )
    hint = (
        f"Rank {call.rank} waits in {waiting.name}{evidence.at(waiting)} for {what}, {reason}. "
        "Every request needs its counterpart, with the same tag, on the other rank."
    )  # fmt: skip
    return wanted.of_wants("a request never completed", evidence, wants, hint)


def _blocked_in(evidence, chosen):
    """{rank: [Want]} of ranks that wait for nothing but such wants."""
    wants = evidence.traffic.lacking
    return {rank: wants[rank] for rank in wants
            if all(chosen(want) for want in wants[rank])
            and not wants[rank][0].waiting.flags & POLLS}  # fmt: skip


def _targets(evidence, rank):
    """Ranks that `rank` waits for, by messages and in collectives."""
    state = evidence.state(rank)
    own = [want.call.peer for want in evidence.traffic.lacking[rank]
           if want.call.sends or want.call.receives]  # fmt: skip
    return [peer for peer in (*own, *(state.waits_for if state else ())) if peer >= 0]


def _cycle(targets):
    """The ranks of a circle in {rank: [ranks that it waits for]}, or (); the shortest through the
    first rank that is in one."""
    for start in targets:
        paths, seen = [(start,)], set()
        for path in paths:
            for peer in targets.get(path[-1], ()):
                if peer == start and len(path) > 1:
                    return path
                if peer not in seen and peer in targets and peer != start:
                    seen.add(peer)
                    paths.append((*path, peer))
    return ()


def _circles(targets, first):
    """The ranks of the circle `first`, and of all others that have no rank in common with it."""
    found, left = [], dict(targets)
    while first:
        found += first
        left = {rank: peers for rank, peers in left.items() if rank not in first}
        first = _cycle(left)
    return tuple(found)


def _with_lines(evidence, calls):
    """'Rank 0 (line 12) and rank 1 (line 14)', 'Ranks 0 to 3 (line 12)'."""
    lines = {evidence.line(call) for call in calls}
    numbers = sorted({call.rank for call in calls})
    if len(lines) == 1 or len(numbers) > SHOWN:
        where = f"lines {words.runs(lines)}" if len(lines) > 1 else f"line {min(lines)}"
        return words.capital(words.ranks(numbers)) + (f" ({where})" if any(lines) else "")
    return words.capital(words.listing(f"rank {c.rank}{evidence.at(c)}" for c in calls))


def _origin(wants):
    call = wants[0].call if wants else None
    if call is None or not call.receives:
        return ""
    return "from any rank " if call.peer == ANY else f"from rank {call.peer} "


def _towards(call):
    if not (call.sends or call.receives):
        return ""
    whom = "any rank" if call.peer == ANY else f"rank {call.peer}"
    return f" {'to' if call.sends else 'from'} {whom}"


def _line(line):
    return f" (line {line})" if line else ""
