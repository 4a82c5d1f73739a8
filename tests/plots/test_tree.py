"""The drawing of senders and receivers shows each round's messages, as a tree if there is one."""

import json

import pytest

from mpilab.algorithms import COLLECTIVES, algorithms, allgather, schedule_in_segments
from mpilab.errors import InputError
from mpilab.plots import style
from mpilab.plots.schedule import ROLES, drawing, place, rounds, tree

NAMES = [(collective, name) for collective in COLLECTIVES for name in algorithms(collective)]
FAINT, ARROWS, LABELS, NODES, GRID = range(5)
TREES = (
    {
        ("bcast", name)
        for name in ("linear", "chain", "pipeline", "binary", "binomial", "knomial", "split_binary")
    }
    | {
        ("reduce", name)
        for name in ("linear", "chain", "pipeline", "binary", "binomial", "in_order_binary")
    }
    | {
        (collective, name)
        for collective in ("gather", "scatter")
        for name in ("linear", "binomial", "linear_sync", "linear_nb")
    }
    | {("barrier", "linear"), ("barrier", "tree")}
)


def ways(trace, layout):
    """The (source, dest) of the lines of a trace, from where they begin and end."""
    places = enumerate(zip(layout.x, layout.y, strict=True))
    rank = {(round(x, 6), round(y, 6)): number for number, (x, y) in places}
    found, way = [], []
    for x, y in zip(trace.x, trace.y, strict=True):
        if x is None:
            found.append((rank[way[0]], rank[way[-1]]))
            way = []
        else:
            way.append((round(x, 6) + 0.0, round(y, 6) + 0.0))
    return found


@pytest.mark.parametrize("collective, name", NAMES)
def test_each_step_draws_exactly_the_messages_of_its_round(collective, name):
    for ranks in (1, 2, 5, 8):
        schedule = schedule_in_segments(collective, name, ranks, 2)
        layout = place(schedule)
        overview, start, *frames = drawing(schedule).frames
        assert [frame.name for frame in frames] == [str(i + 2) for i in range(len(frames))]
        everything = {(t.source, t.dest) for t in schedule.transfers()}
        assert set(ways(overview.data[ARROWS], layout)) == everything
        assert ways(start.data[ARROWS], layout) == []
        for frame, transfers in zip(frames, schedule.rounds, strict=True):
            drawn = ways(frame.data[ARROWS], layout)
            assert len(drawn) == len(set(drawn))
            assert set(drawn) == {(t.source, t.dest) for t in transfers}


@pytest.mark.parametrize("collective, name", NAMES)
def test_a_tree_is_drawn_as_one_and_everything_else_on_a_circle(collective, name):
    layout = place(schedule_in_segments(collective, name, 8))
    assert (layout.kind != "circle") == ((collective, name) in TREES)
    assert len(set(zip(layout.x, layout.y, strict=True))) == 8


def test_a_parent_stands_over_the_middle_of_its_children():
    layout = place(schedule_in_segments("bcast", "binomial", 8, root=3))
    assert layout.kind == "tree" and layout.levels == 4
    children = {}
    for child, parent in layout.parent.items():
        assert layout.y[child] == layout.y[parent] - 1
        children.setdefault(parent, []).append(layout.x[child])
    for parent, places in children.items():
        assert layout.x[parent] == (min(places) + max(places)) / 2


def test_the_root_of_a_gather_is_on_top_although_the_messages_go_up():
    layout = place(schedule_in_segments("gather", "binomial", 7, root=2))
    assert max(range(7), key=lambda rank: layout.y[rank]) == 2


def test_a_long_chain_lies_on_its_side():
    layout = place(schedule_in_segments("bcast", "pipeline", 16))
    assert layout.kind == "sideways"
    assert layout.x == tuple(range(16)) and set(layout.y) == {0}


def test_ranks_of_a_level_talk_round_those_between_them():
    layout = place(schedule_in_segments("bcast", "split_binary", 7))
    assert layout.is_bowed(3, 4) and not layout.is_bowed(1, 3)
    assert layout.along(3, 4, 0.5)[1] < layout.y[3]
    assert layout.along(3, 4, 1) == (layout.x[4], layout.y[4])


def test_it_opens_with_all_arrows_numbered_by_round():
    figure = tree("bcast", "pipeline", 4, segments=3)
    assert list(figure.data[LABELS].text) == ["1–3", "2–4", "3–5"]
    assert figure.layout.title.text == "bcast pipeline, P = 4, root 0: arrows numbered by round"
    assert [step.label for step in figure.layout.sliders[0].steps][:3] == ["all", "start", "1"]


def test_arrows_between_the_same_ranks_are_told_apart():
    figure = tree("barrier", "tree", 4)
    ends = ways(figure.data[ARROWS], place(schedule_in_segments("barrier", "tree", 4)))
    said = dict(zip(ends, figure.data[LABELS].text, strict=True))
    assert (said[1, 0], said[0, 1]) == ("↑ 1", "↓ 4")


def test_a_step_tells_which_segment_goes_along_an_arrow_and_what_each_rank_does():
    third = tree("bcast", "pipeline", 4, segments=3).frames[4]
    assert list(third.data[LABELS].text) == ["2", "1", "0"]
    fills = third.data[NODES].marker.color
    roles = [next(role for role, fill in ROLES.items() if fill == one) for one in fills]
    assert roles == ["sends", "sends and receives", "sends and receives", "receives"]


def test_the_grid_tells_what_each_rank_has_so_far():
    frames = tree("bcast", "pipeline", 3, segments=2).frames
    assert frames[1].data[GRID].z.tolist() == [[1, 1], [0, 0], [0, 0]]
    assert frames[3].data[GRID].z.tolist() == [[1, 1], [1, 2], [2, 0]]
    assert frames[0].data[GRID].z.tolist() == [[1, 1]] * 3


def test_the_grid_of_a_reduction_counts_the_ranks_whose_parts_are_in_a_block():
    frames = tree("reduce", "binomial", 4).frames
    assert [row[0] for row in frames[3].data[GRID].text] == ["4", "", "2", ""]
    assert frames[3].data[GRID].customdata[0][0] == "parts of 4 ranks, 2 new"


def test_where_there_are_very_many_arrows_they_have_no_labels():
    assert tree("allgather", "nonblocking_all", 16).data[LABELS].mode == "markers"
    assert tree("allgather", "ring", 16).data[LABELS].mode == "markers+text"


def test_the_text_alternative_lists_every_round():
    lines = style.alt(tree("bcast", "binomial", 4, root=1)).splitlines()
    assert lines == [
        "Schedule of bcast binomial on 4 ranks with root 1: 2 rounds, 3 messages, 3 blocks sent "
        "in all.",
        "Drawn as a tree of depth 2 below rank 1.",
        "At the start rank 1 holds the only block.",
        "Round 1: rank 1 sends 0 to ranks 2–3. Then 3 of 4 ranks hold every block.",
        "Round 2: rank 3 sends 0 to rank 0. Then 4 of 4 ranks hold every block.",
    ]


@pytest.mark.parametrize("collective, name", NAMES)
def test_the_text_alternative_ends_with_everything_done(collective, name):
    last = style.alt(tree(collective, name, 6, segments=3)).splitlines()[-1]
    assert any(words in last for words in ("6 of 6 ranks", "6 of 6 blocks", "6 of 6 parts")), last


def test_a_schedule_without_sizes_is_drawn_too():
    assert len(drawing(allgather.schedule("bruck", 5)).frames) == 5


def test_a_figure_is_whole_without_a_kernel():
    content = json.loads(tree("scatter", "binomial", 16).to_json())
    assert len(content["frames"]) == 6
    assert all(len(frame["data"]) == 5 for frame in content["frames"])


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(InputError, match="'ring' is not an algorithm of bcast"):
        tree("bcast", "ring", 4)


@pytest.mark.parametrize("collective, name", NAMES)
def test_the_figure_of_rounds_takes_every_collective(collective, name):
    schedule = schedule_in_segments(collective, name, 5, 2)
    figure = rounds(schedule)
    assert len(figure.frames) == len(schedule.rounds) + 1
    assert figure.layout.title.text.endswith(": start")
    assert style.alt(figure).startswith(f"Schedule of {collective} {name} on 5 ranks")
