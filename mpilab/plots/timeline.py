"""Who does what when: the calls of every rank as bars over time, and its messages as arrows."""

from plotly.subplots import make_subplots

from mpilab.errors import InputError
from mpilab.plots import style
from mpilab.plots.bars import bars
from mpilab.plots.calls import ranks_of
from mpilab.plots.shares import shares, shares_of_rows
from mpilab.plots.span import cut, whole
from mpilab.plots.timeline_words import in_words, last_moment, notes_of, signal_of

# Measured in headless Chromium on two cores: zooming takes 0.3 s with 4,000 calls and their
# messages, 1.2 s with 12,000.
MOST_CALLS, MOST_MESSAGES = 4000, 3000
ROW_PIXELS = 18
MOST_BESIDE = 4  # timelines that can still be read beside each other


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
    span = cut(whole(ranks_of(recording)), window)
    crowded = _is_crowded(span)
    figure = shares(span) if crowded else bars(span)
    notes = notes_of(span, crowded)
    _lay_out(figure, title, notes, len(span.ranks), more_pixels=70 * crowded)
    names = [str(place) if rank else f"{place} (never began)"
             for place, rank in enumerate(span.ranks)]  # fmt: skip
    _lay_out_rows(figure, span, names, row=2 if crowded else None)
    return style.finish(figure, "\n".join(in_words(span, title, notes, crowded)))


def timelines(recordings, *, title="Timelines"):
    """Figure of several recordings beside each other, on the same scale of time.

    recordings   {name: Recording, or what else `timeline` takes}; 1 to MOST_BESIDE of them.

    Times are counted from the first call of each. To zoom into one is to zoom into all. One with
    too many calls is summed up as in `timeline`, but without the number of messages. Raises
    InputError for none, or too many.
    """
    if not 1 <= len(recordings) <= MOST_BESIDE:
        raise InputError(
            f"{len(recordings)} recordings: 1 to {MOST_BESIDE} timelines can be read beside each "
            "other; choose"
        )
    spans = {name: whole(ranks_of(one)) for name, one in recordings.items()}
    longest = max(span.end_ns - span.begin_ns for span in spans.values())
    spans = {name: cut(span, (0, longest / 1e9)) for name, span in spans.items()}
    rows = max(len(span.ranks) for span in spans.values())
    figure = make_subplots(cols=len(spans), shared_yaxes=True, horizontal_spacing=0.03,
                           subplot_titles=list(spans))  # fmt: skip
    notes, words, in_legend = [], [], set()
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
    return style.finish(figure, "\n".join([f"{title}, on the same scale of time.", *words]))


def _is_crowded(span):
    return len(span.calls) > MOST_CALLS or len(span.messages) > MOST_MESSAGES


def _lay_out(figure, title, notes, rows, more_pixels):
    figure.update_layout(
        title=dict(text="<br>".join([title, *(f"<sub>{note}</sub>" for note in notes)])),
        barmode="overlay",
        bargap=0,
        height=190 + 18 * len(notes) + more_pixels + max(ROW_PIXELS, 34 - rows // 2) * rows,
        margin=dict(t=60 + 20 * len(notes), b=110),
        legend=dict(orientation="h", x=0, y=0, yref="container", yanchor="bottom"),
        hovermode="closest",
        # Points of messages must not take the pointer away from the bars around them.
        hoverdistance=8,
        modebar=dict(orientation="v", remove=["select2d", "lasso2d", "autoScale2d"]),
    )


def _lay_out_rows(figure, span, names, *, row=None, col=None):
    """Axes of the rows of a Span, called `names`, and what ended them: in the panel at (row, col),
    or in the only one."""
    begin, end = span.at(span.begin_ns), span.at(span.end_ns)
    edge = 0.01 * (end - begin)
    figure.update_xaxes(gridcolor=style.GRID, range=[begin, end], col=col)
    figure.update_xaxes(title=f"time since the first call ({span.unit})",
                        range=[begin - edge, end + edge], row=row, col=col)  # fmt: skip
    (rows,) = figure.select_yaxes(row=row, col=col)
    rows.update(title="rank", range=[len(names) - 0.5, -0.5], tickvals=list(range(len(names))),
                ticktext=names, ticks="", showgrid=False)  # fmt: skip
    # Zooming is along the time only.
    figure.update_yaxes(fixedrange=True)
    number = rows.plotly_name.removeprefix("yaxis")
    for place, rank in enumerate(span.ranks):
        if rank is not None and rank.header["signal"]:
            figure.add_annotation(
                x=span.at(last_moment(span, place)), y=place, xref=f"x{number}", yref=f"y{number}",
                text=f"✗ {signal_of(rank)}", showarrow=False, xanchor="left",
                font=dict(color=style.CALL_COLOURS[style.NEVER_RETURNED]),
            )  # fmt: skip
