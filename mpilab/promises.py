"""What the headers of our kernels promise, beside what recordings show.

For most that is rounds, messages and bytes; for the kernels of a read, requests to the file, those
of the rank with most of them, and bytes read.
"""

from typing import NamedTuple

from mpilab.build import KERNELS, ROOT, need
from mpilab.errors import InputError
from mpilab.expected import collective_of
from mpilab.formula import cost_of
from mpilab.harness import Case
from mpilab.launch import run_cases
from mpilab.matrices.costs import read_cost_of
from mpilab.quantities import counts
from mpilab.result import DONE

LIMIT_S = 60.0


class Promise(NamedTuple):
    """One kernel on so many ranks: (rounds, messages, bytes) by the header and by the recording; of
    a read (requests, requests of the busiest rank, bytes read)."""

    kernel: str
    ranks: int
    promised: tuple
    recorded: tuple

    @property
    def kept(self):
        """Are they the same?"""
        return self.promised == self.recorded


def kernels_of(collective):
    """Names of our kernels of a collective, by the alphabet: ["bcast_binary", …].

    COLLECTIVE_auto, which only chooses one of them, is not among them.
    """
    collective_of(collective)
    folder = ROOT / "src_c" / collective
    return sorted(f"{collective}_{file.stem}" for file in folder.glob("*.c") if file.stem != "auto")


def promises(collective, *, ranks=(2, 4, 8), count=1000, segment=0, fanout=0, radix=0, root=0,
             matrix="64x64", buffer=0, aggregators=0):  # fmt: skip
    """Run each kernel of a collective once for each number of `ranks`; list of Promise.

    count    ints of a block, or of the message of a bcast, reduce or allreduce.
    segment, fanout, radix   see mpilab.harness.Case.
    root     of a collective that has one; -1 is the last rank.
    matrix, buffer, aggregators   of a read, see mpilab.harness.Case.

    All kernels of one number of ranks run in one mpirun. Raises InputError where one did not come
    to its end.
    """
    about = collective_of(collective)
    tuned = {"segment": segment, "fanout": fanout, "radix": radix}
    made = []
    for number in ranks:
        if about.reads:
            shape = {"count": 1, "datatype": "double", "matrix": matrix, "buffer": buffer,
                     "aggregators": aggregators}  # fmt: skip
        else:
            shape = {"count": count if about.has_blocks else 0, **tuned,
                     "root": root % number if about.is_rooted else 0}  # fmt: skip
        made += [
            Case(collective, number, function=kernel, **shape) for kernel in kernels_of(collective)
        ]
    found = []
    for case, recorded in counted(made):
        cost = read_cost_of(case.function) if about.reads else cost_of(case.function)
        numbers = tuple(recorded[name] for name in quantities(collective))
        found.append(Promise(case.function, case.ranks, cost.at(case), numbers))
    return found


def counted(cases):
    """Run cases that name their kernels; what recordings show: list of (Case, {quantity: int}).

    Raises InputError where a kernel did not come to its end.
    """
    found = []
    for result in run_cases(need(KERNELS), "", cases, limit=LIMIT_S):
        case, recording = result.case, result.recording
        if result.outcome != DONE or not recording.complete:
            raise InputError(
                f"{case.function} with {case.describe()}: {result.outcome}; "
                f"'mpilab run {case.function} --ranks {case.ranks}' says more"
            )
        found.append((case, counts(recording, case.levels)))
    return found


def quantities(collective):
    """What is promised of a collective's kernels, in the words of mpilab.rubric.QUANTITIES."""
    if collective_of(collective).reads:
        return "reads", "busiest_reads", "read_bytes"
    return "rounds", "messages", "bytes"


def as_text(rows):
    """The rows as a table of text: formula and recording side by side, and whether they agree.

    Rows of reads stand in a table of their own, after the others.
    """
    reads = [row for row in rows if row.kernel.startswith("read_")]
    others = [row for row in rows if not row.kernel.startswith("read_")]
    tables = [
        _table(part, words)
        for part, words in (
            (others, ("rounds", "messages", "bytes")),
            (reads, ("requests", "busiest", "bytes read")),
        )
        if part
    ]
    return "\n\n".join(tables)


def _table(rows, words):
    first, second, third = words
    lines = [
        f"{'':<28}{'':>5}  {first:^13}  {second:^15}  {third:^23}",
        f"{'kernel':<28}{'P':>5}  {'header':>6} {'run':>6}  {'header':>7} {'run':>7}  "
        f"{'header':>11} {'run':>11}",
    ]
    for row in rows:
        columns = [
            f"{a:>{width}} {b:>{width}}"
            for a, b, width in zip(row.promised, row.recorded, (6, 7, 11), strict=True)
        ]
        mark = "=" if row.kept else "DIFFERENT"
        lines.append(f"{row.kernel:<28}{row.ranks:>5}  {'  '.join(columns)}  {mark}")
    return "\n".join(lines)
