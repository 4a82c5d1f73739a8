"""Wrong results of kernels that read a matrix: the first wrong element, and what it holds."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpilab.cases.case import Case, Memory, block_places
from mpilab.cases.data import GUARD_BYTES
from mpilab.cases.distribution import ELEMENT_BYTES, HEADER_BYTES, Distribution
from mpilab.cases.output import Difference, Output
from mpilab.diagnosis import memory, model, requests
from mpilab.diagnosis.evidence import Evidence
from mpilab.diagnosis.model import WRONG_RESULT, Diagnosis, Place, Table
from mpilab.trace.recording import READS_FILE, SENDS, Call

# Where in the file the elements of a rank's part come from. The elements of a case's file are
# distinct random bits, so each identifies its position: a misplaced element was read from the wrong
# place, or stored in the wrong place.

# Origins of an element other than the matrix. The header is as long as one element, so it counts as
# the element before the first.
HEADER, UNTOUCHED, UNKNOWN = -1, -2, -3


class MatrixFile:
    """The file of a case: its elements as bits, and a search for bits."""

    def __init__(self, case: Case) -> None:
        self.about = case.distribution
        self.elements = case.elements()
        self._order = np.argsort(self.elements)

    def find(self, bits: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Numbers of the elements with these bits: int64, HEADER or UNKNOWN if there is none."""
        sorted_ = self.elements[self._order]
        at = np.minimum(np.searchsorted(sorted_, bits), max(len(sorted_) - 1, 0))
        if not len(sorted_):
            return np.full(len(bits), UNKNOWN)
        found = np.where(sorted_[at] == bits, self._order[at], UNKNOWN)
        return np.where(bits == self._header.view(np.uint64)[0], HEADER, found)

    def byte_of(self, bits: np.uint64) -> int | None:
        """Byte of the file at which these bits begin; None if they are not in it."""
        found = self._content.find(bits.tobytes())
        return found if found >= 0 else None

    @property
    def _header(self) -> NDArray[np.int32]:
        return np.array([self.about.rows, self.about.columns], np.int32)

    @cached_property
    def _content(self) -> bytes:
        return self._header.tobytes() + self.elements.tobytes()


class PartContents:
    """The part of one rank after a read.

    `got` and `wanted`, int64 [elements of the part], are numbers of elements of the matrix, in file
    order; `got` may also be HEADER, UNTOUCHED or UNKNOWN."""

    def __init__(self, case: Case, rank: int, received: Memory, file: MatrixFile) -> None:
        self.about, self.rank, self.file = case.distribution, rank, file
        self.wanted = self.about.indices_of(rank)
        places = block_places(case, 0, rank)
        self.bits = received[places].view(np.uint64)
        before = case.regions(rank)[1][places].view(np.uint64)
        self.got = np.where(self.bits == before, UNTOUCHED, file.find(self.bits))
        # Correct bits count as correct even if they were there before.
        self.got[self.bits == file.elements[self.wanted]] = self.wanted[
            self.bits == file.elements[self.wanted]
        ]

    @cached_property
    def wrong(self) -> NDArray[np.int64]:
        """Indices in the part, from 0, of the wrong elements: int64 array."""
        return np.flatnonzero(self.got != self.wanted)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns) of the part."""
        return len(self.about.rows_of(self.rank)), len(self.about.columns_of(self.rank))

    def place(self, at: int) -> tuple[int, int]:
        """(row, column) in the part of its element `at`."""
        return divmod(int(at), max(self.shape[1], 1))

    def byte_of(self, at: int) -> int | None:
        """Byte of the file at which the bits of this element begin, even if they straddle two
        elements; None if they are not in the file."""
        return self.file.byte_of(self.bits[at])


def byte_of_element(number: int) -> int:
    """Byte of the file at which the element with this number begins."""
    return HEADER_BYTES + ELEMENT_BYTES * int(number)


# Mistakes of kernels that read a matrix. A rule gives the element of the matrix that a kernel with
# this mistake stores at each place of the part. It fits if it predicts every element on every rank
# with wrong elements.


class Mistake(NamedTuple):
    """A mistake: `pattern` and `hint` as in a Diagnosis."""

    pattern: str
    hint: str


HEADER_READ = Mistake(
    "header not skipped",
    f"The file begins with a header of {HEADER_BYTES} bytes, rows and columns as two ints. Start "
    "after it, as element_offset() in matrix.h does, or set a view whose displacement is "
    "matrix->header_bytes.",
)
SHIFTED_ON = Mistake(
    "header skipped twice",
    "Everything is one element too far into the file, which is the length of the header. Do both "
    "the displacement of the view and the offset skip it?",
)
ROWS_AS_WIDTH = Mistake(
    "rows and columns swapped",
    "A row of the matrix has matrix->columns elements, so consecutive rows begin that many "
    "elements apart, not matrix->rows. In MPI_Type_create_subarray with MPI_ORDER_C, sizes[0] is "
    "matrix->rows and sizes[1] is matrix->columns.",
)
FORTRAN = Mistake(
    "Fortran order",
    "The file stores the matrix row by row: MPI_ORDER_C, in which the last index changes fastest. "
    "With MPI_ORDER_FORTRAN, the first one does.",
)
MIRRORED = Mistake(
    "rows and columns swapped",
    "The file offset swaps row and column: element (row, column) of the matrix is number row * "
    "matrix->columns + column, counted from 0 after the header, but the part holds number column * "
    "matrix->columns + row in its place.",
)
TURNED = Mistake(
    "part stored by columns",
    "The right elements were read, but stored column by column: element (i, j) of a part belongs "
    "in part[i * columns + j], where columns is that of the part, not of the matrix.",
)
PLAIN = Mistake(
    "block-cyclic distribution ignored",
    "The part was read as one rectangle, but the matrix is distributed block-cyclically: the "
    "next block of the same rank is grid_rows blocks down or grid_columns blocks to the right. "
    "undealt() in matrix.h computes it.",
)
BEGINNING = Mistake(
    "part begins in the wrong place",
    "Each rank has one block here, and it begins at row grid_row * block_rows and column "
    "grid_column * block_columns of the matrix. The rank's own rows and columns, or rows / "
    "grid_rows, are not the size of the blocks before it: if the grid does not divide the matrix "
    "evenly, the last blocks are shorter.",
)
GRID_TURNED = Mistake(
    "rows and columns of the grid swapped",
    "Ranks are numbered row by row in the grid: rank / grid_columns is the row, rank % "
    "grid_columns the column.",
)
ANOTHER = Mistake(
    "the part of another rank",
    "Where in the grid is the rank? part_of() in matrix.h computes it.",
)
IN_ELEMENTS = Mistake(
    "elements counted as bytes",
    "Without a view, offsets and displacements are in bytes: an element takes sizeof(double) = 8 "
    "of them. With a view, offsets count etypes.",
)
COUNT_OF_BYTES = Mistake(
    "elements counted as bytes",
    "One eighth of the part was read: as many bytes as it has elements. With MPI_BYTE, the count "
    "is in bytes; use MPI_DOUBLE.",
)
UNREAD = Mistake(
    "part never read",
    "Nothing was written there. Does the loop cover all rows of the part, even if the blocks do "
    "not divide the matrix evenly?",
)


LAST_ONES = Mistake(
    "last elements never read",
    "Only the end of the part is missing: a count, or the bound of a loop, is too small.",
)
NOBODY_READS = Mistake(
    "part never read",
    "No rank reads the file: is a call missing, or never reached?",
)


def recognize(parts: Sequence[PartContents], by_view: bool = False) -> Mistake | None:
    """The Mistake that explains the wrong PartContents of all ranks, or None.

    by_view   whether the kernel has set a view. On a square grid, a square matrix in Fortran order
              gives every rank the part of another; without a view, the rank numbers are wrong.
    """
    found = [mistake for mistake, rule in _RULES if all(_fits(part, rule(part)) for part in parts)]
    about = parts[0].about
    # Rank 0 reads wrong elements, too, if the header is the cause.
    is_everywhere = len(parts) == sum(about.elements_of(rank) > 0 for rank in range(about.ranks))
    by_header = found and found[0] in (HEADER_READ, SHIFTED_ON)
    if (not found or (by_header and not is_everywhere)) and _is_rectangle(parts):
        found = [PLAIN if _is_dealt(about) else BEGINNING]
    whose = _owners(parts)
    if found and (by_view or found[0] != FORTRAN or not whose):
        return found[0]
    if whose:
        is_turned = all(
            source == rank % about.grid_rows * about.grid_columns + rank // about.grid_rows
            for rank, source in whose.items()
        )
        return GRID_TURNED if is_turned else ANOTHER
    if all(_counts_elements(part) for part in parts):
        return IN_ELEMENTS
    if all((part.got[part.wrong] == UNTOUCHED).all() for part in parts):
        is_eighth = all(part.wrong[0] == len(part.got) // ELEMENT_BYTES for part in parts)
        return COUNT_OF_BYTES if is_eighth and any(len(p.got) >= 16 for p in parts) else UNREAD
    return None


def _fits(part: PartContents, told: NDArray[np.int64]) -> bool:
    """Whether the part holds the elements `told`; an untouched place matches a number outside the
    matrix."""
    outside = (told < 0) | (told >= len(part.file.elements))
    same = (part.got == told) | (outside & (part.got == UNTOUCHED))
    return bool(same.all())


def _owners(parts: Sequence[PartContents]) -> dict[int, int]:
    """{rank: the rank whose part it holds}; {} if one of them holds something else."""
    found: dict[int, int] = {}
    for part in parts:
        owner = _owner(part)
        if owner is None:
            return {}
        found[part.rank] = owner
    return found


def _owner(part: PartContents) -> int | None:
    """The rank whose part this rank holds, or None."""
    for rank in range(part.about.ranks):
        indices = part.about.indices_of(rank)
        if rank != part.rank and indices.shape == part.got.shape and (indices == part.got).all():
            return rank
    return None


def _counts_elements(part: PartContents) -> bool:
    """Whether the first wrong elements of rows were read with their number as a byte offset."""
    columns = max(part.shape[1], 1)
    firsts = [
        part.wrong[part.wrong // columns == row][0] for row in np.unique(part.wrong // columns)[:8]
    ]
    found = [(part.byte_of(at), int(part.wanted[at])) for at in firsts]
    # The header may be skipped as bytes, as one element, or not at all.
    return any(
        all(byte == begin + number for byte, number in found) for begin in (HEADER_BYTES, 1, 0)
    ) and any(byte != byte_of_element(number) for byte, number in found)


def _grid(part: PartContents) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(rows, columns) in the matrix of each element of the part, as two arrays."""
    return np.divmod(part.wanted, max(part.about.columns, 1))


def _as_wide_as_high(part: PartContents) -> NDArray[np.int64]:
    rows, columns = _grid(part)
    return rows * part.about.rows + columns


def _fortran(part: PartContents) -> NDArray[np.int64]:
    height = part.shape[0]
    inside = np.arange(len(part.wanted))
    rows = part.about.rows_of(part.rank)[inside % max(height, 1)]
    columns = part.about.columns_of(part.rank)[inside // max(height, 1)]
    return columns * part.about.rows + rows


def _mirrored(part: PartContents) -> NDArray[np.int64]:
    rows, columns = _grid(part)
    return columns * part.about.columns + rows


def _turned(part: PartContents) -> NDArray[np.int64]:
    return part.wanted.reshape(part.shape).T.reshape(-1)


# One rectangle, as a rule: how far apart two parts begin, along one side of the matrix, if the
# kernel takes it to be the size of the own part (the last ones are shorter), or total / places.
_Step = Callable[[int, int, int], int]
_STEPS: tuple[_Step, ...] = (
    lambda own, total, places: own,
    lambda own, total, places: total // places,
)


def _rectangle(
    part: PartContents, step_of_rows: _Step | None, step_of_columns: _Step | None
) -> NDArray[np.int64]:
    """One rectangle that begins at the part's position in the grid times a step.

    With None for a step, the rows or columns are the right ones."""
    about = part.about
    height, width = part.shape
    row, column = divmod(part.rank, about.grid_columns)
    rows, columns = about.rows_of(part.rank), about.columns_of(part.rank)
    if step_of_rows is not None:
        rows = row * step_of_rows(height, about.rows, about.grid_rows) + np.arange(height)
    if step_of_columns is not None:
        step = step_of_columns(width, about.columns, about.grid_columns)
        columns = column * step + np.arange(width)
    return (rows[:, None] * about.columns + columns[None, :]).reshape(-1)


def _is_rectangle(parts: Sequence[PartContents]) -> bool:
    """Whether all parts are rectangles of which one of `_STEPS` gives the beginning."""
    steps = (None, *_STEPS)
    pairs = [(rows, columns) for rows in steps for columns in steps if rows or columns]
    return any(all(_fits(part, _rectangle(part, *pair)) for part in parts) for pair in pairs)


def _is_dealt(about: Distribution) -> bool:
    """Whether a rank may have several blocks."""
    return (
        about.block_rows * about.grid_rows < about.rows
        or about.block_columns * about.grid_columns < about.columns
    )


_RULES: tuple[tuple[Mistake, Callable[[PartContents], NDArray[np.int64]]], ...] = (
    (HEADER_READ, lambda part: part.wanted - 1),
    (SHIFTED_ON, lambda part: part.wanted + 1),
    (ROWS_AS_WIDTH, _as_wide_as_high),
    (FORTRAN, _fortran),
    (MIRRORED, _mirrored),
    (TURNED, _turned),
)

SHOWN_RANKS, SHOWN_ELEMENTS, SHOWN_REQUESTS = 8, 3, 8


def wrong_read(evidence: Evidence, case: Case, differences: Sequence[Difference]) -> Diagnosis:
    """The Diagnosis of a read with wrong parts.

    differences   from mpilab.cases.output.compare, at least one.
    """
    parts = _parts(case, evidence.result.outputs)
    ranks = tuple(one.rank for one in differences)
    pattern, hint = memory.explain_certain(case, evidence.result.outputs, differences)
    said = model.listing({note for one in differences for note in one.notes})
    if not parts:
        return Diagnosis(
            WRONG_RESULT,
            f"wrong result on {model.ranks(ranks)}: {said}",
            pattern=pattern,
            hint=hint,
            ranks=ranks,
        )
    views = [rank for rank in ranks if "MPI_File_set_view" in evidence.names(rank)]
    mistake = recognize(parts, by_view=bool(views))
    if mistake is UNREAD:
        mistake = _why_unread(evidence, parts)
    if not pattern and mistake is not None:
        pattern, hint = mistake
    headline = f"wrong result on {model.ranks(ranks)}: {_headline(parts[0])}"
    found = Diagnosis(
        WRONG_RESULT,
        f"{headline}; {said}" if said else headline,
        pattern=pattern,
        hint=hint,
        ranks=ranks,
        places=_where_read(evidence, parts[0]),
        tables=(_table(parts),),
        notes=tuple(filter(None, (_short_reads(evidence),))),
    )
    if pattern in memory.PATTERNS:
        return found
    return requests.as_the_cause(evidence, found) or found


def _why_unread(evidence: Evidence, parts: Sequence[PartContents]) -> Mistake:
    """What is known of parts of which all wrong elements were never written."""
    asked = {}  # {rank: its requests that asked for some bytes}
    for rank, recorded in enumerate(evidence.ranks):
        if recorded is None:
            return UNREAD
        reads = (recorded.records["flags"] & READS_FILE != 0) & (recorded.records["bytes"] > 0)
        asked[rank] = evidence.calls(rank, np.flatnonzero(reads).tolist())
    if not any(asked.values()):
        return NOBODY_READS
    first = parts[0]
    wanted = len(first.got) * ELEMENT_BYTES
    calls = asked[first.rank]
    if len(calls) == 1 and calls[0].bytes < wanted and _reads_alone(evidence):
        call = calls[0]
        return Mistake(
            UNREAD.pattern,
            f"Rank {first.rank}'s part has {wanted} bytes, but {call.name} asks for {call.bytes}"
            f"{evidence.at(call)}: check its count and datatype.",
        )
    if all(part.wrong[0] == len(part.got) - 1 for part in parts):
        return LAST_ONES
    return UNREAD


def _reads_alone(evidence: Evidence) -> bool:
    """Whether each rank reads for itself: no rank sends anything."""
    return not any(
        recorded is not None and (recorded.records["flags"] & SENDS != 0).any()
        for recorded in evidence.ranks
    )


def _parts(case: Case, outputs: Sequence[Output]) -> list[PartContents]:
    """PartContents of the ranks that have wrong elements."""
    file = MatrixFile(case)
    found: list[PartContents] = []
    for rank, output in enumerate(outputs[: case.ranks]):
        room = case.distribution.elements_of(rank) * 8 + 2 * GUARD_BYTES
        if output.received.size == room:
            part = PartContents(case, rank, output.received, file)
            if part.wrong.size:
                found.append(part)
    return found


def _headline(part: PartContents) -> str:
    """'8 of 12 elements are not right; on rank 1, element (0, 0) of its part should be ...'."""
    at = part.wrong[0]
    wrong = f"{len(part.wrong)} of {model.number(len(part.got), 'element')}"
    if (part.got[part.wrong] == UNTOUCHED).all():
        was = "was" if len(part.wrong) == 1 else "were"
        return f"on rank {part.rank}, {wrong} {was} never written, {_extent(part)}"
    are = "is" if len(part.wrong) == 1 else "are"
    return (
        f"on rank {part.rank}, {wrong} {are} wrong: element {part.place(at)} of its "
        f"part should be {_named(part, part.wanted[at])}, and holds {_content(part, at)}"
    )


def _extent(part: PartContents) -> str:
    """'all of its part', 'rows 2 and 3 of its part', 'the first one at (1, 4)'."""
    columns = part.shape[1]
    if len(part.wrong) == len(part.got):
        return "all of its part"
    flags = np.zeros(len(part.got), bool)
    flags[part.wrong] = True
    is_wrong = flags.reshape(-1, columns)
    for one, axis in (("row", 1), ("column", 0)):
        whole = np.flatnonzero(is_wrong.all(axis=axis))
        if len(whole) * is_wrong.shape[axis] == len(part.wrong):
            plural = "s" * (len(whole) != 1)
            return f"{one}{plural} {model.runs(whole.tolist())} of its part"
    return f"the first one at {part.place(part.wrong[0])}"


def _named(part: PartContents, number: int) -> str:
    row, column = divmod(int(number), part.about.columns)
    return f"element ({row}, {column}) of the matrix"


def _content(part: PartContents, at: int) -> str:
    """What the element `at` of the part holds."""
    got = int(part.got[at])
    if got >= 0:
        return _named(part, got)
    if got == HEADER:
        return "the header of the file"
    if got == UNTOUCHED:
        return "what was there before the call: it was never written"
    byte = part.byte_of(at)
    if byte is not None:
        return f"the 8 bytes from byte {byte} of the file, parts of two elements"
    return "a value that is not in the file"


def _table(parts: Sequence[PartContents]) -> Table:
    rows: list[tuple[str | int, ...]] = []
    for part in parts[:SHOWN_RANKS]:
        shown = part.wrong[:SHOWN_ELEMENTS].tolist()
        rows += [
            (
                part.rank,
                str(part.place(at)),
                _named(part, part.wanted[at]),
                byte_of_element(part.wanted[at]),
                _content(part, at),
            )
            for at in shown
        ]
        more = len(part.wrong) - len(shown)
        if more:
            rows.append((part.rank, "…", f"{model.number(more, 'more element')}", "", ""))
    left = len(parts) - SHOWN_RANKS
    title = "The first wrong elements"
    return Table(
        f"{title} (and on {model.number(left, 'more rank')})" if left > 0 else title,
        ("rank", "in its part", "should be", "at byte", "holds"),
        tuple(rows),
    )


def _where_read(evidence: Evidence, part: PartContents) -> tuple[Place, ...]:
    """Place of the request that read this rank's first wrong element; () if unknown.

    The bytes of a request through a view need not be contiguous, so with a view the request is
    known only if it is the only one."""
    recorded = evidence.ranks[part.rank]
    at = part.wrong[0]
    byte = part.byte_of(at) if part.got[at] != UNTOUCHED else None
    if recorded is None or byte is None:
        return ()
    records = recorded.records
    reads = records["flags"] & READS_FILE != 0
    if "MPI_File_set_view" in evidence.names(part.rank):
        calls = evidence.calls(part.rank, np.flatnonzero(reads)[:2].tolist())
        return evidence.places(calls, "read it here") if len(calls) == 1 else ()
    reads &= (records["offset"] >= 0) & (records["offset"] <= byte)
    reads &= byte - records["offset"] < records["bytes"]
    calls = evidence.calls(part.rank, np.flatnonzero(reads)[:1].tolist())
    return evidence.places(calls, f"read byte {byte} here")


def _short_reads(evidence: Evidence) -> str:
    """A sentence on requests that returned less than they asked for, or ''."""
    found: list[Call] = []
    for rank in range(evidence.size):
        recorded = evidence.ranks[rank]
        if recorded is not None:
            records = recorded.records
            short = (records["flags"] & READS_FILE != 0) & (records["done_ns"] != 0)
            short &= (records["error"] == 0) & (records["got_bytes"] < records["bytes"])
            found += evidence.calls(rank, np.flatnonzero(short)[:SHOWN_REQUESTS].tolist())
    if not found:
        return ""
    call = found[0]
    at = f" at byte {call.offset}" if call.offset >= 0 else ""
    return (
        f"Rank {call.rank} asked for {model.number(call.bytes, 'byte')}{at} and got "
        f"{call.got_bytes}{evidence.at(call)}: the file ends there."
    )
