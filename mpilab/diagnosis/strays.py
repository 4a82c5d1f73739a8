"""Patterns of deadlocks in which a message goes astray, or is missing: its receiver and its sender
do not mean the same, or one of them has left.

Each recogniser takes the Evidence and returns a Match or None.
"""

from mpilab.diagnosis import wanted, words
from mpilab.diagnosis.match import Match
from mpilab.recording import ANY
from mpilab.traffic import EXCHANGES

SHOWN = 2  # so many pairs of sender and receiver are told one by one


def mismatched_tags(evidence):
    """A message has come with another tag than its receiver waits for."""
    pairs = _arrived(evidence, lambda want, sent: (
        sent.communicator == want.call.communicator and want.call.peer in (ANY, sent.rank)
        and want.call.tag not in (ANY, sent.tag)))  # fmt: skip
    if not pairs:
        return None
    said = [f"Rank {sent.rank} has sent with tag {sent.tag} to rank {want.call.rank}"
            f"{evidence.at(sent)}, but rank {want.call.rank} waits for tag {want.call.tag}"
            f"{evidence.at(want.waiting)}." for want, sent in pairs[:SHOWN]]  # fmt: skip
    hint = " ".join([*said, "Sender and receiver have to name the same tag."])
    return _of_pairs("mismatched tags", evidence, pairs, hint)


def other_communicator(evidence):
    """A message has come on another communicator than its receiver listens on."""
    pairs = _arrived(evidence, lambda want, sent: (
        want.call.communicator not in (0, sent.communicator)
        and want.call.peer in (ANY, sent.rank) and want.call.tag in (ANY, sent.tag)))  # fmt: skip
    if not pairs:
        return None
    want, sent = pairs[0]
    hint = (
        f"Rank {sent.rank} has sent to rank {want.call.rank} on one communicator"
        f"{evidence.at(sent)}, rank {want.call.rank} waits on another{evidence.at(want.waiting)}. "
        "A message can only be received on the communicator that it was sent on, also if both "
        "hold the same ranks."
    )
    return _of_pairs("different communicators", evidence, pairs, hint)


def message_to_oneself(evidence):
    """A rank is inside a blocking send to itself or receive from itself."""
    own = [want for want in wanted.all_wants(evidence)
           if want.call.peer == want.call.rank and want.call is want.waiting
           and (want.call.sends or want.call.receives)]  # fmt: skip
    if not own:
        return None
    first = own[0].call
    what = "sends to" if first.sends else "receives from"
    remedy = (
        "Nobody can receive while it waits in the send"
        if first.sends
        else "Nobody can send while it waits in the receive"
    )
    hint = (
        f"Rank {first.rank} {what} itself with {first.name}{evidence.at(first)}. {remedy}: copy "
        "your own block with memcpy or MPI_Sendrecv, and leave your own rank out of the loop."
    )
    return wanted.of_wants("a message to oneself", evidence, own, hint)


def wrong_rank(evidence):
    """A rank waits for one rank, but the message has come from another one."""
    found = {}
    for rank in evidence.traffic.lacking:
        other = wanted.from_another(evidence, rank)
        if other:
            found[rank] = other
    if not found:
        return None
    want, sent = next(iter(found.values()))
    rank = want.call.rank
    hint = (
        f"Rank {rank} waits for rank {want.call.peer}{evidence.at(want.waiting)}, which never "
        f"sends to it; but rank {sent.rank} has sent to rank {rank}{evidence.at(sent)}, and nobody "
        "receives that. Does the source in the receive belong to the destination in the send?"
    )
    return _of_pairs("a receive from the wrong rank", evidence, list(found.values()), hint)


def loop_ends_early(evidence):
    """A rank waits for one that has returned, be it from a loop that is too short or not."""
    wants = [w for w in wanted.all_wants(evidence)
             if w.call.receives and w.call.peer in evidence.finished]  # fmt: skip
    if not wants:
        return None
    call = wants[0].call
    to_it, in_all = wanted.sends(evidence, call.peer, call.rank), wanted.sends(evidence, call.peer)
    done = (
        f"after sending {words.number(to_it, 'message')} to rank {call.rank}"
        if to_it
        else f"after {words.number(in_all, 'send')}, none of them to rank {call.rank}"
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
    return wanted.of_wants(pattern, evidence, wants, hint, ranks=ranks)


def _why_nothing_comes(evidence, call):
    """(pattern, sentences) on a rank that has returned without what the receive `call` waits for.

    Has it received at this place as often as the one that waits, then no loop ended early.
    """
    own = wanted.receives_at(evidence, call.rank, call.site)
    theirs = wanted.receives_at(evidence, call.peer, call.site)
    if len(theirs) >= len(own) > 0 and call.name in EXCHANGES:
        odd = (
            f" Pairs of {evidence.size} ranks leave one over: what does that one do?"
            if evidence.size % 2
            else ""
        )
        named = words.number(int((own == call.peer).sum()), "time")
        back = words.number(int((theirs == call.rank).sum()), "time")
        return "partners that differ", (
            f"It called {call.name}{evidence.at(call)} as often, but rank {call.rank} named rank "
            f"{call.peer} {named}, rank {call.peer} named rank {call.rank} {back}: in each step "
            f"both have to name each other.{odd}"
        )
    if len(theirs) >= len(own) > 0:
        return "a send left out", (
            f"It has received there as often as rank {call.rank}, so its loop did not end early: "
            "look for an if that skips the send."
        )
    got = wanted.received(evidence, call.peer, call.rank)
    sent = wanted.sends(evidence, call.peer, call.rank)
    if got > sent:
        return "a send left out", (
            f"It has received {words.number(got, 'message')} from rank {call.rank} and sent "
            f"{sent or 'none'} in return: look for an if that skips the send."
        )
    size = evidence.size
    is_power = size & (size - 1) == 0
    power = "" if sent or is_power else f" because {size} ranks are no power of two"
    has_begun = wanted.sends(evidence, call.peer) or wanted.received(evidence, call.peer)
    first = "" if has_begun else "a return that comes too early, "
    last = ", or a return or a break that comes too early" if has_begun else ""
    return "a loop that ends early", (
        f"Look for {first}a loop that ends early{power}"
        f"{', ' if has_begun else ' or '}an if that skips the send{last}."
    )


def message_left_over(evidence):
    """A rank waits for its message to be received by one that has returned."""
    wants = [w for w in wanted.all_wants(evidence)
             if w.call.sends and w.call.peer in evidence.finished]  # fmt: skip
    if not wants:
        return None
    call = wants[0].call
    hint = (
        f"Rank {call.rank} waits in {wants[0].waiting.name}{evidence.at(wants[0].waiting)} until "
        f"rank {call.peer} receives its message (tag {call.tag}, {words.number(call.bytes, 'byte')}"
        f"), but rank {call.peer} has returned. One send too many, or one receive too few?"
    )
    return wanted.of_wants("a message left over", evidence, wants, hint)


def one_receive_too_many(evidence):
    """A rank waits for a message from any rank, and all others have sent what they send."""
    wants = [w for w in wanted.all_wants(evidence) if w.call.receives and w.call.peer == ANY]
    if not wants:
        return None
    rank = wants[0].call.rank
    received = sum(wanted.sends(evidence, source, rank, wants[0].call.communicator)
                   for source in range(evidence.size))  # fmt: skip
    hint = (
        f"Rank {rank} waits for a message from any rank{evidence.at(wants[0].waiting)}; "
        f"{words.number(received, 'message')} {'was' if received == 1 else 'were'} sent to it, and "
        "nobody sends another. Does a sender's loop end early, or this one go round once too often?"
    )
    return wanted.of_wants("a loop that ends early", evidence, wants, hint)


def _arrived(evidence, fits):
    """[(want, sent)]: for each receive that somebody waits for, a message to that rank which it
    does not take, and which `fits(want, sent)`."""
    by_receiver = {}
    for sent in evidence.traffic.unreceived:
        by_receiver.setdefault(sent.peer, []).append(sent)
    pairs = []
    for want in wanted.all_wants(evidence):
        if want.call.receives:
            sent = next((s for s in by_receiver.get(want.call.rank, ()) if fits(want, s)), None)
            if sent is not None:
                pairs.append((want, sent))
    return pairs


def _of_pairs(pattern, evidence, pairs, hint):
    """A Match of (want, sent) pairs: who waits where, and where was sent."""
    match = wanted.of_wants(pattern, evidence, [want for want, _ in pairs], hint)
    lines = {evidence.spot(sent.site) for _, sent in pairs}
    kinds = {(sent.communicator, sent.tag) for _, sent in pairs}
    alike = [sent for sent in evidence.traffic.unreceived
             if (sent.communicator, sent.tag) in kinds
             and evidence.spot(sent.site) in lines]  # fmt: skip
    sent = evidence.places(alike, "have sent here")
    return Match(pattern, match.ranks, hint, (*match.places, *sent))
