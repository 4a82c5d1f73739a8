"""Wrong results of kernels that read a matrix: the first wrong element, and what it holds."""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from mpilab.cases.case import block_places
from mpilab.cases.data import GUARD_BYTES
from mpilab.cases.distribution import ELEMENT_BYTES, HEADER_BYTES
from mpilab.diagnosis import memory, model, requests
from mpilab.diagnosis.model import WRONG_RESULT, Diagnosis, Table
from mpilab.trace.recording import READS_FILE

# Where in the file the elements of a rank's part come from. The elements of a case's file are
# distinct random bits, so each identifies its position: a misplaced element was read from the wrong
# place, or stored in the wrong place.

# Origins of an element other than the matrix. The header is one element long, so it is the element
# before the first.
HEADER, UNTOUCHED, UNKNOWN = -1, -2, -3


class PartContents:
    """The part of one rank after a read.

    `got` and `wanted`, int64 [elements of the part], are numbers of elements of the matrix, in file
    order; `got` may also be HEADER, UNTOUCHED or UNKNOWN."""

    def __init__(self, case, rank, received, file):
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
    def wrong(self):
        """Indices in the part, from 0, of the wrong elements: int64 array."""
        return np.flatnonzero(self.got != self.wanted)

    @property
    def shape(self):
        """(rows, columns) of the part."""
        return len(self.about.rows_of(self.rank)), len(self.about.columns_of(self.rank))

    def place(self, at):
        """(row, column) in the part of its element `at`."""
        return divmod(int(at), max(self.shape[1], 1))

    def byte_of(self, at):
        """Byte of the file at which the bits of this element begin, even if they straddle two
        elements; None if they are not in the file."""
        return self.file.byte_of(self.bits[at])


class MatrixFile:
    """The file of a case: its elements as bits, and a search for bits."""

    def __init__(self, case):
        self.about = case.distribution
        self.elements = case.elements()
        self._order = np.argsort(self.elements)

    def find(self, bits):
        """Numbers of the elements with these bits: int64, HEADER or UNKNOWN if there is none."""
        sorted_ = self.elements[self._order]
        at = np.minimum(np.searchsorted(sorted_, bits), max(len(sorted_) - 1, 0))
        if not len(sorted_):
            return np.full(len(bits), UNKNOWN)
        found = np.where(sorted_[at] == bits, self._order[at], UNKNOWN)
        return np.where(bits == self._header.view(np.uint64)[0], HEADER, found)

    def byte_of(self, bits):
        """Byte of the file at which these bits begin; None if they are not in it."""
        found = self._content.find(bits.tobytes())
        return found if found >= 0 else None

    @property
    def _header(self):
        return np.array([self.about.rows, self.about.columns], np.int32)

    @cached_property
    def _content(self):
        return self._header.tobytes() + self.elements.tobytes()


def byte_of_element(number):
    """Byte of the file at which the element with this number begins."""
    return HEADER_BYTES + ELEMENT_BYTES * int(number)


# Mistakes of kernels that read a matrix. A rule gives the element of the matrix that a kernel with
# this mistake stores at each place of the part. It fits if it predicts every element on every rank
# with wrong elements.


class Slip(NamedTuple):
    """A mistake: `pattern` and `hint` as in a Diagnosis."""

    pattern: str
    hint: str


HEADER_READ = Slip(
    "header not skipped",
    f"The file begins with a header of {HEADER_BYTES} bytes, rows and columns as two ints. Begin "
    "behind it: element_offset() in matrix.h does, and so does a view whose displacement is "
    "matrix->header_bytes.",
)
SHIFTED_ON = Slip(
    "header skipped twice",
    "Everything is one element too far in the file, as long as the header is. Does the "
    "displacement of a view skip it, and the offset once more?",
)
ROWS_AS_WIDTH = Slip(
    "rows and columns swapped",
    "A row of the matrix has as many elements as the matrix has columns: the row above begins "
    "matrix->columns elements before, not matrix->rows. In MPI_Type_create_subarray the sizes are "
    "rows, columns.",
)
FORTRAN = Slip(
    "Fortran order",
    "The file has the matrix row by row: MPI_ORDER_C. With MPI_ORDER_FORTRAN, the first index is "
    "the one that changes from an element to the next.",
)
MIRRORED = Slip(
    "rows and columns swapped",
    "Every element comes from the other side of the diagonal: row and column are mixed up where "
    "the offset in the file is computed.",
)
TURNED = Slip(
    "part stored by columns",
    "The right elements have been read, but they lie column by column: element (i, j) of a part "
    "belongs to part[i * columns + j], with the columns of the part.",
)
PLAIN = Slip(
    "blocks dealt out in one go",
    "The part was read as one rectangle, but the matrix is dealt out in blocks, in turn: from one "
    "block to the next of the same rank it is grid_rows blocks down, grid_columns blocks to the "
    "right. undealt() in matrix.h computes it.",
)
GRID_TURNED = Slip(
    "rows and columns of the grid swapped",
    "Ranks are numbered row by row of the grid: rank / grid_columns is the row, rank % "
    "grid_columns the column.",
)
ANOTHER = Slip(
    "the part of another rank",
    "Where in the grid does the rank stand? part_of() in matrix.h says.",
)
IN_ELEMENTS = Slip(
    "elements counted as bytes",
    "Offsets and displacements are in bytes as long as no view was set: an element is "
    "sizeof(double) = 8 of them. With a view, offsets count etypes.",
)
COUNT_OF_BYTES = Slip(
    "elements counted as bytes",
    "One eighth of the part was read: as many bytes as it has elements. With MPI_BYTE the count "
    "is in bytes; take MPI_DOUBLE.",
)
UNREAD = Slip(
    "part never read",
    "Nothing was written there. Does the loop go over all rows of the part, also where the blocks "
    "do not divide the matrix evenly?",
)


def recognise(parts, by_view=False):
    """The Slip that explains the wrong PartContents of all ranks, or None.

    by_view   whether the kernel has set a view. On a square grid, a square matrix in Fortran order
              gives every rank the part of another; without a view, the rank numbers are wrong.
    """
    found = [slip for slip, rule in _RULES if all(_fits(part, rule(part)) for part in parts)]
    whose = _owners(parts)
    if found and (by_view or found[0] != FORTRAN or not whose):
        return found[0]
    if whose:
        about = parts[0].about
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


def _fits(part, told):
    """Whether the part holds the elements `told`; an untouched place fits a number outside the
    matrix."""
    if told is None:
        return False
    outside = (told < 0) | (told >= len(part.file.elements))
    same = (part.got == told) | (outside & (part.got == UNTOUCHED))
    return bool(same.all())


def _owners(parts):
    """{rank: the rank whose part it holds}; {} if one of them holds something else."""
    found = {part.rank: _owner(part) for part in parts}
    return found if None not in found.values() else {}


def _owner(part):
    """The rank whose part this rank holds, or None."""
    for rank in range(part.about.ranks):
        indices = part.about.indices_of(rank)
        if rank != part.rank and indices.shape == part.got.shape and (indices == part.got).all():
            return rank
    return None


def _counts_elements(part):
    """Whether the first wrong elements of rows were read at their number as a byte offset."""
    columns = max(part.shape[1], 1)
    firsts = [
        part.wrong[part.wrong // columns == row][0] for row in np.unique(part.wrong // columns)[:8]
    ]
    found = [(part.byte_of(at), int(part.wanted[at])) for at in firsts]
    # The header may be skipped in bytes, in elements (one), or not at all.
    return any(
        all(byte == begin + number for byte, number in found) for begin in (HEADER_BYTES, 1, 0)
    ) and any(byte != byte_of_element(number) for byte, number in found)


def _grid(part):
    """(rows, columns) in the matrix of each element of the part, as two arrays."""
    return np.divmod(part.wanted, max(part.about.columns, 1))


def _as_wide_as_high(part):
    rows, columns = _grid(part)
    return rows * part.about.rows + columns


def _fortran(part):
    height = part.shape[0]
    inside = np.arange(len(part.wanted))
    rows = part.about.rows_of(part.rank)[inside % max(height, 1)]
    columns = part.about.columns_of(part.rank)[inside // max(height, 1)]
    return columns * part.about.rows + rows


def _mirrored(part):
    rows, columns = _grid(part)
    return columns * part.about.columns + rows


def _turned(part):
    return part.wanted.reshape(part.shape).T.reshape(-1)


def _plain(part):
    height, width = part.shape
    row, column = divmod(part.rank, part.about.grid_columns)
    rows = row * height + np.arange(height)
    columns = column * width + np.arange(width)
    return (rows[:, None] * part.about.columns + columns[None, :]).reshape(-1)


_RULES = (
    (HEADER_READ, lambda part: part.wanted - 1),
    (SHIFTED_ON, lambda part: part.wanted + 1),
    (ROWS_AS_WIDTH, _as_wide_as_high),
    (FORTRAN, _fortran),
    (MIRRORED, _mirrored),
    (TURNED, _turned),
    (PLAIN, _plain),
)

SHOWN_RANKS, SHOWN_ELEMENTS, SHOWN_REQUESTS = 8, 3, 8


def wrong_read(evidence, case, differences):
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
    slip = recognise(parts, by_view=bool(views))
    if not pattern and slip is not None:
        pattern, hint = slip
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


def _parts(case, outputs):
    """PartContents of the ranks that have wrong elements."""
    file, found = MatrixFile(case), []
    for rank, output in enumerate(outputs[: case.ranks]):
        room = case.distribution.elements_of(rank) * 8 + 2 * GUARD_BYTES
        if output.received.size == room:
            part = PartContents(case, rank, output.received, file)
            if part.wrong.size:
                found.append(part)
    return found


def _headline(part):
    """'8 of 12 elements are not right; on rank 1, element (0, 0) of its part should be ...'."""
    at = part.wrong[0]
    wrong = f"{len(part.wrong)} of {model.number(len(part.got), 'element')}"
    if (part.got[part.wrong] == UNTOUCHED).all():
        was = "was" if len(part.wrong) == 1 else "were"
        return f"on rank {part.rank}, {wrong} {was} never written, {_extent(part)}"
    are = "is" if len(part.wrong) == 1 else "are"
    return (
        f"on rank {part.rank}, {wrong} {are} not right: element {part.place(at)} of its "
        f"part should be {_named(part, part.wanted[at])}, and holds {_content(part, at)}"
    )


def _extent(part):
    """'all of its part', 'rows 2 and 3 of its part', 'the first one at (1, 4)'."""
    columns = part.shape[1]
    if len(part.wrong) == len(part.got):
        return "all of its part"
    is_wrong = np.zeros(len(part.got), bool)
    is_wrong[part.wrong] = True
    is_wrong = is_wrong.reshape(-1, columns)
    for one, axis in (("row", 1), ("column", 0)):
        whole = np.flatnonzero(is_wrong.all(axis=axis))
        if len(whole) * is_wrong.shape[axis] == len(part.wrong):
            plural = "s" * (len(whole) != 1)
            return f"{one}{plural} {model.runs(whole.tolist())} of its part"
    return f"the first one at {part.place(part.wrong[0])}"


def _named(part, number):
    row, column = divmod(int(number), part.about.columns)
    return f"element ({row}, {column}) of the matrix"


def _content(part, at):
    """What the element `at` of the part holds."""
    got = int(part.got[at])
    if got >= 0:
        return _named(part, got)
    if got == HEADER:
        return "the header of the file"
    if got == UNTOUCHED:
        return "what was there before: it was never written"
    byte = part.byte_of(at)
    if byte is not None:
        return f"the 8 bytes from byte {byte} of the file on, parts of two elements"
    return "what is nowhere in the file"


def _table(parts):
    rows = []
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
    title = "The first elements that are not right"
    return Table(
        f"{title} (and on {model.number(left, 'more rank')})" if left > 0 else title,
        ("rank", "in its part", "should be", "at byte", "holds"),
        tuple(rows),
    )


def _where_read(evidence, part):
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


def _short_reads(evidence):
    """A sentence on requests that got less than they asked for, or ''."""
    found = []
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
