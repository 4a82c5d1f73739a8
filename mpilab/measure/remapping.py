"""Run-time rank remapping: which process behaves as which rank, and what that saves.

    SEQ placement, 2 nodes of 4      process      0 1 2 3 | 4 5 6 7
                                     behaves as   0 2 4 6 | 1 3 5 7      as if placed in RR order

An algorithm is written for ranks 0 … P-1, and its pattern determines which of them communicate
most. If that does not fit the placement, processes behave as other ranks of the pattern; no process
moves. `mpilab.algorithms.remapping` does on schedules what the C kernels do
(src_c/common/remap/remap.h); this module times the kernels on emulated hosts, and counts what they
send. Notebooks find both in `mpilab.remapping`. As a program, it measures and writes a file:

    python -m mpilab.measure.remapping data/remapping-two-hosts.csv
    python -m mpilab.measure.remapping --simulated data/remapping-simulated.csv

The second one simulates a cluster as large as that of the talk, on which times are the same on
every machine.

Source: Álvarez, Díaz, Rico, "Formal modeling and performance evaluation of a run-time rank
remapping technique in Broadcast, Allgather and Allreduce MPI collective operations", TAPEMS 2017:
the two formulas, and the table of the costs of recursive doubling.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from mpilab.algorithms import allgather
from mpilab.algorithms.formula import SOURCES, evaluate
from mpilab.algorithms.remapping import (
    REMAPPED,
    RR,
    SEQ,
    by_formula,
    by_node,
    chosen,
    crossing,
    dealt,
    placement,
    remapped,
)
from mpilab.cases.case import Case, collective_of
from mpilab.errors import InputError, MpilabError
from mpilab.hosts import description, hostfile, platforms
from mpilab.hosts.description import Link
from mpilab.hosts.emulated import EmulatedHosts
from mpilab.hosts.orders import order
from mpilab.hosts.places import Levels
from mpilab.kernels.build import KERNELS, need
from mpilab.kernels.simgrid import kernels as simulated_kernels
from mpilab.measure.dataset import Dataset, stamp
from mpilab.measure.origin import sentences
from mpilab.measure.timing import HOSTS_LIMIT_S, time_on
from mpilab.models import LogGP, declared, predict_placed
from mpilab.runners import simgrid
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE
from mpilab.runners.simgrid import seconds_of
from mpilab.trace.recording import Recording
from mpilab.util.kit import ROOT

__all__ = [
    "ALL",
    "ALLGATHERS",
    "BCASTS",
    "FILE_SIZES",
    "LAB",
    "Line",
    "MEASURED",
    "RANKS",
    "REMAPPED",
    "RR",
    "Row",
    "SEQ",
    "SIMULATED",
    "SIMULATED_SIZES",
    "SIZES",
    "SLOWEST",
    "as_text",
    "bandwidths",
    "by_formula",
    "by_node",
    "chosen",
    "crossing",
    "dealt",
    "lines",
    "measure",
    "modeled",
    "orders_of_bcast",
    "placement",
    "published",
    "read",
    "remapped",
    "seconds",
    "simulate",
    "table",
    "where_of",
    "write",
]

# Measurements on emulated hosts, made here or read from those of the kit: eight ranks on the two
# hosts of hostfiles/two-hosts.toml, with links limited to 1 Gbit/s, real Open MPI and real TCP.
# Each row is one repetition, from the first rank's entry to the last one's exit.

CLUSTER = "two-hosts"
RANKS = 8  # as many as CLUSTER has slots
SIZES = (1024, 32768, 262144)
MEASURED = Dataset(
    "remapping-two-hosts.csv",
    columns="date machine kernel order bytes repetition seconds",
    example="2026-11-21,a machine,allgather_ring,rr,1024,1,0.003",
    program="mpilab.measure.remapping",
)
ROW = MEASURED.row
read, write = MEASURED.read, MEASURED.write
ALLGATHERS = tuple(
    f"allgather_{name}{remapped}"
    for name in ("recursive_doubling", "ring")
    for remapped in ("", "_remapped")
)
BCASTS = ("bcast_binomial", "bcast_binomial_remapped")
# {collective: kernels}: those that lab 03 times, and all that the talk remaps, which the file has.
LAB = {"allgather": ALLGATHERS, "bcast": BCASTS}
ALL = {
    "allgather": (
        *ALLGATHERS,
        "allgather_neighbor_exchange",
        "allgather_neighbor_exchange_remapped",
    ),
    "bcast": BCASTS,
    "allreduce": ("allreduce_ring", "allreduce_ring_remapped"),
}
FILE_SIZES = (1024, 8192, 32768, 131072, 262144)  # SIZES, and more for curves
SLOWEST = "slowest"
# Lab 03 asks for it, so handouts have no such file.
SLOWEST_HOSTFILE = ROOT / "grading" / "03-rank-mapping" / "slowest.txt"
PUBLISHED = Dataset(
    "loggp-rank-remapping-2017.csv",
    columns="row:U16 intra_node:U40 inter_node:U40",
    example="RDA*,(Q-1) M m G0,M m G1",
)
LIMIT_S = 60.0  # for one case of the table, which takes milliseconds
# The same on the simulated cluster of the talk's size: 16 nodes of 12 ranks.
SIMULATED = Dataset(
    "remapping-simulated.csv",
    columns="cluster kernel order bytes seconds",
    example="flat-16x12,allgather_ring,rr,1024,0.00123",
    program="mpilab.measure.remapping",
)
SIMULATED_CLUSTER = "flat-16x12"
# {kernel: bytes of a block, or of the whole message of a broadcast or an allreduce}; each kernel
# has a remapped one.
SIMULATED_SIZES = {
    "allgather_recursive_doubling": (64, 256, 1024, 4096, 16384),
    "allgather_neighbor_exchange": (64, 256, 1024, 4096, 16384),
    "bcast_binomial": (1024, 4096, 16384, 65536, 262144),
    "allgather_ring": (64, 256, 1024, 4096, 16384),
    "allreduce_ring": (1024, 4096, 16384, 65536, 262144),
}


def orders_of_bcast(slowest: Sequence[int] | None = None) -> dict[str, list[str]]:
    """{name: the host of each rank}: seq, rr, and slowest, in which every message changes hosts.

    slowest   the index of each rank's host; None: without this order.
    """
    cluster = description.read(CLUSTER)
    names = [host.name for host in cluster.hosts]
    found = {name: order(cluster, name) for name in ("seq", "rr")}
    if slowest is None:
        return found
    return found | {SLOWEST: [names[number] for number in slowest]}


def measure(
    sizes: Sequence[int] = SIZES,
    repetitions: int = 7,
    bcast_orders: Mapping[str, Sequence[str]] | None = None,
    own: Mapping[str, Path] | None = None,
    limit: float = HOSTS_LIMIT_S,
    kernels: Mapping[str, Sequence[str]] = LAB,
) -> NDArray[Any]:
    """Time kernels, plain and remapped; array of ROW. Those of the lab take about 15 s.

    sizes          bytes: of a block in an allgather, otherwise of the message.
    bcast_orders   {name: the host of each rank}; default: orders_of_bcast().
    own            {kernel: shared object} of kernels that are not the kit's.
    limit          seconds that a kernel may take for a size, with all its repetitions.
    kernels        LAB, ALL or a part of it: {collective: its kernels}.

    Kernels that are neither in the kit (the students' copy lacks those they have to write) nor in
    `own` are left out. Raises SetupError if hosts cannot be emulated, MpilabError if a kernel
    fails.
    """
    orders: dict[str, Sequence[str] | Mapping[str, Sequence[str]]] = {
        "allgather": ("seq", "rr"),
        "allreduce": ("seq", "rr"),
        "bcast": bcast_orders or orders_of_bcast(),
    }
    with EmulatedHosts(CLUSTER) as hosts:
        timed = [
            one
            for collective, library, names in _runs(own or {}, kernels)
            for one in time_on(
                hosts,
                collective,
                names=names,
                sizes=sizes,
                orders=orders[collective],
                repetitions=repetitions,
                library=library,
                progress=False,
                limit=limit,
            )
        ]
    about = stamp()
    return MEASURED.array(
        (*about, one.kernel, one.order, one.bytes, number, seconds)
        for one in timed
        for number, seconds in enumerate(one.seconds, start=1)
    )


def _runs(
    own: Mapping[str, Path], wanted: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, Path | None, list[str]]]:
    """(collective, shared object or None for the kit's, its kernels)."""
    for collective, kernels in wanted.items():
        kits = declared.kernels_of(collective)
        yield collective, None, [name for name in kernels if name in kits and name not in own]
        yield from ((collective, own[name], [name]) for name in kernels if name in own)


def modeled(kernel: str, order: str, size: int, cluster: str = SIMULATED_CLUSTER) -> float:
    """Seconds that LogGP predicts, round by round, for an allgather on a simulated cluster.

    kernel    e.g. "allgather_ring" or "allgather_ring_remapped": of one of REMAPPED
    order     "seq" or "rr"
    size      bytes of a block
    cluster   a platform of hosts on one switch, with a rank on each slot

    L, o and G are those of the platform's links. Ranks of a node share its link, as in
    mpilab.models.predict_placed with `shared`.
    """
    algorithm = kernel.removeprefix("allgather_").removesuffix("_remapped")
    levels = Levels(platforms.places(f"{cluster} {order}"))
    schedule = (
        remapped(algorithm, chosen(algorithm, levels))
        if kernel.endswith("_remapped")
        else allgather.schedule(algorithm, len(levels.places))
    )
    platform = platforms.platform(cluster)

    def message(link: Link, hops: int) -> LogGP:
        assert link.rate is not None  # Platform has checked it
        return LogGP(hops * link.latency, platform.overhead, 0.0, 8 / link.rate)

    near, far = message(platform.memory, 1), message(platform.host_link, 2)
    return predict_placed(schedule, levels, size, near, far, shared=True)


def simulate(
    sizes: Mapping[str, Sequence[int]] = SIMULATED_SIZES,
    cluster: str = SIMULATED_CLUSTER,
    progress: bool = False,
) -> NDArray[Any]:
    """Simulate kernels and their remapped versions in SEQ and RR order: array of rows of SIMULATED.

    sizes     {kernel: bytes, as in SIMULATED_SIZES}
    cluster   a platform, in the notation of mpilab.hosts.platforms; a rank on each slot

    Each time is that of a second call. The defaults take about five minutes. Raises SetupError
    without SimGrid, MpilabError if a kernel does not complete.
    """
    ranks = len(platforms.places(cluster))
    jobs = [
        (f"{kernel}{version}", order_name, sizes[kernel])
        for kernel in sizes
        for version in ("", "_remapped")
        for order_name in ("seq", "rr")
    ]
    rows = []
    for kernel, order_name, its_sizes in tqdm(jobs, disable=not progress, unit="kernel"):
        datatype, element = collective_of(kernel.partition("_")[0]).timed_element
        cases = [
            Case(
                kernel.partition("_")[0],
                ranks,
                size // element,
                datatype,
                function=kernel,
                record=False,
                dump=False,
                warmup=1,
            )
            for size in its_sizes
        ]
        results = simgrid.simulate(
            simulated_kernels(), "", cases, cluster, order=order_name, limit=3600.0
        )
        for size, result in zip(its_sizes, results, strict=True):
            if result.outcome != DONE:
                raise MpilabError(f"{kernel} in {order_name} order: {result.outcome}")
            rows.append((cluster, kernel, order_name, size, seconds_of(result)))
    return SIMULATED.array(rows)


def where_of(rows: NDArray[Any]) -> str:
    """Where rows of ROW were measured, and that their ranks shared cores if they did: sentences."""
    return " ".join(sentences(rows, [RANKS]))


def seconds(rows: NDArray[Any], kernel: str, order_name: str, size: int) -> NDArray[np.float64]:
    """The times of one kernel in one order with one size, in seconds: array, maybe empty."""
    chosen = (rows["kernel"] == kernel) & (rows["order"] == order_name) & (rows["bytes"] == size)
    return rows["seconds"][chosen]


def bandwidths(rows: NDArray[Any], ranks: int) -> dict[str, dict[str, dict[int, float]]]:
    """{kernel: {"RR", "RR, remapped", …: {bytes: bytes per second}}} of rows of ROW or SIMULATED:
    a line for each version and order, SEQ or RR, that is there.

    The bytes are those that a call brings to a rank: (P-1)m in an allgather of blocks of m bytes, m
    in a broadcast and an allreduce. Their time is the median of the repetitions.
    """
    found: dict[str, dict[str, dict[int, float]]] = {}
    for kernel in SIMULATED_SIZES:
        brought = ranks - 1 if kernel.startswith("allgather") else 1
        for order_name in ("rr", "seq"):
            for version in ("", "_remapped"):
                name, line = (
                    f"{kernel}{version}",
                    f"{order_name.upper()}{version.replace('_', ', ')}",
                )
                is_there = (rows["kernel"] == name) & (rows["order"] == order_name)
                rates = {
                    int(size): brought
                    * int(size)
                    / float(np.median(seconds(rows, name, order_name, size)))
                    for size in np.unique(rows["bytes"][is_there])
                }
                if rates:
                    found.setdefault(kernel, {})[line] = rates
    return found


# The slide's table of the costs of recursive doubling, beside what our kernels send.


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
    def function(self) -> str:
        """Name of the kernel."""
        return f"allgather_{self.algorithm}" + "_remapped" * bool(self.remap)

    @property
    def is_handed_out(self) -> bool:
        """Does the kernel's source exist? Students who have to write it do not get it."""
        _, _, algorithm = self.function.partition("_")
        return (SOURCES / "allgather" / f"{algorithm}.c").is_file()


@dataclass(frozen=True)
class Row:
    """A Line on `nodes` nodes of `each` processes with blocks of `bytes` bytes.

    formula, counted   (intra, inter, total) in bytes: from the formulas, and from a recording.
    """

    line: Line
    nodes: int
    each: int
    bytes: int
    formula: tuple[int, ...]
    counted: tuple[int, ...]

    @property
    def holds(self) -> bool:
        """Do the formulas match the counts?"""
        return self.formula == self.counted

    def seconds(self, near_g: float, far_g: float) -> float:
        """LogGP time of long messages, as on the slide: intra G0 + inter G1; G in s/byte."""
        intra, inter, _ = self.formula
        return intra * near_g + inter * far_g


def published(path: Path | str | None = None) -> dict[str, tuple[str, str]]:
    """The slide's table, in bytes: {"RDA SEQ": (intra, inter), …}.

    They are formulas of mpilab.algorithms.formula: "(Q-1) m G0" is "(Q - 1) * m" here. Raises
    InputError if the file cannot be read.
    """
    return {
        str(name): (_formula(str(intra)), _formula(str(inter)))
        for name, intra, inter in PUBLISHED.read(path)
    }


def _formula(printed: str) -> str:
    factors = re.sub(r" G[01]$", "", printed).split(" ")
    return " * ".join(factors).replace("-", " - ")


def lines() -> tuple[Line, ...]:
    """The Lines of the table: the slide's, and the same for the ring.

    The slide gives what one process gets; the totals, and the ring, are ours. They hold if M and Q
    are powers of two from 2 up; those of the ring hold for any Q, and any M from 2 up.
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


def table(
    shapes: Iterable[tuple[int, int]] = ((2, 2), (2, 4), (4, 2), (4, 4)), count: int = 256
) -> list[Row]:
    """The Rows of all Lines whose kernels exist, on each of `shapes`.

    shapes   pairs (M nodes, Q processes on each).
    count    ints of a block.

    All lines with the same number of processes run in one mpirun, on assumed nodes. Raises
    InputError if a kernel does not finish.
    """
    there = [line for line in lines() if line.is_handed_out]
    wanted = [(line, nodes, each) for nodes, each in shapes for line in there]
    cases = [
        Case(
            "allgather",
            nodes * each,
            count,
            remap=line.remap,
            function=line.function,
            places=placement(line.order, nodes, each).places,
        )
        for line, nodes, each in wanted
    ]
    rows = []
    for (line, nodes, each), result in zip(
        wanted, run_cases(need(KERNELS), "", cases, limit=LIMIT_S), strict=True
    ):
        case = result.case
        recording = result.recording
        if result.outcome != DONE or recording is None or not recording.complete:
            said = result.hang or result.detail or "its recording is incomplete"
            raise InputError(f"{line.function} with {case.describe()}: {result.outcome}: {said}")
        names = {"P": case.ranks, "M": nodes, "Q": each, "m": case.block_bytes}
        formula = tuple(evaluate(text, **names) for text in (line.intra, line.inter, line.total))
        counted = _received(recording, case.levels)
        rows.append(Row(line, nodes, each, case.block_bytes, formula, counted))
    return rows


def _received(recording: Recording, levels: Levels) -> tuple[int, int, int]:
    """(intra, inter, total) in bytes.

    intra and inter are what the process with the most bytes from other nodes gets within its node,
    and from other nodes; total is what all processes send between nodes.
    """
    _, volume = recording.matrix()
    inter = (volume * levels.between_nodes()).sum(axis=0)
    busiest = int(inter.argmax())
    intra = int(volume[:, busiest].sum() - inter[busiest])
    return intra, int(inter[busiest]), int(inter.sum())


def as_text(rows: Iterable[Row]) -> str:
    """The rows as a text table, in blocks of m bytes: formula and count side by side."""
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, or simulate, and write the file."""
    parser = MEASURED.parser()
    parser.add_argument(
        "--simulated", action="store_true", help=f"simulate; default file: {SIMULATED.path}"
    )
    parser.set_defaults(file=None)
    options = parser.parse_args(arguments)
    if options.simulated:
        SIMULATED.write(simulate(progress=True), options.file)
        return
    file = options.file
    slowest = None
    if SLOWEST_HOSTFILE.is_file():
        slowest = hostfile.read(SLOWEST_HOSTFILE).placement(policy="seq")
    write(measure(FILE_SIZES, bcast_orders=orders_of_bcast(slowest), kernels=ALL), file)


if __name__ == "__main__":
    MEASURED.run(main)
