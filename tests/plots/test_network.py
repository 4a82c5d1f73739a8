"""The network figure: sums, the busiest link, legibility; the matrix sorted by node and group."""

import json
import re
from itertools import combinations

import numpy as np
import pytest

from mpilab.cases.case import Case
from mpilab.errors import InputError
from mpilab.hosts import links
from mpilab.hosts.description import Description, Link
from mpilab.hosts.links import GROUP, NODE, loads
from mpilab.hosts.places import Levels, Place
from mpilab.kernels.build import KERNELS
from mpilab.models.declared import counts
from mpilab.notebook.session import KernelRun
from mpilab.plots import style
from mpilab.plots.matrix import traffic_matrix
from mpilab.plots.network import COLUMN, Layout, before_after, by_round, network
from mpilab.runners.mpirun import run_cases

SLOW_CORE = Description("d", "", (), host_link=Link(1e9), group_link=Link(2e8))
NAMES, LANES, HEADS, NUMBERS, STARS, RANKS = 1, 2, 3, 4, 5, 6
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def placed(groups, nodes, ranks, by_node=False):
    """Levels with these numbers of ranks per node, nodes per group, and groups."""
    hosts = [
        Place(f"n{group * nodes + node + 1}", f"g{group}")
        for group in range(groups)
        for node in range(nodes)
    ]
    return tuple(hosts * ranks if by_node else [host for host in hosts for _ in range(ranks)])


BY_SLOT, BY_NODE = Levels(placed(4, 2, 2)), Levels(placed(4, 2, 2, by_node=True))


def run(function, places, count=256):
    collective = function.partition("_")[0]
    case = Case(collective, len(places), count, function=function, places=tuple(places))
    (result,) = run_cases(KERNELS, "", [case], limit=60.0)
    return KernelRun(function, result)


@pytest.fixture(scope="module")
def bcast():
    """A bcast_binomial of 1 KiB to 16 ranks on 8 nodes in 4 groups, with ranks dealt by node."""
    return run("bcast_binomial", BY_NODE.places)


@pytest.fixture(scope="module")
def by_slot():
    return run("bcast_binomial", BY_SLOT.places)


def full(levels, size):
    """Every rank sends `size` bytes to every other rank."""
    return np.full((len(levels.places),) * 2, size, np.int64)


def in_bytes(text):
    number, unit = text.split()[-2:]
    return round(float(number) * UNITS[unit])


def told_by(figure):
    """{link: (bytes, messages)} from the hover text of the lanes."""
    found = {}
    for told in figure.data[LANES].hovertext:
        name, carried = told.split("<br>")[:2]
        size, _, messages = carried.partition(" in ")
        found[name] = (0, 0) if size == "nothing" else (in_bytes(size), int(messages.split()[0]))
    return found


# --- What it says


def test_the_lanes_tell_what_the_judge_counts(bcast):
    told = told_by(network(bcast.matrix(), bcast.levels))
    judged = counts(bcast.result.recording, bcast.levels)
    leaving = {
        "group": [told[f"switch g{group} → core"] for group in range(4)],
        "node": [told[f"n{node + 1} → switch g{node // 2}"] for node in range(8)],
    }
    for level, carried in leaving.items():
        assert sum(size for size, _ in carried) == judged[f"{level}_bytes"] > 0
        assert sum(messages for _, messages in carried) == judged[f"{level}_messages"] > 0
    inside = sum(size for name, (size, _) in told.items() if name.startswith("memory"))
    assert inside == judged["bytes"] - judged["node_bytes"]


def test_the_numbers_in_the_boxes_are_those_of_their_links(bcast):
    figure = network(bcast.matrix(), bcast.levels)
    numbers, layout = figure.data[NUMBERS], Layout(bcast.levels)
    shown = {}
    for x, y, text in zip(numbers.x, numbers.y, numbers.text, strict=True):
        for level, boxes in (
            (NODE, map(layout.node, range(8))),
            (GROUP, map(layout.switch, range(4))),
        ):
            for number, box in enumerate(boxes):
                if box.left < x < box.right and box.bottom < y < box.top:
                    shown[level, number, text[0]] = in_bytes(text)
    expected = {
        (load.level, load.number, "↑" if load.up else "↓"): load.bytes
        for load in loads(bcast.matrix(), bcast.levels)
        if load.level in (NODE, GROUP) and load.bytes
    }
    assert {key: size for key, size in shown.items() if key[2] != "⇄"} == expected


def test_wider_and_warmer_is_more_and_a_link_without_bytes_has_no_head(bcast):
    figure = network(bcast.matrix(), bcast.levels)
    lanes = figure.data[LANES]
    widths = dict(zip(told_by(figure), np.round(lanes.width, 9), strict=True))
    sizes = {name: size for name, (size, _) in told_by(figure).items() if "→" in name}
    order = sorted(sizes, key=sizes.get)
    assert all(
        (widths[one] < widths[other]) == (sizes[one] < sizes[other])
        for one, other in combinations(order, 2)
    )
    assert len(figure.data[HEADS].x) == sum(size > 0 for size in sizes.values())
    colors = dict(zip(told_by(figure), lanes.marker.color, strict=True))
    assert colors["switch g0 → core"] != colors["switch g2 → core"] != style.LINE
    assert colors["core → switch g0"] == style.LINE


def test_the_text_alternative_and_the_title_name_the_busiest_link_and_its_bytes(bcast):
    figure = network(bcast.matrix(), bcast.levels, SLOW_CORE, title="A bcast")
    lines = style.alt(figure).splitlines()
    assert lines[:4] == [
        "A bcast: 16 ranks on 8 nodes in 4 groups; 1 KiB in 1 message inside nodes, 14 KiB in 14 "
        "messages between nodes, 6 KiB in 6 messages of that between groups.",
        "Busiest: switch g0 → core, 4 KiB in 4 messages, at least 164 µs at 200 Mbit/s.",
        "switch g0: 4 KiB in 4 messages up to the core, nothing down.",
        "n1 (ranks 0, 8): 6 KiB in 6 messages up to switch g0, nothing down, 1 KiB in 1 message "
        "inside.",
    ]
    assert "★ busiest: switch g0 → core, 4 KiB" in figure.layout.title.subtitle.text
    without_rates = style.alt(network(bcast.matrix(), bcast.levels))
    assert "Busiest: n1 → switch g0, 6 KiB in 6 messages." in without_rates


def test_every_busiest_link_has_a_star():
    figure = network(full(BY_SLOT, 1), BY_SLOT, SLOW_CORE)
    assert list(figure.data[STARS].text) == ["★"] * 8
    assert "; 7 more like it" in style.alt(figure)


def test_nodes_stand_at_the_same_place_whatever_the_order_of_the_ranks():
    shuffled = Levels(tuple(np.random.default_rng(1).permutation(np.array(BY_SLOT.places, object))))
    names = [network(full(levels, 1), levels).data[NAMES] for levels in (BY_SLOT, shuffled)]
    places = [dict(zip(each.text, each.x, strict=True)) for each in names]
    assert places[0] == places[1]
    assert places[0]["n2"] < places[0]["n8"]
    ten = Layout(Levels(placed(1, 10, 1)))
    assert [ten.levels.places[ten.ranks_of[node][0]].node for node in ten.order][-2:] == [
        "n9",
        "n10",
    ]


def test_empty_messages_are_drawn_by_their_number():
    barrier = run("barrier_dissemination", BY_SLOT.places, count=0)
    figure = network(barrier.matrix(), BY_SLOT)
    assert all(re.fullmatch(r"[↑↓⇄] \d+×", text) for text in figure.data[NUMBERS].text)
    assert len(figure.data[HEADS].x) == 24


# --- What it looks like


def boxes_of_texts(figure, width):
    """(text, left, right, bottom, top) in pixels of all texts and of the ranks."""
    pixels = COLUMN / width
    for trace in figure.data:
        if trace.type != "scatter" or "text" not in trace.mode or not trace.text:
            continue
        size = trace.textfont.size
        for x, y, text in zip(trace.x, trace.y, trace.text, strict=True):
            is_rank = "markers" in trace.mode
            # A letter of the widest font in use, DejaVu Sans, is 0.62 of its size on average.
            wide = trace.marker.size if is_rank else 0.62 * size * len(text)
            high = trace.marker.size if is_rank else size
            yield text, x * pixels - wide / 2, x * pixels + wide / 2, y - high / 2, y + high / 2


@pytest.mark.parametrize(
    "shape",
    [(4, 2, 2), (1, 8, 2), (8, 2, 2), (4, 4, 8), (2, 2, 8), (1, 2, 1), (16, 1, 1), (16, 4, 1)],
)
def test_no_two_texts_overlap_and_none_leaves_the_figure(shape):
    levels = Levels(placed(*shape))
    # Sums with the maximum number of digits.
    figure = network(full(levels, 1024 * 1023 + 512), levels)
    written = [one for one in boxes_of_texts(figure, Layout(levels).width) if one[0]]
    aside = -figure.layout.xaxis.range[0] * COLUMN / Layout(levels).width
    for (one, *a), (other, *b) in combinations(written, 2):
        apart = a[1] <= b[0] or b[1] <= a[0] or a[3] <= b[2] or b[3] <= a[2]
        assert apart, f"{one!r} at {a} and {other!r} at {b}"
    for text, left, right, bottom, top in written:
        assert -aside <= left and right <= COLUMN + aside, text
        assert bottom >= 0 and top <= Layout(levels).height, text


def test_lanes_of_neighboring_links_keep_apart():
    for shape in ((4, 2, 2), (4, 4, 8), (32, 2, 1)):
        levels = Levels(placed(*shape))
        layout = Layout(levels)
        links_of_nodes = [load for load in loads(full(levels, 1), levels) if load.level == NODE]
        reach = sorted(
            (lane.left, lane.right) for lane in (layout.lane(load, 1) for load in links_of_nodes)
        )
        assert all(one[1] < other[0] for one, other in zip(reach, reach[1:], strict=False))


def test_where_there_is_no_room_ranks_are_told_by_their_number():
    many = Levels(placed(4, 4, 8))
    assert list(network(full(many, 1), many).data[RANKS].text) == ["8 ■"] * 16
    few = Levels(placed(1, 4, 8))
    assert list(network(full(few, 1), few).data[RANKS].text) == [str(rank) for rank in range(32)]


@pytest.mark.parametrize("shape", [(4, 2, 2), (4, 4, 8), (16, 4, 1)])
def test_a_figure_is_small_and_needs_nothing_from_elsewhere(shape):
    levels = Levels(placed(*shape))
    for figure in (network(full(levels, 9), levels), traffic_matrix(full(levels, 9), levels)):
        text = figure.to_json()
        assert json.loads(text)["layout"]["meta"]["alt"] == style.alt(figure)
        assert "http" not in text
        # All pairs communicate, and each is listed: about 100 bytes a pair.
        assert len(text) < 60_000 + 110 * len(levels.places) ** 2


# --- Round by round


def test_each_step_draws_the_links_of_its_round(bcast):
    figure = by_round(bcast.messages, bcast.levels)
    assert [step.label for step in figure.layout.sliders[0].steps] == ["all", "1", "2", "3", "4"]
    for frame, found in zip(
        figure.frames[1:], links.by_round(bcast.messages, bcast.levels), strict=True
    ):
        told = {text.split("<br>")[0]: text for text in frame.data[LANES - 2].hovertext}
        assert {name for name, text in told.items() if "nothing" not in text} == {
            load.name for load in found if load.carries
        }
    assert told_by(figure) == told_by(network(bcast.matrix(), bcast.levels))


def test_rounds_share_a_scale_and_tell_what_ranks_do(bcast):
    frames = by_round(bcast.messages, bcast.levels).frames
    tops = [frame.data[-1].marker.cmax for frame in frames]
    assert len(set(tops[1:])) == 1 and tops[0] > tops[1]
    first = dict(
        zip(frames[1].data[RANKS - 2].text, frames[1].data[RANKS - 2].hovertext, strict=True)
    )
    assert first["0"] == "rank 0 sends" and first["15"] == "rank 15 idle"
    assert list(first.values()).count("rank 8 receives") == 1


def test_the_text_of_a_round_names_its_links(bcast):
    lines = style.alt(by_round(bcast.messages, bcast.levels)).splitlines()
    rounds = [line for line in lines if line.startswith("Round")]
    # Rank 0 starts its four messages together: one stays on its node, two leave its group.
    assert rounds[0] == (
        "Round 1: busiest: n1 → switch g0, 3 KiB in 3 messages. Links: switch g0 → core 2 KiB, "
        "core → switch g1 1 KiB, core → switch g2 1 KiB, n1 → switch g0 3 KiB, switch g0 → n2 "
        "1 KiB, switch g1 → n3 1 KiB, switch g2 → n5 1 KiB."
    )


# --- Before and after


def test_two_runs_share_a_scale_and_their_busiest_links_are_compared(bcast, by_slot):
    runs = {name: (one.matrix(), one.levels) for name, one in (("SEQ", by_slot), ("RR", bcast))}
    figure = before_after(runs, SLOW_CORE)
    panel = len(network(*runs["SEQ"]).data) - 1  # without the scale
    first, second = (figure.data[LANES + start] for start in (0, panel))
    told = [dict(zip(each.hovertext, each.width, strict=True)) for each in (first, second)]
    assert {name.split("<br>")[0] for name in told[0]} == {n.split("<br>")[0] for n in told[1]}
    same = {
        text: width for text, width in told[0].items() if text in told[1] and "memory" not in text
    }
    assert same and all(told[1][text] == pytest.approx(width) for text, width in same.items())
    assert figure.data[-1].marker.cmax == 6 * 1024
    assert style.alt(figure).splitlines()[-1] == (
        "The busiest link carries 2 KiB in SEQ, 4 KiB in RR."
    )
    titles = [annotation.text for annotation in figure.layout.annotations]
    assert titles[1] == "RR, busiest: switch g0 → core, 4 KiB, at least 164 µs at 200 Mbit/s"


def test_no_runs_are_refused():
    with pytest.raises(InputError, match="nothing to draw"):
        before_after({})


# --- Which ranks communicate


def test_ranks_are_sorted_by_group_and_node_with_borders_around_both(bcast):
    figure = traffic_matrix(bcast.matrix(), bcast.levels)
    assert list(figure.layout.xaxis.ticktext)[:6] == ["0", "8", "1", "9", "2", "10"]
    squares = [(shape.x0 + 0.5, shape.x1 + 0.5, shape.line.width) for shape in figure.layout.shapes]
    assert squares[:2] == [(0, 2, 1), (2, 4, 1)]
    assert squares[8:] == [(start, start + 4, 3) for start in (0, 4, 8, 12)]


def test_the_color_of_a_pair_says_how_far_apart_it_is(bcast):
    _, volume = bcast.matrix()
    heat = traffic_matrix(bcast.matrix(), bcast.levels).data[0]
    order = [
        int(rank) for rank in traffic_matrix(bcast.matrix(), bcast.levels).layout.xaxis.ticktext
    ]
    levels = bcast.levels
    for row, source in enumerate(order):
        for column, dest in enumerate(order):
            third = heat.z[row][column]
            if not volume[source, dest]:
                assert np.isnan(third)
                continue
            far = int(levels.node[source] != levels.node[dest])
            far += int(levels.group[source] != levels.group[dest])
            assert int(third) == far
            assert f"rank {source} → rank {dest}" in heat.hovertext[row][column]
            assert heat.text[row][column] == "1"


def test_the_matrix_adds_up_by_level_in_words(bcast):
    lines = style.alt(traffic_matrix(bcast.matrix(), bcast.levels, title="A bcast")).splitlines()
    assert lines[:5] == [
        "A bcast: 16 ranks on 8 nodes in 4 groups.",
        "Within a node: 1 KiB in 1 message.",
        "Between nodes: 8 KiB in 8 messages.",
        "Between groups: 6 KiB in 6 messages.",
        "Rank 0 sends 1 KiB in 1 message within a node, 1 KiB in 1 message between nodes, 2 KiB in "
        "2 messages between groups.",
    ]


def test_many_ranks_are_named_by_their_nodes():
    many = Levels(placed(4, 4, 8))
    figure = traffic_matrix(full(many, 1), many)
    assert figure.layout.xaxis.title.text == "receiver (node)"
    assert list(figure.layout.xaxis.ticktext) == [f"n{node}" for node in range(1, 17)]
    assert figure.layout.xaxis.tickvals[0] == 3.5


# --- Runs


def test_a_run_on_several_nodes_shows_its_network(bcast):
    figure = bcast.figure("network")
    assert "bcast_binomial" in figure.layout.title.text
    assert len(figure.frames) == 5
    assert "4 KiB in 4 messages up to the core" in style.alt(figure)


def test_a_run_on_one_node_has_no_network():
    alone = run("bcast_binomial", [Place("n1")] * 4)
    with pytest.raises(InputError, match="all ranks were on one node.*run it on several hosts"):
        alone.figure("network")
    with pytest.raises(InputError, match="4 ranks on one node: there is no network"):
        network(alone.matrix(), alone.levels)


def test_messages_of_mpis_own_are_not_there_to_be_drawn():
    own = run("bcast_openmpi", BY_SLOT.places)
    with pytest.raises(InputError, match="MPI's own algorithm are not recorded"):
        own.figure("network")
