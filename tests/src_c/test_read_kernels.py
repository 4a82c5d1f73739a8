"""The kernels of a read with mpirun: the right parts and nothing else, whatever the distribution;
and the requests that their headers promise. What they say where something is missing:
test_read_troubles.py.

All kernels of one number of ranks run in one mpirun.
"""

import numpy as np
import pytest

from mpilab.build import KERNELS, ROOT
from mpilab.harness import Case, compare
from mpilab.launch import run_cases
from mpilab.matrices.costs import read_cost_of
from mpilab.matrices.distribution import HEADER_BYTES, squarest
from mpilab.openmpi import MPI_IO
from mpilab.quantities import counts
from mpilab.result import DONE

READERS = ("scatter", "strided", "view", "sieving", "two_phase", "two_phase_alltoallv", "view_all")
RANKS = (1, 2, 3, 4, 5, 6, 7, 9, 12, 16)
# Of each of these readers, the most bytes that one request is for is said by the buffer.
BUFFERED = ("scatter", "sieving", "two_phase", "two_phase_alltoallv")
USUAL = {"scatter": 4 << 20, "sieving": 4 << 20, "two_phase": 512 << 10,
         "two_phase_alltoallv": 512 << 10}  # fmt: skip


def cases(ranks):
    """Each reader on several distributions, each with another buffer and other aggregators; with 6
    ranks on all of them, otherwise on every other one."""
    rows, columns = squarest(ranks)
    matrices = [
        f"13x11 on {rows}x{columns}",
        f"17x9 by 2x3 on {rows}x{columns}",
        f"7x31 by 1x1 on {columns}x{rows}",
        f"24x2 on {ranks}x1",  # the last ranks have nothing
        f"2x40 by 5x3 on 1x{ranks}",
        f"0x5 on {rows}x{columns}",
    ]
    tuned = [(0, 0), (96, 0), (1, 2), (100, 1), (64, max(1, ranks - 1)), (0, 3)]
    return [
        Case("read", ranks, 1, datatype="double", matrix=matrix, buffer=buffer,
             aggregators=aggregators, function=f"read_{reader}", reversed=matrix.startswith("17"))
        for number, (matrix, (buffer, aggregators)) in enumerate(zip(matrices, tuned, strict=True))
        if ranks == 6 or number % 2 == RANKS.index(ranks) % 2
        for reader in READERS
    ]  # fmt: skip


@pytest.fixture(scope="module")
def results():
    """A function: the Results of all cases on so many ranks."""
    done = {}

    def of(ranks):
        if ranks not in done:
            done[ranks] = run_cases(KERNELS, "", cases(ranks), limit=60.0)
        return done[ranks]

    return of


def check_parts(result):
    case = f"{result.case.function}, {result.case.describe()}"
    assert result.outcome == DONE, f"{case}: {result.hang or result.detail}"
    assert [output.returned for output in result.outputs] == [0] * result.case.ranks, case
    assert [len(rank.leaked) for rank in result.recording.ranks] == [0] * result.case.ranks, case
    if result.case.dump:
        wrong = [difference.describe() for difference in compare(result.case, result.outputs)]
        assert wrong == [], case


def _check_requests(result):
    """Requests are those of the header, and none is for more than the buffer."""
    case, reader = result.case, result.case.function.removeprefix("read_")
    counted = counts(result.recording, case.levels)
    found = (counted["reads"], counted["busiest_reads"], counted["read_bytes"])
    assert found == read_cost_of(case.function).at(case), f"{case.function}, {case.describe()}"
    if reader in BUFFERED:
        assert counted["largest_read"] <= max(8, case.buffer or USUAL[reader])


@pytest.mark.parametrize("ranks", RANKS)
def test_every_rank_gets_its_part_and_nothing_else_is_touched(ranks, results):
    tried = results(ranks)
    assert len(tried) == (6 if ranks == 6 else 3) * len(READERS)
    for result in tried:
        check_parts(result)


@pytest.mark.parametrize("ranks", RANKS)
def test_requests_and_bytes_are_those_of_the_header(ranks, results):
    for result in results(ranks):
        _check_requests(result)


def _tiles(result):
    """(offset, bytes) of all requests of a run, by offset."""
    requests = result.recording.requests
    requests = np.sort(requests[requests["bytes"] > 0], order="offset")
    return requests["offset"], requests["bytes"]


@pytest.mark.parametrize("reader", ["scatter", "two_phase", "two_phase_alltoallv"])
@pytest.mark.parametrize("ranks", RANKS)
def test_every_byte_of_the_elements_is_read_once(reader, ranks, results):
    for result in results(ranks):
        if result.case.function != f"read_{reader}" or not result.case.distribution.bytes:
            continue
        offsets, lengths = _tiles(result)
        ends = offsets + lengths
        assert offsets[0] == HEADER_BYTES
        assert (offsets[1:] == ends[:-1]).all(), result.case.describe()
        assert ends[-1] == HEADER_BYTES + result.case.distribution.bytes


def test_aggregators_are_spread_evenly_and_nobody_else_reads(results):
    tried = set()
    for ranks in (6, 16):
        for result in results(ranks):
            if result.case.function == "read_two_phase" and result.case.distribution.bytes:
                readers = set(result.recording.requests["rank"].tolist())
                number = min(result.case.aggregators or ranks, ranks)
                assert readers == {ranks * i // number for i in range(number)}
                tried.add(number)
    assert {1, 2, 5, 6, 16} <= tried


def test_ranks_that_have_nothing_for_each_other_do_not_talk():
    """In blocks of whole rows, each aggregator's domain is its own part: nobody sends anything."""
    case = Case("read", 4, 1, datatype="double", matrix="16x8 on 4x1", function="read_two_phase")
    (result,) = run_cases(KERNELS, "", [case])
    check_parts(result)
    assert len(result.recording.messages) == 0


@pytest.mark.parametrize("reader", ["view", "view_all"])
def test_both_implementations_of_mpi_io_read_every_part(reader, results):
    for settings in MPI_IO.values():
        wanted = [case for case in cases(6) if case.function == f"read_{reader}"]
        for result in run_cases(KERNELS, "", wanted, limit=60.0, settings=settings):
            check_parts(result)
            _check_requests(result)


def _large(size, ranks, readers=READERS):
    return [
        Case("read", ranks, 1, datatype="double", matrix=f"{size}x{size}",
             function=f"read_{reader}", dump=reader == "two_phase")
        for reader in readers
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("size", [2048, 4096])
@pytest.mark.parametrize("ranks", [4, 9, 16])
def test_large_matrices_are_read_by_the_requests_of_the_header(ranks, size):
    for result in run_cases(KERNELS, "", _large(size, ranks), limit=120.0):
        check_parts(result)
        _check_requests(result)


def test_a_two_phase_read_takes_a_share_divided_by_the_buffer_requests_an_aggregator():
    (result,) = run_cases(KERNELS, "", _large(1024, 4, ["two_phase"]), limit=60.0)
    check_parts(result)
    by_rank = np.bincount(result.recording.requests["rank"], minlength=4).tolist()
    share = 1024 * 1024 * 8 // 4
    assert by_rank == [share // USUAL["two_phase"]] * 4 == [4] * 4


def test_every_reader_is_a_file_and_every_file_is_tried():
    assert {path.stem for path in (ROOT / "src_c" / "read").glob("*.c")} == set(READERS)
