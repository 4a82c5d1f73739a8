"""Run sweeps: time our kernels and Open MPI's own algorithms over ranks and message sizes.

`sweep(...)` returns a table; `summarize` in sweep_table.py computes its medians with confidence
intervals. A row for Open MPI gets an algorithm's name only if its messages confirm it (guard.py).
"""

import os
import tempfile
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from mpilab.cases.case import Case, Collective, Memory, collective_of
from mpilab.cases.output import Output, compare
from mpilab.cluster.engines import asleep
from mpilab.errors import InputError
from mpilab.hosts import slurm
from mpilab.kernels import build, openmpi
from mpilab.measure import guard, openmpi_traffic
from mpilab.measure.dataset import machine, processor
from mpilab.measure.distances import bound_options
from mpilab.measure.guard import OPENMPI, OURS
from mpilab.measure.openmpi_traffic import Counted, Shape, matching
from mpilab.measure.sweep_table import ROW, Key, Store, is_oversubscribed, key_of
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE, TRAP, Result
from mpilab.trace.recording import Recording
from mpilab.util import units

# Seconds for one run of a point, and for all its repetitions, before it counts as hanging.
CHECK_LIMIT_S, TIMED_LIMIT_S = 30.0, 300.0
# How to choose Open MPI's algorithms: through MPI_T in one mpirun, or by settings in one mpirun
# each.
MPI_T, MCA = "mpi_t", "mca"
# OMB 7's defaults for collectives: (iterations, warm-up) up to 8 KiB, and above.
OMB_SHORT, OMB_LONG, LONG_BYTES = (1000, 100), (100, 10), 8192
# OMB computes a mean; a median and its confidence interval need fewer repetitions.
FRACTION, LEAST_REPETITIONS, LEAST_WARMUP = 4, 20, 3
# The first calls with 512 KiB in new buffers take 1.7 times as long as the 15th and later ones.
LEAST_WARMUP_ALONE = 20

# The plan of a sweep: its options, its points, and how often each one is timed.


def times_of(bytes: int, ranks: int, cores: int | None = None) -> tuple[int, int]:
    """Default (repetitions, warm-up) for a message of `bytes` bytes.

    A quarter of OMB's (1000 and 100; above 8 KiB 100 and 10), divided by the number of ranks that
    share a core, but at least 20 and 20, or 3 untimed calls if ranks share cores.
    """
    cores = cores or len(os.sched_getaffinity(0))
    sharing = -(-ranks // cores)
    repetitions, warmup = OMB_LONG if bytes > LONG_BYTES else OMB_SHORT
    least = LEAST_WARMUP_ALONE if sharing == 1 else LEAST_WARMUP
    divisor = FRACTION * sharing
    return max(LEAST_REPETITIONS, repetitions // divisor), max(least, warmup // divisor)


def cores_of(hosts: object = None) -> int:
    """The number of cores that ranks may use: the slots of a Slurm job, otherwise the CPUs of this
    machine that this process may run on. Emulated hosts share these."""
    if isinstance(hosts, slurm.Allocation):
        return hosts.description.slots
    return len(os.sched_getaffinity(0))


def check_cores(
    ranks: Iterable[int], cores: int, oversubscribe: bool, command: str = "mpilab sweep"
) -> None:
    """Raise InputError for more ranks than cores, unless `oversubscribe`."""
    for number in ranks:
        if is_oversubscribed(number, cores) and not oversubscribe:
            raise InputError(
                f"ranks={number}: there {'is' if cores == 1 else 'are'} {cores} core"
                f"{'s' * (cores != 1)}, so the ranks would take turns, and their times would show "
                f"how they wait. Measure up to {cores}, or simulate more (mpilab.simulated.sweep). "
                "To time them anyway, and have that labeled, write oversubscribe=True "
                f"({command}: --oversubscribe)"
            )


@dataclass(frozen=True)
class Point:
    """One algorithm with one number of ranks and one message size."""

    algorithm: guard.Algorithm
    ranks: int
    bytes: int

    @property
    def key(self) -> Key:
        """The key of a point in a table."""
        return (self.algorithm.library, self.algorithm.name, self.ranks, self.bytes)


@dataclass(frozen=True)
class Plan:
    """The options of a sweep (see `sweep`); `named` are the algorithms named individually."""

    collective: str
    ranks: tuple[int, ...]
    sizes: tuple[int, ...]
    algorithms: tuple[guard.Algorithm, ...]
    named: frozenset[guard.Algorithm] = frozenset()
    segment: int = 0
    fanout: int = 0
    radix: int = 0
    root: int = 0
    repetitions: int | None = None
    warmup: int | None = None

    @classmethod
    def make(
        cls,
        collective: str,
        ranks: str | int | Iterable[int],
        given_sizes: str | Iterable[int],
        words: str | Iterable[str],
        **options: Any,
    ) -> "Plan":
        """The Plan of these options, checked together; InputError for what cannot be run."""
        kind = collective_of(collective)
        chosen, named = guard.choose(collective, words)
        if kind.has_blocks:
            swept, is_range = units.sizes_of(given_sizes)
            _, element = kind.timed_element
            odd = [size for size in swept if size % element]
            if odd and (not is_range or len(odd) == len(swept)):
                raise InputError(
                    f"sizes {', '.join(map(str, odd))}: {collective} adds numbers of {element} "
                    f"bytes; write multiples of {element}"
                )
            swept = tuple(size for size in swept if size % element == 0)
        else:
            swept = (0,)
        plan = cls(collective, units.ranks_of(ranks), swept, chosen, named, **options)
        plan._check(kind)
        return plan

    def _check(self, kind: Collective) -> None:
        for name, least in (("repetitions", 1), ("warmup", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise InputError(f"{name}={value}: must be {least} or more")
        for ranks in self.ranks:
            self.case(Point(self.algorithms[0], ranks, self.sizes[0]))
        two = [a for a in self.named if a.name == "two_proc"]
        if two and any(ranks != 2 for ranks in self.ranks):
            raise InputError(
                f"algorithms {two[0]}: Open MPI aborts unless there are 2 ranks; omit it, or write "
                "--ranks 2"
            )
        if self.radix == 1:
            raise InputError("radix=1 makes no tree; write 2 or more, or 0 for the default")

    def points(self) -> list[Point]:
        """All points by ranks, then sizes, then algorithms, so that points to be compared run close
        together."""
        return [
            Point(algorithm, ranks, size)
            for ranks in self.ranks
            for size in self.sizes
            for algorithm in self.algorithms
            if algorithm.name != "two_proc" or ranks == 2
        ]

    def remarks(self) -> list[str]:
        """Remarks on these options for the user: sentences."""
        uncut = [a for a in self.algorithms if str(a) == "openmpi:pipeline" and not self.segment]
        return [
            f"{a}: without segments the message goes in one piece, and nothing is pipelined"
            for a in uncut
        ]

    def times(self, point: Point) -> tuple[int, int]:
        """(repetitions, warm-up) of a point."""
        repetitions, warmup = times_of(point.bytes, point.ranks)
        return (
            repetitions if self.repetitions is None else self.repetitions,
            warmup if self.warmup is None else self.warmup,
        )

    def case(self, point: Point, **more: Any) -> Case:
        """The Case of a point; `more` are further arguments of Case."""
        datatype, element = collective_of(self.collective).timed_element
        settings = {"record": False, "dump": False, **more}
        return Case(
            self.collective,
            point.ranks,
            point.bytes // element,
            datatype,
            root=self.root,
            segment=self.segment,
            fanout=self.fanout,
            radix=self.radix,
            function=point.algorithm.function(self.collective),
            openmpi=point.algorithm.number,
            **settings,
        )

    def shape(self, point: Point) -> Shape:
        """The Shape of a point, for what Open MPI must send."""
        _, element = collective_of(self.collective).timed_element
        return Shape(
            point.ranks,
            point.bytes // element,
            element,
            self.root,
            self.segment,
            self.fanout,
            self.radix,
        )


# What a sweep reports besides its table: which points were left out, and what Open MPI chose.


@dataclass
class Report:
    """left_out: {(algorithm, ranks, reason): sizes}; defaults: {(likeness, ranks): sizes} of
    openmpi:default; notes: other remarks."""

    left_out: dict[tuple[str, int, str], list[int]] = field(default_factory=dict)
    defaults: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def leave_out(self, point: Point, reason: str) -> None:
        """Note that a point has no rows, and why."""
        self.left_out.setdefault((str(point.algorithm), point.ranks, reason), []).append(
            point.bytes
        )

    def note_default(self, point: Point, likeness: str) -> None:
        """Note which algorithms openmpi:default ran like: '' if none is known."""
        self.defaults.setdefault((likeness, point.ranks), []).append(point.bytes)

    def lines(self) -> list[str]:
        """Everything as sentences, what was left out first."""
        return self.warnings() + self._of_defaults() + self.notes

    def warnings(self) -> list[str]:
        """One sentence on what was left out for each algorithm, number of ranks and reason."""
        return [
            f"{algorithm} with {_ranks(ranks)}{_sizes(sizes)} is omitted: {reason}"
            for (algorithm, ranks, reason), sizes in self.left_out.items()
        ]

    def _of_defaults(self) -> list[str]:
        return [
            f"openmpi:default with {_ranks(ranks)}{_sizes(sizes)} ran like "
            f"{likeness or 'none that is known'}"
            for (likeness, ranks), sizes in self.defaults.items()
        ]


def _ranks(number: int) -> str:
    return f"{number} rank{'s' * (number != 1)}"


def _sizes(sizes: list[int]) -> str:
    if sizes == [0]:
        return ""
    if len(sizes) == 1:
        return f" and {sizes[0]} bytes"
    listed = [str(size) for size in sorted(sizes)]
    return f", {', '.join(listed[:-1])} and {listed[-1]} bytes"


# Running a sweep: check every point once, then time all of them, and keep what passes the guard.


def sweep(
    collective: str,
    *,
    ranks: str | int | Iterable[int] | None = None,
    sizes: str | Iterable[int] = "1:64K",
    algorithms: str | Iterable[str] = ("ours", "openmpi"),
    segment: int = 0,
    fanout: int = 0,
    radix: int = 0,
    root: int = 0,
    repetitions: int | None = None,
    warmup: int | None = None,
    out: str | Path | None = None,
    progress: bool = True,
    report: Report | None = None,
    choose: str | None = None,
    oversubscribe: bool = False,
) -> NDArray[Any]:
    """Time algorithms of a collective with mpirun on this machine, or on the nodes of a Slurm job
    if MPILAB_HOSTS says so; table of mpilab.measure.sweep_table.ROW rows.

    ranks       numbers of ranks, e.g. [2, 4, 8]; default: 2, and 4 if there are as many cores.
    sizes       bytes: of a block (allgather, gather, scatter) or of the whole message; a list, or
                "1:1M" for powers of two. A barrier has none.
    algorithms  "ours", "openmpi" (all of them), or single ones: "ours:pipeline", "openmpi:3",
                "openmpi:binomial", "openmpi:default" (Open MPI's own choice).
    segment     bytes; fanout, radix: further tuning; 0 is each algorithm's own default. Open MPI's
                do not segment a message by default.
    repetitions, warmup   timed calls, and untimed calls before them. Default: a quarter of OMB's
                (1000 and 100; above 8 KiB 100 and 10), divided by the number of ranks that share a
                core, but at least 20 and 20, or 3 untimed calls if ranks share cores.
    out         a CSV file, written point by point. If it exists, with the same options, only the
                missing points run. More ranks, sizes and algorithms may be added.
    choose      how Open MPI's algorithms are selected: "mpi_t", in a running program (since Open
                MPI 5.0.6), or "mca", by settings, with a separate mpirun for each. Default: "mpi_t"
                if available.
    report      a Report that collects what was left out and what openmpi:default ran like; without
                one, what was left out causes a warning.
    oversubscribe   allow more ranks than cores: they take turns, and their rows are labeled.

    On this machine, each rank is bound to a core of its own, unless there are too few. All points
    with the same number of ranks run in one mpirun (not with "mca"), the algorithms in turn, so
    that their ratios are meaningful. Each point first runs once, untimed: those that are
    wrong, hang or crash are left out. Rows of Open MPI's algorithms have the name of the algorithm
    that really ran (mpilab.measure.guard), or are left out.

    Raises InputError for invalid options, and for a file of another sweep; ClusterError if a
    notebook's ranks compute meanwhile (mpilab.cluster.engines.asleep).
    """
    cores = cores_of(slurm.wished())
    if ranks is None:
        ranks = [2, 4] if cores >= 4 or oversubscribe else [2]
    if choose is None:
        choose = MPI_T if openmpi.chooses_at_run_time() else MCA
    if choose not in (MPI_T, MCA):
        raise InputError(f"choose={choose!r}: write {MPI_T!r} or {MCA!r}")
    plan = Plan.make(
        collective,
        ranks,
        sizes,
        algorithms,
        segment=segment,
        fanout=fanout,
        radix=radix,
        root=root,
        repetitions=repetitions,
        warmup=warmup,
    )
    check_cores(plan.ranks, cores, oversubscribe)
    told = Report() if report is None else report
    told.notes += plan.remarks()
    store = None
    if out is not None:
        first = plan.algorithms[0]  # any one: all have the same repetitions
        store = Store(out, _options(plan), lambda p, m: plan.times(Point(first, p, m))[0])
    with asleep():
        table = _fill(plan, store, told, progress, choose)
    if report is None:
        for sentence in told.warnings():
            warnings.warn(sentence, stacklevel=2)
    return table


def _options(plan: Plan) -> dict[str, Any]:
    """The options that must be the same for all rows of one file."""
    asked = asdict(plan)
    names = ("collective", "root", "segment", "fanout", "radix", "repetitions", "warmup")
    options = {name: asked[name] for name in names} | {
        "machine": machine(),
        "cores": len(os.sched_getaffinity(0)),
        "open_mpi": openmpi.version(),
    }
    hosts = slurm.wished()
    if hosts is not None:
        options["slots"] = [host.slots for host in hosts.description.hosts]
    return options


def _fill(
    plan: Plan, store: Store | None, report: Report, progress: bool, choose: str
) -> NDArray[Any]:
    """Run the missing points; return the rows of all points of the plan."""
    points = plan.points()
    done = store.done if store else set()
    missing = [point for point in points if point.key not in done]
    fresh = []

    def keep(rows: NDArray[Any]) -> None:
        fresh.append(rows)
        if store:
            store.add(rows)

    with tqdm(
        total=len(points),
        initial=len(points) - len(missing),
        desc=plan.collective,
        unit="point",
        disable=not progress,
    ) as bar:
        for ranks in plan.ranks:
            chosen = [point for point in missing if point.ranks == ranks]
            _Job(plan, chosen, report, keep, bar, choose).run()
    if store is None:
        return np.concatenate([np.empty(0, ROW), *fresh])
    asked = {point.key for point in points}
    places = [i for i, row in enumerate(store.rows) if key_of(row) in asked]
    return store.rows[places]


def rows_of(plan: Plan, point: Point, outputs: Sequence[Output]) -> NDArray[Any]:
    """The rows of a point, from the Output of each timed rank."""
    spans = np.stack([output.spans_ns for output in outputs])  # [rank, repetition, begin and end]
    lasted = (spans[:, :, 1] - spans[:, :, 0]) / 1e9
    rows = np.empty(spans.shape[1], ROW)
    rows["collective"], rows["library"] = plan.collective, point.algorithm.library
    rows["algorithm"], rows["number"] = point.algorithm.name, point.algorithm.number
    rows["ranks"], rows["bytes"] = point.ranks, point.bytes
    for name in ("segment", "fanout", "radix"):
        rows[name] = getattr(plan, name)
    rows["cores"], rows["machine"] = cores_of(slurm.wished()), processor()
    rows["repetition"] = np.arange(len(rows))
    rows["span_s"] = (spans[:, :, 1].max(axis=0) - spans[:, :, 0].min(axis=0)) / 1e9
    rows["mean_s"], rows["max_s"], rows["min_s"] = (
        lasted.mean(axis=0),
        lasted.max(axis=0),
        lasted.min(axis=0),
    )
    return rows


class _Job:
    """All missing points with the same number of ranks."""

    def __init__(
        self,
        plan: Plan,
        points: Sequence[Point],
        report: Report,
        keep: Callable[[NDArray[Any]], None],
        bar: tqdm,
        choose: str,
    ) -> None:
        self.plan, self.points, self.report, self.keep, self.bar = plan, points, report, keep, bar
        self.choose = choose
        self.ranks = points[0].ranks if points else 0
        self.library = build.need(build.KERNELS)
        # (Size being checked, (sent, received) of each rank).
        self.memory: tuple[int | None, list[tuple[Memory, Memory]]] = (None, [])

    def run(self) -> None:
        """Check all points, then time the correct ones."""
        points = [point for point in self.points if self._exists(point)]
        right = self._check(points) if points else []
        if right:
            self._time(right)

    def _exists(self, point: Point) -> bool:
        if self.ranks > 1 or not point.algorithm.is_chosen:
            return True
        self._leave_out(point, "a single rank sends nothing, so Open MPI has nothing to choose")
        return False

    def _leave_out(self, point: Point, reason: str) -> None:
        self.report.leave_out(point, reason)
        self.bar.update()

    def _run(
        self,
        cases: Sequence[Case],
        groups: Sequence[tuple],
        on_result: Callable[[int, Result, Counted | None], None],
        limit: float,
    ) -> None:
        """Call `on_result(index, result, sent)` for each case as soon as it is done; `sent` is what
        a monitored one sent (Counted), or None."""
        for numbers, settings in self._mpiruns(cases):
            # Only one of them selects the algorithm: the case, or the settings of the mpirun.
            chosen = [
                cases[i] if self.choose == MPI_T else replace(cases[i], openmpi=-1) for i in numbers
            ]
            places = {id(case): place for place, case in enumerate(chosen)}
            with tempfile.TemporaryDirectory(prefix="mpilab-sweep-") as kept:

                def came(
                    result: Result,
                    numbers: list[int] = numbers,
                    places: dict[int, int] = places,
                    kept: str = kept,
                ) -> None:
                    place, sent = places[id(result.case)], None
                    if result.outcome == DONE and result.case.monitor:
                        sent = openmpi_traffic.read(kept, place, self.ranks)
                    on_result(numbers[place], result, sent)
                    result.outputs = []  # the buffers of all points together would be large

                run_cases(
                    self.library,
                    chosen[0].function,
                    chosen,
                    groups=[groups[i] for i in numbers],
                    limit=limit,
                    on_result=came,
                    keep=kept,
                    guarded=[kept],
                    settings=openmpi.CHOOSING | settings,
                    bound=bound_options,
                )

    def _mpiruns(self, cases: Sequence[Case]) -> list[tuple[list[int], dict[str, str]]]:
        """[(indices of the cases of one mpirun, its settings)]."""
        if self.choose == MPI_T:
            return [(list(range(len(cases))), {})]
        jobs: dict[tuple[tuple[str, str], ...], list[int]] = {}
        for place, case in enumerate(cases):
            settings = {}
            if case.openmpi >= 0:
                settings = openmpi.chosen(
                    case.collective,
                    case.openmpi,
                    segment=case.segment,
                    fanout=case.fanout,
                    radix=case.radix,
                )
            jobs.setdefault(tuple(settings.items()), []).append(place)
        return [(places, dict(settings)) for settings, places in jobs.items()]

    def _check(self, points: Sequence[Point]) -> list[Point]:
        """Run each point once, check its result, and return the correct points."""
        troubles = {}
        # Only the messages show whether it was a barrier; those inside MPI are not recorded.
        is_barrier = self.plan.collective == "barrier"
        cases = [
            self.plan.case(point, dump=True, record=is_barrier and point.algorithm.library == OURS)
            for point in points
        ]
        groups = [(point.algorithm,) for point in points]

        def look(index: int, result: Result, _: Counted | None) -> None:
            troubles[index] = self._trouble(points[index], result)

        self._run(cases, groups, look, CHECK_LIMIT_S)
        self.memory = (None, [])
        for index, point in enumerate(points):
            # Skipped points have no entry.
            trouble = troubles.get(index, "it had already failed, and was not tried again")
            if trouble:
                self._leave_out(point, trouble)
        return [point for index, point in enumerate(points) if troubles.get(index) == ""]

    def _trouble(self, point: Point, result: Result) -> str:
        if result.outcome != DONE:
            return why_not_ended(result)
        if failed := why_failed(result):
            return failed
        if result.recording is not None and not all_meet(result.recording, result.outputs):
            return "it is not a barrier: a rank leaves before all have entered"
        if self.memory[0] != point.bytes:  # the same for all algorithms
            after = result.case.expected()
            sent = [result.case.regions(rank)[0] for rank in range(self.ranks)]
            self.memory = (point.bytes, list(zip(sent, after, strict=True)))
        if all(
            np.array_equal(output.sent, sent) and np.array_equal(output.received, received)
            for output, (sent, received) in zip(result.outputs, self.memory[1], strict=True)
        ):
            return ""
        differences = compare(result.case, result.outputs)
        return f"its result is wrong: {differences[0].describe()}"

    def _time(self, points: Sequence[Point]) -> None:
        """Time the points, and keep the rows that pass the guard."""
        chosen = any(point.algorithm.is_chosen for point in points)
        witnesses = guard.witnesses(self.plan.collective, self.ranks) if chosen else None
        cases = _witness_cases(witnesses) if witnesses else []
        ahead = len(cases)
        for point in points:
            repetitions, warmup = self.plan.times(point)
            cases.append(
                self.plan.case(
                    point,
                    repetitions=repetitions,
                    warmup=warmup,
                    monitor=point.algorithm.library == OPENMPI,
                )
            )
        groups: list[tuple] = [("witness",)] * ahead + [(point.algorithm,) for point in points]
        testimony: list[Counted | None] = [None] * ahead
        came = set()

        def take(index: int, result: Result, sent: Counted | None) -> None:
            if index < ahead:
                testimony[index] = sent
                return
            came.add(index)
            point = points[index - ahead]
            distrust = witnesses.refuse(testimony) if witnesses else ""
            reason = self._refuse(point, result, sent, distrust)
            if reason:
                self._leave_out(point, reason)
                return
            self.keep(rows_of(self.plan, point, result.outputs))
            self.bar.update()

        self._prepare_guard(points)
        self._run(cases, groups, take, TIMED_LIMIT_S)
        for index, point in enumerate(points, start=ahead):
            if index not in came:
                self._leave_out(point, "it had already failed, and was not tried again")

    def _prepare_guard(self, points: Iterable[Point]) -> None:
        """Compute and cache what must be sent, before anything is timed."""
        for point in points:
            if point.algorithm.library == OPENMPI:
                matching(self.plan.collective, None, self.plan.shape(point))

    def _refuse(self, point: Point, result: Result, sent: Counted | None, distrust: str) -> str:
        if result.outcome != DONE:
            return why_not_ended(result)
        if failed := why_failed(result):
            return failed
        if sent is None:
            return ""
        shape = self.plan.shape(point)
        if not point.algorithm.is_chosen and self.ranks == 1:
            return ""
        if not point.algorithm.is_chosen:
            self.report.note_default(point, guard.likeness(self.plan.collective, sent, shape))
            return ""
        return distrust or guard.refuse(self.plan.collective, point.algorithm, sent, shape)


def _witness_cases(witnesses: guard.Witnesses) -> list[Case]:
    shape = witnesses.shape
    plan = Plan(witnesses.collective, (shape.ranks,), (), (), segment=shape.segment)
    return [
        plan.case(Point(algorithm, shape.ranks, shape.count * shape.element_bytes), monitor=True)
        for algorithm in witnesses.algorithms
    ]


def all_meet(recording: Recording, outputs: Sequence[Output]) -> bool:
    """Did each rank of a recorded barrier leave after all had entered?

    The messages say so. Without any, the ranks share memory, so they are on one node and have the
    same clock.
    """
    if len(recording.messages):
        return bool(recording.heard().all())
    spans = np.stack([output.spans_ns[-1] for output in outputs])  # [rank, begin and end]
    return bool(spans[:, 1].min() >= spans[:, 0].max())


def why_failed(result: Result) -> str:
    """The error that a rank's call returned, in words; "" if there is none."""
    codes = {output.returned for output in result.outputs} - {0}
    return f"it returned the MPI error {min(codes)}" if codes else ""


def why_not_ended(result: Result) -> str:
    """Why there is no result, in words."""
    if result.hang is not None:
        return f"{result.outcome}: {result.hang.describe()}"
    if result.outcome == TRAP and result.crashed is not None:
        return f"trap: {result.crashed[1]}, rank {result.crashed[0]}"
    if result.crashed is not None:
        rank, how = result.crashed
        return f"crash: {f'rank {rank}' if rank is not None else 'a rank'} ended with {how}"
    return f"{result.outcome}: {result.detail or 'no reason given'}"
