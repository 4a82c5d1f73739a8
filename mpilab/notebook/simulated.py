"""Kernels on simulated clusters: `run` returns one KernelRun, `sweep` a table of times over sizes,
`over_hosts` a table over hosts, ranks per host and sizes, `scaling` times with rounds and messages.
LINK is the cost of a message on a flat cluster."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilab.cases.case import Case, collective_of, room
from mpilab.cases.data import datatype
from mpilab.errors import InputError, MpilabError
from mpilab.hosts import platforms
from mpilab.hosts.orders import places_of
from mpilab.hosts.places import Place
from mpilab.hosts.platforms import Platform, PlatformOrder, calibrated, platform
from mpilab.kernels.simgrid import kernels
from mpilab.measure import cluster_sweep
from mpilab.measure.crossover import LINK
from mpilab.measure.sweep import Report
from mpilab.measure.sweep_table import ROW as SWEPT
from mpilab.models.declared import (
    IN_SEGMENTS,
    kernels_of,
    openmpis_of,
    shared_of,
    unknown_kernel,
)
from mpilab.notebook import session
from mpilab.notebook.session import KernelRun, usual
from mpilab.runners.result import Result
from mpilab.runners.simgrid import seconds_of, simulate
from mpilab.trace.recording import SENDS, Recording
from mpilab.util.files import csv_text
from mpilab.util.kit import ROOT
from mpilab.util.text import aligned

__all__ = [
    "LINK",
    "Platform",
    "calibrated",
    "kernels",
    "over_hosts",
    "platform",
    "run",
    "scaling",
    "simulate",
    "sweep",
]

# Results are compared if the buffers of all ranks are no larger in total; otherwise the kernel is
# only timed.
COMPARED_BYTES = 256 << 20
# Counting rounds loops over all messages in Python.
MOST_FOR_ROUNDS = 200_000


@dataclass(frozen=True)
class Simulated:
    """A simulated run of a kernel.

    bytes          size of a block (of the message in a bcast or reduce).
    seconds        simulated time from the common start to the end of the last rank, with the
                   topology known from an earlier call.
    rounds, messages, moved   of one call, moved in bytes; -1 if unknown, because there are too many
                   calls to record or too many messages to count rounds.
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
    """A simulated kernel failed; `run` is its KernelRun."""

    def __init__(self, run: KernelRun) -> None:
        super().__init__(f"{run.function} with {run.result.case.describe()}: {run.trouble}")
        self.run = run


def scaling(
    function: str,
    sizes: Iterable[int],
    platform: Any,
    *,
    ranks: int | None = None,
    order: Any = "seq",
    seed: int = 1,
    root: int = 0,
    segment: int = 0,
    library: Path | None = None,
    limit: float = 600.0,
) -> list[Simulated]:
    """Simulate a kernel with blocks of each of `sizes` bytes; list of Simulated.

    platform, order, seed   as in mpilab.runners.simgrid.simulate.
    ranks             default: all slots of the platform.
    library           a program with the kernel (mpilab.kernels.simgrid); default: the kit's.
    limit             seconds of real time for one size.

    Each size is simulated twice in one smpirun: recorded and compared, then timed after an untimed
    call.

    Raises WrongRun if the kernel fails, and InputError for what cannot be simulated.
    """
    found = platforms.platform(platform)
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
    results = simulate(
        library or kernels(),
        function,
        cases,
        found,
        order=order,
        seed=seed,
        limit=limit,
        groups=[("all",)] * len(cases),
    )
    for result in results:
        run = KernelRun(function, result)
        if result.outcome != "done" or (result.case.dump and not run.right):
            raise WrongRun(run)
    return [
        _row(function, found.name, order, recorded, timed)
        for recorded, timed in zip(results[::2], results[1::2], strict=True)
    ]


def _row(function: str, platform: str, order: Any, recorded: Result, timed: Result) -> Simulated:
    rounds, messages, moved = _counts(recorded.recording, function.endswith("_openmpi"))
    return Simulated(
        function,
        platform,
        order,
        recorded.case.ranks,
        recorded.case.block_bytes,
        seconds_of(timed),
        rounds,
        messages,
        moved,
        recorded.case.dump,
    )


def _counts(recording: Recording | None, is_mpis_own: bool) -> tuple[int, int, int]:
    """(rounds, messages, bytes) of a recording; -1 for unknown numbers."""
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


def as_text(rows: Sequence[Simulated]) -> str:
    """The rows as a text table."""
    lines = [("bytes", "simulated µs", "rounds", "messages", "bytes sent", "compared")]
    for row in rows:
        rounds, messages, moved = (
            "-" if number < 0 else str(number) for number in (row.rounds, row.messages, row.moved)
        )
        compared = "right" if row.compared else "-"
        microseconds = f"{row.seconds * 1e6:.3f}"
        lines.append((str(row.bytes), microseconds, rounds, messages, moved, compared))
    return aligned(lines, left=())


def write(rows: Iterable[Simulated], path: str | Path) -> None:
    """Write the rows as CSV; InputError if the file cannot be written."""
    try:
        header = [field.name for field in fields(Simulated)]
        text = csv_text([header, *map(astuple, rows)], line_end="\r\n")
        Path(path).write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror}; name another file"
        ) from None


def sweep(
    functions: Iterable[str],
    platform: Any,
    *,
    sizes: Sequence[int],
    order: Any = "seq",
    seed: int = 1,
    root: int = 0,
    segment: int = 0,
    fanout: int = 0,
    radix: int = 0,
    limit: float = 600.0,
) -> NDArray[Any]:
    """Simulate kernels over message sizes; a table for the figures of mpilab.sweep, one row a call.

    functions   kernels of the kit, or of %%kernel cells of this notebook.
    platform, order, seed   as in mpilab.runners.simgrid.simulate; there is a rank on each slot.
    sizes       bytes, as in mpilab.sweep.
    root, segment, fanout, radix   as in mpilab.sweep.
    limit       seconds of real time for all sizes of a kernel.

    Each time is that of a second call, from the common start to the end of the last rank. The same
    table comes out on every machine. Nothing is compared: a kernel must have passed its checks.

    Raises SetupError without SimGrid, InputError for what cannot be simulated, and WrongRun if a
    kernel does not complete.
    """
    found = platforms.platform(platform)
    ranks = found.description.slots
    rows = []
    for function in functions:
        library = session.simulated_library(function)
        if library is None:
            check_kernel(function)
            library = kernels()
        collective, _, algorithm = function.partition("_")
        element = "int" if collective_of(collective).reduces else "byte"
        cases = [
            Case(
                collective,
                ranks,
                -(-size // datatype(element)[1].size),
                element,
                root=root if collective_of(collective).is_rooted else 0,
                segment=segment,
                fanout=fanout,
                radix=radix,
                record=False,
                dump=False,
                warmup=1,
            )
            for size in sizes
        ]
        for result in simulate(
            library, function, cases, found, order=order, seed=seed, limit=limit
        ):
            if result.outcome != "done":
                raise WrongRun(KernelRun(function, result))
            row = np.zeros(1, SWEPT)
            row["collective"], row["library"], row["algorithm"] = collective, "ours", algorithm
            row["number"], row["ranks"], row["bytes"] = -1, ranks, result.case.block_bytes
            row["segment"], row["fanout"], row["radix"] = segment, fanout, radix
            row["machine"] = f"{found.name}{'' if order == 'seq' else f' {order}'}"
            for name in ("span_s", "mean_s", "max_s", "min_s"):
                row[name] = seconds_of(result)
            rows.append(row)
    return np.concatenate([np.empty(0, SWEPT), *rows])


def over_hosts(
    functions: Sequence[str],
    hosts: cluster_sweep.Hosts | Sequence[cluster_sweep.Hosts],
    **more: Any,
) -> NDArray[Any]:
    """Simulate kernels of a collective over hosts, ranks per host and sizes; a table for
    mpilab.plots.clusters.time_against.

    functions   kernels of the kit, or of %%kernel cells of this notebook.
    hosts       simulated clusters, e.g. ["flat-4x8", "flat-16x8"].
    more        as in mpilab.cluster_sweep.sweep, e.g. ppn="1-8", sizes=[64, 1024], order="rr".

    Every point is compared first. A warning says what was left out.

    Raises SetupError without SimGrid, InputError for what cannot be simulated.
    """
    if not functions:
        raise InputError("over_hosts([]): name at least one kernel")
    collective = functions[0].partition("_")[0]
    own = {}
    for function in functions:
        library = session.simulated_library(function)
        if library is not None:
            own[function] = library
        else:
            check_kernel(function)
    report = Report()
    rows = cluster_sweep.sweep(
        collective, hosts, algorithms=functions, own=own, report=report, **more
    )
    for sentence in report.lines():
        warnings.warn(sentence, stacklevel=2)
    return rows


def run(
    function: str,
    *,
    platform: Any = None,
    ranks: int | None = None,
    count: int | None = None,
    datatype: str | None = None,
    order: Any = "seq",
    seed: int = 1,
    library: Path | None = None,
    places: str | Iterable[Place] = (),
    **more: Any,
) -> KernelRun:
    """Simulate a kernel once and return its KernelRun, with simulated times.

    function   name of the kernel: from a %%kernel cell of this notebook, from the kit, or from
               `library` (mpilab.kernels.simgrid.build).
    platform   a name such as "fat-tree-16x8", optionally with an order ("fat-tree-16x8 rr", see
               mpilab.hosts.platforms), a Platform or a Description; default: one host.
    ranks      default: all slots of the platform, one per place, or 4. It may exceed the slots if
               all hosts get the same number of ranks.
    places     instead of a platform: as in mpilab.run.
    count, …   as in mpilab.Case; `order` and `seed` as in mpilab.runners.simgrid.simulate.
    """
    collective = function.partition("_")[0]
    if library is None:
        library = session.simulated_library(function)
    if library is None:
        check_kernel(function)
        library = kernels()
    places = places_of(places) if isinstance(places, str) else tuple(places)
    if isinstance(platform, str) and " " in platform.strip():
        parsed = PlatformOrder.parse(platform)
        platform, order, seed = parsed.platform, parsed.order.name, parsed.order.seed
    if ranks is None:
        slots = len(order) if not isinstance(order, str) else len(places) or 4
        ranks = slots if platform is None else platforms.platform(platform).description.slots
    count, datatype, _ = usual(collective, count, datatype)
    case = Case(collective, ranks, count, datatype, places=places, **more)
    (result,) = simulate(library, function, [case], platform, order=order, seed=seed)
    return KernelRun(function, result)


def check_kernel(function: str) -> None:
    """Raise InputError, with the known names, unless `function` is a kernel of the kit that can be
    simulated."""
    collective = function.partition("_")[0]
    if function in IN_SEGMENTS:
        raise InputError(
            f"{function} is not simulated: SimGrid's MPI_Ibcast sends all messages from the root, "
            "Open MPI's does that up to 4 ranks, and takes a binomial tree on more. To simulate "
            "that tree, write bcast_binomial with segments, or bcast_knomial with radix=2"
        )
    if function in shared_of(collective):
        raise InputError(
            f"{function} is not simulated: it sends no messages, and a simulation knows no time "
            "for memory that ranks share. 'mpilab run' runs it"
        )
    auto = [f"{collective}_auto"] if (ROOT / "src_c" / collective / "auto.c").exists() else []
    known = [*kernels_of(collective), *auto, *openmpis_of(collective)]
    if function not in known:
        otherwise = "Your own kernel must be in a file or library that you name"
        raise unknown_kernel(function, known, otherwise)
