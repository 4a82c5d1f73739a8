"""The CSV file of a sweep: intact after a kill, rejected if it belongs to another sweep."""

import csv
import json

import numpy as np
import pytest

from mpilab.cases.output import Output
from mpilab.errors import InputError
from mpilab.measure.sweep import Plan, Point, rows_of
from mpilab.measure.sweep_table import HEADER, ROW, Store, read, text_of

OPTIONS = {"collective": "bcast", "segment": 0, "repetitions": None, "machine": "here"}


def rows(algorithm="binomial", ranks=2, size=8, repetitions=3):
    made = np.zeros(repetitions, ROW)
    made["collective"], made["library"], made["algorithm"] = "bcast", "ours", algorithm
    made["ranks"], made["bytes"], made["repetition"] = ranks, size, range(repetitions)
    made["number"], made["span_s"] = -1, 1e-6 * (1 + np.arange(repetitions))
    return made


def store(path, options=OPTIONS, repetitions=3):
    return Store(path, options, lambda ranks, size: repetitions)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out" / "sweep.csv"


def test_the_header_is_the_one_that_was_agreed_on(path):
    store(path)
    assert path.read_text() == (
        "collective,library,algorithm,number,ranks,bytes,segment,fanout,radix,cores,"
        "machine,repetition,span_s,mean_s,max_s,min_s\n"
    )


def test_what_is_added_is_read_back_as_it_was(path):
    filled = store(path)
    first, second = rows(), rows("a,b", size=16)
    filled.add(first)
    filled.add(second)
    assert (read(path) == np.concatenate([first, second])).all()
    with open(path, newline="") as file:
        assert [row["algorithm"] for row in csv.DictReader(file)] == ["binomial"] * 3 + ["a,b"] * 3
    again = store(path)
    assert again.done == {("ours", "binomial", 2, 8), ("ours", "a,b", 2, 16)}


def test_a_point_torn_anywhere_is_removed_and_no_other(path):
    filled = store(path)
    filled.add(rows(size=4))
    kept = path.read_bytes()
    torn = text_of(rows(size=8)).encode()
    for length in range(len(torn)):
        path.write_bytes(kept + torn[:length])
        assert store(path).done == {("ours", "binomial", 2, 4)}
        assert path.read_bytes() == kept
    path.write_bytes(kept + torn)
    assert store(path).done == {("ours", "binomial", 2, 4), ("ours", "binomial", 2, 8)}


def test_a_header_torn_anywhere_is_written_again(path):
    store(path)
    for length in range(len(HEADER)):
        path.write_text(HEADER[:length])
        store(path).add(rows())
        assert path.read_text() == HEADER + text_of(rows())


def test_a_last_line_without_its_end_is_not_read(path):
    store(path).add(rows())
    path.write_text(path.read_text() + "bcast,ours,binomial,-1,2,16,0,0,0,0,1.23")
    assert len(read(path)) == 3


def test_a_file_made_with_other_options_is_refused_with_the_option_and_the_remedy(path):
    store(path).add(rows())
    before = path.read_bytes()
    with pytest.raises(InputError, match="made with segment 0, not 8192; .*another file with -o"):
        store(path, {**OPTIONS, "segment": 8192})
    with pytest.raises(InputError, match="repetitions its default, not 7"):
        store(path, {**OPTIONS, "repetitions": 7})
    with pytest.raises(InputError, match="machine 'here', not 'there'"):
        store(path, {**OPTIONS, "machine": "there"})
    assert path.read_bytes() == before


def test_a_file_of_which_nobody_knows_how_it_was_made_is_refused(path):
    filled = store(path)
    filled.add(rows())
    assert json.loads(filled.beside.read_text()) == OPTIONS
    filled.beside.write_text("{")
    with pytest.raises(InputError, match="sweep.csv.json is missing or damaged"):
        store(path)
    filled.beside.unlink()
    with pytest.raises(InputError, match="sweep.csv.json is missing or damaged"):
        store(path)


def test_what_is_no_table_of_a_sweep_is_refused_with_the_line(path, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="other.csv:1: not a table of mpilab sweep"):
        read(other)
    with pytest.raises(InputError, match="missing.csv: no such file"):
        read(tmp_path / "missing.csv")
    store(path).add(rows())
    for wrong in (
        "bcast,ours,ring",
        "bcast,ours,ring,-1,two,8,0,0,0,0,1,1,1,1",
        "bcast,ours,ring,-1,99999999999,8,0,0,0,0,1,1,1,1",
    ):
        path.write_text(HEADER + text_of(rows()) + wrong + "\n")
        with pytest.raises(InputError, match="sweep.csv:5: .*is not a row of a sweep"):
            read(path)


def test_times_are_taken_over_all_ranks_and_over_each_one():
    plan = Plan.make("bcast", [2], "8", "ours:linear", fanout=3)
    nothing = np.empty(0, np.uint8)
    spans = [[[1000, 3000], [0, 500]], [[2000, 6000], [100, 400]]]  # [rank][call][begin, end]
    outputs = [Output(rank, 0, nothing, nothing, np.array(s)) for rank, s in enumerate(spans)]
    made = rows_of(plan, Point(plan.algorithms[0], 2, 8), outputs)
    assert made["span_s"] == pytest.approx([5e-6, 5e-7])
    assert made["mean_s"] == pytest.approx([3e-6, 4e-7])
    assert made["max_s"] == pytest.approx([4e-6, 5e-7])
    assert made["min_s"] == pytest.approx([2e-6, 3e-7])
    assert made["repetition"].tolist() == [0, 1]
    assert made["fanout"].tolist() == [3, 3]
