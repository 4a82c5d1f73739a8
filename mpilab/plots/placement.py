"""Which rank runs on which host: a panel for each order of the ranks."""

from itertools import pairwise

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from mpilab.errors import InputError
from mpilab.hosts import crossings
from mpilab.plots import style

# Opaque and of middle lightness: the number of the rank on it is legible in both themes.
GROUP_COLOURS = ("#9cc1ee", "#e0b05c", "#8fc9a0", "#c9a5dc", "#e0958c")
INK = "#1d2733"


def placement(hostfile, orders, title="Which rank runs where"):
    """Hosts as columns of slots, ranks in them as numbers, and a line from each rank to the next.

    hostfile   a mpilab.hosts.Hostfile.
    orders     {name of an order: the host of each rank, as places in hostfile.hosts}.

    Hosts of one group have one colour. Free slots are faint. Raises InputError for no order, or a
    place that is no host.
    """
    hosts = hostfile.hosts
    if not orders:
        raise InputError("orders={}: nothing to draw; give e.g. {'slot': [0, 0, 1, 1]}")
    for name, places in orders.items():
        if wrong := [place for place in places if place not in range(len(hosts))]:
            raise InputError(
                f"order {name!r}: {wrong[0]!r} is no host; {hostfile.name} has {len(hosts)}, "
                f"numbered from 0 to {len(hosts) - 1}"
            )
    figure = make_subplots(
        cols=len(orders),
        shared_yaxes=True,
        horizontal_spacing=0.05,
        subplot_titles=[
            f"{name}: {_neighbours(places, short=True)}" for name, places in orders.items()
        ],
    )
    groups = list(dict.fromkeys(host.group for host in hosts))
    highest, named = 1, set()
    for column, places in enumerate(orders.values(), start=1):
        slots = _slots_of(places)
        highest = max(highest, *(host.slots or 0 for host in hosts), *slots.values(), 1)
        for trace in _panel(hosts, places, slots, groups):
            # Each group once: the first order may leave one of them empty.
            trace.update(showlegend=bool(trace.name) and trace.name not in named)
            named.add(trace.name)
            figure.add_trace(trace, row=1, col=column)
    figure.update_xaxes(
        title="host", tickvals=list(range(len(hosts))), ticktext=[host.name for host in hosts],
        range=[-0.6, len(hosts) - 0.4], showgrid=False)  # fmt: skip
    figure.update_yaxes(range=[0.4, highest + 0.6], dtick=1, showgrid=False)
    figure.update_yaxes(title="slot", row=1, col=1)
    figure.update_layout(title=dict(text=title), height=170 + 48 * min(highest, 12))
    return style.finish(figure, _alt(title, hostfile, orders))


def _slots_of(places):
    """{rank: slot}: the how manieth rank on its host it is, from 1."""
    taken, slots = {}, {}
    for rank, place in enumerate(places):
        slots[rank] = taken[place] = taken.get(place, 0) + 1
    return slots


def _panel(hosts, places, slots, groups):
    free = [
        (place, slot)
        for place, host in enumerate(hosts)
        for slot in range(places.count(place) + 1, (host.slots or 0) + 1)
    ]
    yield _squares(free, style.FAINT, hovertemplate="free<extra></extra>")
    yield go.Scatter(
        x=places,
        y=list(slots.values()),
        mode="lines",
        line=dict(color=style.LINE, width=1.5),
        hoverinfo="skip",
    )
    for number, group in enumerate(groups):
        ranks = [rank for rank, place in enumerate(places) if hosts[place].group == group]
        yield _squares(
            [(places[rank], slots[rank]) for rank in ranks],
            GROUP_COLOURS[number % len(GROUP_COLOURS)],
            name=f"group {group}" if group else "",
            mode="markers+text",
            text=[str(rank) for rank in ranks],
            textfont=dict(color=INK, size=13),
            customdata=[[hosts[places[rank]].name] for rank in ranks],
            hovertemplate="rank %{text} on %{customdata[0]}, slot %{y}<extra></extra>",
        )


def _squares(points, colour, **options):
    return go.Scatter(
        x=[x for x, _ in points],
        y=[y for _, y in points],
        marker=dict(symbol="square", size=26, color=colour),
        **{"mode": "markers", **options},
    )


def _neighbours(places, short=False):
    across, pairs = crossings(places), len(list(pairwise(places)))
    if short:
        return f"{across} of {pairs} steps change hosts"
    return f"from rank to rank, {across} of {style.plural(pairs, 'step')} lead to another host"


def _alt(title, hostfile, orders):
    ranks = max(map(len, orders.values()))
    lines = [
        f"{title}: {style.plural(ranks, 'rank')} on {style.plural(len(hostfile.hosts), 'host')} of "
        f"{hostfile.name}, in {style.plural(len(orders), 'order')}."
    ]
    for name, places in orders.items():
        held = []
        for place, host in enumerate(hostfile.hosts):
            on_it = ", ".join(str(rank) for rank, at in enumerate(places) if at == place)
            held.append(f"{_called(host)} has {on_it or 'none'}")
        lines.append(f"{name}: {'; '.join(held)}; {_neighbours(places)}.")
    return "\n".join(lines)


def _called(host):
    return f"{host.name} (group {host.group})" if host.group else host.name
