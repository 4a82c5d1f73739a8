"""data/reads.csv agrees with the headers of the readers; nothing is run."""

from itertools import product

import numpy as np
import pytest

from mpilab.algorithms.formula import ceil_div, read_cost_of
from mpilab.cases.case import Case
from mpilab.mpiio import readers
from mpilab.mpiio.readers import READERS, RIVALS, Reader

MIB = 1 << 20
# The kernel that asks for the same as MPI-IO does for an independent read through a view: OMPIO
# passes on each run unchanged if gaps are large; ROMIO sieves, in the same pieces as ours.
SAME_AS_VIEW = {"ompio": "strided", "romio": "sieving"}
# Bytes of a request in a collective read, in which one rank reads for all.
COLLECTIVE = {"ompio": 32 * MIB, "romio": 16 * MIB}
# Buffers of an aggregator, of F bytes each, as in the line "Memory" of the header.
BUFFERS = {"two_phase": 3, "two_phase_alltoallv": 2}
F = MIB // 2
# Linux counts resident pages on each core by the dozen; MPI holds some small messages, too.
SLACK = MIB // 4


@pytest.fixture(scope="module")
def rows():
    """The rows that differ in more than repetitions, times, and what was in the page cache."""
    names = [
        "matrix",
        "ranks",
        "algorithm",
        "mpi_io",
        "requests",
        "most_requests",
        "bytes",
        "memory",
    ]
    return np.unique(readers.read()[names])


def expected(row):
    """(requests, requests of the busiest rank, bytes) of a row."""
    algorithm, mpi_io = str(row["algorithm"]), str(row["mpi_io"])
    name = SAME_AS_VIEW[mpi_io] if algorithm == "view" else algorithm
    case = Case(
        "read",
        int(row["ranks"]),
        1,
        datatype="double",
        matrix=str(row["matrix"]),
        function=f"read_{name}",
    )
    if algorithm == "view_all":
        number = ceil_div(case.distribution.bytes, COLLECTIVE[mpi_io])
        return number, number, case.distribution.bytes
    return read_cost_of(case.function).at(case)


def test_all_readers_were_measured_on_all_numbers_of_ranks_warm_and_cold():
    rows = readers.read()
    found = set(
        zip(
            *(rows[name].tolist() for name in ("matrix", "ranks", "cold", "algorithm", "mpi_io")),
            strict=True,
        )
    )
    every = {(one.algorithm, one.mpi_io) for one in (*READERS, *RIVALS)}
    assert found == {
        (*about, *reader)
        for about in product(readers.SIZES, readers.RANKS, (0, 1))
        for reader in every
    }


def test_requests_and_bytes_are_those_of_the_formulas(rows):
    for row in rows:
        found = tuple(row[["requests", "most_requests", "bytes"]].tolist())
        assert found == expected(row), row


def test_a_two_phase_read_holds_no_more_than_the_buffers_of_its_header(rows):
    assert {read_cost_of(f"read_{name}").buffer for name in BUFFERS} == {F}
    bounded = rows[np.isin(rows["algorithm"], list(BUFFERS))]
    for row in bounded:
        bound = BUFFERS[str(row["algorithm"])] * F + SLACK
        assert readers.UNKNOWN < row["memory"] <= bound, row
    tried = {Reader(str(row["algorithm"]), str(row["mpi_io"])) for row in bounded}
    assert tried == {one for one in (*READERS, *RIVALS) if one.algorithm in BUFFERS}
