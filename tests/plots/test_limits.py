"""Measured bars beside limits: what is drawn, and what the text says."""

import numpy as np
import pytest

from mpilab.errors import InputError
from mpilab.plots.models import (
    against_limits,
    bandwidth_panels,
    bandwidths,
    seconds_on_ranks,
)
from mpilab.plots.style import alt

MEASURED = {"ring, rr": [0.030, 0.010, 0.020], "ring, seq": [0.004]}


def test_a_bar_is_as_long_as_the_median_and_a_mark_stands_where_the_limit_is():
    bars, marks = against_limits(MEASURED, {"ring, rr": 0.008}, "Allgather").data
    assert list(bars.y) == ["ring, rr", "ring, seq"]
    assert list(bars.x) == pytest.approx([20, 4])
    assert list(bars.error_x.array) == pytest.approx([5, 0])
    assert list(bars.error_x.arrayminus) == pytest.approx([5, 0])
    assert list(marks.y) == ["ring, rr"] and list(marks.x) == pytest.approx([8])


def test_the_text_tells_medians_and_limits_and_where_there_is_none():
    assert alt(against_limits(MEASURED, {"ring, rr": 0.008}, "Allgather")).splitlines() == [
        "Allgather.",
        "ring, rr: 20 ms; the busiest link alone takes 8 ms.",
        "ring, seq: 4 ms.",
    ]


def test_the_legend_names_what_the_bars_are_and_no_limit_where_there_is_none():
    bars, marks = against_limits(MEASURED, {}, "Allgather", are="simulated").data
    assert bars.name == "simulated"
    assert marks.showlegend is False


def test_marks_may_be_those_of_a_model():
    figure = against_limits(MEASURED, {"ring, rr": 0.008}, "Allgather", mark="the model")
    assert figure.data[1].name == "the model"
    assert "ring, rr: 20 ms; the model takes 8 ms." in alt(figure)


def test_bandwidths_that_a_model_predicts_are_dotted_and_told():
    figure = bandwidths({"RR": {64: 1e9}}, "Allgather", {"RR": {64: 2e9}})
    assert [(list(trace.y), trace.line.dash) for trace in figure.data] == [
        ([1], "solid"),
        ([2], "dot"),
    ]
    assert "RR, model: 64 B 2 GB/s." in alt(figure)


def test_times_on_ranks_are_lines_and_those_of_the_model_dotted():
    figure = seconds_on_ranks(
        {"rank 0": {16: 2e-3, 1024: 3e-3}}, "Messages", {"rank 0": {16: 2e-3, 1024: 4e-3}}
    )
    assert [list(trace.y) for trace in figure.data] == [[2e-3, 3e-3], [2e-3, 4e-3]]
    assert [trace.line.dash for trace in figure.data] == ["solid", "dot"]
    assert figure.layout.xaxis.ticktext == ("16", "1,024")
    assert alt(figure).splitlines() == [
        "Messages, both axes logarithmic.",
        "rank 0: 16 ranks 2 ms, 1,024 ranks 3 ms.",
        "rank 0, model: 16 ranks 2 ms, 1,024 ranks 4 ms.",
    ]
    with pytest.raises(InputError, match="no lines"):
        seconds_on_ranks({}, "Messages")


@pytest.mark.parametrize("measured", [{}, {"ring": []}])
def test_nothing_to_draw_is_refused(measured):
    with pytest.raises(InputError, match="nothing to draw"):
        against_limits(measured, {}, "Allgather")


def test_bandwidths_are_in_gigabytes_per_second_and_every_other_line_is_dashed():
    figure = bandwidths({"RR": {64: 1e9, 1024: 5e9}, "SEQ": {64: 2.5e8}}, "Allgather")
    assert [list(trace.y) for trace in figure.data] == [[1, 5], [0.25]]
    assert [trace.line.dash for trace in figure.data] == ["solid", "dash"]
    assert alt(figure).splitlines() == [
        "Allgather, both axes logarithmic.",
        "RR: 64 B 1 GB/s, 1 KiB 5 GB/s.",
        "SEQ: 64 B 0.25 GB/s.",
    ]


@pytest.mark.parametrize("lines", [{}, {"RR": {}}])
def test_bandwidths_of_nothing_are_refused(lines):
    with pytest.raises(InputError, match="no lines, or a line without points"):
        bandwidths(lines, "Allgather")


def test_bars_of_measured_times_say_where_and_which_ranks_shared_cores():
    stamp = "AMD EPYC, 2 cores, 4 GiB, Linux 6.1, Python 3.12.1"
    rows = np.array([("2026-11-27", stamp)], [("date", "U10"), ("machine", "U80")])
    figure = against_limits(MEASURED, {}, "Allgather", table=rows, ranks=[8])
    assert figure.layout.title.text == (
        "Allgather<br><sub>Measured on AMD EPYC, 2 cores, 8 ranks, 2026-11-27 (8 oversubscribed)"
        "</sub>"
    )
    assert alt(figure).splitlines()[1:3] == [
        "Times measured on AMD EPYC, 2 cores, 8 ranks, 2026-11-27.",
        "8 ranks: oversubscribed, more ranks than cores.",
    ]


def test_panels_of_bandwidths_share_names_and_colors_and_each_name_is_once_in_the_legend():
    lines = {"RR": {64: 1e9}, "SEQ": {64: 5e8}}
    figure = bandwidth_panels({"ring": lines, "bcast": {"SEQ": {64: 2e9}}}, "Bandwidth")
    assert [(t.name, t.showlegend) for t in figure.data] == [
        ("RR", True),
        ("SEQ", True),
        ("SEQ", False),
    ]
    assert figure.data[1].line.color == figure.data[2].line.color != figure.data[0].line.color
    assert alt(figure).splitlines()[1:] == [
        "ring: RR: 64 B 1 GB/s.",
        "ring: SEQ: 64 B 0.5 GB/s.",
        "bcast: SEQ: 64 B 2 GB/s.",
    ]
