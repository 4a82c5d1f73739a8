"""One kernel over sizes on a simulated platform: what it takes, and what it sends."""

import csv
from dataclasses import astuple, dataclass, fields

from mpilab.confirmed import simulated_ns
from mpilab.datatypes import datatype
from mpilab.errors import InputError, MpilabError
from mpilab.expected import collective_of, room
from mpilab.harness import Case
from mpilab.kernelrun import KernelRun
from mpilab.recording import SENDS
from mpilab.simulated.build import kernels
from mpilab.simulated.platforms import platform as platform_of
from mpilab.simulated.run import simulate

# Buffers are compared as long as all ranks' together are no larger: beyond, only times are told.
COMPARED_BYTES = 256 << 20
# Rounds are a walk over all messages in Python.
MOST_FOR_ROUNDS = 200_000


@dataclass(frozen=True)
class Simulated:
    """A kernel with blocks of so many `bytes` (in a bcast or reduce: the message).

    seconds        simulated, from the common start to the last rank's end, its topology known.
    rounds, messages, moved   of one call, and the bytes of its messages; -1 where they are not
                   known: too many calls for a recording, or messages for counting rounds.
    compared       whether the result was compared with numpy's.
    """

    kernel: str
    platform: str
    order: str
    ranks: int
    bytes: int
    seconds: float
    rounds: int
    messages: int
    moved: int
    compared: bool


class WrongRun(MpilabError):
    """A kernel went wrong in a simulation; `run` is its KernelRun."""

    def __init__(self, run):
        super().__init__(f"{run.function} with {run.result.case.describe()}: {run.trouble}")
        self.run = run


def scaling(function, sizes, platform, *, ranks=None, order="seq", seed=1, root=0, segment=0,
            library=None, limit=600.0):  # fmt: skip
    """Simulate a kernel with blocks of each of `sizes` bytes; list of Simulated.

    platform, order, seed   as in mpilab.simulated.simulate.
    ranks             default: every slot of the platform.
    library           a program with the kernel (mpilab.simulated.build); default: the kit's.
    limit             seconds of real time for one size.

    Each size is simulated twice in one smpirun: recorded and compared, and timed after a call
    that is not.

    Raises WrongRun where the kernel goes wrong, InputError for what cannot be simulated.
    """
    found = platform_of(platform)
    ranks = found.description.slots if ranks is None else ranks
    collective = function.partition("_")[0]
    about = collective_of(collective)
    element = "int" if about.reduces else "byte"
    cases = []
    for size in sizes if about.has_blocks else (0,):
        count = -(-size // datatype(element)[1].size)
        case = Case(collective, ranks, count, element, root=root, segment=segment)
        compared = room(case, 0).received * datatype(element)[1].size * ranks <= COMPARED_BYTES
        shared = (collective, ranks, count, element)
        cases += [
            Case(*shared, root=root, segment=segment, dump=compared),
            Case(*shared, root=root, segment=segment, dump=False, record=False, warmup=1),
        ]
    results = simulate(library or kernels(), function, cases, found, order=order, seed=seed,
                       limit=limit, groups=[("all",)] * len(cases))  # fmt: skip
    for result in results:
        run = KernelRun(function, result)
        if result.outcome != "done" or (result.case.dump and not run.right):
            raise WrongRun(run)
    return [
        _row(function, found.name, order, recorded, timed)
        for recorded, timed in zip(results[::2], results[1::2], strict=True)
    ]


def seconds_of(result):
    """Simulated seconds of the last call, from the first rank's start to the last one's end."""
    return simulated_ns(result) / 1e9


def _row(function, platform, order, recorded, timed):
    rounds, messages, moved = _counts(recorded.recording, function.endswith("_openmpi"))
    return Simulated(function, platform, order, recorded.case.ranks, recorded.case.block_bytes,
                     seconds_of(timed), rounds, messages, moved, recorded.case.dump)  # fmt: skip


def _counts(recording, is_mpis_own):
    """(rounds, messages, bytes) of a recording."""
    if is_mpis_own or recording is None or not recording.complete:
        return -1, -1, -1
    messages = moved = 0
    for rank in recording.ranks:
        records = rank.records
        sent = (records["flags"] & SENDS != 0) & (records["peer"] >= 0) & (records["error"] == 0)
        sent &= records["peer"] != rank.rank
        messages += int(sent.sum())
        moved += int(records["bytes"][sent].sum())
    return recording.rounds if messages <= MOST_FOR_ROUNDS else -1, messages, moved


def as_text(rows):
    """The rows as a table."""
    heads = ("bytes", "simulated µs", "rounds", "messages", "bytes sent", "compared")
    lines = [heads]
    for row in rows:
        known = ("-" if number < 0 else str(number)
                 for number in (row.rounds, row.messages, row.moved))  # fmt: skip
        lines.append((str(row.bytes), f"{row.seconds * 1e6:.3f}", *known,
                      "right" if row.compared else "-"))  # fmt: skip
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    return "\n".join(
        "  ".join(word.rjust(width) for word, width in zip(line, widths, strict=True))
        for line in lines
    )


def write(rows, path):
    """The rows as CSV; InputError where that cannot be."""
    try:
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(field.name for field in fields(Simulated))
            writer.writerows(map(astuple, rows))
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror}; name another file"
        ) from None


__all__ = ["Simulated", "WrongRun", "as_text", "scaling", "seconds_of", "write"]
