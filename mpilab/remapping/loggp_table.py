"""The slide's table of what recursive doubling costs, beside what our kernels send."""

import re
from dataclasses import dataclass

import numpy as np

from mpilab import published_csv
from mpilab.build import KERNELS, need
from mpilab.errors import InputError
from mpilab.formula import SOURCES, evaluate
from mpilab.harness import Case
from mpilab.launch import run_cases
from mpilab.remapping.orders import RR, SEQ, placement
from mpilab.result import DONE

PUBLISHED_CSV = published_csv.DATA / "loggp-rank-remapping-2017.csv"
LIMIT_S = 60.0  # for one case of the table; it takes milliseconds


@dataclass(frozen=True)
class Line:
    """A line of the table: an allgather on processes in an order, and what its kernel sends.

    order      "SEQ" or "RR".
    remap      0 for the plain kernel; 1 (SEQ to RR) or 2 (RR to SEQ) for the remapped one.
    intra, inter   formulas: bytes that the process with the most bytes from other nodes gets within
               its node, and from other nodes.
    total      formula: bytes between nodes of all processes.
    """

    name: str
    algorithm: str
    order: str
    remap: int
    intra: str
    inter: str
    total: str

    @property
    def function(self):
        """The kernel."""
        return f"allgather_{self.algorithm}" + "_remapped" * bool(self.remap)

    @property
    def is_handed_out(self):
        """Is the kernel there? Students who are to write it themselves do not get it."""
        _, _, algorithm = self.function.partition("_")
        return (SOURCES / "allgather" / f"{algorithm}.c").is_file()


@dataclass(frozen=True)
class Row:
    """A Line on `nodes` nodes of `each` processes with blocks of `bytes` bytes.

    formula, counted   (intra, inter, total) in bytes: by the formulas, and from a recording.
    """

    line: Line
    nodes: int
    each: int
    bytes: int
    formula: tuple
    counted: tuple

    @property
    def holds(self):
        """Do the formulas say what was counted?"""
        return self.formula == self.counted

    def seconds(self, near_G, far_G):
        """LogGP for long messages, as on the slide: intra G0 + inter G1; G in seconds a byte."""
        intra, inter, _ = self.formula
        return intra * near_G + inter * far_G


def published(path=PUBLISHED_CSV):
    """The slide's table: {"RDA SEQ": (intra, inter), …} as formulas of mpilab.formula, in bytes.

    "(Q-1) m G0" there is "(Q - 1) * m" here. Raises InputError where the file can't be read.
    """
    row = np.dtype([("row", "U16"), ("intra_node", "U40"), ("inter_node", "U40")])
    return {
        str(name): (_formula(str(intra)), _formula(str(inter)))
        for name, intra, inter in published_csv.read(path, row, "RDA*,(Q-1) M m G0,M m G1")
    }


def _formula(printed):
    factors = re.sub(r" G[01]$", "", printed).split(" ")
    return " * ".join(factors).replace("-", " - ")


def lines():
    """The Lines of the table: the slide's, and the same of the ring.

    The slide says what one process gets; the totals, and the ring, are ours. They hold for M and Q
    that are powers of two from 2 on, those of the ring for any Q, and any M from 2 on.
    """
    rda = published()
    most = "(P - 1) * m"
    return (
        Line("RDA SEQ", "recursive_doubling", SEQ, 0, *rda["RDA SEQ"], "P * (M - 1) * Q * m"),
        Line("RDA RR", "recursive_doubling", RR, 0, *rda["RDA RR"], "P * (M - 1) * m"),
        # In phase 1, Q of the processes get their block from their own node.
        Line("RDA*", "recursive_doubling", SEQ, 1, *rda["RDA*"], "(P * M - Q) * m"),
        Line("ring SEQ", "ring", SEQ, 0, "0", most, "M * (P - 1) * m"),
        Line("ring RR", "ring", RR, 0, "0", most, "P * (P - 1) * m"),
        Line("ring*", "ring", RR, 2, "0", most, "M * (P - 1) * m"),
    )


def table(shapes=((2, 2), (2, 4), (4, 2), (4, 4)), count=256):
    """The Rows of every Line whose kernel is there, on each of `shapes`: (M nodes, Q processes on
    each).

    count   ints of a block. All lines of one number of processes run in one mpirun, on nodes that
            they pretend to be on.

    Raises InputError where a kernel did not come to its end.
    """
    there = [line for line in lines() if line.is_handed_out]
    wanted = [(line, nodes, each) for nodes, each in shapes for line in there]
    cases = [
        Case("allgather", nodes * each, count, remap=line.remap, function=line.function,
             places=placement(line.order, nodes, each).places)
        for line, nodes, each in wanted
    ]  # fmt: skip
    rows = []
    for (line, nodes, each), result in zip(
        wanted, run_cases(need(KERNELS), "", cases, limit=LIMIT_S), strict=True
    ):
        case = result.case
        if result.outcome != DONE or not result.recording.complete:
            said = result.hang or result.detail or "its recording is not whole"
            raise InputError(f"{line.function} with {case.describe()}: {result.outcome}: {said}")
        names = {"P": case.ranks, "M": nodes, "Q": each, "m": case.block_bytes}
        formula = tuple(evaluate(text, **names) for text in (line.intra, line.inter, line.total))
        counted = _received(result.recording, case.levels)
        rows.append(Row(line, nodes, each, case.block_bytes, formula, counted))
    return rows


def _received(recording, levels):
    """(intra, inter) of the process that gets most from other nodes, and all between nodes."""
    _, volume = recording.matrix()
    inter = (volume * levels.between_nodes()).sum(axis=0)
    busiest = int(inter.argmax())
    intra = int(volume[:, busiest].sum() - inter[busiest])
    return intra, int(inter[busiest]), int(inter.sum())


def as_text(rows):
    """The rows as a table of text, in blocks of m bytes: formula and count side by side."""
    lines_of_text = [
        f"{'':<9} {'':>3} {'':>3}  {'within a node':^15}  {'from other nodes':^16}  "
        f"{'between nodes, all':^18}",
        f"{'':<9} {'M':>3} {'Q':>3}  {'formula':>7} {'counted':>7}  {'formula':>8} {'counted':>7}  "
        f"{'formula':>9} {'counted':>8}",
    ]
    for row in rows:
        blocks = [
            f"{formula / row.bytes:>{wide}g} {counted / row.bytes:>{narrow}g}"
            for formula, counted, (wide, narrow) in zip(
                row.formula, row.counted, ((7, 7), (8, 7), (9, 8)), strict=True
            )
        ]
        lines_of_text.append(
            f"{row.line.name:<9} {row.nodes:>3} {row.each:>3}  {'  '.join(blocks)}  "
            f"{'=' if row.holds else 'DIFFERENT'}"
        )
    return "\n".join(lines_of_text)
