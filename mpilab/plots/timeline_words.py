"""A timeline in words: what each rank did, and which messages there were."""

import numpy as np

from mpilab.plots import style
from mpilab.plots.bars import message_in_words
from mpilab.plots.calls import BLOCKED, KINDS, Wording
from mpilab.plots.shares import busy
from mpilab.plots.style import plural
from mpilab.recording import NONE
from mpilab.result import signal_name

MESSAGES_IN_TEXT = 40


def in_words(span, title, notes, crowded):
    """The lines of a text alternative of a Span; `crowded`: without its messages."""
    yield (
        f"{title}: {plural(len(span.ranks), 'rank')}, {style.duration(span.recorded_ns / 1e9)}, "
        f"{plural(len(span.calls), 'call')}, {plural(len(span.messages), 'message')}."
    )
    yield from notes
    busy_ns = busy(span.calls, span.ends_ns, len(span.ranks), [span.begin_ns, span.end_ns])
    blocked = {int(c["rank"]): c for c in span.calls[span.calls["kind"] == BLOCKED]}
    wording = Wording(span.ranks, blocked.values())
    for place, rank in enumerate(span.ranks):
        yield _rank_in_words(span, place, rank, busy_ns[place, :, 0], blocked, wording)
    lost = span.messages[span.messages["receive_record"] == NONE]
    if len(lost):
        shown = "; ".join(message_in_words(message) for message in lost[:10])
        more = f"; and {len(lost) - 10} more" if len(lost) > 10 else ""
        yield f"Messages of which no receive was seen: {shown}{more}."
    if crowded:
        return
    came = span.messages[span.messages["receive_record"] != NONE]
    came = came[np.argsort(came["sent_ns"], kind="stable")]
    for message in came[:MESSAGES_IN_TEXT]:
        yield (
            f"Message {message_in_words(message)}: sent at {span.moment(message['sent_ns'])}, "
            f"there at {span.moment(message['received_ns'])}."
        )
    if len(came) > MESSAGES_IN_TEXT:
        yield f"And {len(came) - MESSAGES_IN_TEXT:,} messages more."


def _rank_in_words(span, place, rank, busy_ns, blocked, wording):
    if rank is None:
        return f"Rank {place} never began."
    calls = span.calls[span.calls["rank"] == place]
    parts = [f"{name} {busy_ns[kind] / span.recorded_ns:.0%}" for kind, name in enumerate(KINDS)
             if busy_ns[kind] and kind != BLOCKED]  # fmt: skip
    outside = _known_ns(span, place, rank, calls, blocked) - busy_ns.sum()
    parts.append(f"outside of MPI {max(0.0, outside / span.recorded_ns):.0%}")
    words = f"Rank {place}: {plural(len(calls), 'call')}; {', '.join(parts)}."
    if place in blocked:
        since = span.moment(blocked[place]["begin_ns"])
        words += f" Since {since} in {wording.call(blocked[place])}, which never returned."
    elif not rank.finished:
        words += " After its last call it did not come to its end."
    if rank.header["signal"]:
        words += f" Ended by {signal_of(rank)}."
    return words


def _known_ns(span, place, rank, calls, blocked):
    """How long, within the span, the recording knows what the rank did."""
    if place in blocked:
        last = span.end_ns
    else:
        last = int(rank.header["closed_ns"]) or last_moment(span, place)
    first = calls["begin_ns"].min(initial=last)
    return max(0, min(last, span.end_ns) - max(int(first), span.begin_ns))


def notes_of(span, crowded):
    """What has to be said of a picture of a Span before anybody looks at it: lines."""
    notes = []
    if crowded:
        notes.append(
            f"{len(span.calls):,} calls and {len(span.messages):,} messages are too many to draw "
            "one by one: rows show shares of the time. window=(from, to) in seconds shows a part."
        )
    dropped = sum(int(rank.header["dropped"]) for rank in span.ranks if rank is not None)
    if dropped:
        notes.append(f"{dropped:,} calls more did not fit into the recording.")
    if not len(span.calls):
        notes.append("No MPI call was recorded.")
    return notes


def last_moment(span, place):
    """When the last call of a rank began or ended, or the Span itself; nanoseconds."""
    calls = span.calls[span.calls["rank"] == place]
    return int(max(calls["begin_ns"].max(initial=span.begin_ns), calls["end_ns"].max(initial=0)))


def signal_of(rank):
    """The name of the signal that ended a rank."""
    return signal_name(int(rank.header["signal"]))
