"""The read kernels with mpirun: the correct parts and nothing else, whatever the distribution, and
the requests declared in their headers. test_read_troubles.py tests their errors.

All kernels of one number of ranks run in one mpirun.
"""

import numpy as np
import pytest

from mpilab.algorithms.formula import read_cost_of
from mpilab.algorithms.requests import requests_of
from mpilab.cases.case import Case
from mpilab.cases.distribution import HEADER_BYTES, squarest
from mpilab.cases.output import compare
from mpilab.kernels.build import KERNELS
from mpilab.kernels.openmpi import MPI_IO
from mpilab.models.declared import counts
from mpilab.mpiio import readers
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE
from mpilab.util.kit import ROOT

READERS = ("scatter", "strided", "view", "sieving", "two_phase", "two_phase_alltoallv", "view_all")
RANKS = (1, 2, 3, 4, 5, 6, 7, 9, 12, 16)
# For each of these readers, the buffer determines the maximum bytes of a request.
BUFFERED = ("scatter", "sieving", "two_phase", "two_phase_alltoallv")
USUAL = {
    "scatter": 4 << 20,
    "sieving": 4 << 20,
    "two_phase": 512 << 10,
    "two_phase_alltoallv": 512 << 10,
}
READ_ONCE = ("scatter", "two_phase", "two_phase_alltoallv")
# The name in mpilab.algorithms.requests; with views, MPI determines the requests.
METHODS = {
    "scatter": "rank 0",
    "strided": "strided",
    "sieving": "sieving",
    "two_phase": "two-phase",
    "two_phase_alltoallv": "two-phase",
}


def cases(ranks):
    """Each reader on several distributions, each with a different buffer and aggregators; with 6
    ranks on all of them, otherwise on every second one. With 3 ranks, MPI_COMM_WORLD has 5."""
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
        Case(
            "read",
            ranks,
            1,
            datatype="double",
            matrix=matrix,
            buffer=buffer,
            aggregators=aggregators,
            function=f"read_{reader}",
            reversed=matrix.startswith("17"),
            bystanders=2 if ranks == 3 else 0,
        )
        for number, (matrix, (buffer, aggregators)) in enumerate(zip(matrices, tuned, strict=True))
        if ranks == 6 or number % 2 == RANKS.index(ranks) % 2
        for reader in READERS
    ]


@pytest.fixture(scope="module")
def results():
    """A function: the Results of all cases on so many ranks."""
    done = {}

    def of(ranks):
        if ranks not in done:
            done[ranks] = run_cases(KERNELS, "", cases(ranks), limit=60.0)
        return done[ranks]

    return of


def check_run(result):
    case = f"{result.case.function}, {result.case.describe()}"
    assert result.outcome == DONE, f"{case}: {result.hang or result.detail}"
    assert [output.returned for output in result.outputs] == [0] * result.case.ranks, case
    assert [len(rank.leaked) for rank in result.recording.ranks] == [0] * result.case.ranks, case


def check_parts(result):
    check_run(result)
    wrong = [difference.describe() for difference in compare(result.case, result.outputs)]
    assert wrong == [], f"{result.case.function}, {result.case.describe()}"


def _check_requests(result):
    """Requests are those of the header, and none exceeds the buffer."""
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


def _check_tiling(result):
    """Requests are contiguous, from the first element to the last."""
    requests = result.recording.requests
    requests = np.sort(requests[requests["bytes"] > 0], order="offset")
    ends = requests["offset"] + requests["bytes"]
    case = f"{result.case.function}, {result.case.describe()}"
    assert requests["offset"][0] == HEADER_BYTES, case
    assert (requests["offset"][1:] == ends[:-1]).all(), case
    assert ends[-1] == HEADER_BYTES + result.case.distribution.bytes, case


@pytest.mark.parametrize("reader", READ_ONCE)
@pytest.mark.parametrize("ranks", RANKS)
def test_every_byte_of_the_elements_is_read_once(reader, ranks, results):
    for result in results(ranks):
        if result.case.function == f"read_{reader}" and result.case.distribution.bytes:
            _check_tiling(result)


def test_aggregators_are_spread_evenly_and_nobody_else_reads(results):
    tried = set()
    for ranks in (6, 16):
        for result in results(ranks):
            if result.case.function == "read_two_phase" and result.case.distribution.bytes:
                asking = set(result.recording.requests["rank"].tolist())
                number = min(result.case.aggregators or ranks, ranks)
                assert asking == {ranks * i // number for i in range(number)}
                tried.add(number)
    assert {1, 2, 5, 6, 16} <= tried


def test_ranks_that_have_nothing_for_each_other_do_not_talk():
    """In blocks of whole rows, each aggregator's domain is its own part: no rank sends anything."""
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


def _by_rank(requests, ranks):
    """How many requests each rank makes, and for how many bytes: two lists."""
    number = np.bincount(requests["rank"], minlength=ranks)
    volume = np.bincount(requests["rank"], requests["bytes"], minlength=ranks)
    return number.tolist(), volume.astype(int).tolist()


def _check_requests_of_each_rank(result):
    case, reader = result.case, result.case.function.removeprefix("read_")
    about, requests = case.distribution, result.recording.requests
    found = _by_rank(requests, case.ranks)
    if reader not in METHODS:
        parts = [8 * about.elements_of(rank) for rank in range(case.ranks)]
        assert found == ([1] * case.ranks, parts), f"{reader}, {case.describe()}"
        return
    expected = requests_of(METHODS[reader], about, USUAL.get(reader, 0), case.aggregators)
    assert found == _by_rank(expected, case.ranks), f"{reader}, {case.describe()}"
    for name in ("rank", "offset", "bytes"):
        assert (requests[name] == expected[name]).all(), f"{reader}, {case.describe()}"


def _requests_of_aggregators(case, buffer):
    """How many requests each rank makes in a two-phase read: a list."""
    number = case.aggregators or case.ranks
    least, left = divmod(case.distribution.bytes // 8, number)
    found = [0] * case.ranks
    for domain in range(number):
        share = 8 * (least + (domain < left))
        found[domain * case.ranks // number] = -(-share // buffer)
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("ranks", "size"), [(4, 2048), (9, 2048), (16, 2048)])
def test_large_matrices_are_read_right_and_by_the_requests_of_the_header_on_each_rank(ranks, size):
    two_phase = [reader for reader in READERS if reader.startswith("two_phase")]
    fewer = ranks // 2 + 1  # 3, 5, 9: shares are not all alike
    parts = None
    for reader, aggregators in [(one, 0) for one in READERS] + [(one, fewer) for one in two_phase]:
        case = Case(
            "read",
            ranks,
            1,
            datatype="double",
            matrix=f"{size}x{size}",
            aggregators=aggregators,
            function=f"read_{reader}",
        )
        # One at a time: all ranks together have a whole matrix in memory.
        (result,) = run_cases(KERNELS, "", [case], limit=120.0)
        check_run(result)
        parts = readers.parts_of(case) if parts is None else parts
        readers.check(readers.Reader(reader), result, parts)
        _check_requests(result)
        _check_requests_of_each_rank(result)
        if reader in READ_ONCE:
            _check_tiling(result)
        if reader in two_phase:
            by_rank, _ = _by_rank(result.recording.requests, ranks)
            assert by_rank == _requests_of_aggregators(case, USUAL[reader])


@pytest.mark.parametrize("aggregators, expected", [(0, [4, 4, 4, 4]), (3, [6, 6, 6, 0])])
def test_a_two_phase_read_takes_a_share_divided_by_the_buffer_requests_an_aggregator(
    aggregators, expected
):
    case = Case(
        "read",
        4,
        1,
        datatype="double",
        matrix="1024x1024",
        function="read_two_phase",
        aggregators=aggregators,
    )
    (result,) = run_cases(KERNELS, "", [case], limit=60.0)
    check_parts(result)
    by_rank, _ = _by_rank(result.recording.requests, 4)
    assert by_rank == _requests_of_aggregators(case, USUAL["two_phase"]) == expected


def test_every_reader_is_a_file_and_every_file_is_tried():
    assert {path.stem for path in (ROOT / "src_c" / "read").glob("*.c")} == set(READERS)
