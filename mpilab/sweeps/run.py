"""Run a sweep: check every point once, then time all of them, and keep what passes the guard."""

import os
import tempfile
import warnings
from dataclasses import asdict, replace

import numpy as np

from mpilab import allocation, bench, build, openmpi
from mpilab.errors import InputError
from mpilab.harness import compare
from mpilab.launch import run_cases
from mpilab.result import DONE
from mpilab.sweeps import counted, guard
from mpilab.sweeps.algorithms import OPENMPI, OURS
from mpilab.sweeps.openmpi_traffic import matching
from mpilab.sweeps.plan import Plan, Point
from mpilab.sweeps.report import Report
from mpilab.sweeps.table import ROW, Store, key_of, rows_of

# Seconds that a point may take, once and with all its repetitions, before it counts as hanging.
CHECK_LIMIT_S, TIMED_LIMIT_S = 30.0, 300.0
MPI_T, MCA = "mpi_t", "mca"


def sweep(collective, *, ranks=(2, 4), sizes="1:64K", algorithms=("ours", "openmpi"), segment=0,
          fanout=0, radix=0, root=0, repetitions=None, warmup=None, out=None, progress=True,
          report=None, choose=None):  # fmt: skip
    """Time algorithms of a collective with mpirun on this machine, or on the nodes of a Slurm job
    where MPILAB_HOSTS says so; table of mpilab.sweeps.ROW rows.

    ranks       numbers of ranks, e.g. [2, 4, 8].
    sizes       bytes: of a block (allgather, gather, scatter) or of the whole message; a list, or
                "1:1M" for powers of two. A barrier has none.
    algorithms  "ours", "openmpi" (all of them), or single ones: "ours:pipeline", "openmpi:3",
                "openmpi:binomial", "openmpi:default" (what Open MPI would choose by itself).
    segment     bytes, fanout, radix: what algorithms are tuned by; 0 is each one's own default.
                Open MPI's don't cut a message by default.
    repetitions, warmup   calls that are timed, and before them. By default a quarter of what OMB
                does (1000 and 100; above 8 KiB 100 and 10), again divided by the ranks that share
                a core, but at least 20 and 3.
    out         a CSV file, written point by point. If it is there already, with the same options,
                only what is missing is done. More ranks, sizes and algorithms may be added.
    choose      how Open MPI's algorithms are chosen: "mpi_t", in a running program, as Open MPI can
                since 5.0.6; or "mca", by the settings of an mpirun for each. Default: "mpi_t"
                where it can.
    report      a Report that is told what was left out and what openmpi:default ran like;
                without one, a warning is given for what was left out.

    All points with the same number of ranks run in one mpirun (not with "mca"), the algorithms in
    turn, so that their ratios mean something. Before anything is timed each point is run once and
    compared: what is wrong, hangs or crashes is left out. Rows of Open MPI's algorithms carry the
    name of what they were seen to run (mpilab.sweeps.guard), or are left out.

    Raises InputError for options that make no sense, and for a file of another sweep.
    """
    if choose is None:
        choose = MPI_T if openmpi.chooses_at_run_time() else MCA
    if choose not in (MPI_T, MCA):
        raise InputError(f"choose={choose!r}: write {MPI_T!r} or {MCA!r}")
    plan = Plan.make(collective, ranks, sizes, algorithms, segment=segment, fanout=fanout,
                     radix=radix, root=root, repetitions=repetitions, warmup=warmup)  # fmt: skip
    told = Report() if report is None else report
    told.notes += plan.remarks()
    store = None
    if out is not None:
        store = Store(out, _options(plan), lambda p, m: plan.times(Point(None, p, m))[0])
    table = _fill(plan, store, told, progress, choose)
    if report is None:
        for sentence in told.warnings():
            warnings.warn(sentence, stacklevel=2)
    return table


def _options(plan):
    """What must not differ between the rows of one file."""
    asked = asdict(plan)
    names = ("collective", "root", "segment", "fanout", "radix", "repetitions", "warmup")
    options = {name: asked[name] for name in names} | {
        "machine": bench.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "open_mpi": openmpi.version(),
    }
    hosts = allocation.wished()
    if hosts is not None:
        options["slots"] = [host.slots for host in hosts.description.hosts]
    return options


def _fill(plan, store, report, progress, choose):
    """Do what is missing; the rows of all points of the plan."""
    from tqdm.auto import tqdm

    points = plan.points()
    done = store.done if store else set()
    missing = [point for point in points if point.key not in done]
    fresh = []

    def keep(rows):
        fresh.append(rows)
        if store:
            store.add(rows)

    with tqdm(total=len(points), initial=len(points) - len(missing), desc=plan.collective,
              unit="point", disable=not progress) as bar:  # fmt: skip
        for ranks in plan.ranks:
            chosen = [point for point in missing if point.ranks == ranks]
            _Job(plan, chosen, report, keep, bar, choose).run()
    if store is None:
        return np.concatenate([np.empty(0, ROW), *fresh])
    asked = {point.key for point in points}
    chosen = [i for i, row in enumerate(store.rows) if key_of(row) in asked]
    return store.rows[chosen]


class _Job:
    """All missing points with the same number of ranks."""

    def __init__(self, plan, points, report, keep, bar, choose):
        self.plan, self.points, self.report, self.keep, self.bar = plan, points, report, keep, bar
        self.choose = choose
        self.ranks = points[0].ranks if points else 0
        self.library = build.need(build.KERNELS)
        self.memory = (None, [])  # size that is being checked, (sent, received) of each rank

    def run(self):
        """Check all points, then time those that are right."""
        points = [point for point in self.points if self._exists(point)]
        right = self._check(points) if points else []
        if right:
            self._time(right)

    def _exists(self, point):
        if self.ranks > 1 or not point.algorithm.is_chosen:
            return True
        self._leave_out(point, "alone, a rank sends nothing, and Open MPI has no choice")
        return False

    def _leave_out(self, point, reason):
        self.report.leave_out(point, reason)
        self.bar.update()

    def _run(self, cases, groups, on_result, limit):
        """`on_result(index, result, sent)` for each case, as soon as it is there; `sent` is what a
        monitored one sent (Counted), or None."""
        for numbers, settings in self._mpiruns(cases):
            # Which algorithm it is, is said once: by the case, or by the settings of the mpirun.
            chosen = [
                cases[i] if self.choose == MPI_T else replace(cases[i], openmpi=-1) for i in numbers
            ]
            places = {id(case): place for place, case in enumerate(chosen)}
            with tempfile.TemporaryDirectory(prefix="mpilab-sweep-") as kept:

                def came(result, numbers=numbers, places=places, kept=kept):
                    place, sent = places[id(result.case)], None
                    if result.outcome == DONE and result.case.monitor:
                        sent = counted.read(kept, place, self.ranks)
                    on_result(numbers[place], result, sent)
                    result.outputs = []  # the buffers of all points together would be large

                run_cases(
                    self.library, chosen[0].function, chosen, groups=[groups[i] for i in numbers],
                    limit=limit, on_result=came, keep=kept, guarded=[kept],
                    settings=openmpi.CHOOSING | settings,
                )  # fmt: skip

    def _mpiruns(self, cases):
        """[(places of the cases of one mpirun, its settings)]."""
        if self.choose == MPI_T:
            return [(list(range(len(cases))), {})]
        jobs = {}
        for place, case in enumerate(cases):
            settings = {}
            if case.openmpi >= 0:
                settings = openmpi.chosen(case.collective, case.openmpi, segment=case.segment,
                                          fanout=case.fanout, radix=case.radix)  # fmt: skip
            jobs.setdefault(tuple(settings.items()), []).append(place)
        return [(places, dict(settings)) for settings, places in jobs.items()]

    def _check(self, points):
        """Run each point once, compare, and give back those that are right."""
        troubles = {}
        # Whether it was a barrier, only its messages tell; those inside MPI are MPI's affair.
        is_barrier = self.plan.collective == "barrier"
        cases = [
            self.plan.case(point, dump=True, record=is_barrier and point.algorithm.library == OURS)
            for point in points
        ]
        groups = [(point.algorithm,) for point in points]

        def look(index, result, _):
            troubles[index] = self._trouble(points[index], result)

        self._run(cases, groups, look, CHECK_LIMIT_S)
        self.memory = (None, [])
        for index, point in enumerate(points):
            # What was skipped never came to be looked at.
            trouble = troubles.get(index, "it had failed before, and was not tried again")
            if trouble:
                self._leave_out(point, trouble)
        return [point for index, point in enumerate(points) if troubles.get(index) == ""]

    def _trouble(self, point, result):
        if result.outcome != DONE:
            return _ended(result)
        if failed := _failed(result):
            return failed
        if result.recording is not None and not result.recording.heard().all():
            return "it is no barrier: a rank leaves before all have come"
        if self.memory[0] != point.bytes:  # all algorithms leave the same behind
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

    def _time(self, points):
        """Time the points, and keep the rows that pass the guard."""
        chosen = any(point.algorithm.is_chosen for point in points)
        witnesses = guard.witnesses(self.plan.collective, self.ranks) if chosen else None
        cases = _witness_cases(witnesses) if witnesses else []
        ahead = len(cases)
        for point in points:
            repetitions, warmup = self.plan.times(point)
            cases.append(self.plan.case(point, repetitions=repetitions, warmup=warmup,
                                        monitor=point.algorithm.library == OPENMPI))  # fmt: skip
        groups = [("witness",)] * ahead + [(point.algorithm,) for point in points]
        testimony, came = [None] * ahead, set()

        def take(index, result, sent):
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
                self._leave_out(point, "it had failed before, and was not tried again")

    def _prepare_guard(self, points):
        """Work out (and so remember) what must be sent while nothing is being timed."""
        for point in points:
            if point.algorithm.library == OPENMPI:
                matching(self.plan.collective, None, self.plan.shape(point))

    def _refuse(self, point, result, sent, distrust):
        if result.outcome != DONE:
            return _ended(result)
        if failed := _failed(result):
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


def _witness_cases(witnesses):
    shape = witnesses.shape
    plan = Plan(witnesses.collective, (shape.ranks,), (), (), segment=shape.segment)
    return [
        plan.case(Point(algorithm, shape.ranks, shape.count * shape.element_bytes), monitor=True)
        for algorithm in witnesses.algorithms
    ]


def _failed(result):
    """The error that a rank's call returned, in words; "" if there is none."""
    codes = {output.returned for output in result.outputs} - {0}
    return f"it returned the MPI error {min(codes)}" if codes else ""


def _ended(result):
    """Why there is no result, in words."""
    if result.hang is not None:
        return f"{result.outcome}: {result.hang.describe()}"
    if result.crashed is not None:
        rank, how = result.crashed
        return f"crash: {f'rank {rank}' if rank is not None else 'a rank'} ended with {how}"
    return f"{result.outcome}: {result.detail or 'no reason given'}"
