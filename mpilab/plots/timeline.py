"""Timelines of recordings: the calls of each rank as bars over time, messages as arrows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mpilab.errors import InputError
from mpilab.plots import style
from mpilab.plots.style import CALL_COLORS, NEVER_RETURNED, Figure, Trace, go, plotly
from mpilab.runners.result import signal_name
from mpilab.trace.callsites import lines_of
from mpilab.trace.matching import EXCHANGES
from mpilab.trace.recording import (
    ANY,
    COLLECTIVE,
    NOBODY,
    NONE,
    POLLS,
    RECEIVES,
    SENDS,
    SYNCHRONOUS,
    WAITS,
    RankRecording,
    Recording,
    messages_of,
    operations,
)
from mpilab.util.units import byte_size, plural

# The calls and messages of a recording as arrays. A list of ranks holds a RankRecording for each
# rank, or None for a rank that left no recording: in a deadlock, it may never have begun.

Ranks = Sequence[RankRecording | None]

KINDS = tuple(CALL_COLORS)
BLOCKED = KINDS.index(NEVER_RETURNED)
# Prefixes of calls that are neither messages nor collectives.
OTHERS = (
    "Send_",
    "Ssend_",
    "Recv_",
    "Start",
    "Request_",
    "Cancel",
    "Comm_",
    "Type_",
    "Abort",
    "Other",
)

# kind: index in KINDS; record: its (first) record in the recording of its rank.
CALL = np.dtype(
    [("rank", "i4"), ("record", "i4"), ("kind", "i1"), ("begin_ns", "i8"), ("end_ns", "i8")]
)
# Calls that never returned extend beyond the last event, by this share of the whole.
TAIL = 0.16
BAR = 0.5  # height, in rows
STEPS = 300
# From the bottom of a row to its top, so that waiting is at the same height in every row.
STACK = (
    style.NEVER_RETURNED,
    "wait/test/probe",
    "receive",
    "send-receive",
    "send",
    "collective",
    "communicator/datatype",
    "file",
)
MESSAGES_IN_TEXT = 40
# Measured in headless Chromium on two cores: zooming takes 0.3 s with 4,000 calls and their
# messages, 1.2 s with 12,000.
MOST_CALLS, MOST_MESSAGES = 4000, 3000
ROW_PIXELS = 18
MOST_BESIDE = 4  # timelines that are still legible side by side


def ranks_of(recording: Recording | Iterable[RankRecording | None]) -> list[RankRecording | None]:
    """The list of ranks of a Recording, or of a list of RankRecording and None."""
    return list(recording.ranks if isinstance(recording, Recording) else recording)


def calls_of(ranks: Ranks) -> NDArray[Any]:
    """All calls as CALL: by rank, then in call order.

    A send-receive, which has two records, is one call. end_ns is 0 if a call never returned.
    """
    return np.concatenate(
        [np.zeros(0, CALL)]
        + [_calls_of_rank(place, rank) for place, rank in enumerate(ranks) if rank is not None]
    )


def _calls_of_rank(place: int, rank: RankRecording) -> NDArray[Any]:
    records = rank.records
    operation, flags = records["operation"], records["flags"]
    exchange = np.isin(operation, _numbers(EXCHANGES))
    second = np.zeros(len(records), bool)
    second[1:] = (exchange & (flags & RECEIVES != 0))[1:] & (exchange & (flags & SENDS != 0))[:-1]
    (kept,) = np.nonzero(~second)
    calls = np.zeros(len(kept), CALL)
    calls["rank"], calls["record"] = place, kept
    calls["begin_ns"], calls["end_ns"] = records["begin_ns"][kept], records["end_ns"][kept]
    kinds = np.array(_kind_of_operation(), np.int8)
    # Calls unknown to this version use the last entry.
    kind = kinds[np.minimum(operation[kept], len(kinds) - 1)]
    started = np.isin(operation[kept], _numbers(("MPI_Start", "MPI_Startall")))
    to_send = flags[kept] & SENDS != 0
    kind[started] = np.where(to_send, KINDS.index("send"), KINDS.index("receive"))[started]
    kind[calls["end_ns"] == 0] = BLOCKED
    calls["kind"] = kind
    return calls


def _numbers(names: Iterable[str]) -> list[int]:
    return [number for number, name in operations().items() if name in names]


@cache
def _kind_of_operation() -> tuple[int, ...]:
    """The index in KINDS of each operation by number; the last entry is for unknown ones."""
    return tuple(KINDS.index(_kind(operations().get(i, ""))) for i in range(len(operations()) + 2))


def _kind(name: str) -> str:
    name = name.removeprefix("MPI_")
    if name.startswith("Sendrecv"):
        return "send-receive"
    if name.startswith("File_"):
        return "file"
    if name.startswith(("Wait", "Test")) or name.lower().endswith("probe"):
        return "wait/test/probe"
    if name.lower().endswith("send"):
        return "send"
    if name.lower().endswith("recv"):
        return "receive"
    is_other = not name or name.startswith(OTHERS)
    return "communicator/datatype" if is_other else "collective"


class Wording:
    """Calls in words, with their source lines if known."""

    def __init__(self, ranks: Ranks, calls: Iterable[np.void]) -> None:
        """Look up the lines of all `calls` at once, with one run of addr2line per library."""
        self.ranks = ranks
        sites: dict[str, set[int]] = {}
        for call in calls:
            rank = ranks[call["rank"]]
            sites.setdefault(_library(rank), set()).add(int(rank.records["site"][call["record"]]))
        self.lines = {}
        for library, offsets in sites.items():
            every = tuple(sorted(offsets))
            for offset, (_, file, line) in zip(every, lines_of(library, every), strict=True):
                if line:
                    in_cell = file in ("", "cell")
                    words = f"line {line}" if in_cell else f"{file}, line {line}"
                    self.lines[library, offset] = words

    def call(self, call: np.void) -> str:
        """'MPI_Recv from rank 1, tag 7, 40 B, line 12'."""
        rank = self.ranks[call["rank"]]
        record = rank.records[call["record"]]
        name = operations().get(int(record["operation"]), "an unknown call")
        parts = [f"{name} {_partner(record, rank.rank)}".rstrip()]
        if name in EXCHANGES and call["record"] + 1 < len(rank.records):
            parts.append(_partner(rank.records[call["record"] + 1], rank.rank))
        if record["error"]:
            parts.append(f"failed with error class {record['error']}")
        parts.append(self.lines.get((_library(rank), int(record["site"])), ""))
        return ", ".join(filter(None, parts))

    def short(self, call: np.void) -> str:
        """'Recv from 1': short enough to fit into a bar."""
        record = self.ranks[call["rank"]].records[call["record"]]
        name = operations().get(int(record["operation"]), "?").removeprefix("MPI_")
        flags = int(record["flags"])
        if name.startswith("Sendrecv") or not flags & (SENDS | RECEIVES) or record["peer"] < ANY:
            return name
        peer = "any" if record["peer"] == ANY else record["peer"]
        return f"{name} {'to' if flags & SENDS else 'from'} {peer}"


def _library(rank: RankRecording) -> str:
    return rank.header["object"].decode(errors="replace")


def _partner(record: np.void, own: int) -> str:
    """Partner, tag and bytes (or root, or count) in words; '' for calls without any."""
    flags = int(record["flags"])
    tag = "any tag" if record["tag"] == ANY else f"tag {record['tag']}"
    if flags & SENDS:
        how = " (synchronous)" if flags & SYNCHRONOUS else ""
        return f"to {_whom(record['peer'], own)}, {tag}, {byte_size(int(record['bytes']))}{how}"
    if flags & RECEIVES:
        whom = f"from {_whom(record['peer'], own)}"
        if not record["done_ns"]:
            return f"{whom}, {tag}, room for {byte_size(int(record['bytes']))}"
        if record["peer"] == ANY and record["got_peer"] >= 0:
            whom += f" (it was {_whom(record['got_peer'], own)})"
        if record["tag"] == ANY and record["got_tag"] >= 0:
            tag += f" (it was {record['got_tag']})"
        return f"{whom}, {tag}, {byte_size(int(record['got_bytes']))}"
    if flags & COLLECTIVE:
        return f"with root {record['peer']}" if record["peer"] != NONE else ""
    if flags & WAITS:
        return f"for {record['count']} request{'' if record['count'] == 1 else 's'}"
    if record["count"] > 1 and (flags & POLLS or not record["bytes"]):
        return f"{record['count']} times"
    return ""


def _whom(peer: int, own: int) -> str:
    if peer in (ANY, NOBODY):
        return "any rank" if peer == ANY else "MPI_PROC_NULL"
    return "itself" if peer == own else f"rank {peer}"


# A part of the time of a recording: its calls and messages, and their place on the time axis.


@dataclass
class Span:
    """What is drawn: the ranks, calls and messages, and the time from `begin_ns` to `end_ns`.

    start_ns   the first call of all, from which times are counted.
    tail_ns    the part at its end that is beyond the last recorded event.
    """

    ranks: list[RankRecording | None]
    calls: NDArray[Any]
    messages: NDArray[Any]
    start_ns: int
    begin_ns: int
    end_ns: int
    tail_ns: int = 0

    def __post_init__(self) -> None:
        seconds = (self.end_ns - self.begin_ns) / 1e9
        self.unit_ns, self.unit = style.time_unit(seconds)

    @property
    def recorded_ns(self) -> int:
        """The length of its recorded part."""
        return max(self.end_ns - self.tail_ns - self.begin_ns, 1)

    def at(self, ns: Any) -> Any:
        """The position of a time on the axis."""
        return (ns - self.start_ns) / self.unit_ns

    def moment(self, ns: int) -> str:
        """A time in words, with the resolution of the figure: '1.0134 ms'."""
        width = max((self.end_ns - self.begin_ns) / self.unit_ns, 1e-3)
        decimals = int(np.clip(np.ceil(3.3 - np.log10(width)), 0, 6))
        return f"{self.at(int(ns)):.{decimals}f} {self.unit}"

    @property
    def ends_ns(self) -> NDArray[np.int64]:
        """The end of each call; one that never returned lasts until the right edge."""
        never = self.calls["kind"] == BLOCKED
        return np.where(never, self.end_ns, self.calls["end_ns"])


def whole(ranks: list[RankRecording | None]) -> Span:
    """The Span of everything that was recorded."""
    calls, messages = calls_of(ranks), messages_of(ranks)
    known = [rank for rank in ranks if rank is not None]
    opened = [int(rank.header["opened_ns"]) for rank in known]
    start = int(calls["begin_ns"].min()) if len(calls) else min(opened, default=0)
    moments = [start + 1, *(int(rank.header["closed_ns"]) for rank in known)]
    for values in (calls["begin_ns"], calls["end_ns"], messages["received_ns"]):
        moments.append(int(values.max(initial=0)))
    end = max(moments)
    never = (calls["kind"] == BLOCKED).any()
    tail = max(int((end - start) * TAIL), 1000) if never else 0
    return Span(ranks, calls, messages, start, start, end + tail, tail)


def cut(span: Span, window: Sequence[float] | None) -> Span:
    """The part of a Span in a window (from, to) in seconds since the first call; all if None."""
    if window is None:
        return span
    try:
        first, last = (span.start_ns + round(float(second) * 1e9) for second in window)
    except (TypeError, ValueError):
        first = last = 0
    if not first < last:
        raise InputError(
            f"window={window!r}: not part of the timeline; give two times in seconds since the "
            "first call, such as (0, 1e-3)"
        )
    inside = (span.calls["begin_ns"] < last) & (span.ends_ns > first)
    arrived = np.maximum(span.messages["received_ns"], span.messages["sent_ns"])
    under_way = (span.messages["sent_ns"] < last) & (arrived >= first)
    return Span(
        span.ranks,
        span.calls[inside],
        span.messages[under_way],
        span.start_ns,
        first,
        last,
        max(0, last - (span.end_ns - span.tail_ns)),
    )


# The detailed timeline: each call as a bar, each message as an arrow.


def bars(span: Span) -> Figure:
    """Figure of a Span, without layout: a bar for each call, an arrow for each message."""
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


def _bars(
    span: Span, name: str, chosen: NDArray[np.intp], ends_ns: NDArray[np.int64], wording: Wording
) -> Trace:
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
    color = style.CALL_COLORS[name]
    pattern = {}
    if name in style.CALL_PATTERNS:
        pattern = dict(
            shape=style.CALL_PATTERNS[name],
            fillmode="overlay",
            fgcolor="rgba(255, 255, 255, 0.45)",
            size=8,
            solidity=0.2,
        )
    return go.Bar(
        orientation="h",
        base=span.at(calls["begin_ns"]),
        x=(ends_ns - calls["begin_ns"]) / span.unit_ns,
        y=calls["rank"],
        width=BAR,
        name=name,
        # The edge keeps calls shorter than a pixel visible and separates consecutive calls.
        marker=dict(color=color, line=dict(color=_darker(color), width=0.8), pattern=pattern),
        text=[f"✗ {wording.short(call)}" for call in calls] if blocked else None,
        textposition="inside",
        insidetextanchor="end",
        insidetextfont=dict(color="#ffffff", size=11),
        constraintext="none",
        textangle=0,
        hovertext=hover,
        hoverinfo="text",
    )


def _darker(color: str) -> str:
    return "#" + "".join(f"{int(int(color[i : i + 2], 16) * 0.7):02x}" for i in (1, 3, 5))


def _broken(columns: tuple[NDArray[Any], NDArray[Any]]) -> NDArray[np.float64]:
    """Lines of two points each, with a gap (NaN) after each: [2, n] → flat."""
    first, second = columns
    return np.column_stack([first, second, np.full(len(first), np.nan)]).ravel()


def _from_edge_to_edge(messages: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The y at which messages begin and end: the edges of the bars that face each other."""
    down = np.sign(messages["dest"] - messages["source"]) * BAR / 2
    return messages["source"] + down, messages["dest"] - down


def _arrows(span: Span, messages: NDArray[Any]) -> Trace:
    few = len(messages) <= 500
    hover = []
    for message in messages:
        text = (
            f"{message_in_words(message)}<br>sent at {span.moment(message['sent_ns'])}, arrived "
            f"after {style.duration((message['received_ns'] - message['sent_ns']) / 1e9)}"
        )
        hover += ["", text, ""]
    return go.Scatter(
        x=_broken((span.at(messages["sent_ns"]), span.at(messages["received_ns"]))),
        y=_broken(_from_edge_to_edge(messages)),
        mode="lines+markers",
        name="message",
        line=dict(color=style.MESSAGE_COLOR, width=1.2 if few else 0.7),
        marker=dict(
            symbol="arrow",
            angleref="previous",
            size=np.tile([0, 9 if few else 6, 0], len(messages)),
            color=style.MESSAGE_COLOR,
            opacity=1,
            line=dict(width=0),
        ),
        hovertext=hover,
        hoverinfo="text",
    )


def _lost(span: Span, messages: NDArray[Any]) -> Trace:
    hover = []
    for message in messages:
        sent = span.moment(message["sent_ns"])
        text = f"{message_in_words(message)}<br>sent at {sent}, no receive recorded"
        hover += ["", text, ""]
    first, last = _from_edge_to_edge(messages)
    moments = span.at(messages["sent_ns"])
    return go.Scatter(
        x=_broken((moments, moments)),
        # Toward the receiver, but without reaching it.
        y=_broken((first, last - 0.12 * np.sign(last - first))),
        mode="lines+markers",
        name="message without a receive",
        line=dict(color=style.LOST_MESSAGE_COLOR, width=1.5, dash="dash"),
        marker=dict(
            symbol="x",
            size=np.tile([0, 9, 0], len(messages)),
            color=style.LOST_MESSAGE_COLOR,
            opacity=1,
            line=dict(width=0),
        ),
        hovertext=hover,
        hoverinfo="text",
    )


def message_in_words(message: np.void) -> str:
    return (
        f"rank {message['source']} → rank {message['dest']}, tag {message['tag']}, "
        f"{style.byte_size(int(message['bytes']))}"
    )


# The summary timeline, for more calls than can be drawn: what ranks do in each time step.


def busy(
    calls: NDArray[Any], ends_ns: NDArray[np.int64], ranks: int, edges_ns: ArrayLike
) -> NDArray[np.float64]:
    """Nanoseconds that each rank spends in each class of call in each time step.

    calls, ends_ns   CALL array, by rank and in call order, and when each call ended.
    edges_ns         the edges of the steps, ascending.

    float64 [ranks, KINDS, steps]. Polls at several call sites interleave; no time counts twice.
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


def _until(
    moments: NDArray[np.int64], begins: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The total length of the intervals, which don't overlap, before each of `moments`."""
    before = np.concatenate([[0], np.cumsum(lengths)])
    last = np.searchsorted(begins, moments, side="right") - 1
    at = np.maximum(last, 0)
    return np.where(last < 0, 0, before[at] + np.minimum(moments - begins[at], lengths[at]))


def shares(span: Span) -> Figure:
    """Figure of a Span, without layout: messages above, a row for each rank below."""
    ranks = len(span.ranks)
    figure = plotly.subplots.make_subplots(
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


def shares_of_rows(span: Span) -> Iterator[Any]:
    """The traces of the rows of a Span, without the messages."""
    edges, centers = _steps(span)
    part = busy(span.calls, span.ends_ns, len(span.ranks), edges) / np.maximum(np.diff(edges), 1)
    yield _stacked(part, centers)
    yield _pointed_at(span, part, edges, centers)
    for kind, name in enumerate(KINDS):
        if part[:, kind].any():
            yield style.legend_entry(name, style.CALL_COLORS[name], size=12)


def _steps(span: Span) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The edges of the steps in nanoseconds, and their centers on the axis."""
    edges = np.linspace(span.begin_ns, span.end_ns, STEPS + 1).astype(np.int64)
    return edges, span.at((edges[1:] + edges[:-1]) / 2)


def _messages(span: Span, edges: NDArray[np.int64], centers: NDArray[np.float64]) -> Trace:
    count, _ = np.histogram(span.messages["sent_ns"], edges)
    return go.Bar(
        x=centers,
        y=count.astype(np.int32),
        marker=dict(color=style.MESSAGE_COLOR, line=dict(width=0)),
        width=centers[1] - centers[0],
        name="messages sent",
        hovertemplate=f"%{{y}} messages sent at %{{x:.4~g}} {span.unit}<extra></extra>",
        showlegend=False,
    )


def _stacked(part: NDArray[np.float64], centers: NDArray[np.float64]) -> Trace:
    """Rows of ranks as stacks of thin ones, colored in proportion; the topmost stays empty."""
    ranks = len(part)
    levels = int(np.clip(384 // max(ranks, 1), 6, 24))
    order = [KINDS.index(name) for name in STACK]
    tops = np.cumsum(part[:, order], axis=1)
    middles = (np.arange(levels) + 0.5) / levels
    # A level shows the class whose share covers its center: 0 is nothing, 1 is KINDS[0].
    below = (tops[:, :, None, :] < middles[None, None, :, None]).sum(axis=1)
    filled = np.array([*(kind + 1 for kind in order), 0], np.uint8)[below]
    rows = np.zeros((ranks, levels + 1, part.shape[2]), np.uint8)
    rows[:, 1:] = filled[:, ::-1]
    step = 1 / (levels + 1)
    colors = ["rgba(0,0,0,0)", *(style.CALL_COLORS[name] for name in KINDS)]
    scale = [
        [edge, color]
        for place, color in enumerate(colors)
        for edge in (place / len(colors), (place + 1) / len(colors))
    ]
    return go.Heatmap(
        z=rows.reshape(-1, part.shape[2]),
        x=centers,
        y0=-0.5 + step / 2,
        dy=step,
        zmin=-0.5,
        zmax=len(KINDS) + 0.5,
        colorscale=scale,
        showscale=False,
        hoverinfo="skip",
    )


def _pointed_at(
    span: Span, part: NDArray[np.float64], edges: NDArray[np.int64], centers: NDArray[np.float64]
) -> Trace:
    """An invisible heat map with the hover text: one cell for each rank and step."""
    ranks, _, steps = part.shape
    place = np.clip(np.searchsorted(edges, span.calls["begin_ns"], side="right") - 1, 0, steps - 1)
    begun = np.bincount(span.calls["rank"] * steps + place, minlength=ranks * steps)
    present = [kind for kind in range(len(KINDS)) if part[:, kind].any()]
    percent = np.rint(100 * part[:, present]).astype(np.uint8)
    lines = [f"{KINDS[kind]}: %{{customdata[{i}]}} %" for i, kind in enumerate(present)]
    return go.Heatmap(
        z=np.minimum(begun, 65535).reshape(ranks, steps).astype(np.uint16),
        x=centers,
        y=np.arange(ranks),
        customdata=np.moveaxis(percent, 1, 2),
        colorscale=[[0, "rgba(0,0,0,0)"], [1, "rgba(0,0,0,0)"]],
        showscale=False,
        hovertemplate=f"rank %{{y}}, at %{{x:.4~g}} {span.unit}: %{{z}} calls started<br>"
        + "<br>".join(lines)
        + "<extra></extra>",
    )


# The timeline in words: what each rank did, and the messages.


def in_words(span: Span, title: str, notes: Iterable[str], crowded: bool) -> Iterator[str]:
    """The lines of a Span's text alternative, without its received messages if `crowded`."""
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
        yield f"Messages without a recorded receive: {shown}{more}."
    if crowded:
        return
    came = span.messages[span.messages["receive_record"] != NONE]
    came = came[np.argsort(came["sent_ns"], kind="stable")]
    for message in came[:MESSAGES_IN_TEXT]:
        yield (
            f"Message {message_in_words(message)}: sent at {span.moment(message['sent_ns'])}, "
            f"arrived at {span.moment(message['received_ns'])}."
        )
    if len(came) > MESSAGES_IN_TEXT:
        yield f"And {len(came) - MESSAGES_IN_TEXT:,} more messages."


def _rank_in_words(
    span: Span,
    place: int,
    rank: RankRecording | None,
    busy_ns: NDArray[np.float64],
    blocked: Mapping[int, np.void],
    wording: Wording,
) -> str:
    if rank is None:
        return f"Rank {place} never started."
    calls = span.calls[span.calls["rank"] == place]
    parts = [
        f"{name} {busy_ns[kind] / span.recorded_ns:.0%}"
        for kind, name in enumerate(KINDS)
        if busy_ns[kind] and kind != BLOCKED
    ]
    outside = _known_ns(span, place, rank, calls, blocked) - busy_ns.sum()
    parts.append(f"outside MPI {max(0.0, outside / span.recorded_ns):.0%}")
    words = f"Rank {place}: {plural(len(calls), 'call')}; {', '.join(parts)}."
    if place in blocked:
        since = span.moment(blocked[place]["begin_ns"])
        words += f" Since {since} in {wording.call(blocked[place])}, which never returned."
    elif not rank.finished:
        words += " After its last call it did not finish."
    if rank.header["signal"]:
        words += f" Ended by {signal_of(rank)}."
    return words


def _known_ns(
    span: Span, place: int, rank: RankRecording, calls: NDArray[Any], blocked: Mapping[int, np.void]
) -> int:
    """Nanoseconds of the span for which the recording shows what the rank did."""
    if place in blocked:
        last = span.end_ns
    else:
        last = int(rank.header["closed_ns"]) or last_moment(span, place)
    first = calls["begin_ns"].min(initial=last)
    return max(0, min(last, span.end_ns) - max(int(first), span.begin_ns))


def notes_of(span: Span, crowded: bool) -> list[str]:
    """The lines to show below the title of a Span's figure."""
    notes = []
    if crowded:
        notes.append(
            f"{len(span.calls):,} calls and {len(span.messages):,} messages are too many to draw "
            "individually: rows show shares of the time. window=(from, to) in seconds shows a "
            "part."
        )
    dropped = sum(int(rank.header["dropped"]) for rank in span.ranks if rank is not None)
    if dropped:
        notes.append(f"{dropped:,} more calls did not fit into the recording.")
    if not len(span.calls):
        notes.append("No MPI call was recorded.")
    return notes


def last_moment(span: Span, place: int) -> int:
    """When the last call of a rank began or ended, or when the Span began, in nanoseconds."""
    calls = span.calls[span.calls["rank"] == place]
    return int(max(calls["begin_ns"].max(initial=span.begin_ns), calls["end_ns"].max(initial=0)))


def signal_of(rank: RankRecording) -> str:
    """The name of the signal that ended a rank."""
    return signal_name(int(rank.header["signal"]))


def timeline(
    recording: Recording | Iterable[RankRecording | None],
    *,
    window: Sequence[float] | None = None,
    title: str = "Timeline",
) -> Figure:
    """Figure of a Recording, or of a list with a RankRecording or None for each rank.

    Rank 0 is on top. A bar is an MPI call, its color the class of the call (style.CALL_COLORS);
    between bars, the program is outside MPI. An arrow is a message, from the beginning of the send
    to the time when its arrival was known to the receiver.

    window   (from, to) in seconds since the first call: only this part.

    More than MOST_CALLS calls or MOST_MESSAGES messages are summarized: each row shows, for each
    time step, the share of each class in its rank's time, with the number of messages above. Drag
    with the mouse to zoom, double-click to see all. Raises InputError for an invalid window.
    """
    span = cut(whole(ranks_of(recording)), window)
    crowded = _is_crowded(span)
    figure = shares(span) if crowded else bars(span)
    notes = notes_of(span, crowded)
    _lay_out(figure, title, notes, len(span.ranks), more_pixels=70 * crowded)
    names = [
        str(place) if rank else f"{place} (never started)" for place, rank in enumerate(span.ranks)
    ]
    _lay_out_rows(figure, span, names, row=2 if crowded else None)
    return style.finish(figure, "\n".join(in_words(span, title, notes, crowded)))


def timelines(
    recordings: Mapping[str, Recording | Iterable[RankRecording | None]],
    *,
    title: str = "Timelines",
) -> Figure:
    """Figure of several recordings side by side, on the same time scale.

    recordings   {name: Recording, or anything else that `timeline` takes}; 1 to MOST_BESIDE.

    Times are counted from the first call of each. Zooming into one zooms all of them. A recording
    with too many calls or messages is summarized as in `timeline`, but without the number of
    messages. Raises InputError for no recordings, or too many.
    """
    if not 1 <= len(recordings) <= MOST_BESIDE:
        raise InputError(
            f"{len(recordings)} recordings: 1 to {MOST_BESIDE} timelines can be compared; choose"
        )
    spans = {name: whole(ranks_of(one)) for name, one in recordings.items()}
    longest = max(span.end_ns - span.begin_ns for span in spans.values())
    spans = {name: cut(span, (0, longest / 1e9)) for name, span in spans.items()}
    rows = max(len(span.ranks) for span in spans.values())
    figure = plotly.subplots.make_subplots(
        cols=len(spans), shared_yaxes=True, horizontal_spacing=0.03, subplot_titles=list(spans)
    )
    notes: list[str] = []
    words: list[str] = []
    in_legend = set()
    for column, (name, span) in enumerate(spans.items(), start=1):
        crowded = _is_crowded(span)
        for trace in shares_of_rows(span) if crowded else bars(span).data:
            if trace.name:
                trace.update(legendgroup=trace.name, showlegend=trace.name not in in_legend)
                in_legend.add(trace.name)
            figure.add_trace(trace, row=1, col=column)
        _lay_out_rows(figure, span, list(map(str, range(rows))), row=1, col=column)
        said = notes_of(span, crowded)
        notes += [f"{name}: {note}" for note in said]
        words += in_words(span, name, said, crowded)
    _lay_out(figure, title, notes, rows, more_pixels=30)
    figure.update_layout(margin_t=75 + 20 * len(notes))
    figure.update_xaxes(matches="x")
    for axis in list(figure.select_yaxes())[1:]:
        axis.title = None
    return style.finish(figure, "\n".join([f"{title}, on the same time scale.", *words]))


def _is_crowded(span: Span) -> bool:
    return len(span.calls) > MOST_CALLS or len(span.messages) > MOST_MESSAGES


def _lay_out(figure: Figure, title: str, notes: Sequence[str], rows: int, more_pixels: int) -> None:
    figure.update_layout(
        title=dict(text="<br>".join([title, *(f"<sub>{note}</sub>" for note in notes)])),
        barmode="overlay",
        bargap=0,
        height=190 + 18 * len(notes) + more_pixels + max(ROW_PIXELS, 34 - rows // 2) * rows,
        margin=dict(t=60 + 20 * len(notes), b=110),
        legend=dict(orientation="h", x=0, y=0, yref="container", yanchor="bottom"),
        hovermode="closest",
        # Message markers must not capture the pointer from the bars around them.
        hoverdistance=8,
        modebar=dict(orientation="v", remove=["select2d", "lasso2d", "autoScale2d"]),
    )


def _lay_out_rows(
    figure: Figure,
    span: Span,
    names: Sequence[str],
    *,
    row: int | None = None,
    col: int | None = None,
) -> None:
    """Set up the axes of the rows of a Span, labeled `names`, and mark the signals that ended them.

    This is in the panel at (row, col), or in the only one.
    """
    begin, end = span.at(span.begin_ns), span.at(span.end_ns)
    edge = 0.01 * (end - begin)
    figure.update_xaxes(gridcolor=style.GRID, range=[begin, end], col=col)
    figure.update_xaxes(
        title=f"time since the first call ({span.unit})",
        range=[begin - edge, end + edge],
        row=row,
        col=col,
    )
    (rows,) = figure.select_yaxes(row=row, col=col)
    rows.update(
        title="rank",
        range=[len(names) - 0.5, -0.5],
        tickvals=list(range(len(names))),
        ticktext=names,
        ticks="",
        showgrid=False,
    )
    # Zoom along the time axis only.
    figure.update_yaxes(fixedrange=True)
    number = rows.plotly_name.removeprefix("yaxis")
    for place, rank in enumerate(span.ranks):
        if rank is not None and rank.header["signal"]:
            figure.add_annotation(
                x=span.at(last_moment(span, place)),
                y=place,
                xref=f"x{number}",
                yref=f"y{number}",
                text=f"✗ {signal_of(rank)}",
                showarrow=False,
                xanchor="left",
                font=dict(color=style.CALL_COLORS[style.NEVER_RETURNED]),
            )
