"""What the headers of our kernels promise, beside what recordings show."""

from typing import NamedTuple

from mpilab.build import KERNELS, ROOT, need
from mpilab.errors import InputError
from mpilab.expected import collective_of
from mpilab.formula import cost_of
from mpilab.harness import Case
from mpilab.launch import run_cases
from mpilab.result import DONE

LIMIT_S = 60.0


class Promise(NamedTuple):
    """One kernel on so many ranks: (rounds, messages, bytes) by the header and by the recording."""

    kernel: str
    ranks: int
    promised: tuple
    recorded: tuple

    @property
    def kept(self):
        """Are they the same?"""
        return self.promised == self.recorded


def kernels_of(collective):
    """Names of our kernels of a collective, by the alphabet: ["bcast_binary", …]."""
    collective_of(collective)
    folder = ROOT / "src_c" / collective
    return sorted(f"{collective}_{file.stem}" for file in folder.glob("*.c"))


def promises(collective, *, ranks=(2, 4, 8), count=1000, segment=0, fanout=0, radix=0, root=0):
    """Run each kernel of a collective once for each number of `ranks`; list of Promise.

    count    ints of a block, or of the message of a bcast, reduce or allreduce.
    segment, fanout, radix   see mpilab.harness.Case.
    root     of a collective that has one; -1 is the last rank.

    All kernels of one number of ranks run in one mpirun. Raises InputError where one did not come
    to its end.
    """
    about = collective_of(collective)
    made = [
        Case(
            collective, number, count if about.has_blocks else 0, segment=segment, fanout=fanout,
            radix=radix, root=root % number if about.is_rooted else 0, function=kernel,
        )
        for number in ranks for kernel in kernels_of(collective)
    ]  # fmt: skip
    found = []
    for result in run_cases(need(KERNELS), "", made, limit=LIMIT_S):
        case, recording = result.case, result.recording
        if result.outcome != DONE or not recording.complete:
            raise InputError(
                f"{case.function} with {case.describe()}: {result.outcome}; "
                f"'mpilab run {case.function} --ranks {case.ranks}' says more"
            )
        messages = recording.messages
        counted = (recording.rounds, len(messages), int(messages["bytes"].sum()))
        found.append(Promise(case.function, case.ranks, cost_of(case.function).at(case), counted))
    return found


def as_text(rows):
    """The rows as a table of text: formula and recording side by side, and whether they agree."""
    lines = [
        f"{'':<28}{'':>5}  {'rounds':^13}  {'messages':^15}  {'bytes':^23}",
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
