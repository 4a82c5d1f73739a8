"""Medians and their confidence intervals."""

import numpy as np
import pytest

from mpilab.errors import InputError
from mpilab.measure import sweep_table
from mpilab.measure.sweep_table import ROW, interval_ranks, median_interval, summarize


@pytest.mark.parametrize(
    ("number", "places"),
    # The tabulated critical values of the two-sided sign test at 5 %, plus 1: they are 0 for 6 to 8
    # values, and 1, 1, 5, 7, 9, 17 and 39 for the others.
    [
        (6, (1, 6)),
        (7, (1, 7)),
        (8, (1, 8)),
        (9, (2, 8)),
        (10, (2, 9)),
        (20, (6, 15)),
        (25, (8, 18)),
        (30, (10, 21)),
        (50, (18, 33)),
        (100, (40, 61)),
    ],
)
def test_the_interval_has_the_tabulated_order_statistics(number, places):
    assert interval_ranks(number) == places


def test_five_values_bound_no_median_with_95_percent_but_with_less():
    assert interval_ranks(5) is None
    assert interval_ranks(5, 0.9) == (1, 5)  # 1 - 2/32
    median, low, high = median_interval([3, 1, 2])
    assert median == 2 and np.isnan(low) and np.isnan(high)


def test_the_interval_holds_the_median_of_a_skewed_distribution_as_often_as_it_says():
    random = np.random.default_rng(4)
    hits = 0
    for _ in range(2000):
        _, low, high = median_interval(random.exponential(size=25))
        hits += low <= np.log(2) <= high
    # The exact probability for n = 25 and places (8, 18) is 0.9567.
    assert 0.94 < hits / 2000 < 0.972


def test_thousands_of_values_have_an_interval_too():
    low, high = interval_ranks(5000)
    assert low + high == 5001
    assert low == pytest.approx(2500 - 1.96 * np.sqrt(5000) / 2, abs=1.5)


def test_no_values_are_an_error():
    with pytest.raises(InputError, match="no values"):
        median_interval([])


def table():
    made = np.zeros(40, ROW)
    made["library"], made["algorithm"], made["ranks"], made["bytes"] = "ours", "ring", 4, 8
    made["number"], made["repetition"] = -1, np.arange(40) % 20
    made["span_s"], made["mean_s"] = 1e-6 * (1 + np.arange(40) % 20), 5e-7
    made["library"][20:], made["algorithm"][20:], made["number"][20:] = "openmpi", "ring", 4
    made["span_s"][20:] *= 2
    return made


def test_a_summary_has_one_row_for_each_point():
    found = summarize(table())
    assert found["library"].tolist() == ["ours", "openmpi"]
    assert found["repetitions"].tolist() == [20, 20]
    assert found["median_s"] == pytest.approx([10.5e-6, 21e-6])
    assert found["low_s"] == pytest.approx([6e-6, 12e-6])
    assert found["high_s"] == pytest.approx([15e-6, 30e-6])
    assert summarize(table(), "mean_s")["median_s"] == pytest.approx([5e-7, 5e-7])
    with pytest.raises(InputError, match="measure 'speed'"):
        summarize(table(), "speed")


def test_a_printed_summary_tells_library_number_and_interval():
    said = sweep_table.text(summarize(table()))
    assert "openmpi:ring (4)" in said and "ours:ring " in said
    assert said.splitlines()[1].split()[1:] == ["4", "8", "10.50", "6.00", "15.00", "20"]
    few = sweep_table.text(summarize(table()[:3]))
    assert few.splitlines()[1].split()[-3:] == ["–", "–", "3"]
    assert "nothing was measured" in sweep_table.text(summarize(table()[:0]))
