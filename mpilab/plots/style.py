"""The look, the text alternative and the notebook output of every figure, and parts they share.

A figure is transparent and drawn in mid-tones, so that it is legible in JupyterLab's light and dark
themes. Its text alternative is the string `figure.layout.meta["alt"]`: the first line says what the
figure shows; the other lines contain its data.

In a notebook, a figure is JSON for the plotly extension that comes with the plotly package and
needs no network. The file contains no plotly.js, and the figure is drawn even in notebooks that
JupyterLab does not trust (such as papermill's output), where scripts don't run. Pages outside
Jupyter use `fragment`, and pages that nbconvert makes of notebooks `for_nbconvert`.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mpilab.algorithms import looks
from mpilab.algorithms.algorithm import AMBER, BLUE, GRAY, GREEN, PINK, PURPLE, RED, TEAL
from mpilab.util.door import LatePackage

# Re-exported, so that sizes, times and numbers are formatted alike in every figure.
from mpilab.util.units import (
    byte_size,
    duration,
    plural,  # noqa: F401
)

# plotly takes longer to import than all our modules, so it is imported with the first figure.
plotly: Any = LatePackage("plotly")
go: Any = LatePackage("plotly.graph_objects")
Figure = Any  # plotly's, which has no types
Trace = Any

STEP_MILLISECONDS = 1200

TEXT = "#7a7e85"
LINE = "rgba(128, 132, 140, 0.55)"
GRID = "rgba(128, 132, 140, 0.22)"
FAINT = "rgba(128, 132, 140, 0.14)"

# The algorithms' own looks (mpilab/algorithms/algorithm.py), and those of ways to read a file.
_LOOKS = looks() | {
    "scatter": RED,
    "strided": AMBER,
    "sieving": GREEN,
    "view": TEAL,
    "two_phase": BLUE,
    "view_all": PURPLE,
    "two_phase_alltoallv": PINK,
    "default": GRAY,
}
ALGORITHM_COLORS = {name: look.color for name, look in _LOOKS.items()}
ALGORITHM_MARKERS = {name: look.marker for name, look in _LOOKS.items()}
# For algorithms of future labs, and students' own.
OTHER_COLORS = ("#6b7fa8", "#a07a2c", "#c25f5f", "#5f8f6b", "#8d6fae")

# A quantity with an order, such as the number of ranks: from cold to warm.
ORDER_COLORS = ("#3b7dd8", "#0c8f9e", "#2f9150", "#b8740c", "#d4553e", "#c9498f")

# What a rank does, by the class of its MPI call, in the order of the legend; time outside MPI has
# no color. Colors that look alike to some readers also have a pattern.
NEVER_RETURNED = "never returned"
CALL_COLORS = {
    "send": "#2f6fd6",
    "receive": "#1d7a45",
    "send-receive": "#1197a6",
    "wait/test/probe": "#bd8419",
    "collective": "#b04fc0",
    "communicator/datatype": "#8a6d5c",
    "file": "#6f7d1c",
    NEVER_RETURNED: "#d23f31",
}
CALL_PATTERNS = {"collective": "|", "communicator/datatype": ".", "file": "/", NEVER_RETURNED: "x"}
MESSAGE_COLOR, LOST_MESSAGE_COLOR = "#868b94", "#d23f31"

# What a slot of a receive buffer holds; the number in it says whose block it is.
SLOT_COLORS = {
    "untouched": FAINT,
    "in its place": "#9cc1ee",
    "in another place": "#b9a5dc",
    "new in this round": "#e39a35",
    "something else": "#e0796c",
}

# The MIME type of a figure as JSON.
PLOT = "application/vnd.plotly.v1+json"
CONFIG = {"displaylogo": False, "responsive": True}
PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="


@cache
def template() -> Any:
    """The look of all figures, as a plotly template."""
    return go.layout.Template(
        layout=go.Layout(
            paper_bgcolor="rgba(0,0,0,0)",
            plot_bgcolor="rgba(0,0,0,0)",
            font=dict(color=TEXT, size=13),
            title=dict(
                font=dict(size=16),
                x=0,
                xref="paper",
                xanchor="left",
                y=0.98,
                yref="container",
                yanchor="top",
            ),
            margin=dict(l=70, r=20, t=60, b=60),
            legend=dict(bgcolor="rgba(0,0,0,0)"),
            modebar=dict(bgcolor="rgba(0,0,0,0)", color=LINE, activecolor=TEXT),
            hoverlabel=dict(font=dict(size=13)),
            xaxis=dict(
                gridcolor=GRID,
                linecolor=LINE,
                zeroline=False,
                ticks="outside",
                showline=True,
                title=dict(standoff=10),
            ),
            yaxis=dict(
                gridcolor=GRID, linecolor=LINE, zeroline=False, ticks="outside", showline=True
            ),
        )
    )


def color(algorithm: str) -> str:
    """The color of an algorithm, the same in every figure of every lab."""
    known = ALGORITHM_COLORS.get(algorithm)
    # A sum of characters, because Python's hash() of a string differs from run to run.
    return known or OTHER_COLORS[sum(map(ord, algorithm)) % len(OTHER_COLORS)]


def marker(algorithm: str) -> str:
    """The marker symbol of an algorithm."""
    return ALGORITHM_MARKERS.get(algorithm, "star")


def translucent(hex_color: str, opacity: float) -> str:
    """The color '#rrggbb' with an opacity of 0 to 1, in plotly's notation."""
    red, green, blue = (int(hex_color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity})"


def finish(figure: Figure, alt: str) -> Figure:
    """Give `figure` the kit's look and its text alternative `alt`; return the figure."""
    figure.update_annotations(
        font_size=14
    )  # panel titles, which plotly makes as large as the title
    if "<br>" in (figure.layout.title.text or ""):
        # plotly moves a multi-line title up, beyond the edge.
        figure.update_layout(title_pad_t=10)
    return figure.update_layout(template=template(), meta={"alt": alt})


def alt(figure: Figure) -> str:
    """The text alternative of `figure`, or its title if it has none."""
    meta = figure.layout.meta
    if isinstance(meta, dict) and meta.get("alt"):
        return meta["alt"]
    return figure.layout.title.text or "Figure without a text alternative"


def note(figure: Figure) -> str:
    """HTML to go with the figure: its name for screen readers, and the whole text, collapsed."""
    text = alt(figure)
    name = escape(text.splitlines()[0], quote=True)
    # JupyterLab strips role and aria-label from outputs that it does not trust, but not alt.
    return (
        f'<img role="img" aria-label="{name}" alt="{name}" src="{PIXEL}" width="1" height="1">'
        f"{_fold(text)}"
    )


def fragment(figure: Figure, plotlyjs: bool | str = False) -> str:
    """HTML of the figure and its text, for a page outside Jupyter.

    plotlyjs: True includes plotly.js (5 MB) in the fragment, False expects it on the page already,
    a string is the URL to load it from; a page with several figures needs it once.
    """
    drawing = _drawing(figure, alt(figure).splitlines()[0], plotlyjs)
    return f"<figure>{drawing}<figcaption>{_fold(alt(figure))}</figcaption></figure>"


def bundle(figure: Figure) -> dict[str, Any]:
    """The figure by MIME type: JSON for the plotly extension, a sentence for anything else."""
    content = json.loads(figure.to_json())
    # JupyterLab adapts to the width itself. With "responsive", plotly would also adapt to the
    # height of the window, in an output that has no fixed height, and draw nothing.
    config = {"displaylogo": False}
    return {
        PLOT: {**content, "config": config},
        "text/plain": f"[figure: {alt(figure).splitlines()[0]}]",
    }


def for_nbconvert(notebook: Any, resources: Any) -> tuple[Any, Any]:
    """A preprocessor of nbconvert: gives each plotly figure of a notebook HTML that draws it.

    Takes and returns the notebook and nbconvert's `resources`. plotly.js (5 MB) comes with the
    first figure, so that no network is needed. mpilab/notebook/nbconvert/jupyter_config.json names
    this function to nbconvert.
    """
    plotlyjs = True
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if PLOT not in data or "text/html" in data:
                continue
            name = data.get("text/plain", "").removeprefix("[figure: ").removesuffix("]")
            data["text/html"] = _drawing(data[PLOT], name.partition("\n")[0], plotlyjs)
            plotlyjs = False
    return notebook, resources


def _drawing(figure: Any, name: str, plotlyjs: bool | str) -> str:
    """HTML of a figure, a plotly Figure or its JSON, with its name for screen readers."""
    drawing = plotly.io.to_html(
        figure,
        include_plotlyjs=plotlyjs,
        full_html=False,
        auto_play=False,
        config=CONFIG,
        validate=False,
    )
    # Not role="img", which would hide plotly's buttons from screen readers.
    return f'<div role="group" aria-label="{escape(name, quote=True)}">{drawing}</div>'


def show(figure: Figure) -> None:
    """Display `figure` in the notebook, with its text alternative below it."""
    from IPython.display import HTML, display  # noqa: PLC0415 - used in notebooks only

    display(bundle(figure), raw=True)
    display(HTML(note(figure)))


def _fold(text: str) -> str:
    lines = "<br>".join(escape(line) for line in text.splitlines())
    return f"<details><summary>Figure as text</summary><p>{lines}</p></details>"


# Logarithmic axes of sizes and times.


def size_axes(
    figure: Figure, sizes: Sequence[float] | NDArray[Any], title: str, panels: int = 1
) -> None:
    """Make the x axes logarithmic, with ticks at powers of two in the range of `sizes` (bytes).

    A size of 0 has no position on such an axis; use `place` to draw it.
    """
    first, last = (int(np.floor(np.log2(max(size, 1)))) for size in (min(sizes), max(sizes)))
    step = max(1, -(-(last - first + 1) // max(3, 10 // panels)))
    ticks = [1 << power for power in range(first, last + 1, step)]
    figure.update_xaxes(
        type="log", title=title, tickvals=ticks, ticktext=[byte_size(tick) for tick in ticks]
    )


def time_axes(figure: Figure, seconds: ArrayLike, title: str | dict[str, Any]) -> None:
    """Make the y axes logarithmic, with ticks at 1, 2, 5 or at powers of ten of a second."""
    times = np.asarray(seconds, float)
    times = times[np.isfinite(times) & (times > 0)]
    first, last = int(np.floor(np.log10(times.min()))), int(np.ceil(np.log10(times.max())))
    steps = (1, 2, 5) if last - first < 4 else (1,)
    ticks = [float(f"{step}e{power}") for power in range(first, last + 1) for step in steps]
    figure.update_yaxes(type="log", tickvals=ticks, ticktext=list(map(duration, ticks)))
    figure.update_yaxes(title=title, row=1, col=1)


def time_unit(seconds: float) -> tuple[float, str]:
    """(nanoseconds, name) of the unit for an axis of this length: "s", "ms" or "µs"."""
    units = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))
    return next((unit for unit in units if seconds * 1e9 >= 2 * unit[0]), units[-1])


def place(sizes: ArrayLike) -> NDArray[np.float64]:
    """The positions of sizes on a logarithmic axis: 0 bytes is drawn at 1 byte."""
    return np.maximum(np.asarray(sizes, float), 1)


# Figures with one step per round: messages on the left, blocks on the right.


def stepped(
    frames: Sequence[Sequence[Any]],
    titles: Sequence[str],
    ranks: int,
    grid_title: str,
    labels: Sequence[str] | None = None,
) -> Figure:
    """Figure with a slider and a play button, one step for each of `frames`.

    frames   the three traces of each step: `arrows`, `said_by_senders` and a heat map with a row
             for each of `ranks` ranks.
    titles   the figure's title in each step.
    labels   the labels of the slider; by default 'start', '1', '2', …
    """
    labels = labels or ["start", *map(str, range(1, len(frames)))]
    figure = plotly.subplots.make_subplots(
        cols=2,
        shared_yaxes=True,
        horizontal_spacing=0.04,
        column_widths=[0.5, 0.5],
        subplot_titles=["messages of the round", grid_title],
    )
    columns = [1, 1, 2]
    for trace, column in zip(frames[0], columns, strict=True):
        figure.add_trace(trace, row=1, col=column)
    figure.frames = [
        go.Frame(
            name=str(number),
            data=frame,
            traces=list(range(len(columns))),
            layout=go.Layout(title=dict(text=title)),
        )
        for number, (frame, title) in enumerate(zip(frames, titles, strict=True))
    ]
    _lay_out_steps(figure, ranks, labels, titles[0])
    return figure


def arrows(messages: Sequence[tuple[int, int, str]], ranks: int, color: str) -> Trace:
    """Arrows from sender to receiver; each of `messages` is (source, dest, hover text).

    With more than 3 messages per rank (of `ranks`), the lines are translucent.
    """
    x, y, hover = [], [], []
    for source, dest, text in messages:
        x += [0, 1, None]
        y += [source, dest, None]
        hover += [text, text, None]
    crowded = len(messages) > 3 * ranks
    return go.Scatter(
        x=x,
        y=y,
        mode="lines+markers",
        line=dict(color=translucent(color, 0.45) if crowded else color, width=1.5),
        marker=dict(
            symbol="arrow",
            angleref="previous",
            color=color,
            size=[0 if place == 0 else 10 for place in x],
            opacity=1,
            line=dict(width=0),
        ),
        hovertext=hover,
        hoverinfo="text",
        showlegend=False,
    )


def said_by_senders(words: Mapping[int, str]) -> Trace:
    """Texts at the senders' ends of the arrows, from {rank: text}."""
    return go.Scatter(
        x=[-0.04] * len(words),
        y=list(words),
        mode="text",
        text=list(words.values()),
        textposition="middle left",
        hoverinfo="skip",
        showlegend=False,
    )


def legend_entry(name: str, fill: str, **marker: Any) -> Trace:
    """A trace only for the legend: a square of color `fill`, unless `marker` says otherwise."""
    return go.Scatter(
        x=[None],
        y=[None],
        mode="markers",
        marker={"symbol": "square", "size": 14, "color": fill} | marker,
        name=name,
        hoverinfo="skip",
    )


def rank_ticks(ranks: int, most: int = 32) -> list[int]:
    """The ranks with a tick: all, or at most `most`, evenly spaced."""
    return list(range(0, ranks, max(1, -(-ranks // most))))


def _lay_out_steps(figure: Figure, ranks: int, labels: Sequence[str], title: str) -> None:
    ticks = rank_ticks(ranks)
    figure.update_layout(
        title=dict(text=title),
        height=max(380, 250 + min(26, max(11, 704 // ranks)) * ranks),
        margin=dict(t=75, b=140),
        legend=dict(orientation="h", x=1, xanchor="right", y=1, yref="container", yanchor="top"),
        # A horizontal modebar would cover the legend; there is nothing to select.
        modebar=dict(orientation="v", remove=["select2d", "lasso2d"]),
        sliders=[slider(labels)],
        updatemenus=[buttons()],
    )
    figure.update_yaxes(tickvals=ticks, range=[ranks - 0.5, -0.5], showgrid=False, fixedrange=True)
    figure.update_yaxes(title="rank", showline=False, ticks="", row=1, col=1)
    figure.update_yaxes(showticklabels=True, showline=False, ticks="", row=1, col=2)
    figure.update_xaxes(fixedrange=True, showgrid=False, showline=False, ticks="")
    figure.update_xaxes(
        range=[-0.32, 1.06],
        tickvals=[0, 1],
        ticktext=["sends", "receives"],
        row=1,
        col=1,
    )


def slider(labels: Sequence[str]) -> dict[str, Any]:
    """A slider for a figure's layout, with a step (a frame) for each of `labels`."""
    return dict(
        active=0,
        currentvalue=dict(prefix="round: ", font=dict(size=14)),
        pad=dict(t=45, l=10),
        x=0.16,
        len=0.84,
        font=dict(color=TEXT),
        bgcolor=GRID,
        bordercolor=LINE,
        tickcolor=LINE,
        steps=[
            dict(
                label=label,
                method="animate",
                args=[[str(number)], _at_once(0)],
            )
            for number, label in enumerate(labels)
        ],
    )


def buttons() -> dict[str, Any]:
    """Play and pause buttons for a figure's layout."""
    return dict(
        type="buttons",
        direction="left",
        showactive=False,
        x=0,
        xanchor="left",
        y=0,
        yanchor="top",
        pad=dict(t=65, l=0),
        bgcolor="rgba(0,0,0,0)",
        bordercolor=LINE,
        buttons=[
            dict(label="▶", method="animate", args=[None, _at_once(STEP_MILLISECONDS)]),
            dict(label="❚❚", method="animate", args=[[None], _at_once(0)]),
        ],
    )


def _at_once(milliseconds: int) -> dict[str, Any]:
    """Animation options: jump to a frame without a transition, and stay for `milliseconds`."""
    return dict(
        mode="immediate",
        fromcurrent=True,
        frame=dict(duration=milliseconds, redraw=True),
        transition=dict(duration=0),
    )


def block_runs(blocks: Sequence[int], ranks: int) -> str:
    """'3', '0–3', '7, 0–2', 'all': blocks in the order sent, with runs up or down joined."""
    if len(blocks) == ranks and ranks > 2:
        return "all"
    runs = [[blocks[0]]]
    for block in blocks[1:]:
        run = runs[-1]
        step = block - run[-1]
        if step in (1, -1) and (len(run) == 1 or step == run[-1] - run[-2]):
            run.append(block)
        else:
            runs.append([block])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)
