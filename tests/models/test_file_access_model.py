"""Modeled time of requests: one head, or servers with stripes."""

import numpy as np
import pytest

from mpilab.errors import InputError
from mpilab.models.file_access import STORAGE, Disk, ParallelFileSystem, modeled

DISK = Disk(alpha=1e-2, beta=1e-8, alpha_next=1e-4)
STRIPED = ParallelFileSystem(alpha=1e-3, beta=1e-8, servers=3, stripe=100, alpha_server=1e-4)


def strided(ranks, rows, run, width):
    """Requests of ranks that read `run` bytes of each row of `width` bytes."""
    rank, row = (grid.ravel() for grid in np.meshgrid(range(ranks), range(rows), indexing="ij"))
    return rank, row * width + rank * run, np.full(len(rank), run)


def test_a_disk_seeks_for_each_request_that_does_not_follow_on_the_one_before():
    assert DISK.time([0], [8], [1000]) == pytest.approx(1e-2 + 1e-5)
    # One rank reads two halves of a file, one after another.
    assert DISK.time([0, 0], [0, 500], [500, 500]) == pytest.approx(1e-2 + 1e-4 + 1e-5)
    # Two ranks read two halves in two requests each: the head moves back and forth.
    four = ([0, 0, 1, 1], [0, 250, 500, 750], [250] * 4)
    assert DISK.time(*four) == pytest.approx(4e-2 + 1e-5)
    # Rows of which each rank reads its share in turn: the head hardly moves.
    assert DISK.time(*strided(4, 10, 50, 200)) == pytest.approx(1e-2 + 39e-4 + 2000e-8)


def test_stripes_deal_out_bytes_to_servers():
    volume = STRIPED.on_servers([0, 50, 250, 0], [100, 100, 400, 0])
    assert volume.tolist() == [[100, 0, 0], [50, 50, 0], [150, 100, 150], [0, 0, 0]]
    random = np.random.default_rng(3)
    offsets, sizes = random.integers(0, 2000, 50), random.integers(0, 900, 50)
    for offset, size, found in zip(offsets, sizes, STRIPED.on_servers(offsets, sizes), strict=True):
        servers = np.arange(offset, offset + size) // 100 % 3
        assert found.tolist() == np.bincount(servers, minlength=3).tolist()


def test_a_parallel_file_system_is_as_slow_as_its_busiest_server_or_its_slowest_rank():
    # Three servers work on one request at a time.
    assert STRIPED.time([0], [0], [300]) == pytest.approx(1e-3 + 1e-4 + 100e-8)
    # The αs of one rank add up; those of two ranks do not.
    assert STRIPED.time([0, 0], [0, 100], [100, 100]) == pytest.approx(2 * (1e-3 + 1e-4 + 1e-6))
    assert STRIPED.time([0, 1], [0, 100], [100, 100]) == pytest.approx(1e-3 + 1e-4 + 1e-6)
    # 40 ranks at the first server, which serves them one after another.
    assert STRIPED.time(range(40), [0] * 40, [100] * 40) == pytest.approx(40 * (1e-4 + 1e-6))
    assert STRIPED.time([], [], []) == 0


@pytest.mark.parametrize("name", STORAGE)
def test_few_large_requests_beat_many_small_ones_on_every_storage(name):
    """2048 x 2048 doubles on 4 ranks: rows in halves, or a quarter of the file each in 1 MiB."""
    half, size = 8192, 2048 * 16384
    rank, row = (grid.ravel() for grid in np.meshgrid(range(4), range(1024), indexing="ij"))
    rows = (rank, (rank // 2 * 1024 + row) * 16384 + rank % 2 * half, np.full(4096, half))
    rank, piece = (grid.ravel() for grid in np.meshgrid(range(4), range(8), indexing="ij"))
    pieces = (rank, rank * (size // 4) + piece * (1 << 20), np.full(32, 1 << 20))
    times = []
    for ranks, offsets, sizes in (rows, pieces):
        requests = np.zeros(len(ranks), [("rank", "i4"), ("offset", "i8"), ("bytes", "i8")])
        requests["rank"], requests["offset"], requests["bytes"] = ranks, offsets, sizes
        assert requests["bytes"].sum() == size
        times.append(modeled(requests, name))
    assert times[1] < times[0] / 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([0], [0, 1], [1]), "three one-dimensional arrays of the same length"),
        (([0, 0], [5, -1], [1, 1]), "request 1: its offset is -1; the time of requests at unknown"),
    ],
)
def test_requests_that_make_no_sense_are_refused(arguments, words):
    for storage in (DISK, STRIPED):
        with pytest.raises(InputError, match=words):
            storage.time(*arguments)


def test_a_storage_that_nobody_knows_is_refused():
    with pytest.raises(InputError, match="storage 'tape': unknown; write one of hard disk, solid-"):
        modeled(np.zeros(0, [("rank", "i4")]), "tape")
    with pytest.raises(InputError, match="servers=0: must be 1 or more"):
        ParallelFileSystem(1, 1, servers=0, stripe=1)
