"""Wrong parts of a matrix: which element is in the place of another, and because of which
mistake."""

import numpy as np
import pytest

from mpilab.cases.case import Case
from mpilab.cases.data import GUARD_BYTES
from mpilab.cases.output import Output
from mpilab.diagnosis import diagnose, reads
from mpilab.runners.result import DONE, Result
from mpilab.util.kit import ROOT

PLAIN, CYCLIC = "6x8", "8x9 by 2x2 on 2x2"


def file_of(case):
    """The bytes of the file of a case: header and elements."""
    about = case.distribution
    header = np.array([about.rows, about.columns], np.int32)
    return header.tobytes() + case.elements().tobytes()


def read_from(case, offsets, rank):
    """A rank's receive memory, with the 8 bytes at these offsets of the file (None: not read)."""
    memory, content = case.regions(rank)[1], file_of(case)
    part = memory[GUARD_BYTES : len(memory) - GUARD_BYTES].reshape(-1, 8)
    for at, offset in enumerate(offsets):
        if offset is not None and 0 <= offset <= len(content) - 8:
            part[at] = np.frombuffer(content, np.uint8, 8, offset)
    return memory


def output(case, rank, memory):
    """What a rank left behind that had this memory at the end."""
    return Output(rank, 0, memory, case.regions(rank)[0], np.zeros((0, 2), np.int64))


def explained(matrix, offset_of, ranks=4):
    """The Diagnosis of a kernel that reads from byte offset_of(distribution, rank, i, j) what it
    puts into row i, column j of its part."""
    case = Case("read", ranks, 1, "double", matrix=matrix)
    about = case.distribution
    outputs = []
    for rank in range(ranks):
        rows, columns = len(about.rows_of(rank)), len(about.columns_of(rank))
        offsets = [offset_of(about, rank, i, j) for i in range(rows) for j in range(columns)]
        outputs.append(output(case, rank, read_from(case, offsets, rank)))
    return diagnose(Result(case, DONE, outputs=outputs))


def right(about, rank, i, j):
    """The true place of the element."""
    return element(about, about.rows_of(rank)[i], about.columns_of(rank)[j])


def element(about, row, column):
    return 8 + 8 * int(row * about.columns + column)


def as_columns(about, rank, i, j):
    """In the order in which MPI_ORDER_FORTRAN gives the elements of the rectangle."""
    rows, columns = about.rows_of(rank), about.columns_of(rank)
    column, row = divmod(i * len(columns) + j, len(rows))
    return 8 + 8 * int(columns[column] * about.rows + rows[row])


def turned(about, rank, i, j):
    rows, columns = about.rows_of(rank), about.columns_of(rank)
    column, row = divmod(i * len(columns) + j, len(rows))
    return element(about, rows[row], columns[column])


def mirror(about, rank, i, j):
    return element(about, about.columns_of(rank)[j], about.rows_of(rank)[i])


def by_columns_of_grid(about, rank, i, j):
    other = rank % about.grid_rows * about.grid_columns + rank // about.grid_rows
    return right(about, other, i, j)


def rectangle(about, rank, i, j):
    row, column = divmod(rank, about.grid_columns)
    height, width = len(about.rows_of(rank)), len(about.columns_of(rank))
    return element(about, row * height + i, column * width + j)


def beginning(rows="", columns=""):
    """Offsets of a rectangle that begins at the place in the grid times the part's "own" size, or
    times the size of the matrix divided by the grid ("floor"); by default at the right place."""

    def offset(about, rank, i, j):
        places = divmod(rank, about.grid_columns)
        row, column = about.rows_of(rank)[i], about.columns_of(rank)[j]
        sizes = {
            "own": (len(about.rows_of(rank)), len(about.columns_of(rank))),
            "floor": (about.rows // about.grid_rows, about.columns // about.grid_columns),
        }
        if rows:
            row = places[0] * sizes[rows][0] + i
        if columns:
            column = places[1] * sizes[columns][1] + j
        return element(about, row, column)

    return offset


def of_width(width, begin=8, size=8):
    """Offsets as if a row had as many elements as `width(distribution)`."""

    def offset(about, rank, i, j):
        row, column = about.rows_of(rank)[i], about.columns_of(rank)[0]
        return begin + size * int(row * width(about) + column) + 8 * j

    return offset


@pytest.mark.parametrize(
    ("matrix", "offset_of", "pattern"),
    [
        (PLAIN, lambda *at: right(*at) - 8, "header not skipped"),
        (CYCLIC, lambda *at: right(*at) - 8, "header not skipped"),
        (PLAIN, lambda *at: right(*at) + 8, "header skipped twice"),
        (PLAIN, of_width(lambda about: about.rows), "rows and columns swapped"),
        ("6x6", mirror, "rows and columns swapped"),
        (PLAIN, as_columns, "Fortran order"),
        ("7x9", as_columns, "Fortran order"),
        (PLAIN, turned, "part stored by columns"),
        ("8x8 by 2x2 on 2x2", rectangle, "block-cyclic distribution ignored"),
        (CYCLIC, beginning(rows="own"), "block-cyclic distribution ignored"),
        (CYCLIC, beginning(columns="floor"), "block-cyclic distribution ignored"),
        ("7x9", rectangle, "part begins in the wrong place"),
        ("7x8", rectangle, "part begins in the wrong place"),
        ("7x9", beginning(rows="floor", columns="floor"), "part begins in the wrong place"),
        ("7x9", beginning(rows="own"), "part begins in the wrong place"),
        ("7x9", beginning(columns="floor"), "part begins in the wrong place"),
        ("6x6", by_columns_of_grid, "rows and columns of the grid swapped"),
        (
            "6x6",
            lambda about, rank, i, j: right(about, (rank + 1) % 4, i, j),
            "the part of another rank",
        ),
        (PLAIN, of_width(lambda about: about.columns, size=1), "elements counted as bytes"),
        (
            PLAIN,
            of_width(lambda about: about.columns, begin=1, size=1),
            "elements counted as bytes",
        ),
        (
            "16x16",
            lambda about, rank, i, j: right(about, rank, i, j) if 8 * i + j < 8 else None,
            "elements counted as bytes",
        ),
        (
            "7x8",
            lambda about, rank, i, j: right(about, rank, i, j) if i < 3 else None,
            "part never read",
        ),
        (CYCLIC, lambda *at: None, "part never read"),
    ],
)
def test_a_mistake_is_recognized_by_what_the_parts_hold(matrix, offset_of, pattern):
    found = explained(matrix, offset_of)
    assert (found.kind, found.pattern) == ("wrong-result", pattern), found.headline
    assert found.hint


def test_one_block_for_each_rank_is_never_told_as_distributed_cyclically():
    for matrix in ("7x8", "7x9", "7x9 by 4x5 on 2x2"):
        found = explained(matrix, rectangle)
        assert "cyclic" not in f"{found.headline} {found.pattern} {found.hint}"
        assert "row grid_row * block_rows and column grid_column * block_columns" in found.hint


def test_swapped_rows_and_columns_are_told_with_what_was_swapped():
    too_wide = explained(PLAIN, of_width(lambda about: about.rows))
    mirrored = explained("6x6", mirror)
    assert (too_wide.pattern, mirrored.pattern) == ("rows and columns swapped",) * 2
    assert "sizes[0] is matrix->rows and sizes[1] is matrix->columns" in too_wide.hint
    assert "holds number column * matrix->columns + row in its place" in mirrored.hint


def test_a_grid_that_is_not_square_may_be_numbered_by_columns_too():
    found = explained("6x6", by_columns_of_grid, ranks=6)
    assert found.pattern == "rows and columns of the grid swapped"
    assert found.ranks == (1, 2, 3, 4)


def test_a_right_read_is_no_failure():
    assert explained(CYCLIC, right) is None
    assert explained("0x5", right) is None


def test_the_first_wrong_element_and_the_one_in_its_place_are_told():
    def offset_of(about, rank, i, j):
        at = (rank, i, j)
        return element(about, 5, 6) if at == (3, 1, 2) else right(about, *at)

    found = explained(PLAIN, offset_of)
    assert found.headline == (
        "wrong result on rank 3: on rank 3, 1 of 12 elements is wrong: element (1, 2) of its "
        "part should be element (4, 6) of the matrix, and holds element (5, 6) of the matrix"
    )
    assert found.pattern == ""
    assert found.tables[0].rows[0] == (
        3,
        "(1, 2)",
        "element (4, 6) of the matrix",
        8 + 8 * 38,
        "element (5, 6) of the matrix",
    )


@pytest.mark.parametrize(
    ("offset_of", "words"),
    [
        (lambda about, rank, i, j: right(about, rank, i, j) - 4, "from byte 4 of the file"),
        (lambda about, rank, i, j: 0, "holds the header of the file"),
        (
            lambda about, rank, i, j: right(about, rank, i, j) if j else None,
            "were never written, column 0 of its part",
        ),
        (
            lambda about, rank, i, j: right(about, rank, i, j) if i != 1 else None,
            "were never written, row 1 of its part",
        ),
        (lambda about, rank, i, j: None, "were never written, all of its part"),
        (
            lambda about, rank, i, j: right(about, rank, i, j) if (i, j) != (1, 1) else None,
            "1 of 12 elements was never written, the first one at (1, 1)",
        ),
    ],
)
def test_what_is_no_element_of_the_matrix_is_named(offset_of, words):
    assert words in explained(PLAIN, offset_of).headline


def test_bits_that_are_not_of_the_file_are_said_to_be_none():
    case = Case("read", 1, 1, "double", matrix="2x2")
    memory = case.expected()[0]
    memory[GUARD_BYTES + 8] ^= 1
    found = diagnose(Result(case, DONE, outputs=[output(case, 0, memory)]))
    assert "holds a value that is not in the file" in found.headline


def test_memory_outside_of_a_part_is_told_first():
    case = Case("read", 1, 1, "double", matrix="2x2")
    memory = case.expected()[0]
    memory[-GUARD_BYTES] ^= 1
    found = diagnose(Result(case, DONE, outputs=[output(case, 0, memory)]))
    assert found.pattern == "outside the receive buffer"
    assert "rows of this rank's part by its columns" in found.hint


def test_the_page_on_failures_lists_the_mistakes_that_are_recognized():
    page = (ROOT / "docs" / "failures.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| read |"))
    known = {each.pattern for each in vars(reads).values() if isinstance(each, reads.Mistake)}
    assert set(row.split(" | ")[1].split("; ")) == known
