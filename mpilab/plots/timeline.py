"""Who does what when: the calls of every rank as bars over time, and its messages as arrows."""

import numpy as np

from mpilab.plots import style
from mpilab.plots.bars import bars, message_in_words
from mpilab.plots.calls import BLOCKED, KINDS, Wording, ranks_of
from mpilab.plots.shares import busy, shares
from mpilab.plots.span import cut, whole
from mpilab.plots.style import plural
from mpilab.recording import NONE
from mpilab.result import signal_name

# Measured in headless Chromium on two cores: zooming takes 0.3 s with 4,000 calls and their
# messages, 1.2 s with 12,000.
MOST_CALLS, MOST_MESSAGES = 4000, 3000
MESSAGES_IN_TEXT = 40
ROW_PIXELS = 18


def timeline(recording, *, window=None, title="Timeline"):
    """Figure of a Recording, or of a list with a RankRecording or None for each rank.

    Rank 0 is on top. A bar is an MPI call, its colour the class of the call (style.CALL_COLOURS);
    between bars the program is on its own. An arrow is a message: from the begin of the send to
    the moment when its receiver knew that it had come.

    window   (from, to) in seconds since the first call: only this part.

    More than MOST_CALLS calls or MOST_MESSAGES messages are summed up: then each row shows, in
    steps of time, which part of it its rank has spent on what, and the number of messages stands
    above. Drag with the mouse to zoom, double-click to see all. Raises InputError for a window
    that isn't one.
    """
    ranks = ranks_of(recording)
    span = cut(whole(ranks), window)
    crowded = len(span.calls) > MOST_CALLS or len(span.messages) > MOST_MESSAGES
    figure = shares(span) if crowded else bars(span)
    notes = _notes(span, crowded)
    _lay_out(figure, span, title, notes)
    return style.finish(figure, "\n".join(_alt(span, title, notes, crowded)))


# --- Around both kinds


def _lay_out(figure, span, title, notes):
    count = len(span.ranks)
    summed_up = "yaxis2" in figure.layout
    names = [str(place) if rank else f"{place} (never began)"
             for place, rank in enumerate(span.ranks)]  # fmt: skip
    figure.update_layout(
        title=dict(text="<br>".join([title, *(f"<sub>{note}</sub>" for note in notes)])),
        barmode="overlay",
        bargap=0,
        height=190 + 18 * len(notes) + 70 * summed_up + max(ROW_PIXELS, 34 - count // 2) * count,
        margin=dict(t=60 + 20 * len(notes), b=110),
        legend=dict(orientation="h", x=0, y=0, yref="container", yanchor="bottom"),
        hovermode="closest",
        # Points of messages must not take the pointer away from the bars around them.
        hoverdistance=8,
        modebar=dict(orientation="v", remove=["select2d", "lasso2d", "autoScale2d"]),
    )
    figure.update_xaxes(range=[span.at(span.begin_ns), span.at(span.end_ns)], gridcolor=style.GRID)
    edge = 0.01 * (span.at(span.end_ns) - span.at(span.begin_ns))
    figure.update_xaxes(
        title=f"time since the first call ({span.unit})",
        range=[span.at(span.begin_ns) - edge, span.at(span.end_ns) + edge],
        row=2 if summed_up else None,
    )
    rows = "y2" if summed_up else "y"
    for axis in figure.select_yaxes(row=2 if summed_up else None):
        axis.update(
            title="rank",
            range=[count - 0.5, -0.5],
            tickvals=list(range(count)),
            ticktext=names,
            ticks="",
            showgrid=False,
        )
    # Zooming is along the time only.
    figure.update_yaxes(fixedrange=True)
    for place, rank in enumerate(span.ranks):
        if rank is not None and rank.header["signal"]:
            moment = _last_moment(span, place)
            figure.add_annotation(
                x=span.at(moment), y=place, yref=rows, text=f"✗ {_signal(rank)}", showarrow=False,
                xanchor="left", font=dict(color=style.CALL_COLOURS[style.NEVER_RETURNED]),
            )  # fmt: skip


def _last_moment(span, place):
    calls = span.calls[span.calls["rank"] == place]
    return int(max(calls["begin_ns"].max(initial=span.begin_ns), calls["end_ns"].max(initial=0)))


def _signal(rank):
    return signal_name(int(rank.header["signal"]))


def _notes(span, crowded):
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


# --- As text


def _alt(span, title, notes, crowded):
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
        words += f" Ended by {_signal(rank)}."
    return words


def _known_ns(span, place, rank, calls, blocked):
    """How long, within the span, the recording knows what the rank did."""
    if place in blocked:
        last = span.end_ns
    else:
        last = int(rank.header["closed_ns"]) or _last_moment(span, place)
    first = calls["begin_ns"].min(initial=last)
    return max(0, min(last, span.end_ns) - max(int(first), span.begin_ns))
