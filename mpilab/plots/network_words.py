"""What a drawn network says in words: the busiest link, and the text alternative."""

from collections import defaultdict

from mpilab.links import GROUP, MEMORY, NODE, Load, busiest, node_names, switch_names
from mpilab.plots import style
from mpilab.plots.steps import block_runs

STAR = "★"


def caption(found, description, short=False):
    """'busiest: switch a → core, 8 MiB in 4 messages, at least 336 ms at 200 Mbit/s'; in short
    without the messages, where there is a time."""
    most = busiest(found, description)
    if not most:
        return "nothing leaves a node"
    first, others = most[0], len(most) - 1
    said = [first.name, carried(first)]
    if first.rate(description) and first.bytes:
        said = [first.name, style.byte_size(first.bytes) if short else carried(first)]
        said.append(needs(first, description))
    return f"busiest: {', '.join(said)}" + (f"; {others} more like it" if others else "")


def titled(title, found, description):
    """The title of a figure, with the busiest link under it."""
    shown = f"{STAR} {caption(found, description, short=True)}"
    return dict(text=title, x=0.01, subtitle=dict(text=shown, font=dict(size=13, color=style.TEXT)))


def text(title, layout, found, description):
    """The lines of the text alternative: the sums, the busiest link, then every link."""
    levels = layout.levels
    on = f"{style.plural(len(levels.places), 'rank')} on {levels.describe()}"
    yield f"{title}: {on}; {_totals(found)}."
    said = caption(found, description)
    yield f"{said[0].upper()}{said[1:]}."
    each = defaultdict(dict)
    for load in found:
        each[load.level, load.number][load.up] = carried(load)
    switches, nodes = switch_names(levels), node_names(levels)
    for group in layout.group_order:
        if layout.core:
            up_down = each[GROUP, group]
            yield f"{switches[group]}: {up_down[True]} up to the core, {up_down[False]} down."
        for node in (node for node in layout.order if layout.group_of[node] == group):
            up_down, inside = each[NODE, node], each[MEMORY, node][False]
            yield (
                f"{nodes[node]} ({members(layout, node)}): {up_down[True]} up to "
                f"{switches[group]}, {up_down[False]} down, {inside} inside."
            )


def _totals(found):
    """'2 MiB in 4 messages inside nodes, 1 MiB in 2 messages between nodes, … between groups'."""
    return ", ".join(
        f"{carried(_sum(found, level))} {where}"
        for level, where in (
            (MEMORY, "inside nodes"),
            (NODE, "between nodes"),
            (GROUP, "of that between groups"),
        )
        if any(load.level == level for load in found)
    )


def _sum(found, level):
    """All that leaves the nodes or groups, or stays inside, as one Load."""
    some = [load for load in found if load.level == level and (load.up or level == MEMORY)]
    counted = all(load.messages is not None for load in some)
    return Load(
        level,
        -1,
        False,
        "",
        sum(load.bytes for load in some),
        sum(load.messages for load in some) if counted else None,
    )


def of_round(found, description):
    """The busiest link of a round, and all others that carry something."""
    carrying = [load for load in found if load.level != MEMORY and load.carries]
    if not carrying:
        return "nothing leaves a node."
    named = ", ".join(f"{load.name} {style.byte_size(load.bytes)}" for load in carrying)
    return f"{caption(found, description)}. Links: {named}."


def compared(runs, description):
    """'The busiest link carries 4 MiB in SEQ, 8 MiB in RR.', from {name: loads}."""
    most = {
        name: max((load.bytes for load in busiest(found, description)), default=0)
        for name, found in runs.items()
    }
    said = ", ".join(f"{style.byte_size(size)} in {name}" for name, size in most.items())
    return f"The busiest link carries {said}."


def told(load, description=None):
    """What the pointer tells of a link."""
    return f"{load.name}<br>{carried(load)}" + (
        f"<br>{needs(load, description)}" if load.bytes and load.rate(description) else ""
    )


def carried(load):
    """'2 MiB in 4 messages', 'nothing'."""
    if not load.carries:
        return "nothing"
    if load.messages is None:
        return style.byte_size(load.bytes)
    return f"{style.byte_size(load.bytes)} in {style.plural(load.messages, 'message')}"


def needs(load, description):
    """'at least 84 ms at 200 Mbit/s'."""
    rate = load.rate(description)
    factor, unit = next((u for u in ((1e9, "G"), (1e6, "M"), (1e3, "k")) if rate >= u[0]), (1, ""))
    return (
        f"at least {style.duration(load.seconds(description))} at {rate / factor:.4g} {unit}bit/s"
    )


def members(layout, node):
    """'ranks 0–3'."""
    ranks = layout.ranks_of[node]
    return f"rank{'s' * (len(ranks) > 1)} {block_runs(ranks, 0)}"
