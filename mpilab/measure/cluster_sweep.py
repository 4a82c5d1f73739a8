"""Sweep over a cluster: time collectives over its hosts, the ranks on each, and message sizes.

    rows = cluster_sweep.sweep("alltoallv", "flat-16x8", ppn="1-8", sizes=[64, 1024])
    cluster_sweep.summarize(rows)
    python -m mpilab.measure.cluster_sweep data/over-hosts.csv     simulate lab 04's table again

The hosts are those of a simulated cluster (mpilab.hosts.platforms), emulated ones of a description
in hostfiles/, or the nodes of a Slurm job. Every point is run and compared first, then timed. The
rows have the columns of data/by-level-four-groups.csv; mpilab.plots.clusters draws them.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from mpilab.cases.case import Case, Memory, collective_of, room
from mpilab.cases.output import compare
from mpilab.cluster.engines import asleep
from mpilab.cluster.location import hosts_of
from mpilab.errors import InputError, MpilabError
from mpilab.hosts import platforms
from mpilab.hosts.description import Description
from mpilab.hosts.emulated import EmulatedHosts
from mpilab.hosts.orders import RankOrder
from mpilab.hosts.places import Levels
from mpilab.hosts.platforms import Platform
from mpilab.hosts.slurm import SLURM, Allocation
from mpilab.kernels import build, simgrid
from mpilab.measure.by_level import TABLE as BY_LEVEL
from mpilab.measure.dataset import Dataset, machine, stamp
from mpilab.measure.guard import OPENMPI, OURS
from mpilab.measure.sweep import CHECK_LIMIT_S, TIMED_LIMIT_S, Report, why_failed, why_not_ended
from mpilab.measure.timing import HAN, NO_HAN, spans_s
from mpilab.models.declared import kernels_of
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE, Result
from mpilab.runners.simgrid import seconds_of, simulate
from mpilab.util import units
from mpilab.util.files import atomic_write
from mpilab.util.text import aligned, suggestion

TABLE = Dataset(
    "over-hosts.csv",
    columns=BY_LEVEL.columns,
    example="2026-11-27,SimGrid 3.32,flat-8x8,bcast,bcast_node,rr,1,8,8,64,16,1,4.9e-05",
    program="mpilab.measure.cluster_sweep",
)
# Lab 02's table, two allgathers with 16 sizes on 1 to 16 hosts of one rank: written by
# `mpilab sweep allgather --hosts flat-16x1 --ppn 1 --ranks 1-16 --sizes 32:1M -o FILE --algorithms
# ours:nonblocking_gather_bcast,ours:pairwise`.
ALLGATHERS = Dataset(
    "allgather-16x16.csv",
    columns=TABLE.columns,
    example="2026-11-27,SimGrid 3.32,flat-16x1,allgather,allgather_pairwise,seq,1,4,1,4,32,1,3e-06",
)
ROW = TABLE.row
# What distinguishes the points of a sweep.
POINT = ("cluster", "collective", "kernel", "order", "groups", "nodes", "ppn", "ranks", "bytes")
KEY = ("cluster", "kernel", "order", "nodes", "ppn", "ranks", "bytes")
Key = tuple[Any, ...]
# A cluster, or the name of one.
Hosts = str | Platform | Description
SUMMARY = np.dtype([*((name, ROW[name]) for name in POINT), ("n", "i4"), ("median_s", "f8")])
# Lab 04's table: the collectives of a published report, on clusters with 1 to 8 ranks per host.
# "openmpi" is SimGrid's model of Open MPI's own choice.
# Bytes of a block in a gather and alltoallv, otherwise of the message.
SHOWN_HOSTS, SHOWN_PPN, SHOWN_ORDER = ("flat-4x8", "flat-8x8", "flat-16x8"), "1-8", "shuffled"
SHOWN = {
    "bcast": ("binomial", "node", "rank_order", "pipelined", "openmpi"),
    "reduce": ("binomial", "node", "rank_order", "pipelined", "openmpi"),
    "gather": ("binomial", "node", "rank_order", "pipelined", "openmpi"),
    "alltoallv": ("linear", "leaders", "multilane", "openmpi"),
}
SHOWN_SIZES = {
    "bcast": (16 << 10, 256 << 10),
    "reduce": (16 << 10, 256 << 10),
    "gather": (1 << 10, 16 << 10),
    "alltoallv": (64, 256, 1 << 10),
}
# SimGrid 3.32 aborts in its model of Open MPI's alltoallv on more ranks that are no power of two.
MOST_RANKS = {"alltoallv_openmpi": 64}
# Words for --algorithms besides the names of kernels.
GROUPS = {OURS: "all kernels of the kit", OPENMPI: "Open MPI's choice"}
# A point is compared in memory, so all its buffers together must not be larger.
COMPARED_BYTES = 1 << 30
SIMULATED_LIMIT_S = 300.0

# Where the ranks of a point are.


@dataclass(frozen=True)
class Shape:
    """`ranks` ranks on `hosts` hosts of a cluster, `ppn` on each; names: the host of each rank."""

    ranks: int
    hosts: int
    ppn: int
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.hosts} host{'s' * (self.hosts != 1)} with {self.ppn} each"


def shapes(
    description: Description,
    ranks: str | int | Iterable[int] | None = None,
    ppn: str | int | Iterable[int] | None = None,
    order: RankOrder | None = None,
) -> list[Shape]:
    """The Shapes of these numbers of ranks, each with these numbers of ranks per host.

    ranks   default: all hosts. Otherwise P ranks with q on each host take P / q hosts, of each
            group in turn; pairs that don't fit are left out.
    ppn     default: as many as a host has slots.

    Raises InputError if a host has fewer slots than `ppn`, or if nothing fits.
    """
    order = RankOrder() if order is None else order
    fullest = max(host.known_slots for host in description.hosts)
    each = (fullest,) if ppn is None else _numbers("ppn", ppn)
    most = len(description.hosts)
    found = []
    for q in each:
        whole = description.part(ppn=q)
        for number in (whole.slots,) if ranks is None else _numbers("ranks", ranks):
            hosts = most if ranks is None else number // q
            if number != hosts * q or not 1 <= hosts <= most:
                continue
            if description.part(hosts=hosts, ppn=q).slots == number:
                names = order.hosts(description, ppn=q, hosts=hosts)
                found.append(Shape(number, hosts, q, tuple(names)))
    if not found:
        example = ",".join(str(q * most) for q in each)
        raise InputError(
            f"no number of ranks is 1 to {most} hosts of {description.name} with "
            f"{', '.join(map(str, each))} on each; leave --ranks out, or write e.g. {example}"
        )
    return sorted(found, key=lambda shape: (shape.ranks, shape.ppn))


def _numbers(what: str, given: str | int | Iterable[int]) -> tuple[int, ...]:
    try:
        return units.ranks_of(given)
    except InputError:
        raise InputError(
            f"{what}={given!r}: write numbers of 1 or more, up to {units.MOST_RANKS}, e.g. 1,2,4 "
            "or 1-8"
        ) from None


# Which kernels are timed.


def chosen(
    collective: str,
    algorithms: str | Iterable[str],
    own: Iterable[str] = (),
    measured: bool = False,
) -> list[str]:
    """The kernels that `algorithms` names, in order: 'ours' and 'openmpi', or one of them, such as
    'ours:leaders' or 'openmpi:default'. 'ours' leaves out kernels whose names end in _remapped.

    own        further kernels that may be named, and are not the kit's.
    measured   may Open MPI itself run? Then 'openmpi:no_han' is its choice without coll/han, and
               'openmpi' is both; simulated, it is SMPI's model of Open MPI's choice.

    Raises InputError, with the known words, for another word.
    """
    ours = kernels_of(collective)
    known = {f"{OURS}:{name.partition('_')[2]}": name for name in [*own, *ours]}
    known[f"{OPENMPI}:default"] = f"{collective}_{HAN}"
    if measured:
        known[f"{OPENMPI}:no_han"] = f"{collective}_{NO_HAN}"
    words = algorithms.split(",") if isinstance(algorithms, str) else list(algorithms)
    found: dict[str, None] = {}
    for word in (str(word).strip() for word in words):
        named = [name for key, name in known.items() if word in (key, name)]
        if word in GROUPS:
            whole = [name for key, name in known.items() if key.startswith(f"{word}:")]
            named = [name for name in whole if not name.endswith("_remapped")]
        if not named:
            listed = ", ".join([*GROUPS, *known])
            raise InputError(
                f"algorithms {word!r}: there is no such {collective}; write some of {listed}"
                f"{suggestion(word, known)}"
            )
        found |= dict.fromkeys(named)
    return list(found)


# The sweep.


def sweep(
    collective: str,
    hosts: Hosts | Sequence[Hosts],
    *,
    ranks: str | int | Iterable[int] | None = None,
    ppn: str | int | Iterable[int] | None = None,
    sizes: str | Iterable[int] = "1K,64K",
    algorithms: str | Iterable[str] = (OURS, OPENMPI),
    order: str | RankOrder = "seq",
    root: int = 0,
    segment: int = 0,
    emulated: bool = False,
    repetitions: int = 7,
    own: Mapping[str, Path] | None = None,
    out: str | Path | None = None,
    progress: bool = True,
    report: Report | None = None,
) -> NDArray[Any]:
    """Time kernels of a collective over hosts, ranks per host and sizes; array of ROW.

    hosts       simulated clusters: names such as "flat-16x8" and "campus", or Platforms; one of
                them, several as "flat-4x8,flat-16x8", or a list. With `emulated`, descriptions
                whose hosts are emulated on this machine; "slurm": the nodes of this job.
    ranks, ppn  numbers of ranks, and of ranks per host: see `shapes`.
    sizes       bytes: of a block (allgather, alltoallv, gather, scatter) or of the whole message; a
                list, or "1:1M" for powers of two. A barrier has none.
    algorithms  see `chosen`.
    order       of the ranks: a RankOrder or its text, e.g. "rr", "shuffled 7".
    root, segment   of the collectives that have one, and bytes; 0: the default of each algorithm.
    repetitions timed calls of a point, after one that is not timed. Simulated times don't vary, so
                a simulated point has one row.
    own         shared objects with kernels that are not the kit's, by name; simulated: built by
                mpilab.kernels.simgrid.
    out         a CSV file. It is written after each number of ranks; if it exists, with the same
                options, only the missing points run.
    report      collects what was left out, and why.

    Every point first runs once, and its result is compared with what it should be: a kernel that is
    wrong, hangs or crashes is left out there. Points whose buffers exceed COMPARED_BYTES in all are
    left out, too. A simulated time is that of a second call, from the common start to the end of
    the last rank; a measured one is from the first rank's entry to the last one's exit.

    Raises InputError for invalid options, SetupError if the hosts cannot be simulated or emulated,
    ClusterError if a notebook's ranks compute while something is measured
    (mpilab.cluster.engines.asleep).
    """
    about, own = collective_of(collective), dict(own or {})
    if repetitions < 1:
        raise InputError(f"repetitions={repetitions}: must be 1 or more")
    order = RankOrder.parse(order) if isinstance(order, str) else order
    clusters = _clusters(hosts)
    is_measured = emulated or SLURM in clusters
    kernels = chosen(collective, algorithms, own, is_measured)
    swept = _sizes(collective, sizes)
    told = Report() if report is None else report
    places = [_measured_on(one) if is_measured else platforms.platform(one) for one in clusters]
    plan = [(where, shapes(where.description, ranks, ppn, order)) for where in places]
    for shape in (shape for _, found in plan for shape in found):
        Case(collective, shape.ranks, 0, root=root if about.is_rooted else 0)  # checks the root
    options = {
        "collective": collective,
        "root": root,
        "segment": segment,
        "repetitions": repetitions if is_measured else 1,
        "machine": machine()
        if is_measured
        else f"SimGrid {simgrid.version_of(simgrid.tool('smpirun'))}",
    }
    store = _Store(out, options)
    points = [(kernel, size) for size in swept for kernel in kernels]
    asked = set()
    with tqdm(
        total=sum(len(found) for _, found in plan) * len(points),
        desc=collective,
        unit="point",
        disable=not progress,
    ) as bar:
        for where, found in plan:
            with nullcontext(where) if isinstance(where, Platform) else where as there:
                for shape in found:
                    job = _Job(
                        collective,
                        shape,
                        order,
                        where.description,
                        options,
                        told,
                        store,
                        bar.update,
                    )
                    job.run(points, there, own, is_measured)
                    asked |= {job.key(*point) for point in points}
    return store.rows[[key_of(row) in asked for row in store.rows]]


def _measured_on(hosts: Hosts) -> EmulatedHosts | Allocation:
    if isinstance(hosts, Platform):
        raise InputError("emulated: give a description, such as 'two-groups', not a Platform")
    return hosts_of(hosts)


def _clusters(hosts: Hosts | Sequence[Hosts]) -> list[Hosts]:
    if isinstance(hosts, str):
        return [name.strip() for name in hosts.split(",")]
    return [hosts] if isinstance(hosts, Platform | Description) else list(hosts)


def key_of(row: np.void) -> Key:
    """What distinguishes a row's point from the others of one collective."""
    return tuple(row[name].item() for name in KEY)


def _sizes(collective: str, given: str | Iterable[int]) -> tuple[int, ...]:
    about = collective_of(collective)
    if not about.has_blocks:
        return (0,)
    if about.reads:
        raise InputError(f"{collective}: files are not swept; use mpilab run {collective}_…")
    sizes, is_range = units.sizes_of(given)
    _, element = about.timed_element
    odd = [size for size in sizes if size % element]
    if odd and (not is_range or len(odd) == len(sizes)):
        raise InputError(
            f"sizes {', '.join(map(str, odd))}: {collective} adds numbers of {element} bytes; "
            f"write multiples of {element}"
        )
    return tuple(size for size in sizes if size % element == 0)


@dataclass
class _Job:
    """The points of one Shape: in one smpirun or mpirun for each library."""

    collective: str
    shape: Shape
    order: RankOrder
    cluster: Description
    options: Mapping[str, Any]
    report: Report
    store: "_Store"
    done: Callable[[], object]

    def run(
        self,
        points: Sequence[tuple[str, int]],
        where: Any,
        own: Mapping[str, Path],
        is_measured: bool,
    ) -> None:
        """Check and time the points that the store lacks, and add their rows to it."""
        missing, done = [], self.store.done
        for kernel, size in points:
            if self.key(kernel, size) in done:
                self.done()
            elif self._fits(kernel, size):
                missing.append((kernel, size))
        kits = [(kernel, size) for kernel, size in missing if kernel not in own]
        jobs: list[tuple[Path | None, list[tuple[str, int]]]] = [(None, kits)] if kits else []
        for kernel, built in own.items():
            if mine := [point for point in missing if point[0] == kernel]:
                jobs.append((built, mine))
        for library, some in jobs:
            self._run(some, library, where, is_measured)
        self.store.save()

    def key(self, kernel: str, size: int) -> Key:
        """The key of a point, as in `key_of`."""
        shape = self.shape
        name = self.cluster.name
        return (name, kernel, str(self.order), shape.hosts, shape.ppn, shape.ranks, size)

    def _fits(self, kernel: str, size: int) -> bool:
        case = self._case(kernel, size)
        width = collective_of(self.collective).timed_element[1]
        blocks = [room(case, rank) for rank in range(case.ranks)]
        needed = width * sum(each.sent + each.received for each in blocks)
        if needed <= COMPARED_BYTES:
            return True
        self._leave_out(
            kernel,
            size,
            f"its buffers are {units.byte_size(needed)} in all, and more than "
            f"{units.byte_size(COMPARED_BYTES)} are not compared",
        )
        return False

    def _case(self, kernel: str, size: int, **more: Any) -> Case:
        about = collective_of(self.collective)
        datatype, width = about.timed_element
        no_han = kernel == f"{self.collective}_{NO_HAN}"
        return Case(
            self.collective,
            self.shape.ranks,
            size // width,
            datatype,
            root=self.options["root"] if about.is_rooted else 0,
            segment=self.options["segment"],
            han=not no_han,
            function=f"{self.collective}_{HAN}" if no_han else kernel,
            **more,
        )

    def _run(
        self,
        points: Sequence[tuple[str, int]],
        library: Path | None,
        where: Any,
        is_measured: bool,
    ) -> None:
        # Only the messages show whether a barrier was one; those inside MPI are not recorded.
        is_barrier = self.collective == "barrier"
        repetitions = self.options["repetitions"]
        pairs = [
            (
                self._case(*point, record=is_barrier and OPENMPI not in point[0]),
                self._case(*point, record=False, dump=False, warmup=1, repetitions=repetitions),
            )
            for point in points
        ]
        cases = [case for pair in pairs for case in pair]
        place = {id(case): index for index, case in enumerate(cases)}
        troubles: dict[int, str] = {}
        memory = _Memory()

        def take(result: Result) -> None:
            index, is_timed = divmod(place[id(result.case)], 2)
            if not is_timed:
                troubles[index] = _trouble(result, memory)
            elif not troubles[index]:
                troubles[index] = why_not_ended(result) if result.outcome != DONE else ""
                if not troubles[index]:
                    self._keep(points[index], result, is_measured)
            result.outputs = []  # the buffers of all sizes together would be large

        names = self.shape.names
        if is_measured:
            run = partial(
                run_cases,
                library or build.need(build.KERNELS),
                hosts=where,
                names=names,
                guarded=[],
                limit=max(CHECK_LIMIT_S, TIMED_LIMIT_S),
            )
        else:
            run = partial(
                simulate,
                library or simgrid.kernels(),
                platform=where,
                order=names,
                limit=SIMULATED_LIMIT_S,
            )
        groups = [(case.function, case.han) for case in cases]
        with asleep() if is_measured else nullcontext():
            run(function="", cases=cases, groups=groups, on_result=take)
        for index, (kernel, size) in enumerate(points):
            why = troubles.get(index, "it had already failed, and was not tried again")
            if why:
                self._leave_out(kernel, size, why)
            else:
                self.done()

    def _leave_out(self, kernel: str, size: int, why: str) -> None:
        at = (kernel, self.shape.ranks, f"on {self.shape}: {why}")
        self.report.left_out.setdefault(at, []).append(size)
        self.done()

    def _keep(self, point: tuple[str, int], result: Result, is_measured: bool) -> None:
        kernel, size = point
        seconds = spans_s(result.outputs).tolist() if is_measured else [seconds_of(result)]
        levels = Levels(self.cluster.places(self.shape.names))
        date, measured_on = stamp()
        self.store.add(
            (
                date,
                measured_on if is_measured else self.options["machine"],
                self.cluster.name,
                self.collective,
                kernel,
                str(self.order),
                levels.groups,
                levels.nodes,
                self.shape.ppn,
                self.shape.ranks,
                size,
                number,
                second,
            )
            for number, second in enumerate(seconds, start=1)
        )


class _Memory:
    """What the memory of all ranks must be after a case: the same for all kernels of a size."""

    def __init__(self) -> None:
        self.count = -1
        self.ranks: list[tuple[Memory, Memory]] = []

    def is_right(self, result: Result) -> bool:
        """Is each rank's memory as it must be?"""
        case = result.case
        if case.count != self.count:
            sent = [case.regions(rank)[0] for rank in range(case.ranks)]
            self.count, self.ranks = case.count, list(zip(sent, case.expected(), strict=True))
        return all(
            np.array_equal(output.sent, sent) and np.array_equal(output.received, received)
            for output, (sent, received) in zip(result.outputs, self.ranks, strict=True)
        )


def _trouble(result: Result, memory: _Memory) -> str:
    """Why a point cannot be timed: its checked run failed, or was wrong; "" if it was right."""
    if result.outcome != DONE:
        return why_not_ended(result)
    if failed := why_failed(result):
        return failed
    if result.recording is not None and result.case.collective == "barrier":
        return (
            ""
            if result.recording.heard().all()
            else "it is not a barrier: a rank leaves before all have entered"
        )
    if memory.is_right(result):
        return ""
    return f"its result is wrong: {compare(result.case, result.outputs)[0].describe()}"


class _Store:
    """The rows of a sweep, and their CSV file if there is one, with its options beside it."""

    def __init__(self, path: str | Path | None, options: Mapping[str, Any]) -> None:
        self.path = None if path is None else Path(path)
        self.rows = np.empty(0, ROW)
        if self.path is None:
            return
        beside = self.path.with_name(self.path.name + ".json")
        if self.path.exists() and self.path.stat().st_size:
            self._compare(beside, options)
            rows = TABLE.read(self.path)
            counted: dict[Key, int] = {}
            for row in rows:
                counted[key_of(row)] = counted.get(key_of(row), 0) + 1
            whole = [counted[key_of(row)] == options["repetitions"] for row in rows]
            self.rows = rows[whole]
        else:
            atomic_write(beside, json.dumps(options, indent=1, ensure_ascii=False) + "\n")
            self.save()

    def _compare(self, beside: Path, options: Mapping[str, Any]) -> None:
        remedy = f"write to another file with -o, or delete {self.path}"
        try:
            before = json.loads(beside.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            raise InputError(
                f"{self.path}: its origin is unknown: {beside.name} is missing or damaged; {remedy}"
            ) from None
        for name in {**before, **options}:
            if before.get(name) != options.get(name):
                raise InputError(
                    f"{self.path}: was made with {name} {before.get(name)!r}, not "
                    f"{options.get(name)!r}; one table must not contain both: {remedy}"
                )

    @property
    def done(self) -> set[Key]:
        """The keys of the points that are there."""
        return {key_of(row) for row in self.rows}

    def add(self, rows: Iterable[tuple]) -> None:
        """Add the rows of a finished point."""
        self.rows = np.concatenate([self.rows, TABLE.array(rows)])

    def save(self) -> None:
        """Write all rows to the file, if there is one."""
        if self.path is not None:
            atomic_write(self.path, TABLE.text(self.rows))


# Medians of a sweep.


def summarize(rows: NDArray[Any]) -> NDArray[Any]:
    """The median of each point: array of SUMMARY, points in order of first appearance."""
    points: dict[tuple, list[float]] = {}
    for row in rows:
        points.setdefault(tuple(row[list(POINT)].tolist()), []).append(float(row["seconds"]))
    return np.array(
        [(*at, len(seconds), float(np.median(seconds))) for at, seconds in points.items()], SUMMARY
    )


def as_text(summary: NDArray[Any]) -> str:
    """A summary as a text table; the fastest kernel of each place and size has a star."""
    if not len(summary):
        return "no rows: nothing was measured"
    at = [name for name in POINT if name != "kernel"]
    least: dict[tuple, float] = {}
    for row in summary:
        here = tuple(row[at].tolist())
        least[here] = min(least.get(here, np.inf), float(row["median_s"]))
    lines = [["kernel", "order", "hosts", "ppn", "ranks", "bytes", "median µs", "n", ""]]
    for row in summary:
        fastest = float(row["median_s"]) == least[tuple(row[at].tolist())]
        lines.append(
            [
                str(row["kernel"]),
                str(row["order"]),
                *(str(row[name]) for name in ("nodes", "ppn", "ranks", "bytes")),
                f"{row['median_s'] * 1e6:.2f}",
                str(row["n"]),
                "*" if fastest else "",
            ]
        )
    return aligned(lines, left=(0, 1, 8))


# Lab 04's table.


def shown(
    collectives: Iterable[str] = tuple(SHOWN),
    hosts: Sequence[str] = SHOWN_HOSTS,
    ppn: str = SHOWN_PPN,
    *,
    progress: bool = False,
) -> NDArray[Any]:
    """Simulate lab 04's table, or a part of it; array of ROW.

    Raises SetupError without SimGrid, and MpilabError if a point had to be left out.
    """
    report = Report()
    rows = []
    for collective in collectives:
        names = [f"{collective}_{name}" for name in SHOWN[collective]]
        whole = [name for name in names if name not in MOST_RANKS]
        jobs: list[tuple[Hosts | Sequence[Hosts], Iterable[int], list[str]]] = [
            (hosts, units.ranks_of(ppn), whole)
        ]
        for name in set(names) & set(MOST_RANKS):
            for one in hosts:
                most = MOST_RANKS[name] // len(platforms.platform(one).description.hosts)
                jobs.append((one, [q for q in units.ranks_of(ppn) if q <= most], [name]))
        for where, each, kernels in jobs:
            rows.append(
                sweep(
                    collective,
                    where,
                    ppn=each,
                    sizes=SHOWN_SIZES[collective],
                    algorithms=kernels,
                    order=SHOWN_ORDER,
                    progress=progress,
                    report=report,
                )
            )
    if report.left_out:
        raise MpilabError("; ".join(report.warnings()))
    return np.concatenate(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate lab 04's table, and write the file."""
    file = TABLE.parser().parse_args(arguments).file
    TABLE.write(shown(progress=True), file)


if __name__ == "__main__":
    TABLE.run(main)
