"""Single calls as bars and single messages as arrows: the timeline of what can still be drawn."""

import numpy as np
import plotly.graph_objects as go

from mpilab.plots import style
from mpilab.plots.calls import KINDS, Wording
from mpilab.recording import NONE

BAR = 0.5  # of a row


def bars(span):
    """Figure of a Span, without its layout: a bar for each call, an arrow for each message."""
    figure = go.Figure()
    wording = Wording(span.ranks, span.calls)
    ends_ns = span.ends_ns
    for kind, name in enumerate(KINDS):
        (chosen,) = np.nonzero(span.calls["kind"] == kind)
        if len(chosen):
            figure.add_trace(_bars(span, name, chosen, ends_ns[chosen], wording))
    came = span.messages["receive_record"] != NONE
    if came.any():
        figure.add_trace(_arrows(span, span.messages[came]))
    if not came.all():
        figure.add_trace(_lost(span, span.messages[~came]))
    if not figure.data:
        figure.add_trace(go.Scatter(x=[], y=[], showlegend=False))
    return figure


def _bars(span, name, chosen, ends_ns, wording):
    calls = span.calls[chosen]
    blocked = name == style.NEVER_RETURNED
    hover = []
    for call, end_ns in zip(calls, ends_ns.tolist(), strict=True):
        begin_ns = int(call["begin_ns"])
        lasted = style.duration((end_ns - begin_ns) / 1e9)
        how = "never returned" if blocked else f"took {lasted}"
        hover.append(
            f"rank {call['rank']}: {wording.call(call)}<br>at {span.moment(begin_ns)}, {how}"
        )
    colour = style.CALL_COLOURS[name]
    pattern = {}
    if name in style.CALL_PATTERNS:
        pattern = dict(shape=style.CALL_PATTERNS[name], fillmode="overlay",
                       fgcolor="rgba(255, 255, 255, 0.45)", size=8, solidity=0.2)  # fmt: skip
    return go.Bar(
        orientation="h",
        base=span.at(calls["begin_ns"]),
        x=(ends_ns - calls["begin_ns"]) / span.unit_ns,
        y=calls["rank"],
        width=BAR,
        name=name,
        # With an edge, calls that are shorter than a pixel can still be seen, and those that
        # follow each other at once told apart.
        marker=dict(color=colour, line=dict(color=_darker(colour), width=0.8), pattern=pattern),
        text=[f"✗ {wording.short(call)}" for call in calls] if blocked else None,
        textposition="inside",
        insidetextanchor="end",
        insidetextfont=dict(color="#ffffff", size=11),
        constraintext="none",
        textangle=0,
        hovertext=hover,
        hoverinfo="text",
    )


def _darker(colour):
    return "#" + "".join(f"{int(int(colour[i : i + 2], 16) * 0.7):02x}" for i in (1, 3, 5))


def _broken(columns):
    """Lines of two points each, with a gap after each: [2, n] → flat, with NaN in between."""
    first, second = columns
    return np.column_stack([first, second, np.full(len(first), np.nan)]).ravel()


def _from_edge_to_edge(messages):
    """Where messages begin and end: at the edge of a bar that is next to the other rank."""
    down = np.sign(messages["dest"] - messages["source"]) * BAR / 2
    return messages["source"] + down, messages["dest"] - down


def _arrows(span, messages):
    few = len(messages) <= 500
    hover = []
    for message in messages:
        text = (
            f"{message_in_words(message)}<br>sent at {span.moment(message['sent_ns'])}, there "
            f"after {style.duration((message['received_ns'] - message['sent_ns']) / 1e9)}"
        )
        hover += ["", text, ""]
    return go.Scatter(
        x=_broken((span.at(messages["sent_ns"]), span.at(messages["received_ns"]))),
        y=_broken(_from_edge_to_edge(messages)),
        mode="lines+markers",
        name="message",
        line=dict(color=style.MESSAGE_COLOUR, width=1.2 if few else 0.7),
        marker=dict(
            symbol="arrow",
            angleref="previous",
            size=np.tile([0, 9 if few else 6, 0], len(messages)),
            color=style.MESSAGE_COLOUR,
            opacity=1,
            line=dict(width=0),
        ),
        hovertext=hover,
        hoverinfo="text",
    )


def _lost(span, messages):
    hover = []
    for message in messages:
        sent = span.moment(message["sent_ns"])
        text = f"{message_in_words(message)}<br>sent at {sent}, no receive was seen"
        hover += ["", text, ""]
    first, last = _from_edge_to_edge(messages)
    moments = span.at(messages["sent_ns"])
    return go.Scatter(
        x=_broken((moments, moments)),
        # Towards its receiver, but not as far as that.
        y=_broken((first, last - 0.12 * np.sign(last - first))),
        mode="lines+markers",
        name="message without a receive",
        line=dict(color=style.LOST_MESSAGE_COLOUR, width=1.5, dash="dash"),
        marker=dict(
            symbol="x",
            size=np.tile([0, 9, 0], len(messages)),
            color=style.LOST_MESSAGE_COLOUR,
            opacity=1,
            line=dict(width=0),
        ),
        hovertext=hover,
        hoverinfo="text",
    )


def message_in_words(message):
    return (
        f"rank {message['source']} → rank {message['dest']}, tag {message['tag']}, "
        f"{style.byte_size(int(message['bytes']))}"
    )
