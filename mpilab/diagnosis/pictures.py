"""The receive memory of all ranks as a grid of ranks by blocks, or by elements of the message.

mpilab.plots.blocks draws it.
"""

from dataclasses import asdict
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mpilab.cases.case import COLLECTIVES, Case, block_places
from mpilab.cases.data import GUARD_BYTES, datatype
from mpilab.diagnosis import memory, single
from mpilab.diagnosis.memory import content
from mpilab.trace import snapshots
from mpilab.trace.snapshots import origin

# States of a block; the figure (mpilab/plots/blocks.py) uses the same numbers.
RIGHT, WRONG, UNTOUCHED, ELSEWHERE, ABSENT = range(5)
DETAILED = 256
MOST_COLUMNS = 32  # above that, neighboring elements share a column


class _Remembering(Case):
    """The same case, which caches its expected memory: with many ranks, computing it is costly."""

    @cached_property
    def _before(self):
        return super().before()

    def before(self):
        """As Case.before, cached."""
        return self._before

    @cached_property
    def _right(self):
        return super().expected()

    def expected(self):
        """Receive memory of every rank after a correct call: list of uint8 arrays."""
        return self._right


def remembering(case):
    """The same Case, which caches its expected memory."""
    return case if isinstance(case, _Remembering) else _Remembering(**asdict(case))


class Difference(NamedTuple):
    """The first wrong element of a block: `expected` and `got` are its value, or bytes in hex."""

    element: int
    expected: str
    got: str


class Picture(NamedTuple):
    """What mpilab.plots.blocks.blocks draws.

    grid     int8 [ranks, columns]: RIGHT, WRONG, UNTOUCHED (as before the call), ELSEWHERE (another
             rank's block) or ABSENT (the rank has no receive buffer).
    source   int [ranks, columns]: the rank whose block is there, -1 if unknown.
    details  {(rank, column): text} of the first wrong columns.
    columns  names of the columns if they are elements, not blocks: '0 to 15'; else None.
    """

    grid: np.ndarray
    source: np.ndarray
    details: dict
    columns: tuple | None


def picture(case, outputs):
    """The Picture of the receive memory of all ranks."""
    case = remembering(case)
    return _of_elements(case, outputs) if memory.is_single(case) else _of_blocks(case, outputs)


def grid(case, outputs):
    """Only the grid, int8 [ranks, columns]: see Picture."""
    return picture(case, outputs).grid


def _received(case):
    """Number of blocks that each rank receives."""
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
            here = [
                part
                for part in of_rank
                if part.begin < begins[column + 1] and part.end > begins[column]
            ]
            code, whose, part = _of_column(here)
            codes[rank, column], source[rank, column] = code, whose
            if code != RIGHT and len(details) < DETAILED:
                details[rank, column] = content(part, case.count)
    return Picture(codes, source, details, tuple(map(_named, begins[:-1], begins[1:])))


def _of_column(here):
    """(code, source, Part) of a column, from its first wrong Part; (RIGHT, -1, None) if none."""
    wrong = [part for part in here if part.held.kind != memory.RIGHT]
    if not wrong:
        return RIGHT, -1, None
    held = wrong[0].held
    if held.kind == memory.UNTOUCHED:
        return UNTOUCHED, -1, wrong[0]
    if held.kind == memory.BLOCK:
        return ELSEWHERE, held.rank, wrong[0]
    if held.kind == memory.COMBINED and sum(held.counts) == 1 and held.rank < 0:
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
    return [
        i
        for i in range(blocks)
        if (received[p := block_places(case, i, rank)] != expected[p]).any()
    ]


def _value(case, data):
    if case.datatype == "int":
        return str(int(data.view(np.int32)[0])) if data.size == 4 else data.tobytes().hex()
    return data[:16].tobytes().hex(" ")
