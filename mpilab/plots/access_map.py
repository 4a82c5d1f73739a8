"""Who reads what of a file when: requests as bars over file offset and time, coloured by rank."""

import numpy as np
import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from mpilab.errors import InputError
from mpilab.expected import collective_of
from mpilab.matrices.distribution import HEADER_BYTES
from mpilab.plots import style
from mpilab.plots.style import byte_size, duration, plural

# As many bars as a timeline draws (mpilab.plots.timeline); of more requests a part is drawn.
MOST_REQUESTS = 4000
IN_TEXT = 12  # requests of a rank that the text alternative lists one by one
MPI_LEVEL, SYSTEM_LEVEL = "requests to MPI", "requests to the operating system"


def access_map(requests, *, ranks=None, file_bytes=None, level="", title="Access map"):
    """Figure of requests with fields rank, offset, bytes, got_bytes, is_write, begin_ns, end_ns:
    those of mpilab.recording.Recording or mpilab.fileaccess.FileAccess.

    A bar is a request: over time from its begin to its end, over the file from its first byte to
    its last, byte 0 on top. What a request through a view asks for may reach further than its bar:
    its bytes need not lie together.

    ranks       how many there are; by default those that have a request.
    file_bytes  the size of the file; by default the end of the last request.
    level       MPI_LEVEL or SYSTEM_LEVEL: whose requests these are; goes into the title.

    Of more than MOST_REQUESTS, as many of each rank's are drawn in equal steps, and the figure says
    so; the text alternative counts all. Raises InputError for a rank that is not among `ranks`.
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
    for rank, colour in enumerate(rank_colours(ranks)):
        figure.add_trace(_bars(known[known["rank"] == rank][::step], rank, colour, span))
    notes = _notes(requests, known, step, level)
    heading = f"{title}: {level}" if level else title
    _lay_out(figure, span, file_bytes, heading, notes)
    return style.finish(figure, "\n".join(_alt(requests, ranks, span, heading, notes)))


def of_result(result):
    """The access map of a mpilab.result.Result: of what reached the operating system where that is
    known, otherwise of the requests to MPI in its recording. InputError where there is neither."""
    case, access = result.case, result.access
    if not collective_of(case.collective).reads:
        raise InputError(f"{result.function}: a {case.collective} reads no file")
    below = access is not None and access.seen
    if not below and result.recording is None:
        raise InputError(f"{result.function}: nothing was recorded; run a Case with requests=True")
    return access_map(
        access.requests if below else result.recording.requests, ranks=case.ranks,
        file_bytes=HEADER_BYTES + case.distribution.bytes,
        level=SYSTEM_LEVEL if below else MPI_LEVEL, title=result.function,
    )  # fmt: skip


def rank_colours(ranks):
    """A colour for each rank, from cold to warm."""
    places = np.linspace(0, 1, ranks) if ranks > 1 else [0.0]
    return sample_colorscale(list(style.ORDER_COLOURS), places) if ranks else []


class _Time:
    """The time axis: its unit and where it begins."""

    def __init__(self, requests):
        ends = np.maximum(requests["end_ns"], requests["begin_ns"])
        self.start_ns = int(requests["begin_ns"].min()) if len(requests) else 0
        self.seconds = (int(ends.max(initial=self.start_ns)) - self.start_ns) / 1e9
        units = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
        factor, self.unit = next((u for u in units if self.seconds >= 2 * u[0]), units[-1])
        self.unit_ns = factor * 1e9

    def at(self, ns):
        return (ns - self.start_ns) / self.unit_ns


def _bars(requests, rank, colour, span):
    lasted = np.maximum(requests["end_ns"] - requests["begin_ns"], 0)
    moments = span.at(requests["begin_ns"])
    verbs = np.where(requests["is_write"], "writes", "reads")
    hover = [
        f"rank {rank} {verb} {byte_size(size)} from byte {offset:,} on"
        f"{'' if got in (size, -1) else f', gets {byte_size(max(got, 0))}'}<br>"
        f"at {moment:.3f} {span.unit}, {f'took {duration(ns / 1e9)}' if end > 0 else 'no end seen'}"
        for verb, size, offset, got, moment, ns, end in zip(
            verbs, requests["bytes"].tolist(), requests["offset"].tolist(),
            requests["got_bytes"].tolist(), moments, lasted.tolist(),
            requests["end_ns"].tolist(), strict=True)
    ]  # fmt: skip
    return go.Bar(
        orientation="h",
        base=moments,
        x=lasted / span.unit_ns,
        y=requests["offset"] + requests["bytes"] / 2,
        width=requests["bytes"],
        name=f"rank {rank}",
        # With an edge, requests that are smaller than a pixel can still be seen.
        marker=dict(color=colour, line=dict(color=colour, width=1)),
        hovertext=hover,
        hoverinfo="text",
    )


def _lay_out(figure, span, file_bytes, heading, notes):
    edge = 0.02 * file_bytes
    # At most eight, at multiples of a power of two.
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


def _notes(requests, known, step, level):
    notes = []
    if level == MPI_LEVEL:
        notes.append(
            "What a request through a view asks for need not lie together: its bar shows where it "
            "begins, and how much it is."
        )
    if step > 1:
        notes.append(f"Of {len(known):,} requests every {_nth(step)} of each rank is drawn.")
    if len(known) < len(requests):
        notes.append(f"{plural(len(requests) - len(known), 'request')} at an unknown place.")
    if not len(requests):
        notes.append("There are no requests.")
    return notes


def _nth(step):
    return {2: "second", 3: "third"}.get(step, f"{step}th")


def _alt(requests, ranks, span, heading, notes):
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
