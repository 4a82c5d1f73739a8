"""How every figure of the kit looks, reads aloud, and gets into a notebook.

A figure is transparent and drawn in middle tones, so that it is legible in JupyterLab's light and
dark theme; its text alternative is the string `figure.layout.meta["alt"]`, whose first line says
what the figure shows and whose other lines hold what can be read off it.

In a notebook a figure travels as JSON for the plotly extension that comes with the plotly package
and needs no network: no plotly.js in the file, and it also draws in notebooks that JupyterLab does
not trust (such as papermill's output), where scripts are dead. A page outside Jupyter takes
`fragment`.
"""

import json
from html import escape

import plotly.graph_objects as go
from plotly.io import to_html

TEXT = "#7a7e85"
LINE = "rgba(128, 132, 140, 0.55)"
GRID = "rgba(128, 132, 140, 0.22)"
FAINT = "rgba(128, 132, 140, 0.14)"

# A colour and a marker stand for a pattern of messages, so that an algorithm looks the same in
# every figure of every lab, whatever the collective and whoever wrote it (names as Open MPI has
# them are here too). Two algorithms of one collective share neither. Each colour keeps a contrast
# of 3:1 on white and on JupyterLab's dark background; markers are for those who can't tell them
# apart.
_PATTERNS = (
    ("#d4553e", "triangle-up", "linear basic_linear nonblocking_gather_bcast scatter"),
    ("#b8740c", "square", "nonblocking_all linear_sync linear_nb chain strided"),
    ("#8a8412", "hexagon", "pipeline segmented_ring"),
    ("#2f9150", "diamond", "ring double_ring scatter_allgather_ring sieving"),
    ("#0c8f9e", "x", "bruck dissemination binary binary_tree view"),
    ("#3b7dd8", "circle", "pairwise binomial tree two_phase"),
    ("#9b5fd0", "cross", "recursive_doubling scatter_allgather view_all"),
    ("#c9498f", "triangle-down",
     "neighbor_exchange neighbor split_binary split_binary_tree in_order_binary in-order_binary "
     "two_phase_alltoallv"),
    ("#8c7464", "pentagon", "knomial rabenseifner"),
    ("#7a7e85", "octagon", "default"),
)  # fmt: skip
ALGORITHM_COLOURS = {name: colour for colour, _, names in _PATTERNS for name in names.split()}
ALGORITHM_MARKERS = {name: marker for _, marker, names in _PATTERNS for name in names.split()}
# For algorithms of labs to come and for a student's own.
OTHER_COLOURS = ("#6b7fa8", "#a07a2c", "#c25f5f", "#5f8f6b", "#8d6fae")

# A quantity with an order, such as the number of ranks: from cold to warm.
ORDER_COLOURS = ("#3b7dd8", "#0c8f9e", "#2f9150", "#b8740c", "#d4553e", "#c9498f")

# What a rank does, by the class of its MPI call; the time outside of MPI has no colour. The order
# is that of the legend. Those that look alike to some of us have a pattern, too.
NEVER_RETURNED = "never returned"
CALL_COLOURS = {
    "send": "#2f6fd6",
    "receive": "#1d7a45",
    "send-receive": "#1197a6",
    "wait/test/probe": "#bd8419",
    "collective": "#b04fc0",
    "communicator/datatype": "#8a6d5c",
    "file": "#6f7d1c",
    NEVER_RETURNED: "#d23f31",
}
CALL_PATTERNS = {"collective": "|", "communicator/datatype": ".", "file": "/",
                 NEVER_RETURNED: "x"}  # fmt: skip
MESSAGE_COLOUR, LOST_MESSAGE_COLOUR = "#868b94", "#d23f31"

# What a slot of a receive buffer holds: whose block is told by the number in it.
SLOT_COLOURS = {
    "untouched": FAINT,
    "in its place": "#9cc1ee",
    "in another place": "#b9a5dc",
    "new in this round": "#e39a35",
    "something else": "#e0796c",
}

TEMPLATE = go.layout.Template(
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
        yaxis=dict(gridcolor=GRID, linecolor=LINE, zeroline=False, ticks="outside", showline=True),
    )
)


def colour(algorithm):
    """The colour of an algorithm, the same in every figure of every lab."""
    known = ALGORITHM_COLOURS.get(algorithm)
    # A sum of characters, because Python's hash() of a string differs from run to run.
    return known or OTHER_COLOURS[sum(map(ord, algorithm)) % len(OTHER_COLOURS)]


def marker(algorithm):
    """The marker symbol of an algorithm."""
    return ALGORITHM_MARKERS.get(algorithm, "star")


def translucent(hex_colour, opacity):
    """A colour '#rrggbb' with an opacity of 0 to 1, as plotly writes it."""
    red, green, blue = (int(hex_colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity})"


def byte_size(byte_count):
    """'512 B', '4 KiB', '1 MiB': how sizes are written in every figure."""
    for factor, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if byte_count >= factor:
            return f"{byte_count / factor:.4g} {unit}"
    return f"{byte_count:.4g} B"


def duration(seconds):
    """'3.2 µs', '1.5 s': how times are written in every text alternative."""
    for factor, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def plural(number, noun):
    """'1 message', '2,000 messages'."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def finish(figure, alt):
    """Give `figure` the kit's look and its text alternative `alt`; returns the figure."""
    figure.update_annotations(
        font_size=14
    )  # the titles of panels; plotly writes them as large as the title
    if "<br>" in (figure.layout.title.text or ""):
        # plotly moves a title of several lines up, beyond the edge.
        figure.update_layout(title_pad_t=10)
    return figure.update_layout(template=TEMPLATE, meta={"alt": alt})


def alt(figure):
    """The text alternative of `figure`; a figure that has none is described by its title."""
    meta = figure.layout.meta
    if isinstance(meta, dict) and meta.get("alt"):
        return meta["alt"]
    return figure.layout.title.text or "Figure without a text alternative"


CONFIG = {"displaylogo": False, "responsive": True}
PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="


def note(figure):
    """HTML for beside the figure: its name for screen readers, and a fold with the whole text."""
    text = alt(figure)
    name = escape(text.splitlines()[0], quote=True)
    # JupyterLab strips roles and aria-labels from outputs that it does not trust, but no alt.
    return (
        f'<img role="img" aria-label="{name}" alt="{name}" src="{PIXEL}" width="1" height="1">'
        f"{_fold(text)}"
    )


def fragment(figure, plotlyjs=False):
    """HTML of the figure itself and its text, for a page outside Jupyter.

    plotlyjs: True writes plotly.js (5 MB) into the fragment, False expects it on the page already,
    a string is the address to load it from; a page with several figures needs it once.
    """
    name = escape(alt(figure).splitlines()[0], quote=True)
    drawing = to_html(
        figure, include_plotlyjs=plotlyjs, full_html=False, auto_play=False, config=CONFIG
    )
    return (
        f'<figure><div role="img" aria-label="{name}">{drawing}</div>'
        f"<figcaption>{_fold(alt(figure))}</figcaption></figure>"
    )


def bundle(figure):
    """The figure by MIME type: JSON for the plotly extension, a sentence for everything else."""
    content = json.loads(figure.to_json())
    # JupyterLab follows the width by itself. With "responsive" plotly would follow the height of
    # the window too, in an output that has none of its own, and draw nothing.
    config = {"displaylogo": False}
    return {
        "application/vnd.plotly.v1+json": {**content, "config": config},
        "text/plain": f"[figure: {alt(figure).splitlines()[0]}]",
    }


def show(figure):
    """Display `figure` in the notebook, with its text alternative under it."""
    from IPython.display import HTML, display

    display(bundle(figure), raw=True)
    display(HTML(note(figure)))


def _fold(text):
    lines = "<br>".join(escape(line) for line in text.splitlines())
    return f"<details><summary>Figure as text</summary><p>{lines}</p></details>"
