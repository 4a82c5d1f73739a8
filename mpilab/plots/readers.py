"""Readers side by side: their requests, bytes and memory as bars."""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from mpilab.errors import InputError
from mpilab.plots import style

# (field, title, how a value is written)
PANELS = (
    ("requests", "requests of all ranks", "{:,}".format),
    ("bytes", "bytes read by all ranks", style.byte_size),
    ("largest", "largest request", style.byte_size),
    ("memory", "most memory of a rank", style.byte_size),
)


def readers(accounts, title="What each reader asks the operating system for"):
    """Bars for each of `accounts`, a list of mpilab.readers.Account: requests, bytes read,
    the largest request and the memory of the rank that needs most; logarithmic for requests.

    Raises InputError without any.
    """
    if not accounts:
        raise InputError("readers: no accounts to draw; give those of mpilab.readers.count")
    names = [account.reader.name for account in accounts]
    shown = [panel for panel in PANELS
             if any(getattr(account, panel[0]) is not None for account in accounts)]  # fmt: skip
    figure = make_subplots(
        cols=len(shown), shared_yaxes=True, horizontal_spacing=0.05,
        subplot_titles=[title for _, title, _ in shown],
    )  # fmt: skip
    lines = [f"{title}: {', '.join(names)}."]
    for column, (field, what, write) in enumerate(shown, start=1):
        values = [getattr(account, field) for account in accounts]
        words = ["unknown" if value is None else write(value) for value in values]
        figure.add_trace(_bars(accounts, values, words, what), row=1, col=column)
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
        title=dict(text=title), showlegend=False, height=170 + 40 * len(names), bargap=0.35,
        margin=dict(t=90, l=165),
    )  # fmt: skip
    return style.finish(figure, "\n".join(lines))


def _bars(accounts, values, words, what):
    return go.Bar(
        orientation="h",
        x=np.array([np.nan if value is None else value for value in values], float),
        y=[account.reader.name for account in accounts],
        text=words,
        textposition="auto",
        # The same algorithm has the same colour; what ROMIO makes of it is hatched.
        marker=dict(
            color=[style.colour(account.reader.algorithm) for account in accounts],
            pattern=dict(
                shape=["/" * (account.reader.mpi_io == "romio") for account in accounts],
                fillmode="overlay",
                fgcolor="rgba(255, 255, 255, 0.45)",
                size=8,
                solidity=0.2,
            ),
        ),  # fmt: skip
        customdata=words,
        hovertemplate=f"%{{y}}: %{{customdata}} ({what})<extra></extra>",
    )
