"""Figures of sweeps over clusters: axes, panels, ratios, and the same as text."""

import numpy as np
import pytest

from mpilab.errors import InputError
from mpilab.measure.cluster_sweep import ROW
from mpilab.plots import style
from mpilab.plots.clusters import ratio_map, time_against


def table(
    kernels=("linear", "leaders"), nodes=(2, 4), ppns=(1, 2, 4), sizes=(64, 1024), repetitions=1
):
    """Made-up rows: linear takes P µs; leaders 6 µs, and 1 ns a byte."""
    rows = []
    for kernel in kernels:
        for hosts in nodes:
            for ppn in ppns:
                for size in sizes:
                    ranks = hosts * ppn
                    seconds = 1e-6 * ranks if kernel == "linear" else 6e-6 + 1e-9 * size
                    for repetition in range(repetitions):
                        at = ("2026-11-27", "a machine", f"flat-{hosts}x4", "alltoallv")
                        where = (f"alltoallv_{kernel}", "seq", 1, hosts, ppn, ranks, size)
                        rows.append((*at, *where, repetition + 1, seconds * (1 + repetition)))
    return np.array(rows, ROW)


def lines(figure, name):
    return [trace for trace in figure.data if trace.name == name]


def test_ranks_per_host_are_the_axis_with_panels_for_sizes_and_hosts():
    figure = time_against(table())
    assert [note.text for note in figure.layout.annotations] == [
        "64 B, 2 hosts",
        "1 KiB, 2 hosts",
        "64 B, 4 hosts",
        "1 KiB, 4 hosts",
    ]
    drawn = lines(figure, "linear")
    assert len(drawn) == 4 and sum(trace.showlegend for trace in drawn) == 1
    assert drawn[0].x.tolist() == [1, 2, 4]
    assert np.allclose(drawn[0].y, [2e-6, 4e-6, 8e-6])
    assert figure.layout.yaxis.type == "log"
    assert figure.layout.xaxis3.title.text == "ranks per host"


@pytest.mark.parametrize("axis, values", [("nodes", [2, 4]), ("bytes", [64, 1024])])
def test_hosts_and_sizes_are_axes_too(axis, values):
    figure = time_against(table(ppns=(2,)), axis)
    assert lines(figure, "leaders")[0].x.tolist() == values


def test_ranks_are_an_axis_with_a_panel_for_each_number_of_ranks_per_host():
    figure = time_against(table(sizes=(64,)), "ranks")
    assert [note.text for note in figure.layout.annotations] == [
        "1 per host",
        "2 per host",
        "4 per host",
    ]
    assert lines(figure, "linear")[1].x.tolist() == [4, 8]


def test_medians_are_drawn():
    (line,) = lines(time_against(table(("linear",), (2,), (1,), (64,), 3)), "linear")
    assert np.allclose(line.y, [4e-6])


def test_a_ratio_above_1_is_faster_than_the_other():
    figure = time_against(table(nodes=(4,), sizes=(64,)), relative_to="alltoallv_linear")
    (leaders,) = lines(figure, "leaders")
    assert np.allclose(leaders.y, np.array([4, 8, 16]) / 6.064)
    (linear,) = lines(figure, "linear")
    assert np.allclose(linear.y, 1)
    assert figure.layout.yaxis.title.text == "times as fast as linear"


def test_the_text_says_every_value():
    text = style.alt(time_against(table(nodes=(4,)), relative_to="alltoallv_linear"))
    assert text.splitlines()[0] == (
        "alltoallv on flat-4x4: how many times as fast as alltoallv_linear, against ranks per "
        "host, logarithmic; 2 kernels."
    )
    assert (
        "64 B: alltoallv_leaders, ranks per host 1: 0.66, ranks per host 2: 1.32, ranks per host "
        "4: 2.64." in text
    )


@pytest.mark.parametrize(
    "rows, more, message",
    [
        (table()[:0], {}, "there are no rows to draw"),
        (table(), {"axis": "hosts"}, "axis='hosts': write one of ppn, ranks, nodes, bytes"),
        (table(), {"relative_to": "alltoallv_pairwise"}, "the rows have alltoallv_leaders"),
        (table(), {"axis": "bytes"}, None),
        (np.zeros(2, [("ppn", int)]), {}, "the rows have no field bytes, cluster"),
    ],
)
def test_what_cannot_be_drawn_is_refused(rows, more, message):
    if message is None:
        assert len(time_against(rows, **more).data) == 2 * 2 * 3
        return
    with pytest.raises(InputError, match=message):
        time_against(rows, **more)


def test_more_than_two_other_fields_are_refused_with_what_to_choose():
    rows = np.concatenate([table(), table()])
    rows["order"][: len(rows) // 2] = "rr"
    with pytest.raises(InputError, match=r"differ in bytes, nodes, order beside ppn: choose"):
        time_against(rows)


def test_a_ratio_map_has_a_row_for_each_number_of_ranks_and_says_the_same_in_words():
    rows = table(nodes=(2, 4), ppns=(2,), repetitions=3)
    figure = ratio_map(rows, "alltoallv_leaders", "alltoallv_linear")
    (drawn,) = figure.data
    assert list(drawn.y) == ["4", "8"] and list(drawn.x) == ["64 B", "1 KiB"]
    assert np.allclose(2 ** np.array(drawn.z), [[6.064 / 4, 7.024 / 4], [6.064 / 8, 7.024 / 8]])
    assert drawn.zmid == 0 and drawn.zmin == -drawn.zmax
    assert style.alt(figure).splitlines()[1:] == [
        "4 ranks: 64 B 1.52, 1 KiB 1.76.",
        "8 ranks: 64 B 0.758, 1 KiB 0.878.",
    ]


def test_a_ratio_map_leaves_out_times_of_0_and_refuses_two_places_with_the_same_ranks():
    rows = table(nodes=(1, 2), ppns=(2,), sizes=(64,))
    rows["seconds"][rows["ranks"] == 2] = 0
    (drawn,) = ratio_map(rows, "alltoallv_leaders", "alltoallv_linear").data
    assert list(drawn.y) == ["4"]
    with pytest.raises(InputError, match="two places with 4 ranks"):
        ratio_map(table(nodes=(2, 4), ppns=(1, 2)), "alltoallv_leaders", "alltoallv_linear")
    with pytest.raises(InputError, match="kernel='alltoallv_none': the rows have alltoallv_"):
        ratio_map(rows, "alltoallv_none", "alltoallv_linear")
