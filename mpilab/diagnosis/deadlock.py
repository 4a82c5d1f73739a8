"""Deadlocks: which rank waits for which, since when, and the likely mistake."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from mpilab.cases.case import COLLECTIVES
from mpilab.diagnosis import model
from mpilab.diagnosis.collectives import (
    different_communicators,
    disagreement,
    never_entered,
    received_instead,
)
from mpilab.diagnosis.evidence import (
    Evidence,
    Match,
    all_wants,
    conjugated,
    from_another,
    of_wants,
    received,
    receives_at,
    sends,
    started,
)
from mpilab.diagnosis.memory import peers_sent_to
from mpilab.diagnosis.model import DEADLOCK, Diagnosis, Place
from mpilab.diagnosis.single import WRONG_ROOT, follow_the_root
from mpilab.runners.hang import POLLING, Hang, RankState
from mpilab.trace.matching import EXCHANGES, Want
from mpilab.trace.recording import ANY, POLLS, WAITS, Call

# Circular waits, and waits for an answer that never arrives. Each recognizer takes the Evidence and
# returns a Match or None.

SHOWN = 3  # at most this many ranks are listed individually


def polling_in_vain(evidence: Evidence) -> Match | None:
    """A rank polls for something that never arrives."""
    polling = [state for state in evidence.states if state.state == POLLING]
    if not polling:
        return None
    wants = [
        evidence.traffic.lacking[s.rank][0] for s in polling if s.rank in evidence.traffic.lacking
    ]
    first = polling[0]
    what = "a message" if not wants or wants[0].call.receives else "its request"
    hint = (
        f"Rank {first.rank} polls with {first.call.partition(' ')[0]}{_line(first.line)} for "
        f"{what} {_origin(wants)}that never comes. A loop that only tests must end, or must first "
        "do what the other ranks wait for (send, for instance)."
    )
    return of_wants(
        "polling in vain", evidence, wants, hint, ranks=tuple(state.rank for state in polling)
    )


def head_to_head(evidence: Evidence) -> Match | None:
    """A circular wait: each rank receives before it sends what the next rank waits for."""
    receiving = _blocked_in(evidence, lambda want: want.call.receives and want.call.peer >= 0)
    targets = {rank: [want.call.peer for want in wants] for rank, wants in receiving.items()}
    cycle = _cycle(targets)
    if not cycle or any(from_another(evidence, rank) for rank in cycle):
        return None
    waiting = [receiving[rank][0].waiting for rank in _circular_waits(targets, cycle)]
    if len({bool(receiving[rank][0].waiting.flags & WAITS) for rank in cycle}) > 1:
        return None  # the two sides run different code: the request is the better hint
    ranks = tuple(call.rank for call in waiting)
    who = f"{_with_lines(evidence, waiting)} {'both' if len(ranks) == 2 else 'all'}"
    before = [call for call in waiting if sends(evidence, targets[call.rank][0], call.rank)]
    if before:
        first = before[0]
        peer = targets[first.rank][0]
        number = model.number(sends(evidence, peer, first.rank), "message")
        hint = (
            f"{who} wait to receive now, so none of them sends. Rank {first.rank} has already "
            f"received {number} from rank {peer}: is one of these receives one too many, or does "
            "its send come too late?"
        )
    else:
        hint = (
            f"{who} receive before they send, so no rank ever sends. Let one of them send first, "
            "or use MPI_Sendrecv."
        )
    wants = [want for rank in ranks for want in receiving[rank]]
    places = (*evidence.places(waiting, "wait here"), *started(evidence, wants))
    return Match("head-to-head receives", ranks, hint, places)


def relying_on_buffering(evidence: Evidence) -> Match | None:
    """A circular wait with at least one rank in a send that waits for its receiver."""
    wants = evidence.traffic.lacking
    targets = {rank: _targets(evidence, rank) for rank in wants}
    cycle = _cycle(targets)
    ranks = _circular_waits(targets, cycle)
    sending = [
        want
        for rank in ranks
        for want in wants[rank]
        if want.call.sends and want.call.peer in targets and want.call.name not in EXCHANGES
    ]
    if len(cycle) < 2 or not sending:
        return None
    calls = [want.waiting for want in sending]
    names = model.listing(sorted({want.call.name for want in sending}))
    standard = any(want.call.name in ("MPI_Send", "MPI_Isend") for want in sending)
    who = {call.rank for call in calls}
    hint = (
        f"{_with_lines(evidence, calls)} {conjugated('wait in', len(who))} {names} for a receiver "
        "that does not receive yet. "
        + (
            "MPI_Send may wait for its receiver; MPI may buffer short messages, but does not have "
            "to. "
            if standard
            else ""
        )
        + "Let one side receive first, or use MPI_Sendrecv or MPI_Isend."
    )
    places = (*evidence.places(calls, "wait here"), *started(evidence, sending))
    return Match("sends that rely on buffering", ranks, hint, places)


def request_never_completed(evidence: Evidence) -> Match | None:
    """A rank waits for a request that no other rank matches."""
    wants = [w for w in all_wants(evidence) if w.waiting.flags & WAITS]
    if not wants:
        return None
    call, waiting = wants[0].call, wants[0].waiting
    if call is waiting:
        what = "a request"
    else:
        made = "" if evidence.spot(call.site) == evidence.spot(waiting.site) else evidence.at(call)
        what = f"the {call.name}{_towards(call)}{made}"
    reason = (
        f"which is the rank itself: it never {'sends' if call.receives else 'receives'} that"
        if call.peer == call.rank and (call.sends or call.receives)
        else "but no rank sends such a message"
        if call.receives
        else "but no rank receives it"
    )
    hint = (
        f"Rank {call.rank} waits in {waiting.name}{evidence.at(waiting)} for {what}, {reason}. "
        "Every request needs a counterpart with the same tag on the other rank."
    )
    return of_wants("a request never completed", evidence, wants, hint)


def _blocked_in(evidence: Evidence, chosen: Callable[[Want], bool]) -> dict[int, list[Want]]:
    """{rank: [Want]} of the blocked ranks whose wants are all `chosen`; polling ranks are
    excluded."""
    wants = evidence.traffic.lacking
    return {
        rank: wants[rank]
        for rank in wants
        if all(chosen(want) for want in wants[rank]) and not wants[rank][0].waiting.flags & POLLS
    }


def _targets(evidence: Evidence, rank: int) -> list[int]:
    """Ranks that `rank` waits for, by messages and in collectives."""
    state = evidence.state(rank)
    own = [
        want.call.peer
        for want in evidence.traffic.lacking[rank]
        if want.call.sends or want.call.receives
    ]
    return [peer for peer in (*own, *(state.waits_for if state else ())) if peer >= 0]


def _cycle(targets: Mapping[int, Sequence[int]]) -> tuple[int, ...]:
    """The ranks of a cycle in {rank: [ranks that it waits for]}, or (): the shortest one through
    the first rank that is in one."""
    for start in targets:
        paths: list[tuple[int, ...]] = [(start,)]
        seen: set[int] = set()
        for path in paths:
            for peer in targets.get(path[-1], ()):
                if peer == start and len(path) > 1:
                    return path
                if peer not in seen and peer in targets and peer != start:
                    seen.add(peer)
                    paths.append((*path, peer))
    return ()


def _circular_waits(
    targets: Mapping[int, Sequence[int]], first: tuple[int, ...]
) -> tuple[int, ...]:
    """The ranks of the cycle `first`, and of further cycles that share no rank."""
    found: list[int] = []
    left = dict(targets)
    while first:
        found += first
        left = {rank: peers for rank, peers in left.items() if rank not in first}
        first = _cycle(left)
    return tuple(found)


def _with_lines(evidence: Evidence, calls: Sequence[Call]) -> str:
    """'Rank 0 (line 12) and rank 1 (line 14)', 'Ranks 0 to 3 (line 12)'."""
    lines = {evidence.line(call) for call in calls}
    numbers = sorted({call.rank for call in calls})
    if len(lines) == 1 or len(numbers) > SHOWN:
        where = f"lines {model.runs(lines)}" if len(lines) > 1 else f"line {min(lines)}"
        return model.capital(model.ranks(numbers)) + (f" ({where})" if any(lines) else "")
    return model.capital(model.listing(f"rank {c.rank}{evidence.at(c)}" for c in calls))


def _origin(wants: Sequence[Want]) -> str:
    call = wants[0].call if wants else None
    if call is None or not call.receives:
        return ""
    return "from any rank " if call.peer == ANY else f"from rank {call.peer} "


def _towards(call: Call) -> str:
    if not (call.sends or call.receives):
        return ""
    whom = "any rank" if call.peer == ANY else f"rank {call.peer}"
    return f" {'to' if call.sends else 'from'} {whom}"


def _line(line: int) -> str:
    return f" (line {line})" if line else ""


# Unmatched and missing messages: sender and receiver disagree, or one of them has returned. Each
# recognizer takes the Evidence and returns a Match or None.

SHOWN_MESSAGES = 2  # at most this many pairs of sender and receiver are described


def mismatched_tags(evidence: Evidence) -> Match | None:
    """A message was sent with a tag other than the one that its receiver waits for."""
    pairs = _arrived(
        evidence,
        lambda want, sent: (
            sent.communicator == want.call.communicator
            and want.call.peer in (ANY, sent.rank)
            and want.call.tag not in (ANY, sent.tag)
        ),
    )
    if not pairs:
        return None
    said = [
        f"Rank {sent.rank} has sent with tag {sent.tag} to rank {want.call.rank}"
        f"{evidence.at(sent)}, but rank {want.call.rank} waits for tag {want.call.tag}"
        f"{evidence.at(want.waiting)}."
        for want, sent in pairs[:SHOWN_MESSAGES]
    ]
    hint = " ".join([*said, "Sender and receiver must use the same tag."])
    return _of_pairs("mismatched tags", evidence, pairs, hint)


def other_communicator(evidence: Evidence) -> Match | None:
    """A message was sent on a communicator other than the one that its receiver uses."""
    pairs = _arrived(
        evidence,
        lambda want, sent: (
            want.call.communicator not in (0, sent.communicator)
            and want.call.peer in (ANY, sent.rank)
            and want.call.tag in (ANY, sent.tag)
        ),
    )
    if not pairs:
        return None
    want, sent = pairs[0]
    hint = (
        f"Rank {sent.rank} has sent to rank {want.call.rank} on one "
        f"communicator{evidence.at(sent)}, but rank {want.call.rank} waits on "
        f"another{evidence.at(want.waiting)}. A message can only be received on the communicator "
        "that it was sent on, even if both contain the same ranks."
    )
    return _of_pairs("different communicators", evidence, pairs, hint)


def message_to_oneself(evidence: Evidence) -> Match | None:
    """A rank is in a blocking send to itself or receive from itself."""
    own = [
        want
        for want in all_wants(evidence)
        if want.call.peer == want.call.rank
        and want.call is want.waiting
        and (want.call.sends or want.call.receives)
    ]
    if not own:
        return None
    first = own[0].call
    what = "sends to" if first.sends else "receives from"
    remedy = (
        "It cannot receive while it waits in the send"
        if first.sends
        else "It cannot send while it waits in the receive"
    )
    hint = (
        f"Rank {first.rank} {what} itself with {first.name}{evidence.at(first)}. {remedy}: copy "
        "your own block with memcpy or MPI_Sendrecv, and leave your own rank out of the loop."
    )
    root = evidence.result.case.root
    if COLLECTIVES[evidence.result.case.collective].is_rooted and first.rank == root != 0:
        hint = f"{hint} Here your own rank is that of the root, not 0."
    return of_wants("a message to oneself", evidence, own, hint)


def root_taken_as_zero(evidence: Evidence) -> Match | None:
    """A collective with a root other than rank 0: the root does what others should do, or the
    others treat rank 0 as the root."""
    case = evidence.result.case
    if not COLLECTIVES[case.collective].is_rooted or case.root == 0:
        return None
    wants = all_wants(evidence)
    for recognized in (_names_itself, _sent_to_zero, _zero_left_out, _begun_by_zero):
        found = recognized(evidence, case.root, wants)
        if found is not None:
            chosen, fact = found
            return of_wants(WRONG_ROOT, evidence, chosen, f"{fact} {follow_the_root(evidence)}")
    return None


def _names_itself(
    evidence: Evidence, root: int, wants: Sequence[Want]
) -> tuple[list[Want], str] | None:
    """A rank waits for itself in a line in which all ranks name the same one: 0, or the root."""
    for want in wants:
        call = want.call
        is_own = call.peer == call.rank and call is want.waiting and (call.sends or call.receives)
        if (
            not is_own
            or call.rank not in (0, root)
            or _peers_at(evidence, call.site) != {call.rank}
        ):
            continue
        chosen = [other for other in wants if other.call.site == call.site]
        if call.rank == root:
            what = "sends to" if call.sends else "receives from"
            return chosen, f"Rank {root} is the root, and {what} itself{evidence.at(call)}."
        return chosen, (
            f"Every rank that comes to {call.name}{evidence.at(call)} names rank 0 there, but the "
            f"root is rank {root}."
        )
    return None


def _sent_to_zero(
    evidence: Evidence, root: int, wants: Sequence[Want]
) -> tuple[list[Want], str] | None:
    """The root waits to receive, but all messages that nobody receives went to rank 0."""
    waiting = [want for want in wants if want.call.rank == root and want.call.receives]
    lost = evidence.traffic.unreceived
    if not waiting or not lost or {sent.peer for sent in lost} != {0}:
        return None
    who = {sent.rank for sent in lost}
    return waiting, (
        f"{model.capital(model.ranks(who))} {conjugated('have', len(who))} sent to rank 0"
        f"{evidence.at(lost[0])}, which does not receive that; the root, rank {root}, waits"
        f"{evidence.at(waiting[0].waiting)}."
    )


def _zero_left_out(
    evidence: Evidence, root: int, wants: Sequence[Want]
) -> tuple[list[Want], str] | None:
    """Rank 0 alone waits for the root, which has sent to all others, itself included."""
    waiting = [want for want in wants if want.call.receives and want.call.peer == root]
    if not waiting or {want.call.rank for want in waiting} != {0}:
        return None
    if peers_sent_to(evidence, root) != set(range(1, evidence.size)) - {root}:
        return None
    if not sends(evidence, root, root):
        return None
    return waiting, (
        f"Rank 0 waits for the root, rank {root}{evidence.at(waiting[0].waiting)}, which has sent "
        "to itself instead: a loop over the other ranks must leave out the root, not rank 0."
    )


def _begun_by_zero(
    evidence: Evidence, root: int, wants: Sequence[Want]
) -> tuple[list[Want], str] | None:
    """Rank 0, alone, has sent on what it never received, and the root waits to receive."""
    if evidence.result.case.collective not in ("bcast", "scatter"):
        return None
    begun = {
        rank
        for rank in range(evidence.size)
        if sends(evidence, rank) and not received(evidence, rank)
    }
    waiting = [want for want in wants if want.call.rank == root and want.call.receives]
    if begun != {0} or not waiting:
        return None
    return waiting, (
        f"Rank 0 has sent to other ranks without having received anything, and the root, rank "
        f"{root}, waits to receive{evidence.at(waiting[0].waiting)}: rank 0 is treated as the root."
    )


def _peers_at(evidence: Evidence, site: int) -> set[int]:
    """The ranks that any rank has named at this call site."""
    found: set[int] = set()
    for rank in evidence.ranks:
        if rank is not None:
            found.update(rank.records["peer"][rank.records["site"] == site].tolist())
    return found


def wrong_rank(evidence: Evidence) -> Match | None:
    """A rank waits for one rank, but the message came from another."""
    found = {}
    for rank in evidence.traffic.lacking:
        other = from_another(evidence, rank)
        if other:
            found[rank] = other
    if not found:
        return None
    want, sent = next(iter(found.values()))
    rank = want.call.rank
    hint = (
        f"Rank {rank} waits for rank {want.call.peer}{evidence.at(want.waiting)}, which never "
        f"sends to it; but rank {sent.rank} has sent to rank {rank}{evidence.at(sent)}, and no "
        "rank receives that. Does the source of the receive match the destination of the send?"
    )
    return _of_pairs("a receive from the wrong rank", evidence, list(found.values()), hint)


def loop_ends_early(evidence: Evidence) -> Match | None:
    """A rank waits for one that has returned, whether because of too short a loop or not."""
    wants = [w for w in all_wants(evidence) if w.call.receives and w.call.peer in evidence.finished]
    if not wants:
        return None
    call = wants[0].call
    to_it, in_all = sends(evidence, call.peer, call.rank), sends(evidence, call.peer)
    done = (
        f"after sending {model.number(to_it, 'message')} to rank {call.rank}"
        if to_it
        else f"after {model.number(in_all, 'send')}, none of them to rank {call.rank}"
        if in_all
        else "without sending anything"
    )
    more = "one more" if to_it else "a message"
    pattern, doubt = _why_nothing_comes(evidence, call)
    hint = (
        f"Rank {call.peer} has returned {done}; rank {call.rank} still waits for {more}"
        f"{evidence.at(wants[0].waiting)}. {doubt}"
    )
    ranks = (*(w.call.rank for w in wants), *(w.call.peer for w in wants))
    return of_wants(pattern, evidence, wants, hint, ranks=ranks)


def _why_nothing_comes(evidence: Evidence, call: Call) -> tuple[str, str]:
    """(pattern, sentences) on a rank that returned without sending what the receive `call` needs.

    If it received at this place as often as the waiting rank, no loop ended early.
    """
    own = receives_at(evidence, call.rank, call.site)
    theirs = receives_at(evidence, call.peer, call.site)
    if len(theirs) >= len(own) > 0 and call.name in EXCHANGES:
        odd = (
            f" {evidence.size} ranks cannot all be paired: what does the last one do?"
            if evidence.size % 2
            else ""
        )
        named = model.number(int((own == call.peer).sum()), "time")
        back = model.number(int((theirs == call.rank).sum()), "time")
        return "mismatched partners", (
            f"It called {call.name}{evidence.at(call)} as often, but rank {call.rank} named rank "
            f"{call.peer} {named}, and rank {call.peer} named rank {call.rank} {back}: in each "
            f"step, both must name each other.{odd}"
        )
    if len(theirs) >= len(own) > 0:
        return "a missing send", (
            f"It has received there as often as rank {call.rank}, so its loop did not end early: "
            "look for an if that skips the send."
        )
    got = received(evidence, call.peer, call.rank)
    sent = sends(evidence, call.peer, call.rank)
    if got > sent:
        return "a missing send", (
            f"It has received {model.number(got, 'message')} from rank {call.rank} and sent "
            f"{sent or 'none'} in return: look for an if that skips the send."
        )
    size = evidence.size
    is_power = size & (size - 1) == 0
    power = "" if sent or is_power else f" because {size} is not a power of two"
    has_begun = sends(evidence, call.peer) or received(evidence, call.peer)
    first = "" if has_begun else "an early return, "
    last = ", or an early return or break" if has_begun else ""
    return "a loop that ends early", (
        f"Look for {first}a loop that ends early{power}"
        f"{', ' if has_begun else ' or '}an if that skips the send{last}."
    )


def message_left_over(evidence: Evidence) -> Match | None:
    """A rank waits for a rank that has returned to receive its message."""
    wants = [w for w in all_wants(evidence) if w.call.sends and w.call.peer in evidence.finished]
    if not wants:
        return None
    call = wants[0].call
    hint = (
        f"Rank {call.rank} waits in {wants[0].waiting.name}{evidence.at(wants[0].waiting)} until "
        f"rank {call.peer} receives its message (tag {call.tag}, {model.number(call.bytes, 'byte')}"
        f"), but rank {call.peer} has returned. One send too many, or one receive too few?"
    )
    return of_wants("a message left over", evidence, wants, hint)


def one_receive_too_many(evidence: Evidence) -> Match | None:
    """A rank waits for a message from any rank, but the others have sent all their messages."""
    wants = [w for w in all_wants(evidence) if w.call.receives and w.call.peer == ANY]
    if not wants:
        return None
    rank = wants[0].call.rank
    received = sum(
        sends(evidence, source, rank, wants[0].call.communicator) for source in range(evidence.size)
    )
    hint = (
        f"Rank {rank} waits for a message from any rank{evidence.at(wants[0].waiting)}; "
        f"{model.number(received, 'message')} {'was' if received == 1 else 'were'} sent to it, and "
        "no rank sends another. Does a sender's loop end early, or does this one run one "
        "iteration too many?"
    )
    return of_wants("a loop that ends early", evidence, wants, hint)


def _arrived(evidence: Evidence, fits: Callable[[Want, Call], bool]) -> list[tuple[Want, Call]]:
    """[(want, sent)]: for each receive that a rank waits for, a message sent to that rank but not
    received, for which `fits(want, sent)` is true."""
    by_receiver: dict[int, list[Call]] = {}
    for message in evidence.traffic.unreceived:
        by_receiver.setdefault(message.peer, []).append(message)
    pairs = []
    for want in all_wants(evidence):
        if want.call.receives:
            sent = next((s for s in by_receiver.get(want.call.rank, ()) if fits(want, s)), None)
            if sent is not None:
                pairs.append((want, sent))
    return pairs


def _of_pairs(
    pattern: str, evidence: Evidence, pairs: Sequence[tuple[Want, Call]], hint: str
) -> Match:
    """The Match of (want, sent) pairs, with the places of the waits and of the sends."""
    match = of_wants(pattern, evidence, [want for want, _ in pairs], hint)
    lines = {evidence.spot(sent.site) for _, sent in pairs}
    kinds = {(sent.communicator, sent.tag) for _, sent in pairs}
    alike = [
        sent
        for sent in evidence.traffic.unreceived
        if (sent.communicator, sent.tag) in kinds and evidence.spot(sent.site) in lines
    ]
    sent = evidence.places(alike, "have sent here")
    return Match(pattern, match.ranks, hint, (*match.places, *sent))


# The recognizers, in the order in which they are tried: mistakes proved by a call's wrong arguments
# come before those that the waiting ranks only make likely.

RECOGNIZERS = (
    disagreement,
    root_taken_as_zero,
    message_to_oneself,
    mismatched_tags,
    other_communicator,
    different_communicators,
    received_instead,
    polling_in_vain,
    head_to_head,
    relying_on_buffering,
    wrong_rank,
    never_entered,
    loop_ends_early,
    message_left_over,
    request_never_completed,
    one_receive_too_many,
)


def recognize(evidence: Evidence) -> Match | None:
    """The Match of the first recognizer that applies, or None."""
    return next(filter(None, (recognizer(evidence) for recognizer in RECOGNIZERS)), None)


STRICT = "Strict mode is on: every MPI_Send waits until its message is being received."


def deadlock(evidence: Evidence) -> Diagnosis:
    """The Diagnosis of a run in which every unfinished rank waits."""
    cycle = Hang(DEADLOCK, tuple(map(_without_itself, evidence.states))).cycle()
    match = recognize(evidence)
    waiting = [evidence.traffic.wants[rank][0].waiting for rank in sorted(evidence.traffic.wants)]
    places = evidence.places(waiting, "wait here")
    notes = [STRICT] if evidence.result.case.strict else []
    if match is None:
        return Diagnosis(
            DEADLOCK,
            headline(evidence, cycle),
            ranks=cycle or evidence.stuck,
            cycle=cycle,
            hint="Look at the table: which rank must send, or enter the collective, first?",
            places=places,
            tables=(evidence.doing(),),
            notes=tuple(notes),
        )
    return Diagnosis(
        DEADLOCK,
        f"{DEADLOCK}: {match.headline}" if match.headline else headline(evidence, cycle),
        pattern=match.pattern,
        hint=match.hint,
        ranks=match.ranks,
        places=_with_all_who_wait(match.places, places),
        cycle=cycle,
        tables=(evidence.doing(),),
        notes=tuple(notes),
    )


def headline(evidence: Evidence, cycle: Sequence[int] = ()) -> str:
    """'deadlock: rank 0 waits for rank 1, and rank 1 for rank 0'."""
    if len(cycle) == 2:
        one, other = cycle
        return f"deadlock: rank {one} waits for rank {other}, and rank {other} for rank {one}"
    if len(cycle) > 2:
        waits = " waits for ".join(map(str, (*cycle, cycle[0])))
        return (
            f"deadlock: {len(cycle)} ranks wait in a cycle, {waits}"
            if len(cycle) <= 8
            else (f"deadlock: {len(cycle)} ranks wait in a cycle")
        )
    stuck = evidence.stuck
    if not stuck:
        return "deadlock: no progress, although every rank has returned from the kernel"
    states = [state for state in evidence.states if state.rank in stuck]
    if len(stuck) == 1:
        return f"deadlock: {states[0].describe()}, and cannot continue"
    calls = {state.call.partition(" ")[0] for state in states}
    inside = f" in {calls.pop()}" if len(calls) == 1 else ""
    whom = sorted({p for state in states for p in state.waits_for} - set(stuck))
    for_whom = f" for {model.ranks(whom)}" if whom else ""
    return (
        f"deadlock: {model.ranks(stuck)} {conjugated('wait', len(stuck))}{inside}{for_whom}, "
        "and none can continue"
    )


def _without_itself(state: RankState) -> RankState:
    """The state of a rank that waits for itself and others, without itself: the cycle shown has
    several ranks."""
    others = tuple(rank for rank in state.waits_for if rank != state.rank)
    return replace(state, waits_for=others) if others else state


def _with_all_who_wait(places: Iterable[Place], waiting: Sequence[Place]) -> tuple[Place, ...]:
    """`places` and those where ranks are `waiting`, each line once; labels that say which ranks
    wait there name all of them."""
    found: dict[tuple[str, int], Place] = {}
    for place in (*places, *waiting):
        found.setdefault((place.file, place.line), place)
    for place in waiting:
        first = found[place.file, place.line]
        if first.label.endswith(("wait here", "waits here")):
            found[place.file, place.line] = place
    return tuple(found.values())
