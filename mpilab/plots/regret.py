"""What following a model costs: the chosen algorithm at every P and size, with its regret."""

import numpy as np
import plotly.graph_objects as go

from mpilab.errors import InputError
from mpilab.models.choice import REGRET_ROW
from mpilab.plots import style

# Green where the choice is the best one; opaque, so that plotly finds a legible colour for the
# name in a cell.
SCALE = [[0, "#a9d8b5"], [0.1, "#e8d48b"], [0.5, "#e39a55"], [1, "#c9503c"]]
# A choice that takes twice as long is as bad as the scale can say.
MOST = 1.0


def heat_map(table, title="Choice of the model, and its regret"):
    """Heat map of a table of REGRET_ROW of one collective: a row for each P, a column a size.

    A cell names the algorithm that the model chose; its colour is the regret, the part of the best
    time that is lost; hovering tells the best algorithm and both times. Points that the table
    doesn't have stay empty. Raises InputError for an empty table and for several collectives.
    """
    _check(table)
    sizes, rank_counts = np.unique(table["bytes"]), np.unique(table["ranks"])
    shape = len(rank_counts), len(sizes)
    lost = np.full(shape, np.nan)
    names, told = np.full(shape, "", dtype=object), np.full(shape, "", dtype=object)
    for row in table:
        cell = np.searchsorted(rank_counts, row["ranks"]), np.searchsorted(sizes, row["bytes"])
        lost[cell] = row["regret"]
        names[cell] = _wrapped(row["chosen"])
        told[cell] = _told(row)
    figure = go.Figure(
        go.Heatmap(
            z=lost,
            zmin=0,
            zmax=MOST,
            x=[style.byte_size(size) for size in sizes],
            y=[str(ranks) for ranks in rank_counts],
            colorscale=SCALE,
            xgap=1,
            ygap=1,
            text=names,
            texttemplate="%{text}",
            textfont=dict(size=11),
            customdata=told,
            hovertemplate="%{y} ranks, %{x}: %{customdata}<extra></extra>",
            colorbar=dict(
                title="regret",
                thickness=12,
                tickvals=[0, 0.1, 0.25, 0.5, 0.75, 1],
                ticktext=["0", "10 %", "25 %", "50 %", "75 %", "100 % or more"],
            ),
        )
    )
    collective = table["collective"][0]
    what = "a rank's block" if collective in ("allgather", "gather", "scatter") else "the message"
    figure.update_xaxes(type="category", title=f"bytes of {what}", showgrid=False)
    figure.update_yaxes(type="category", title="ranks", showgrid=False)
    figure.update_layout(
        title=dict(text=f"{title}: {collective}"), height=max(320, 70 * len(rank_counts) + 170)
    )
    return style.finish(figure, _alt(table, f"{title}: {collective}"))


def _check(table):
    missing = set(REGRET_ROW.names) - set(table.dtype.names or ())
    if missing or len(table) == 0:
        raise InputError(
            "the table of regrets is empty or no such table; give what mpilab.models.regret "
            "returns."
        )
    collectives = np.unique(table["collective"]).tolist()
    if len(collectives) > 1:
        raise InputError(
            f"the table of regrets has {len(collectives)} collectives ({', '.join(collectives)}); "
            "draw one at a time."
        )


def _wrapped(name):
    """'recursive_doubling (ours)' in three lines: a cell is narrow."""
    return name.replace(" (", "<br>(").replace("_", "_<br>" if len(name) > 12 else "_")


def _told(row):
    chosen = f"chosen {row['chosen']}, {style.duration(row['chosen_s'])}"
    if row["chosen"] == row["best"]:
        return f"{chosen}: the best"
    return (
        f"{chosen}; best {row['best']}, {style.duration(row['best_s'])}: {_percent(row['regret'])} "
        "lost"
    )


def _percent(regret):
    return f"{100 * regret:.3g} %"


def _alt(table, title):
    lost = table["regret"]
    lines = [
        f"{title}: at {len(table)} points the best algorithm is chosen {int((lost == 0).sum())} "
        f"times; median regret {_percent(np.median(lost))}, largest {_percent(lost.max())}."
    ]
    return "\n".join(
        lines
        + [f"{row['ranks']} ranks, {style.byte_size(row['bytes'])}: {_told(row)}." for row in table]
    )
