"""The costs declared in the headers of our kernels, compared with recordings.

Most kernels declare rounds, messages and bytes; the kernels of a read declare requests to the file,
requests of the busiest rank, and bytes read.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mpilab.algorithms.formula import cost_of, read_cost_of
from mpilab.cases.case import COLLECTIVES, Case, collective_of
from mpilab.errors import InputError
from mpilab.hosts.places import Levels
from mpilab.kernels.build import KERNELS, need
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE
from mpilab.trace.recording import (
    COLLECTIVE,
    READS_FILE,
    RECEIVES,
    SENDS,
    WRITES_FILE,
    RankRecording,
    Recording,
    operations,
)
from mpilab.util.kit import ROOT
from mpilab.util.text import did_you_mean

LIMIT_S = 60.0
# A broadcast by one of MPI's own for each segment (src_c/runtime/openmpi/ibcast.c).
IN_SEGMENTS = ("bcast_ibcast_openmpi",)
READ_QUANTITIES = (
    "reads",
    "busiest_reads",
    "read_bytes",
    "busiest_read_bytes",
    "largest_read",
    "reading_ranks",
    "collective_reads",
    "unexchanged_bytes",
)


def counts(recording: Recording, levels: Levels) -> dict[str, int]:
    """The value of each of mpilab.judging.rubric.QUANTITIES in a recording of ranks on `levels`."""
    messages, volume = recording.matrix()
    found = {
        "rounds": recording.rounds,
        "messages": int(messages.sum()),
        "bytes": int(volume.sum()),
        "busiest_messages": int(messages.sum(axis=1).max(initial=0)),
        "busiest_bytes": int(volume.sum(axis=1).max(initial=0)),
        "busiest_received": int(messages.sum(axis=0).max(initial=0)),
    }
    for level, crosses in (("node", levels.between_nodes()), ("group", levels.between_groups())):
        across = np.where(crosses, volume, 0)
        found |= {
            f"{level}_messages": int(messages[crosses].sum()),
            f"{level}_bytes": int(across.sum()),
            f"{level}_received_bytes": int(across.sum(axis=0).max(initial=0)),
        }
    return found | _reads(recording) | _left_behind(recording)


def _reads(recording: Recording) -> dict[str, int]:
    """The values of the quantities about files in a recording.

    A request for no bytes, made by a rank without a share to take part in a collective read, does
    not reach the disk and is not counted.
    """
    if not any((rank.records["flags"] & READS_FILE).any() for rank in recording.ranks):
        return dict.fromkeys(READ_QUANTITIES, 0)  # as most kernels, which have to be judged fast
    requests = recording.requests
    reads = requests[~requests["is_write"] & (requests["bytes"] > 0)]
    size = len(recording.ranks)
    by_rank = np.bincount(reads["rank"], minlength=size)
    volume = np.zeros(size, np.int64)
    np.add.at(volume, reads["rank"], reads["bytes"])
    return {
        "reads": len(reads),
        "busiest_reads": int(by_rank.max(initial=0)),
        "read_bytes": int(volume.sum()),
        "busiest_read_bytes": int(volume.max(initial=0)),
        "largest_read": int(reads["bytes"].max(initial=0)),
        "reading_ranks": int(np.count_nonzero(by_rank)),
        "collective_reads": int(np.count_nonzero(reads["collective"])),
        "unexchanged_bytes": max(map(_unexchanged, recording.ranks), default=0),
    }


def _unexchanged(rank: RankRecording) -> int:
    """The most bytes that a rank read between two calls that exchange data with other ranks."""
    flags = rank.records["flags"].astype(int)
    of_file = flags & (READS_FILE | WRITES_FILE) != 0
    exchanges = ~of_file & (flags & (SENDS | RECEIVES | COLLECTIVE) != 0)
    between = np.cumsum(exchanges)
    read = np.where(flags & READS_FILE != 0, rank.records["bytes"], 0)
    return int(np.bincount(between, read).max(initial=0))


def _left_behind(recording: Recording) -> dict[str, int]:
    """File views other than the default (all of the file, in bytes), and what was not freed.

    A recording shows where a view begins and how many bytes its filetype has. A view of single
    bytes with holes in between looks like the default one, but no kernel leaves such a view by
    mistake.
    """
    set_view = next(code for code, name in operations().items() if name == "MPI_File_set_view")
    with_view = 0
    for rank in recording.ranks:
        views = rank.records[rank.records["operation"] == set_view]
        latest = {view["file"]: (view["offset"], view["bytes"]) for view in views}
        with_view += any(view != (0, 1) for view in latest.values())
    return {
        "views_left": with_view,
        "leaks": sum(len(rank.leaked) for rank in recording.ranks),
    }


class CostCheck(NamedTuple):
    """The declared and the recorded cost of one kernel on `ranks` ranks.

    Both are (rounds, messages, bytes); for a read, (requests, requests of the busiest rank, bytes
    read).
    """

    kernel: str
    ranks: int
    declared: tuple[int, ...]
    recorded: tuple[int, ...]

    @property
    def agrees(self) -> bool:
        """Do both agree?"""
        return self.declared == self.recorded


def kernels_of(collective: str) -> list[str]:
    """Names of our kernels of a collective, in alphabetical order: ["bcast_binary", …].

    COLLECTIVE_auto, which merely chooses one of them, is not included, nor is what sends no
    messages (`shared_of`).
    """
    collective_of(collective)
    folder = ROOT / "src_c" / collective
    return sorted(f"{collective}_{file.stem}" for file in folder.glob("*.c") if file.stem != "auto")


def openmpis_of(collective: str) -> list[str]:
    """Names of the kernels of src_c/runtime/openmpi, which call MPI's own collectives."""
    collective_of(collective)
    return [f"{collective}_openmpi", *(IN_SEGMENTS if collective == "bcast" else ())]


def shared_of(collective: str) -> list[str]:
    """Names of our kernels that use the shared memory of a node, in src_c/shared: one at most."""
    collective_of(collective)
    there = (ROOT / "src_c" / "shared" / f"{collective}.c").is_file()
    return [f"{collective}_shared"] if there else []


def runnable(collective: str) -> list[str]:
    """Names of all kernels of a collective that `mpilab run` runs."""
    return [*kernels_of(collective), *shared_of(collective), *openmpis_of(collective)]


def unknown_kernel(name: str, known: Iterable[str], otherwise: str) -> InputError:
    """The InputError for a name not in `known`; `otherwise` is the remedy if none is similar."""
    return InputError(
        f"kernel {name!r}: the kit has no such kernel; it has {', '.join(known)}. "
        + (nearest_kernel(name) or otherwise)
    )


def nearest_kernel(name: str, more: Iterable[str] = ()) -> str:
    """did_you_mean for an unknown kernel name, from the kit's kernels and `more`."""
    ours = [kernel for one in COLLECTIVES for kernel in runnable(one)]
    return did_you_mean(name, [*ours, *more])


def check_costs(
    collective: str,
    *,
    ranks: Iterable[int] = (2, 4, 8),
    count: int = 1000,
    segment: int = 0,
    fanout: int = 0,
    radix: int = 0,
    root: int = 0,
    matrix: str = "64x64",
    buffer: int = 0,
    aggregators: int = 0,
) -> list[CostCheck]:
    """Run each kernel of a collective once for each number of `ranks`; list of CostCheck.

    count    ints of a block, or of the message of a bcast, reduce or allreduce.
    segment, fanout, radix   see mpilab.cases.case.Case.
    root     of a collective that has one; -1 is the last rank.
    matrix, buffer, aggregators   of a read, see mpilab.cases.case.Case.

    All kernels with the same number of ranks run in one mpirun. Raises InputError if a kernel does
    not finish.
    """
    about = collective_of(collective)
    made = []
    for number in ranks:
        if about.reads:
            case = Case(
                collective,
                number,
                count=1,
                datatype="double",
                matrix=matrix,
                buffer=buffer,
                aggregators=aggregators,
            )
        else:
            case = Case(
                collective,
                number,
                count=count if about.has_blocks else 0,
                segment=segment,
                fanout=fanout,
                radix=radix,
                root=root % number if about.is_rooted else 0,
            )
        made += [replace(case, function=kernel) for kernel in kernels_of(collective)]
    found = []
    for case, recorded in counted(made):
        cost = read_cost_of(case.function) if about.reads else cost_of(case.function)
        numbers = tuple(recorded[name] for name in quantities(collective))
        found.append(CostCheck(case.function, case.ranks, cost.at(case), numbers))
    return found


def counted(cases: Sequence[Case]) -> list[tuple[Case, dict[str, int]]]:
    """Run cases that name their kernels; list of (Case, {quantity: recorded int}).

    Raises InputError if a kernel does not finish.
    """
    found = []
    for result in run_cases(need(KERNELS), "", cases, limit=LIMIT_S):
        case, recording = result.case, result.recording
        if result.outcome != DONE or recording is None or not recording.complete:
            raise InputError(
                f"{case.function} with {case.describe()}: {result.outcome}; "
                f"'mpilab run {case.function} --ranks {case.ranks}' says more"
            )
        found.append((case, counts(recording, case.levels)))
    return found


def quantities(collective: str) -> tuple[str, str, str]:
    """The declared quantities of a collective, as named in mpilab.judging.rubric.QUANTITIES."""
    if collective_of(collective).reads:
        return "reads", "busiest_reads", "read_bytes"
    return "rounds", "messages", "bytes"


def as_text(rows: Sequence[CostCheck]) -> str:
    """The rows as a text table: formula and recording side by side, and whether they agree.

    Reads have a separate table, after the others.
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


def _table(rows: Sequence[CostCheck], words: tuple[str, str, str]) -> str:
    first, second, third = words
    lines = [
        f"{'':<28}{'':>5}  {first:^13}  {second:^15}  {third:^23}",
        f"{'kernel':<28}{'P':>5}  {'header':>6} {'run':>6}  {'header':>7} {'run':>7}  "
        f"{'header':>11} {'run':>11}",
    ]
    for row in rows:
        columns = [
            f"{a:>{width}} {b:>{width}}"
            for a, b, width in zip(row.declared, row.recorded, (6, 7, 11), strict=True)
        ]
        mark = "=" if row.agrees else "DIFFERENT"
        lines.append(f"{row.kernel:<28}{row.ranks:>5}  {'  '.join(columns)}  {mark}")
    return "\n".join(lines)
