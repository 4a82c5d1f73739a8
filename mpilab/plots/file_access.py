"""Figures of file access: matrix elements read, readers compared, and requests over time."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilab.cases.case import collective_of
from mpilab.cases.distribution import ELEMENT_BYTES, HEADER_BYTES, Distribution
from mpilab.errors import InputError
from mpilab.mpiio.readers import Account
from mpilab.plots import style
from mpilab.plots.matrix import SCALE
from mpilab.plots.style import Figure, Trace, go, plotly
from mpilab.runners.result import Result
from mpilab.util.units import byte_size, duration, plural

# Matrix maps: which elements of a matrix each rank's requests cover, and how often.

MOST_CELLS = 48  # rows and columns of a panel; in a larger matrix, a cell is many elements
MOST_PANELS = 16
# (field, title, formatter)
PANELS = (
    ("requests", "requests of all ranks", "{:,}".format),
    ("bytes", "bytes read by all ranks", style.byte_size),
    ("largest", "largest request", style.byte_size),
    ("memory", "peak memory of a rank", style.byte_size),
)
# As many bars as a timeline draws (mpilab.plots.timeline); if there are more requests, only some
# are drawn.
MOST_REQUESTS = 4000
IN_TEXT = 12  # the most requests of a rank that the text alternative lists
MPI_LEVEL, SYSTEM_LEVEL = "requests to MPI", "requests to the operating system"


def matrix_access(
    requests: NDArray[Any],
    about: Distribution,
    *,
    title: str = "What each rank reads of the matrix",
) -> Figure:
    """Figure of how often each part of a matrix is read: a panel for all ranks, and one for each.

    requests   the reads of one call, with fields rank, offset and bytes.
    about      the matrix, a mpilab.cases.distribution.Distribution.

    A cell shows how often, on average, its bytes are requested. All requests are drawn as
    contiguous; if they are not (through a view), pass the requests below MPI. Raises InputError for
    more than MOST_PANELS ranks, and for a matrix without elements.
    """
    if about.ranks > MOST_PANELS:
        raise InputError(f"{about.ranks} ranks: at most {MOST_PANELS} maps can be drawn")
    if not about.bytes:
        raise InputError(f"matrix {about.words()!r}: it has no elements to be read")
    times = [times_read(requests[requests["rank"] == rank], about) for rank in range(about.ranks)]
    panels = [("all ranks", np.sum(times, axis=0))] + [
        (f"rank {r}", own) for r, own in enumerate(times)
    ]
    across = min(len(panels), 5)
    down = -(-len(panels) // across)
    figure = plotly.subplots.make_subplots(
        rows=down,
        cols=across,
        subplot_titles=[name for name, _ in panels],
        horizontal_spacing=0.05,
        vertical_spacing=0.3 / down,
    )
    most = max(1.0, float(panels[0][1].max()))
    for place, (name, cells) in enumerate(panels):
        row, column = divmod(place, across)
        figure.add_trace(_heat(name, cells, about, most), row=row + 1, col=column + 1)
    figure.update_xaxes(side="bottom", showgrid=False, nticks=4)
    figure.update_yaxes(autorange="reversed", showgrid=False, nticks=4)
    figure.update_xaxes(title="column", row=down)
    figure.update_yaxes(title="row", col=1)
    figure.update_layout(title=dict(text=title), height=170 + 200 * down, margin=dict(t=90))
    return style.finish(figure, "\n".join(_elements_alt(title, panels, about)))


def times_read(requests: NDArray[Any], about: Distribution) -> NDArray[np.float64]:
    """How often each cell of the matrix is requested, averaged over its bytes: float64.

    Its shape is [rows, columns] of at most MOST_CELLS each, in equal parts of the matrix. Requests
    at an unknown offset (below 0) are ignored. Memory use grows with the rows of the matrix times
    the columns of cells, not with the elements.
    """
    known = requests[requests["offset"] >= 0]
    first = known["offset"].astype(np.int64) - HEADER_BYTES
    last = first + known["bytes"]
    rows, columns = (_begins(length) for length in (about.rows, about.columns))
    # The cells of each row of the matrix extend from one of these bytes to the next.
    edges = np.add.outer(np.arange(about.rows) * about.columns, columns).reshape(-1)
    edges = np.append(edges, about.rows * about.columns) * ELEMENT_BYTES
    asked = np.diff(_asked_before(edges, first) - _asked_before(edges, last))
    asked = np.add.reduceat(asked.reshape(about.rows, len(columns)), rows, axis=0)
    elements = np.outer(np.diff([*rows, about.rows]), np.diff([*columns, about.columns]))
    return asked / (elements * ELEMENT_BYTES)


def _begins(length: int) -> NDArray[np.int64]:
    """The first row (or column) of each cell."""
    cells = min(length, MOST_CELLS)
    return np.arange(cells) * length // cells


def _asked_before(edges: NDArray[np.int64], begins: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bytes before each of `edges` covered by requests that begin at these offsets and never end:
    int64."""
    begins = np.sort(begins)
    there = np.searchsorted(begins, edges)
    return there * edges - np.append(0, np.cumsum(begins))[there]


def _heat(name: str, cells: NDArray[np.float64], about: Distribution, most: float) -> Trace:
    rows, columns = cells.shape
    return go.Heatmap(
        z=np.where(cells == 0, np.nan, cells),
        x=(np.arange(columns) + 0.5) * about.columns / columns - 0.5,
        y=(np.arange(rows) + 0.5) * about.rows / rows - 0.5,
        zmin=0,
        zmax=most,
        colorscale=SCALE,
        showscale=name == "all ranks",
        colorbar=dict(title="times read", thickness=12),
        hovertemplate=f"{name}: about row %{{y:.0f}}, column %{{x:.0f}}: read %{{z:.3g}} times"
        "<extra></extra>",
    )


def _elements_alt(
    title: str, panels: Sequence[tuple[str, NDArray[np.float64]]], about: Distribution
) -> Iterator[str]:
    yield f"{title}: {about.rows} x {about.columns} elements, {style.plural(about.ranks, 'rank')}."
    for name, cells in panels:
        rows, columns = np.nonzero(cells)
        if not len(rows):
            yield f"{name}: nothing."
            continue
        place = [
            (int(index.min() * whole / parts), int(-(-(index.max() + 1) * whole // parts)) - 1)
            for index, whole, parts in (
                (rows, about.rows, cells.shape[0]),
                (columns, about.columns, cells.shape[1]),
            )
        ]
        yield (
            f"{name}: {np.count_nonzero(cells) / cells.size:.0%} of the matrix, between rows "
            f"{place[0][0]} and {place[0][1]}, columns {place[1][0]} and {place[1][1]}; those "
            f"elements {cells[cells > 0].mean():.3g} times on average."
        )


# Readers compared: their requests, bytes and memory as bars.


def readers(
    accounts: Sequence[Account],
    title: str = "Requests of each reader to the operating system",
    *,
    where: str = "",
) -> Figure:
    """Figure of the requests, bytes read, largest request and peak memory of each reader, as bars.

    accounts   list of mpilab.mpiio.readers.Account.
    where      where they were counted, in words.

    Memory is that of the rank that needs the most. The axis of requests is logarithmic if a value
    exceeds 100. Raises InputError for no accounts.
    """
    if not accounts:
        raise InputError("readers: no accounts to draw; give those of mpilab.mpiio.readers.count")
    names = [account.reader.name for account in accounts]
    shown = [
        panel
        for panel in PANELS
        if any(getattr(account, panel[0]) is not None for account in accounts)
    ]
    figure = plotly.subplots.make_subplots(
        cols=len(shown),
        shared_yaxes=True,
        horizontal_spacing=0.05,
        subplot_titles=[title for _, title, _ in shown],
    )
    lines = [f"{title}: {', '.join(names)}.", *([f"{where}."] if where else [])]
    for column, (field, what, write) in enumerate(shown, start=1):
        values = [getattr(account, field) for account in accounts]
        words = ["unknown" if value is None else write(value) for value in values]
        figure.add_trace(_reader_bars(accounts, values, words, what), row=1, col=column)
        lines.append(
            f"{what}: "
            + ", ".join(f"{name} {word}" for name, word in zip(names, words, strict=True))
            + "."
        )
        if field == "requests" and max(value or 0 for value in values) > 100:
            figure.update_xaxes(type="log", dtick=1, row=1, col=column)
    figure.update_yaxes(autorange="reversed", showgrid=False)
    figure.update_xaxes(tickformat="~s", nticks=5)
    figure.update_layout(
        title=dict(text=f"{title}<br><sub>{where}</sub>" if where else title),
        showlegend=False,
        height=170 + 40 * len(names),
        bargap=0.35,
        margin=dict(t=90, l=165),
    )
    return style.finish(figure, "\n".join(lines))


def _reader_bars(
    accounts: Sequence[Account], values: Sequence[int | None], words: Sequence[str], what: str
) -> Trace:
    return go.Bar(
        orientation="h",
        x=np.array([np.nan if value is None else value for value in values], float),
        y=[account.reader.name for account in accounts],
        text=words,
        textposition="auto",
        # An algorithm has the same color with each MPI-IO implementation; ROMIO is hatched.
        marker=dict(
            color=[style.color(account.reader.algorithm) for account in accounts],
            pattern=dict(
                shape=["/" * (account.reader.mpi_io == "romio") for account in accounts],
                fillmode="overlay",
                fgcolor="rgba(255, 255, 255, 0.45)",
                size=8,
                solidity=0.2,
            ),
        ),
        customdata=words,
        hovertemplate=f"%{{y}}: %{{customdata}} ({what})<extra></extra>",
    )


# Access maps: requests as bars over time and file offset, colored by rank.


def access_map(
    requests: NDArray[Any],
    *,
    ranks: int | None = None,
    file_bytes: int | None = None,
    level: str = "",
    title: str = "Access map",
) -> Figure:
    """Figure of the requests to a file, as bars over time and file offset.

    requests    of a mpilab.trace.recording.Recording or mpilab.trace.file_access.FileAccess: fields
                rank, offset, bytes, got_bytes, is_write, begin_ns, end_ns.
    ranks       the number of ranks; by default, up to the last one with a request.
    file_bytes  the size of the file; by default, the end of the last request.
    level       MPI_LEVEL or SYSTEM_LEVEL: where the requests were made, for the title.

    A bar spans the time from the beginning to the end of a request, and the file from its first
    byte to its last, with byte 0 on top. A request through a view may be noncontiguous and extend
    beyond its bar. Of more than MOST_REQUESTS requests, every nth of each rank is drawn, and the
    figure says so; the text alternative counts all. Raises InputError for a rank outside `ranks`.
    """
    ranks = int(requests["rank"].max(initial=-1)) + 1 if ranks is None else ranks
    if len(requests) and not 0 <= requests["rank"].min() <= requests["rank"].max() < ranks:
        raise InputError(f"requests of rank {requests['rank'].max()}: there are {ranks} ranks")
    known = requests[requests["offset"] >= 0]
    reach = int((known["offset"] + known["bytes"]).max(initial=1))
    file_bytes = max(file_bytes or 0, reach)
    span = _Time(requests)
    step = -(-len(known) // MOST_REQUESTS) or 1
    figure = go.Figure()
    for rank, color in enumerate(rank_colors(ranks)):
        figure.add_trace(_bars(known[known["rank"] == rank][::step], rank, color, span))
    notes = _notes(requests, known, step, level)
    heading = f"{title}: {level}" if level else title
    _lay_out(figure, span, file_bytes, heading, notes)
    return style.finish(figure, "\n".join(_alt(requests, ranks, span, heading, notes)))


def of_result(result: Result) -> Figure:
    """The access map of a mpilab.runners.result.Result.

    It shows the requests that reached the operating system if they are known, else the requests to
    MPI in the recording. Raises InputError if there are neither, or the collective reads no file.
    """
    case, access = result.case, result.access
    if not collective_of(case.collective).reads:
        raise InputError(f"{result.function}: a {case.collective} reads no file")
    if access is not None and access.seen:
        requests, level = access.requests, SYSTEM_LEVEL
    elif result.recording is not None:
        requests, level = result.recording.requests, MPI_LEVEL
    else:
        raise InputError(f"{result.function}: nothing was recorded; run a Case with requests=True")
    return access_map(
        requests,
        ranks=case.ranks,
        file_bytes=HEADER_BYTES + case.distribution.bytes,
        level=level,
        title=result.function,
    )


def rank_colors(ranks: int) -> list[str]:
    """A color for each rank, from cold to warm."""
    places = np.linspace(0, 1, ranks) if ranks > 1 else [0.0]
    return plotly.colors.sample_colorscale(list(style.ORDER_COLORS), places) if ranks else []


class _Time:
    """The time axis: its unit and origin."""

    def __init__(self, requests: NDArray[Any]) -> None:
        ends = np.maximum(requests["end_ns"], requests["begin_ns"])
        self.start_ns = int(requests["begin_ns"].min()) if len(requests) else 0
        self.seconds = (int(ends.max(initial=self.start_ns)) - self.start_ns) / 1e9
        self.unit_ns, self.unit = style.time_unit(self.seconds)

    def at(self, ns: Any) -> Any:
        return (ns - self.start_ns) / self.unit_ns


def _bars(requests: NDArray[Any], rank: int, color: str, span: _Time) -> Trace:
    lasted = np.maximum(requests["end_ns"] - requests["begin_ns"], 0)
    moments = span.at(requests["begin_ns"])
    verbs = np.where(requests["is_write"], "writes", "reads")
    hover = [
        f"rank {rank} {verb} {byte_size(size)} from byte {offset:,} on"
        f"{'' if got in (size, -1) else f', gets {byte_size(max(got, 0))}'}<br>"
        f"at {moment:.3f} {span.unit}, {f'took {duration(ns / 1e9)}' if end > 0 else 'no end seen'}"
        for verb, size, offset, got, moment, ns, end in zip(
            verbs,
            requests["bytes"].tolist(),
            requests["offset"].tolist(),
            requests["got_bytes"].tolist(),
            moments,
            lasted.tolist(),
            requests["end_ns"].tolist(),
            strict=True,
        )
    ]
    return go.Bar(
        orientation="h",
        base=moments,
        x=lasted / span.unit_ns,
        y=requests["offset"] + requests["bytes"] / 2,
        width=requests["bytes"],
        name=f"rank {rank}",
        # The edge keeps requests smaller than a pixel visible.
        marker=dict(color=color, line=dict(color=color, width=1)),
        hovertext=hover,
        hoverinfo="text",
    )


def _lay_out(
    figure: Figure, span: _Time, file_bytes: int, heading: str, notes: Sequence[str]
) -> None:
    edge = 0.02 * file_bytes
    # At most eight intervals, at multiples of a power of two.
    ticks = np.arange(0, file_bytes + 1, 2 ** max(0, int(np.ceil(np.log2(file_bytes / 8)))))
    figure.update_layout(
        title=dict(text="<br>".join([heading, *(f"<sub>{note}</sub>" for note in notes)])),
        barmode="overlay",
        bargap=0,
        height=480,
        margin=dict(t=60 + 20 * len(notes), l=90),
        hovermode="closest",
        showlegend=True,
    )
    figure.update_xaxes(title=f"time since the first request ({span.unit})", rangemode="tozero")
    figure.update_yaxes(
        title=dict(text="byte of the file", standoff=8),
        automargin=True,
        range=[file_bytes + edge, -edge],
        tickvals=ticks,
        ticktext=[byte_size(tick) for tick in ticks],
    )


def _notes(requests: NDArray[Any], known: NDArray[Any], step: int, level: str) -> list[str]:
    notes = []
    if level == MPI_LEVEL:
        notes.append(
            "The bytes of a request through a view need not be contiguous: its bar shows where it "
            "begins and its size."
        )
    if step > 1:
        notes.append(f"Of {len(known):,} requests every {_nth(step)} of each rank is drawn.")
    if len(known) < len(requests):
        notes.append(f"{plural(len(requests) - len(known), 'request')} at an unknown offset.")
    if not len(requests):
        notes.append("There are no requests.")
    return notes


def _nth(step: int) -> str:
    return {2: "second", 3: "third"}.get(step, f"{step}th")


def _alt(
    requests: NDArray[Any], ranks: int, span: _Time, heading: str, notes: Sequence[str]
) -> Iterator[str]:
    total = int(requests["bytes"].sum())
    yield (
        f"{heading}: {plural(len(requests), 'request')} of {plural(ranks, 'rank')}, "
        f"{byte_size(total)} in all, in {duration(span.seconds)}."
    )
    yield from notes
    for rank in range(ranks):
        mine = requests[requests["rank"] == rank]
        if not len(mine):
            yield f"Rank {rank}: no request."
            continue
        sizes, known = mine["bytes"], mine[mine["offset"] >= 0]
        ends = known["offset"] + known["bytes"]
        place = f", from byte {known['offset'].min():,} to {ends.max():,}" if len(known) else ""
        yield (
            f"Rank {rank}: {plural(len(mine), 'request')}, {byte_size(int(sizes.sum()))}, the "
            f"smallest {byte_size(int(sizes.min()))}, the largest {byte_size(int(sizes.max()))}"
            f"{place}."
        )
        if 0 < len(known) <= IN_TEXT:
            listed = ", ".join(f"{one['offset']:,} (+{one['bytes']:,})" for one in known)
            yield f"  At bytes {listed}."
