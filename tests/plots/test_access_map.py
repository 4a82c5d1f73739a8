"""Access maps: requests over file offset and time, or over the matrix; and readers side by side."""

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest

from mpilab.cases.distribution import distribution
from mpilab.errors import InputError
from mpilab.mpiio.readers import Account, Reader
from mpilab.plots import file_access, style
from mpilab.trace.file_access import REQUEST


def requests_of(*rows):
    """Requests of (rank, offset, bytes, begin, end in ns)."""
    requests = np.zeros(len(rows), REQUEST)
    for place, row in enumerate(rows):
        for name, value in zip(("rank", "offset", "bytes", "begin_ns", "end_ns"), row, strict=True):
            requests[name][place] = value
    requests["got_bytes"] = requests["bytes"]
    return requests


TWO = requests_of(
    (0, 8, 100, 5_000_000, 7_000_000),
    (0, 108, 50, 8_000_000, 9_000_000),
    (2, 158, 42, 6_000_000, 10_000_000),
)


def test_each_request_is_a_bar_from_its_first_to_its_last_byte_and_moment():
    figure = file_access.access_map(TWO, ranks=3, file_bytes=1000, level=file_access.SYSTEM_LEVEL)
    zero, one, two = figure.data
    assert [trace.name for trace in figure.data] == ["rank 0", "rank 1", "rank 2"]
    assert list(zero.y - zero.width / 2) == [8, 108] and list(zero.y + zero.width / 2) == [108, 158]
    assert list(zero.base) == [0, 3] and list(zero.x) == [2, 1]
    assert len(one.x) == 0 and list(two.base) == [1] and list(two.x) == [4]
    assert len({trace.marker.color for trace in figure.data}) == 3
    assert "rank 2 reads 42 B from byte 158 on<br>at 1.000 ms, took 4 ms" in two.hovertext
    top, bottom = figure.layout.yaxis.range[::-1]
    assert top <= 0 and bottom >= 1000  # byte 0 on top


def test_the_text_alternative_tells_counts_sizes_and_places():
    text = style.alt(
        file_access.access_map(TWO, ranks=3, level=file_access.SYSTEM_LEVEL, title="T")
    )
    lines = text.splitlines()
    assert lines[0] == (
        "T: requests to the operating system: 3 requests of 3 ranks, 192 B in all, in 5 ms."
    )
    rank = "Rank 0: 2 requests, 150 B, the smallest 50 B, the largest 100 B, from byte 8 to 158."
    assert rank in lines
    assert "  At bytes 8 (+100), 108 (+50)." in lines
    assert "Rank 1: no request." in lines


def test_what_cannot_be_drawn_as_it_is_is_said():
    many = requests_of(*((n % 2, 8 * n, 8, 1000 * n, 1000 * n + 500) for n in range(10_000)))
    figure = file_access.access_map(many, level=file_access.SYSTEM_LEVEL)
    assert sum(len(trace.x) for trace in figure.data) <= file_access.MOST_REQUESTS + 2
    assert "Of 10,000 requests every third of each rank is drawn." in figure.layout.title.text
    assert "10,000 requests of 2 ranks, 78.12 KiB in all" in style.alt(figure)
    unknown = requests_of((0, -1, 8, 1, 2))
    assert "1 request at an unknown offset" in style.alt(file_access.access_map(unknown))
    partly = style.alt(file_access.access_map(requests_of((0, -1, 16, 1, 2), (0, 40, 8, 3, 4))))
    assert "Rank 0: 2 requests, 24 B, the smallest 8 B, the largest 16 B, from byte 40 to 48." in (
        partly
    )
    assert "  At bytes 40 (+8)." in partly and "-1" not in partly
    above = file_access.access_map(TWO, level=file_access.MPI_LEVEL)
    assert "through a view need not be contiguous" in style.alt(above)
    assert "There are no requests." in style.alt(file_access.access_map(TWO[:0], ranks=2))
    with pytest.raises(InputError, match="requests of rank 2: there are 2 ranks"):
        file_access.access_map(TWO, ranks=2)


def test_a_matrix_shows_how_often_each_of_its_elements_is_asked_for():
    """Rank 0 reads rows 0 and 1 of 4x4, rank 1 all of it and the last half of an element again."""
    about = distribution("4x4", 2)
    requests = requests_of((0, 8, 64, 0, 1), (1, 0, 136, 0, 1), (1, 132, 4, 2, 3))
    own = file_access.times_read(requests[requests["rank"] == 1], about)
    assert own[3, 3] == 1.5 and (own.ravel()[:-1] == 1).all()
    figure = file_access.matrix_access(requests, about)
    together, zero, one = (np.nan_to_num(trace.z) for trace in figure.data)
    assert (zero[:2] == 1).all() and (zero[2:] == 0).all() and (one >= 1).all()
    assert (together == zero + one).all()
    assert "rank 0: 50% of the matrix, between rows 0 and 1, columns 0 and 3" in style.alt(figure)


def test_a_large_matrix_is_shown_in_equal_parts_and_averages():
    about = distribution("100x480", 4)
    requests = requests_of((0, 8 + 50 * 480 * 8, 50 * 480 * 8, 0, 1))
    cells = file_access.times_read(requests, about)
    assert cells.shape == (48, 48)
    assert cells.mean() == pytest.approx(0.5, abs=0.01)
    assert (cells[:23] == 0).all() and (cells[25:] == 1).all()


def test_a_map_is_the_mean_of_its_bytes_and_needs_no_room_for_each_element():
    about = distribution("61x103", 2)
    random = np.random.default_rng(5)
    offsets, sizes = random.integers(-1, 61 * 103 * 8, 99), random.integers(0, 9000, 99)
    requests = requests_of(
        *((0, offset, size, 0, 1) for offset, size in zip(offsets, sizes, strict=True)),
        (0, -1, 9000, 0, 1),
    )
    asked = np.zeros(60_000)
    for one in requests[requests["offset"] >= 0]:
        asked[one["offset"] : one["offset"] + one["bytes"]] += 1
    mean = asked[8:][: 61 * 103 * 8].reshape(61, 103, 8).mean(axis=2)
    rows, columns = ([n * length // 48 for n in range(49)] for length in (61, 103))
    expected = [
        [mean[top:bottom, left:right].mean() for left, right in pairwise(columns)]
        for top, bottom in pairwise(rows)
    ]
    np.testing.assert_allclose(file_access.times_read(requests, about), expected, rtol=1e-12)
    tracemalloc.start()
    cells = file_access.times_read(TWO, distribution("4096x4096", 16))
    assert cells.sum() > 0 and tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()


def test_matrices_that_cannot_be_mapped_are_refused():
    with pytest.raises(InputError, match="17 ranks: at most 16 maps"):
        file_access.matrix_access(TWO, distribution("8x8 on 17x1", 17))
    with pytest.raises(InputError, match="no elements"):
        file_access.matrix_access(TWO, distribution("0x8", 4))


def account(reader, **more):
    values = {
        "requests": 8,
        "bytes": 4096,
        "largest": 512,
        "most_requests": 2,
        "asking": 4,
        "read_calls": 9,
        "memory": 1 << 20,
        "modeled": {},
    } | more
    return Account(reader, **values)


def test_readers_stand_side_by_side_with_a_panel_for_each_quantity():
    found = [account(Reader("strided"), requests=4096), account(Reader("view_all", "romio"))]
    figure = file_access.readers(found)
    requests, *_, memory = figure.data
    assert list(requests.y) == ["strided", "view_all (ROMIO)"] and list(requests.x) == [4096, 8]
    assert list(memory.text) == ["1 MiB", "1 MiB"] and len(figure.data) == 4
    assert figure.layout.xaxis.type == "log"
    assert "requests of all ranks: strided 4,096, view_all (ROMIO) 8." in style.alt(figure)
    placed = file_access.readers(found, where="On a machine, 2 cores, 4 ranks")
    assert "<sub>On a machine, 2 cores, 4 ranks</sub>" in placed.layout.title.text
    assert "On a machine, 2 cores, 4 ranks." in style.alt(placed)


def test_memory_that_nobody_knows_has_no_bar():
    half = [account(Reader("strided"), memory=None), account(Reader("sieving"))]
    assert "peak memory of a rank: strided unknown" in style.alt(file_access.readers(half))
    assert len(file_access.readers([account(Reader("strided"), memory=None)]).data) == 3
    with pytest.raises(InputError, match="no accounts to draw"):
        file_access.readers([])
