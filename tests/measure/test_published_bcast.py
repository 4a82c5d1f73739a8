"""The published OSU tables are complete and as printed, and agree with the README."""

import numpy as np
import pytest

from mpilab.errors import InputError
from mpilab.measure.dataset import BCAST, published_bcast, published_latency


@pytest.fixture(scope="module")
def rows():
    return published_bcast()


def times(rows, algorithm):
    chosen = np.sort(rows[rows["algorithm"] == algorithm], order="bytes")
    return chosen["latency_us"]


def test_there_is_one_row_for_each_algorithm_and_size(rows):
    sizes = [1 << power for power in range(21)]
    for algorithm, number in (("default", 0), ("pipeline", 3)):
        chosen = rows[rows["algorithm"] == algorithm]
        assert chosen["bytes"].tolist() == sizes
        assert set(chosen["number"]) == {number} and set(chosen["ranks"]) == {128}
    assert len(rows) == 42


def test_values_are_those_printed(rows):
    text = BCAST.path.read_text()
    for line in (
        "default,0,128,1,13.52",
        "default,0,128,64,15.47",
        "default,0,128,128,54.24",
        "default,0,128,1048576,986.45",
        "pipeline,3,128,1,28.93",
        "pipeline,3,128,2,26.80",
        "pipeline,3,128,524288,5466.00",
        "pipeline,3,128,1048576,11033.92",
    ):
        assert f"\n{line}\n" in text
    assert rows["latency_us"][0] == 13.52
    assert np.allclose(rows["mean_s"] * 1e6, rows["latency_us"])


def test_latencies_are_those_printed():
    rows = published_latency()
    assert rows[["cpus", "bytes", "latency_us"]].tolist() == [
        ("default", 1, 0.15),
        ("default", 2, 0.15),
        ("default", 4, 0.15),
        ("0,8", 1, 0.35),
        ("0,8", 2, 0.34),
        ("0,8", 4, 0.35),
    ]
    assert rows["seconds"][0] == pytest.approx(0.15e-6)


def test_the_figures_of_the_readme_are_those_of_the_table(rows):
    default, pipeline = times(rows, "default"), times(rows, "pipeline")
    growth = pipeline[1:] / pipeline[:-1]
    assert growth[17:].min() > 1.965 and growth[17:].max() < 2.025  # from 128 KiB on
    hop_us = 2 * pipeline[-1] / 127
    assert hop_us == pytest.approx(174, abs=0.5)
    assert 2**20 / hop_us / 1e3 == pytest.approx(6.0, abs=0.05)  # GB/s
    assert hop_us / 128 == pytest.approx(1.4, abs=0.05)
    assert (126 + 128) * hop_us / 128 == pytest.approx(345, abs=1)

    faster = pipeline < default
    assert np.flatnonzero(faster).tolist() == [7, 8, 9, 10, 11]  # 128 B to 2 KiB
    assert (default / pipeline)[faster].max() == pytest.approx(1.7, abs=0.02)
    assert default[7:12].min() > 51 and default[7:12].max() < 54.3
    assert (pipeline / default)[19] == pytest.approx(13, abs=0.5)


def test_a_missing_file_says_where_it_should_come_from(tmp_path):
    with pytest.raises(InputError, match="run from a clone"):
        published_bcast(tmp_path / "none.csv")


@pytest.mark.parametrize("line", ["pipeline,3,128,1", "pipeline,3,128,1,28.93,7", "a,b,c,d,e"])
def test_a_row_that_cannot_be_read_is_named_by_its_line(tmp_path, line):
    path = tmp_path / "bad.csv"
    path.write_text(f"algorithm,number,ranks,bytes,latency_us\ndefault,0,128,1,13.52\n{line}\n")
    with pytest.raises(InputError, match=rf"bad\.csv:3: '{line}' is not a row"):
        published_bcast(path)


def test_a_wrong_header_is_refused(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text("bytes,latency_us\n")
    with pytest.raises(InputError, match="expected cpus,bytes,latency_us"):
        published_latency(path)
