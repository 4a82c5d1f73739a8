"""Tables of a notebook: units, alignment, missing values, and where their times come from."""

import numpy as np
import pytest
from IPython.core.formatters import DisplayFormatter
from sweeps_made_up import models, sweep

from mpilab.errors import InputError
from mpilab.measure.osu import OsuTable
from mpilab.models.choice import medians
from mpilab.plots.table import Table

TRUTH = models("bcast", ["linear", "binomial"])


def on_two_cores():
    return sweep("bcast", TRUTH, ranks=(2, 4), sizes=[32, 4096], cores=2, machine="AMD EPYC")


def test_a_table_is_shown_with_units_as_markdown_and_as_aligned_text():
    table = Table(
        [("ring", 2048, 5.2e-6, 0.125), ("bruck", 32, float("nan"), None)],
        "algorithm; bytes: size; median: time; share: .1%",
    )
    assert repr(table).splitlines() == [
        "algorithm  bytes  median  share",
        "ring       2 KiB  5.2 µs  12.5%",
        "bruck       32 B       –      –",
    ]
    assert table._repr_markdown_().splitlines() == [
        "| algorithm | bytes | median | share |",
        "| --- | --: | --: | --: |",
        "| ring | 2 KiB | 5.2 µs | 12.5% |",
        "| bruck | 32 B | – | – |",
    ]


def test_jupyter_gets_markdown_and_a_terminal_gets_text():
    shown, _ = DisplayFormatter().format(Table([(1, 2)], "a; b: {:.1f} MB/s"))
    assert set(shown) == {"text/markdown", "text/plain"}
    assert shown["text/plain"].split() == ["a", "b", "1", "2.0", "MB/s"]


def test_a_tuple_fills_several_braces_and_a_text_stands_in_for_a_number():
    rows = [("a", (1e-3, 5e-4, 2e-3)), ("b", "fails here")]
    table = Table(rows, "reader; here: {:time} ({:time} to {:time})")
    assert [row[1] for row in table.rows] == ["1 ms (500 µs to 2 ms)", "fails here"]


def test_characters_of_a_value_do_not_break_the_markdown():
    table = Table([("n1*5|n2", "RDA* a|b")], "x: `{}`; y")
    assert r"| `n1*5\|n2` | RDA\* a\|b |" in table._repr_markdown_()


def test_a_grid_has_its_last_key_from_left_to_right():
    values = {("ring", 32, 2): 1e-6, ("ring", 32, 4): 2e-6, ("bruck", 32, 4): 3e-6}
    table = Table.grid(values, "method; bytes: size", across="P = {}", cells="time")
    assert table.titles == ("method", "bytes", "P = 2", "P = 4")
    assert table.rows == [["ring", "32 B", "1 µs", "2 µs"], ["bruck", "32 B", "–", "3 µs"]]


def test_measured_times_say_where_and_which_ranks_shared_cores():
    rows = on_two_cores()
    found = medians(rows, ("bytes", "ranks"))
    table = Table.grid(found, "bytes: size", across="P = {:ranks}", cells="time", measured=rows)
    assert table.titles == ("bytes", "P = 2", "P = 4, oversubscribed")
    assert table.notes == [
        "Times measured on AMD EPYC, 2 cores, 2 and 4 ranks.",
        "4 ranks: oversubscribed, more ranks than cores.",
    ]
    assert all(note in table._repr_markdown_() and note in repr(table) for note in table.notes)
    two = Table.grid(
        medians(rows[rows["ranks"] == 2], ("bytes", "ranks")),
        "bytes: size",
        across="P = {:ranks}",
        cells="time",
        measured=rows[rows["ranks"] == 2],
    )
    assert "oversubscribed" not in repr(two)


def test_a_table_of_a_benchmark_says_where_it_ran():
    ran = OsuTable("osu_bcast", "", "", (), np.empty(0), where="measured on X, 2 cores, 4 ranks")
    assert Table([(1,)], "a", measured=ran).notes == ["Times measured on X, 2 cores, 4 ranks."]


def test_a_table_without_rows_says_so():
    assert repr(Table([], "a; b: time")) == "Nothing to show yet."
    assert Table([], "a")._repr_markdown_() == "Nothing to show yet."


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Table([(1, 2)], "a"), "a row of 2 values.*for 1 columns .a."),
        (lambda: Table([([1],)], "a: .1f"), "column 'a': .1. can't be written as '{:.1f}'"),
        (lambda: Table.grid({3: 4}, "a", across="{}", cells="time"), "the key 3: must have 2"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_remedy(make, words):
    with pytest.raises(InputError, match=words):
        make()
