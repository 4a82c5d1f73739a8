"""Tables of OSU in one figure."""

from dataclasses import replace

import numpy as np
import pytest

from mpilab.errors import InputError
from mpilab.measure.osu import parse
from mpilab.plots import style
from mpilab.plots.distances import side_by_side

FULL = parse(
    "# OSU MPI Broadcast Latency Test v7.3\n"
    "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n"
    "1                       2.00              1.00              4.00        1000\n"
    "2                       3.00              2.00              5.00        1000\n"
)
PLAIN = parse("# Size  Avg Latency(us)\n1  5.0\n")
BANDWIDTH = parse("# Size      Bandwidth (MB/s)\n1  10.25\n1024  2000.5\n")


def test_each_table_is_a_line_in_seconds_with_the_spread_of_the_ranks():
    figure = side_by_side({"default": FULL, "pipeline": PLAIN})
    first, second = figure.data
    assert (first.name, second.name) == ("default", "pipeline")
    assert np.allclose(first.y, [2e-6, 3e-6]) and np.allclose(second.y, [5e-6])
    assert np.allclose(first.error_y.array, 2e-6) and np.allclose(first.error_y.arrayminus, 1e-6)
    assert second.error_y.array is None
    assert first.line.color != second.line.color


def test_the_text_alternative_holds_every_value():
    assert style.alt(side_by_side({"default": FULL, "pipeline": PLAIN})).splitlines() == [
        "OSU latency against message size, both logarithmic: default, pipeline.",
        "default: 1 B 2 µs, 2 B 3 µs.",
        "pipeline: 1 B 5 µs.",
    ]


def test_where_the_times_come_from_is_below_the_title_once():
    where = "measured on a processor, 2 cores, 4 ranks, oversubscribed"
    here = replace(FULL, where=where)
    figure = side_by_side({"default": here, "pipeline": here, "read": PLAIN})
    assert figure.layout.title.text.endswith(f"<br><sub>M{where[1:]}</sub>")
    assert style.alt(figure).splitlines()[1] == f"Times {where}."


def test_bandwidths_have_a_figure_of_their_own():
    figure = side_by_side({"here": BANDWIDTH})
    assert figure.layout.yaxis.title.text == "bandwidth, MB/s"
    assert "1 KiB 2000 MB/s" in style.alt(figure)


@pytest.mark.parametrize(
    "tables, message",
    [
        ({}, "at least one table"),
        ({"a": PLAIN, "b": BANDWIDTH}, "draw a figure for each"),
        ({"a": parse("# Avg Latency(us)\n 1.41\n")}, "has no sizes"),
    ],
)
def test_what_cannot_be_drawn_together_is_refused(tables, message):
    with pytest.raises(InputError, match=message):
        side_by_side(tables)
