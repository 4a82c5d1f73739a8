"""What ranks spend their time on, in steps of time: a timeline of more calls than can be drawn."""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from mpilab.plots import style
from mpilab.plots.calls import KINDS

STEPS = 300
# From the bottom of a row to its top, so that what is waited for lies in the same place everywhere.
STACK = (
    style.NEVER_RETURNED, "wait/test/probe", "receive", "send-receive", "send", "collective",
    "communicator/datatype", "file",
)  # fmt: skip


def busy(calls, ends_ns, ranks, edges_ns):
    """Nanoseconds that each rank spends in each class of call in each step of time.

    calls, ends_ns   CALL array, by rank and in the order of the calls, and when each one ended.
    edges_ns         the edges of the steps, ascending.

    float64 [ranks, KINDS, steps]. Polls at several places interleave; no time counts twice.
    """
    edges = np.asarray(edges_ns, np.int64)
    spent = np.zeros((ranks, len(KINDS), len(edges) - 1))
    of_rank = np.searchsorted(calls["rank"], np.arange(ranks + 1))
    for rank in range(ranks):
        part = slice(of_rank[rank], of_rank[rank + 1])
        ends = np.maximum.accumulate(ends_ns[part])
        begins = calls["begin_ns"][part].copy()
        begins[1:] = np.maximum(begins[1:], ends[:-1])
        lengths = np.maximum(ends - begins, 0)
        for kind in np.unique(calls["kind"][part]):
            chosen = calls["kind"][part] == kind
            spent[rank, kind] = np.diff(_until(edges, begins[chosen], lengths[chosen]))
    return spent


def _until(moments, begins, lengths):
    """How much of the intervals, which don't overlap, lies before each of `moments`."""
    before = np.concatenate([[0], np.cumsum(lengths)])
    last = np.searchsorted(begins, moments, side="right") - 1
    at = np.maximum(last, 0)
    return np.where(last < 0, 0, before[at] + np.minimum(moments - begins[at], lengths[at]))


def shares(span):
    """Figure of a Span, without its layout: messages above, a row for each rank below."""
    ranks = len(span.ranks)
    figure = make_subplots(
        rows=2,
        shared_xaxes=True,
        row_heights=[70, max(18 * ranks, 120)],
        vertical_spacing=18 / (18 * ranks + 180),
    )
    figure.add_trace(_messages(span, *_steps(span)), row=1, col=1)
    for trace in shares_of_rows(span):
        figure.add_trace(trace, row=2, col=1)
    figure.update_yaxes(title="messages", rangemode="tozero", nticks=3, row=1, col=1)
    return figure


def shares_of_rows(span):
    """The traces of the rows of a Span alone."""
    edges, centres = _steps(span)
    part = busy(span.calls, span.ends_ns, len(span.ranks), edges) / np.maximum(np.diff(edges), 1)
    yield _stacked(part, centres)
    yield _pointed_at(span, part, edges, centres)
    for kind, name in enumerate(KINDS):
        if part[:, kind].any():
            yield _legend_entry(name)


def _steps(span):
    """The edges of the steps in nanoseconds, and their centres on the axis."""
    edges = np.linspace(span.begin_ns, span.end_ns, STEPS + 1).astype(np.int64)
    return edges, span.at((edges[1:] + edges[:-1]) / 2)


def _messages(span, edges, centres):
    count, _ = np.histogram(span.messages["sent_ns"], edges)
    return go.Bar(
        x=centres,
        y=count.astype(np.int32),
        marker=dict(color=style.MESSAGE_COLOUR, line=dict(width=0)),
        width=centres[1] - centres[0],
        name="messages sent",
        hovertemplate=f"%{{y}} messages sent at %{{x:.4~g}} {span.unit}<extra></extra>",
        showlegend=False,
    )


def _stacked(part, centres):
    """Each rank's row is a stack of thin ones, coloured in proportion; the topmost stays empty."""
    ranks = len(part)
    levels = int(np.clip(384 // max(ranks, 1), 6, 24))
    order = [KINDS.index(name) for name in STACK]
    tops = np.cumsum(part[:, order], axis=1)
    middles = (np.arange(levels) + 0.5) / levels
    # The class whose share reaches the middle of a level fills it: 0 is nothing, 1 is KINDS[0].
    below = (tops[:, :, None, :] < middles[None, None, :, None]).sum(axis=1)
    filled = np.array([*(kind + 1 for kind in order), 0], np.uint8)[below]
    rows = np.zeros((ranks, levels + 1, part.shape[2]), np.uint8)
    rows[:, 1:] = filled[:, ::-1]
    step = 1 / (levels + 1)
    colours = ["rgba(0,0,0,0)", *(style.CALL_COLOURS[name] for name in KINDS)]
    scale = [
        [edge, colour]
        for place, colour in enumerate(colours)
        for edge in (place / len(colours), (place + 1) / len(colours))
    ]
    return go.Heatmap(
        z=rows.reshape(-1, part.shape[2]),
        x=centres,
        y0=-0.5 + step / 2,
        dy=step,
        zmin=-0.5,
        zmax=len(KINDS) + 0.5,
        colorscale=scale,
        showscale=False,
        hoverinfo="skip",
    )


def _pointed_at(span, part, edges, centres):
    """Nothing to see, one cell for each rank and step: what the pointer tells."""
    ranks, _, steps = part.shape
    place = np.clip(np.searchsorted(edges, span.calls["begin_ns"], side="right") - 1, 0, steps - 1)
    begun = np.bincount(span.calls["rank"] * steps + place, minlength=ranks * steps)
    present = [kind for kind in range(len(KINDS)) if part[:, kind].any()]
    percent = np.rint(100 * part[:, present]).astype(np.uint8)
    lines = [f"{KINDS[kind]}: %{{customdata[{i}]}} %" for i, kind in enumerate(present)]
    return go.Heatmap(
        z=np.minimum(begun, 65535).reshape(ranks, steps).astype(np.uint16),
        x=centres,
        y=np.arange(ranks),
        customdata=np.moveaxis(percent, 1, 2),
        colorscale=[[0, "rgba(0,0,0,0)"], [1, "rgba(0,0,0,0)"]],
        showscale=False,
        hovertemplate=f"rank %{{y}}, at %{{x:.4~g}} {span.unit}: %{{z}} calls begun<br>"
        + "<br>".join(lines)
        + "<extra></extra>",
    )


def _legend_entry(name):
    return go.Scatter(
        x=[None],
        y=[None],
        mode="markers",
        marker=dict(symbol="square", size=12, color=style.CALL_COLOURS[name]),
        name=name,
        hoverinfo="skip",
    )
