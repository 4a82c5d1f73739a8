"""The published timings are complete, as printed, and shown to be impossible."""

import numpy as np
import pytest

from mpilab.errors import InputError
from mpilab.measure.dataset import (
    ALLGATHER,
    implied_bandwidth,
    missing_factor,
    published_allgather,
)


@pytest.fixture(scope="module")
def rows():
    return published_allgather()


def pick(rows, method, size, processes):
    (found,) = rows[
        (rows["method"] == method) & (rows["bytes"] == size) & (rows["processes"] == processes)
    ]
    return found


def test_there_is_one_row_for_each_method_size_and_number_of_processes(rows):
    cells = {(row["method"], row["bytes"], row["processes"]) for row in rows}
    sizes = [32 << power for power in range(16)]
    assert cells == {
        (method, size, processes)
        for method in ("nonblocking_gather_bcast", "pairwise")
        for size in sizes
        for processes in (1, 2, 4, 8, 16)
    }
    assert len(rows) == 160


@pytest.mark.parametrize(
    "method, size, processes, seconds",
    [
        ("nonblocking_gather_bcast", 32, 1, 3.74e-08),
        ("nonblocking_gather_bcast", 64, 2, 3.60e-08),
        ("nonblocking_gather_bcast", 4096, 8, 1.69e-06),
        ("nonblocking_gather_bcast", 131072, 4, 7.53e-06),
        ("nonblocking_gather_bcast", 1048576, 16, 6.23e-04),
        ("pairwise", 32, 16, 6.23e-06),
        ("pairwise", 512, 1, 1.34e-09),
        ("pairwise", 65536, 16, 2.34e-05),
        ("pairwise", 524288, 16, 0.00017694),
        ("pairwise", 1048576, 16, 0.00027906),
    ],
)
def test_values_are_those_printed(rows, method, size, processes, seconds):
    assert pick(rows, method, size, processes)["seconds"] == seconds


def test_the_digits_in_the_file_are_those_printed():
    text = ALLGATHER.path.read_text()
    assert "nonblocking_gather_bcast,64,2,3.60E-08\n" in text
    assert "pairwise,1048576,8,1.10E-04\npairwise,1048576,16,0.00027906\n" in text


def test_a_mebibyte_on_sixteen_processes_would_need_431_gigabytes_a_second(rows):
    implied = implied_bandwidth(rows)
    cell = pick(implied, "nonblocking_gather_bcast", 1 << 20, 16)
    assert cell["per_rank"] == pytest.approx(27e9, rel=0.01)
    assert cell["all_ranks"] == pytest.approx(431e9, rel=0.01)
    assert pick(implied, "pairwise", 1 << 20, 1)["per_rank"] == pytest.approx(690e9, rel=0.01)


def test_reading_the_bytes_as_all_ranks_together_changes_nothing_for_one_process(rows):
    per_process = implied_bandwidth(rows)
    in_all = implied_bandwidth(rows, reading="in all")
    alone = rows["processes"] == 1
    assert np.array_equal(per_process["per_rank"][alone], in_all["per_rank"][alone])
    ratio = per_process["per_rank"] / in_all["per_rank"]
    assert np.allclose(ratio, rows["processes"])


def test_the_figures_of_the_readme_are_those_of_the_table(rows):
    factor = missing_factor(rows)
    assert (factor > 1).sum() == 51
    assert factor.max() == pytest.approx(13.3, abs=0.05)
    assert (missing_factor(rows, reading="in all") > 1).sum() == 36

    by_cell = rows[np.lexsort((rows["bytes"], rows["processes"], rows["method"]))]
    times = by_cell["seconds"].reshape(10, 16)
    assert (np.diff(times) < 0).sum() == 38
    assert (times[:, 1:-1] / times[:, 2:]).max() == pytest.approx(5.7, abs=0.05)

    gather = rows[rows["method"] == "nonblocking_gather_bcast"]
    pairwise = rows[rows["method"] == "pairwise"]
    small = (gather["bytes"] <= 1024) & (gather["processes"] > 1)
    assert (gather["seconds"] < pairwise["seconds"])[small].sum() == 20 and small.sum() == 24
    large = (gather["bytes"] >= 65536) & (gather["processes"] >= 8)
    ratio = (gather["seconds"] / pairwise["seconds"])[large]
    assert len(ratio) == 10 and ratio.min() > 1.0 and ratio.max() < 2.25


def test_dividing_by_the_missing_factor_leaves_nothing_impossible(rows):
    repaired = rows.copy()
    repaired["seconds"] *= missing_factor(rows).max() * (1 + 1e-12)
    assert (missing_factor(repaired) <= 1).all()


def test_a_missing_file_says_where_it_should_come_from(tmp_path):
    with pytest.raises(InputError, match="run from a clone"):
        published_allgather(tmp_path / "none.csv")


def test_a_row_that_cannot_be_read_is_named_by_its_line(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text("method,bytes,processes,seconds\nring,32,2,1e-6\nring,many,2,1e-6\n")
    with pytest.raises(InputError, match=r"bad\.csv:3: 'ring,many,2,1e-6'"):
        published_allgather(path)


def test_a_wrong_header_is_refused(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text("bytes,seconds\n")
    with pytest.raises(InputError, match="method,bytes,processes,seconds"):
        published_allgather(path)


def test_an_unknown_reading_is_refused(rows):
    with pytest.raises(InputError, match="per process"):
        implied_bandwidth(rows, reading="elements")
