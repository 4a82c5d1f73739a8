"""The figure of ranks on hosts."""

import pytest

from mpilab.errors import InputError
from mpilab.hosts.hostfile import parse
from mpilab.plots import style
from mpilab.plots.network import placement

TWO = parse("# group: left\nn1 slots=3\n# group: right\nn2 slots=2\n", "two.txt")


def drawn(order, hostfile=TWO):
    return placement(hostfile, {"an order": order})


def numbers(figure):
    """{rank: (x, y)} of the squares that are drawn."""
    return {
        int(text): (x, y)
        for trace in figure.data
        if trace.text
        for text, x, y in zip(trace.text, trace.x, trace.y, strict=True)
    }


def test_each_rank_is_a_number_above_its_host_in_the_next_free_slot():
    assert numbers(drawn([0, 1, 0, 1])) == {0: (0, 1), 1: (1, 1), 2: (0, 2), 3: (1, 2)}


def test_free_slots_are_drawn_faint():
    free = drawn([0, 1, 0, 1]).data[0]
    assert (free.x, free.y) == ((0,), (3,))
    assert free.marker.color == style.FAINT


def test_a_line_leads_from_each_rank_to_the_next():
    line = drawn([1, 0, 0]).data[1]
    assert line.mode == "lines"
    assert (line.x, line.y) == ((1, 0, 0), (1, 1, 2))


def test_hosts_of_one_group_have_one_color_and_an_entry_in_the_legend():
    traces = {trace.name: trace for trace in drawn([0, 1]).data if trace.name}
    assert list(traces) == ["group left", "group right"]
    assert traces["group left"].marker.color != traces["group right"].marker.color


def test_every_order_has_a_panel_that_tells_how_often_neighbors_change_hosts():
    figure = placement(TWO, {"by slot": [0, 0, 0, 1], "by node": [0, 1, 0, 1]})
    titles = [annotation.text for annotation in figure.layout.annotations]
    assert titles == ["by slot: 1 of 3 steps change hosts", "by node: 3 of 3 steps change hosts"]
    assert figure.layout.xaxis2.ticktext == ("n1", "n2")


def test_the_text_alternative_lists_the_ranks_of_each_host():
    text = style.alt(placement(TWO, {"by node": [0, 1, 0]}, title="Dealt"))
    assert text.splitlines() == [
        "Dealt: 3 ranks on 2 hosts of two.txt, in 1 order.",
        "by node: n1 (group left) has 0, 2; n2 (group right) has 1; "
        "from rank to rank, 2 of 2 steps cross to another host.",
    ]


def test_more_ranks_than_slots_and_hosts_without_a_number_of_slots_are_drawn_too():
    figure = drawn([0, 0, 0], parse("n1\nn2\n"))
    assert numbers(figure)[2] == (0, 3)
    assert "n2 has none" in style.alt(figure)


@pytest.mark.parametrize(
    "orders, message", [({}, "nothing to draw"), ({"x": [0, 2]}, "2 is not a ho")]
)
def test_nothing_and_hosts_that_are_not_there_are_refused(orders, message):
    with pytest.raises(InputError, match=message):
        placement(TWO, orders)
