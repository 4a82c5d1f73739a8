"""Marks of a class: totals, exercises, and the items that were lost."""

import plotly.graph_objects as go

from mpilab.grading.marks import points
from mpilab.instructor.summary import BANDS, FULL, HALF, LESS, NONE, OPEN
from mpilab.plots import style

ITEMS = 25  # bars that fit on a page
# From good to bad, and grey for what is open; the words stand in the bars too.
_COLOURS = {NONE: "#d4553e", LESS: "#b8740c", HALF: "#3b7dd8", FULL: "#2f9150", OPEN: "#7a7e85"}
_PATTERNS = {NONE: "x", LESS: "/", HALF: ".", FULL: "", OPEN: "-"}


def totals(summary):
    """Figure: how many students have how many points in all."""
    labels = [f"{points(low)} to {points(high)}" for low, high, _ in summary.bins]
    counts = [count for _, _, count in summary.bins]
    figure = go.Figure(
        go.Bar(
            x=labels,
            y=counts,
            marker_color="#3b7dd8",
            text=[count or "" for count in counts],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{x} points: %{y}<extra></extra>",
        )
    )
    figure.update_layout(title="Totals of the students with a final mark", height=360, bargap=0.1)
    figure.update_xaxes(title="points", automargin=True)
    figure.update_yaxes(title="students", rangemode="tozero", **_whole(max(counts)))
    lines = [f"Totals: {style.plural(len(summary.totals), 'final mark')}."]
    if summary.middle:
        mean, median = summary.middle
        lines.append(
            f"From {points(summary.totals[0])} to {points(summary.totals[-1])} points of "
            f"{points(summary.marks.points)}; mean {mean:.1f}, median {points(median)}."
        )
    lines += [f"{label} points: {count}" for label, count in zip(labels, counts, strict=True)]
    return style.finish(figure, "\n".join(lines))


def exercises(summary):
    """Figure: for each exercise, how many students have all of its points, some, or none."""
    names = list(summary.bands)
    figure = go.Figure(
        [
            go.Bar(
                orientation="h",
                y=names,
                x=[summary.bands[name][band] for name in names],
                name=band,
                marker=dict(color=_COLOURS[band], pattern=dict(
                    shape=_PATTERNS[band], fgcolor="rgba(255, 255, 255, 0.45)", fillmode="overlay",
                    size=8, solidity=0.2)),
                text=[summary.bands[name][band] or "" for name in names],
                textposition="inside",
                insidetextfont=dict(color="#ffffff"),
                textangle=0,
                hovertemplate="%{y}: %{x} with " + band + "<extra></extra>",
            )
            for band in BANDS
        ]
    )  # fmt: skip
    figure.update_layout(
        title="Points of each exercise",
        barmode="stack",
        height=170 + 42 * len(names),
        legend=dict(orientation="h", y=1, yanchor="bottom", x=0, traceorder="normal"),
        margin=dict(t=90, l=150),
    )
    figure.update_xaxes(title="students", **_whole(len(summary.marks.students)))
    figure.update_yaxes(autorange="reversed")
    lines = ["Each exercise: students by their share of its points."]
    for name in names:
        told = ", ".join(f"{count} {band}" for band, count in summary.bands[name].items() if count)
        lines.append(f"{name}: {told}")
    return style.finish(figure, "\n".join(lines))


def lost(summary):
    """Figure: the items that most students lost points on; None where nobody lost any."""
    worst = summary.lost[:ITEMS]
    if not worst:
        return None
    names = [f"{each.exercise}: {each.item}" for each in worst]
    figure = go.Figure(
        go.Bar(
            orientation="h",
            y=names,
            x=[each.students for each in worst],
            marker_color="#d4553e",
            text=[f"{each.students} of {each.judged}" for each in worst],
            textposition="outside",
            cliponaxis=False,
            customdata=[each.title for each in worst],
            hovertemplate="%{customdata}: lost by %{x}<extra></extra>",
        )
    )
    figure.update_layout(title="Items by how many lost them", height=140 + 26 * len(names),
                         margin=dict(l=250, r=60))  # fmt: skip
    figure.update_xaxes(title="students", rangemode="tozero", **_whole(worst[0].students))
    figure.update_yaxes(autorange="reversed")
    lines = [f"Items by how many students lost points on them: {len(summary.lost)} were lost."]
    lines += [f"{each.exercise}, {each.title}: {each.students} of {each.judged}" for each in worst]
    return style.finish(figure, "\n".join(lines))


def _whole(most):
    """An axis of students has no ticks between whole numbers."""
    return {"dtick": 1} if most <= 10 else {"tickformat": "d"}
