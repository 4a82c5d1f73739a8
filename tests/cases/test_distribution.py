"""How a matrix is distributed over the ranks of a grid, for matrices of any size."""

import numpy as np
import pytest

from mpilab.cases.distribution import MOST, Distribution, distribution
from mpilab.errors import InputError


@pytest.mark.parametrize(
    "words, ranks",
    [
        ("12x10", 6),
        ("7x5 by 2x3 on 3x2", 6),
        ("1x9 by 4x4 on 2x2", 4),
        ("0x3 on 1x2", 2),
        ("5x8 by 9x1 on 1x3", 3),
    ],
)
def test_blocks_are_dealt_in_turn(words, ranks):
    about = distribution(words, ranks)
    seen = []
    for rank in range(ranks):
        row, column = divmod(rank, about.grid_columns)
        rows = [i for i in range(about.rows) if i // about.block_rows % about.grid_rows == row]
        columns = [
            j
            for j in range(about.columns)
            if j // about.block_columns % about.grid_columns == column
        ]
        assert about.rows_of(rank).tolist() == rows
        assert about.columns_of(rank).tolist() == columns
        assert about.elements_of(rank) == len(rows) * len(columns) <= about.elements_of(0)
        seen += about.indices_of(rank).tolist()
    assert sorted(seen) == list(range(about.rows * about.columns))


def test_a_share_of_a_huge_matrix_takes_no_memory_for_all_of_it():
    about = Distribution(MOST, MOST, 16, 16, 100_000, 100_000)
    rows = about.rows_of(99_999 * 100_000)
    assert rows[:2].tolist() == [1_599_984, 1_599_985] and np.diff(rows).max() == 1_599_985
    assert about.elements_of(0) == 21_488**2


@pytest.mark.parametrize(
    "words, ranks, said",
    [
        ("65536x32768 on 1x1", 1, "the part of rank 0 would have 2147483648 elements"),
        ("100000x100000", 4, "would have 2500000000 elements, but MPI counts up to 2\\*\\*31 - 1"),
        ("9x9999999999", 3, "rows, columns and blocks must be below"),
        ("9x9", 0, "ranks=0: must be 1 or more"),
        ("9x9", -4, "ranks=-4: must be 1 or more"),
    ],
)
def test_what_cannot_be_dealt_is_refused(words, ranks, said):
    with pytest.raises(InputError, match=said):
        distribution(words, ranks)
    assert distribution("65536x32767 on 1x1", 1).elements_of(0) == 2**31 - 65536
