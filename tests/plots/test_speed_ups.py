"""The speedup of reading and writing over the base case, from fabricated rows."""

import numpy as np
import pytest

from mpilab.errors import InputError
from mpilab.mpiio import cannon
from mpilab.mpiio.cannon import ROW, WAYS, speed_up
from mpilab.plots import style
from mpilab.plots.cannon import io_shares, scaling, speed_ups

BASE, THIRD = WAYS[0], WAYS[-1]


def rows_of(seconds, n=64, phase="read"):
    """{(way, ranks): seconds of each repetition} as rows."""
    return np.array(
        [
            ("2026-11-22", "made up", *way, ranks, n, number, phase, 0.0, value)
            for (way, ranks), values in seconds.items()
            for number, value in enumerate(values, start=1)
        ],
        ROW,
    )


def test_it_is_the_ratio_of_the_medians_on_as_many_ranks():
    rows = rows_of({(BASE, 1): [5, 6, 99], (THIRD, 1): [2, 2, 2], (BASE, 4): [1], (THIRD, 4): [4]})
    found = speed_up(rows, THIRD)
    assert {ranks: ratio for ranks, (_, ratio, _) in found.items()} == {1: 3.0, 4: 0.25}
    assert found[4] == (0.25, 0.25, 0.25)  # with one repetition, there is nothing to resample


def test_the_interval_holds_the_true_ratio_as_often_as_it_says():
    random, held = np.random.default_rng(3), 0
    for _ in range(200):
        slow, fast = random.normal(6.0, 0.5, 30), random.normal(2.0, 0.2, 30)
        lower, ratio, upper = speed_up(rows_of({(BASE, 1): slow, (THIRD, 1): fast}), THIRD)[1]
        assert lower <= ratio <= upper
        held += lower <= 3.0 <= upper
    assert 0.9 <= held / 200 <= 1  # medians of 30: a little on the safe side


def test_the_interval_is_the_same_every_time():
    rows = cannon.read()
    rows = rows[(rows["n"] == rows["n"][0]) & (rows["phase"] == "write")]
    assert speed_up(rows, THIRD) == speed_up(rows, THIRD)


def test_numbers_of_ranks_that_one_of_them_lacks_are_left_out():
    assert speed_up(rows_of({(BASE, 1): [1.0], (THIRD, 4): [1.0]}), THIRD) == {}


def test_rows_of_two_phases_or_sizes_are_refused():
    one = rows_of({(BASE, 1): [1.0]})
    for other in (rows_of({(BASE, 1): [1.0]}, phase="write"), rows_of({(BASE, 1): [1.0]}, n=65)):
        with pytest.raises(InputError, match="several phases or sizes"):
            speed_up(np.concatenate([one, other]), THIRD)


def test_the_figure_has_a_line_for_each_way_but_the_base_case_and_tells_its_numbers():
    rows = cannon.read()
    n = int(rows["n"].max())
    figure = speed_ups(rows, n)
    assert len(figure.data) == 2 * (len(WAYS) - 1)
    for trace in figure.data:
        assert len(trace.x) == 4 and min(trace.error_y.array) >= 0 <= min(trace.error_y.arrayminus)
    _, ratio, _ = speed_up(rows[(rows["n"] == n) & (rows["phase"] == "read")], THIRD)[16]
    (line,) = (line for line in style.alt(figure).splitlines() if line.startswith("read, stage 3"))
    assert f"16 ranks {ratio:.2f} (" in line


def test_a_size_that_was_not_measured_is_refused():
    with pytest.raises(InputError, match="n=3: no row of that size was measured"):
        speed_ups(cannon.read(), 3)


def test_figures_of_runs_say_where_they_were_measured_and_which_ranks_shared_cores():
    rows = cannon.read()
    n = int(rows["n"].max())
    for figure in (speed_ups(rows, n), scaling(rows, n)):
        assert "Measured on Intel(R) Xeon(R)" in figure.layout.title.text
        assert "(4, 9 and 16 oversubscribed)" in figure.layout.title.text
        assert "16 ranks: oversubscribed, more ranks than cores." in style.alt(figure)
    figure = io_shares({"stage 1": 0.5}, {"report": 0.9}, where="Here: a machine")
    assert "<sub>Here: a machine</sub>" in figure.layout.title.text
    assert "Here: a machine." in style.alt(figure)
