"""The memory of all ranks as a grid: ranks against blocks, or against the elements of the message.

mpilab.plots.blocks draws it.
"""

from dataclasses import asdict
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mpilab import snapshots
from mpilab.datatypes import datatype
from mpilab.diagnosis import parts, single
from mpilab.diagnosis.clauses import content
from mpilab.expected import COLLECTIVES, GUARD_BYTES, block_places
from mpilab.harness import Case
from mpilab.snapshots import origin

# What a block is; the figure (mpilab/plots/blocks.py) counts them alike.
RIGHT, WRONG, UNTOUCHED, ELSEWHERE, ABSENT = range(5)
DETAILED = 256
MOST_COLUMNS = 32  # above that, neighbouring elements share a column


class _Remembering(Case):
    """The same case, which computes only once what it expects: with many ranks that is costly."""

    @cached_property
    def _before(self):
        return super().before()

    def before(self):
        """As Case.before, made once."""
        return self._before

    @cached_property
    def _right(self):
        return super().expected()

    def expected(self):
        """Receive memory of every rank after a right call: list of uint8 arrays."""
        return self._right


def remembering(case):
    """The same Case, which computes only once what it expects."""
    return case if isinstance(case, _Remembering) else _Remembering(**asdict(case))


class Difference(NamedTuple):
    """The first wrong element of a block: `expected` and `got` are its number, or bytes in hex."""

    element: int
    expected: str
    got: str


class Picture(NamedTuple):
    """What mpilab.plots.blocks.blocks draws.

    grid     int8 [ranks, columns]: RIGHT, WRONG, UNTOUCHED (as before the call), ELSEWHERE (another
             rank's block) or ABSENT (the rank has no receive buffer).
    source   int [ranks, columns]: whose block lies there, -1 where nobody knows.
    details  {(rank, column): words} of the first columns that are not right.
    columns  names of the columns where they are no blocks but elements: '0 to 15'; else None.
    """

    grid: np.ndarray
    source: np.ndarray
    details: dict
    columns: tuple | None


def picture(case, outputs):
    """The Picture of what all ranks hold."""
    case = remembering(case)
    return _of_elements(case, outputs) if parts.is_single(case) else _of_blocks(case, outputs)


def grid(case, outputs):
    """int8 [ranks, columns] alone: see Picture."""
    return picture(case, outputs).grid


def _received(case):
    """How many blocks each rank receives."""
    return [COLLECTIVES[case.collective].blocks(case, rank).received for rank in range(case.ranks)]


def _of_blocks(case, outputs):
    expected, blocks = case.expected(), _received(case)
    codes = np.full((case.ranks, max(blocks)), RIGHT, np.int8)
    source = np.full(codes.shape, -1, np.int64)
    details = {}
    for rank, output in enumerate(outputs[: case.ranks]):
        if output.received.shape != expected[rank].shape:
            codes[rank] = WRONG
            continue
        if not blocks[rank]:
            codes[rank] = ABSENT
            continue
        wrong = _wrong_slots(case, rank, output.received, expected[rank], blocks[rank])
        source[rank, : blocks[rank]] = np.arange(blocks[rank])
        if not wrong:
            continue
        whose = origin(case, output.received[GUARD_BYTES:][:-GUARD_BYTES], rank)[wrong]
        source[rank, wrong] = np.where(whose >= 0, whose, -1)
        codes[rank, wrong] = np.select(
            [whose >= 0, whose == snapshots.UNTOUCHED], [ELSEWHERE, UNTOUCHED], WRONG
        )
        for block in wrong[: max(DETAILED - len(details), 0)]:
            found = _first_difference(case, rank, expected[rank], output.received, block)
            details[rank, block] = (
                f"element {found.element}: expected {found.expected}, got {found.got}"
            )
    return Picture(codes, source, details, None)


def _of_elements(case, outputs):
    expected, received = case.expected(), _received(case)
    width = min(max(case.count, 1), MOST_COLUMNS)
    begins = [case.count * column // width for column in range(width + 1)]
    codes = np.zeros((case.ranks, width), np.int8)
    source = np.full(codes.shape, -1, np.int64)
    details = {}
    codes[[rank for rank, blocks in enumerate(received) if blocks == 0]] = ABSENT
    for rank, output in enumerate(outputs[: case.ranks]):
        if output.received.shape != expected[rank].shape:
            codes[rank] = WRONG
    for rank, of_rank in single.read(case, outputs).items():
        for column in range(width):
            here = [part for part in of_rank
                    if part.begin < begins[column + 1] and part.end > begins[column]]  # fmt: skip
            code, whose, part = _of_column(here)
            codes[rank, column], source[rank, column] = code, whose
            if code != RIGHT and len(details) < DETAILED:
                details[rank, column] = content(part, case.count)
    return Picture(codes, source, details, tuple(map(_named, begins[:-1], begins[1:])))


def _of_column(here):
    """(code, source, Part) of the elements in a column: of those that are not right, the first."""
    wrong = [part for part in here if part.held.kind != parts.RIGHT]
    if not wrong:
        return RIGHT, -1, None
    held = wrong[0].held
    if held.kind == parts.UNTOUCHED:
        return UNTOUCHED, -1, wrong[0]
    if held.kind == parts.BLOCK:
        return ELSEWHERE, held.rank, wrong[0]
    if held.kind == parts.COMBINED and sum(held.counts) == 1 and held.rank < 0:
        return ELSEWHERE, held.counts.index(1), wrong[0]
    return WRONG, -1, wrong[0]


def _named(begin, end):
    return str(begin) if end - begin <= 1 else f"{begin} to {end - 1}"


def first_difference(case, outputs, rank, block):
    """The first wrong element of `block` on `rank`; None if the block is right."""
    return _first_difference(case, rank, case.expected()[rank], outputs[rank].received, block)


def _first_difference(case, rank, expected, got, block):
    if got.shape != expected.shape:
        return None
    layout, places = datatype(case.datatype)[1], block_places(case, block, rank)
    wrong = np.flatnonzero(got[places] != expected[places])
    if not wrong.size:
        return None
    element = int(wrong[0]) // layout.size
    inside = places[element * layout.size : (element + 1) * layout.size]
    return Difference(element, _value(case, expected[inside]), _value(case, got[inside]))


def _wrong_slots(case, rank, received, expected, blocks):
    return [i for i in range(blocks)
            if (received[p := block_places(case, i, rank)] != expected[p]).any()]  # fmt: skip


def _value(case, data):
    if case.datatype == "int":
        return str(int(data.view(np.int32)[0])) if data.size == 4 else data.tobytes().hex()
    return data[:16].tobytes().hex(" ")
