"""What a notebook calls: run a kernel, check an answer, sweep over sizes.

import mpilab
cluster = mpilab.Cluster(4).start()
mpilab.run("allgather_ring", ranks=4, count=2)
mpilab.Lab("02-allgather").check("pairwise")
table = mpilab.sweep(["allgather_ring", "allgather_bruck"], sizes=[32, 1024])
"""

import html
import warnings
from dataclasses import dataclass

import numpy as np

from mpilab import exercises, functions, interactive, judge
from mpilab.build import KERNELS, ROOT, need
from mpilab.calls import call
from mpilab.cluster.engines import active_cluster
from mpilab.errors import InputError, MpilabError
from mpilab.harness import GUARD_BYTES, Case, compare
from mpilab.launch import DONE, Result
from mpilab.symbols import forbidden
from mpilab.verdict import PASS

# function name -> Built: the kernels of this notebook's %%kernel cells, newest first in use.
kernels = {}

# A call of a sweep takes milliseconds; this is for kernels that never end.
SWEEP_LIMIT_S = 20.0


def library_of(function):
    """The shared object with this kernel: the notebook's own first, then the kit's."""
    if function in kernels:
        return kernels[function].library
    collective, _, algorithm = function.partition("_")
    if (ROOT / "src_c" / collective / f"{algorithm}.c").is_file():
        return need(KERNELS)
    raise InputError(
        f"kernel {function!r}: neither a %%kernel cell of this notebook nor the kit defines it; "
        "run the cell that does, and mind the spelling"
    )


@dataclass(frozen=True)
class KernelRun:
    """One run of a kernel, as a notebook shows it: what each rank has, and the messages."""

    function: str
    result: Result

    @property
    def blocks(self):
        """What each rank's receive buffer holds: int32 [rank, block, element], for datatype int."""
        self._need_done()
        case = self.result.case
        if case.datatype != "int":
            raise InputError(f"datatype {case.datatype!r}: blocks are shown for 'int' only")
        rows = [
            output.received[GUARD_BYTES:][:-GUARD_BYTES].view(np.int32)
            for output in self.result.outputs
        ]
        return np.stack(rows).reshape(case.ranks, -1, case.count)

    @property
    def messages(self):
        """The messages of the run (mpilab.recording.MESSAGE records)."""
        return self._recording().messages

    @property
    def rounds(self):
        """Number of rounds."""
        return self._recording().rounds

    def matrix(self):
        """(messages, bytes) from each rank to each other."""
        return self._recording().matrix()

    @property
    def right(self):
        """Did every rank end with the right bytes, and nothing else changed?"""
        return self.result.outcome == DONE and not self.trouble

    @property
    def trouble(self):
        """What went wrong, in words; '' if nothing did."""
        result = self.result
        if result.outcome == DONE:
            returned = [
                f"rank {o.rank} returned error code {o.returned}"
                for o in result.outputs
                if o.returned
            ]
            return "; ".join(
                returned or [d.describe() for d in compare(result.case, result.outputs)]
            )
        if result.hang:
            return f"{result.outcome}: {result.hang.describe()}"
        if result.crashed:
            return f"rank {result.crashed[0]} crashed with {result.crashed[1]}"
        return result.detail or result.outcome

    def _recording(self):
        if self.result.recording is None:
            raise MpilabError(f"{self.function}: this run left no recording; run it again")
        return self.result.recording

    def _need_done(self):
        if self.result.outcome != DONE:
            raise MpilabError(f"{self.function} did not come to its end: {self.trouble}")

    def _lines(self):
        case = self.result.case
        yield f"{self.function} with {case.describe()}"
        if self.result.hang:
            yield from self._hang_lines()
        else:
            yield "  result:   " + ("right on every rank" if self.right else self.trouble)
        if self.result.recording is not None and self.result.outcome == DONE:
            spans = [output.spans_ns for output in self.result.outputs]
            last = max(span[-1, 1] for span in spans) - min(span[-1, 0] for span in spans)
            total = int(self.messages["bytes"].sum())
            yield (
                f"  messages: {len(self.messages)} in {self.rounds} rounds, {total} bytes in all"
            )
            yield f"  time:     {last / 1000:.1f} µs from the first rank's start to the last's end"

    def _hang_lines(self):
        hang = self.result.hang
        yield f"  result:   {self.result.outcome}"
        for state in hang.states:
            yield f"    {state.describe()}"
        cycle = hang.cycle()
        if cycle:
            yield f"    a cycle: {' waits for '.join(map(str, (*cycle, cycle[0])))}"

    def __repr__(self):
        return "\n".join(self._lines())


def run(function, *, ranks=None, count=4, datatype="int", in_place=False, reversed=False,
        strict=False, seed=1):  # fmt: skip
    """Run a kernel once on the active cluster, and record it; KernelRun.

    ranks, count   of the call; by default all ranks of the cluster and 4 elements a block.
    datatype       byte, int, contiguous, vector, struct, shifted or mixed.
    strict         make buffered sends synchronous: a program that relies on buffering hangs.
    """
    cluster = active_cluster()
    case = Case(function.partition("_")[0], cluster.n if ranks is None else ranks, count, datatype,
                in_place, reversed, strict, seed)  # fmt: skip
    (result,) = interactive.run_cases(cluster, library_of(function), function, [case])
    return KernelRun(function, result)


@dataclass(frozen=True)
class Checked:
    """The outcome of `check`: one line an item, as text and as HTML."""

    verdict: object

    @property
    def passed(self):
        """Did every item pass?"""
        return all(item.outcome == PASS for item in self.verdict.items)

    def __repr__(self):
        lines = [
            f"{self.verdict.title}: " + ("all public checks pass" if self.passed else "not yet")
        ]
        for item in self.verdict.items:
            lines.append(f"  {'✓' if item.outcome == PASS else '✗'} {item.title}")
            if item.reason:
                lines.append(f"      {item.reason}")
        return "\n".join(lines)

    def _repr_html_(self):
        rows = "".join(
            f"<li>{'✓' if item.outcome == PASS else '✗'} {html.escape(item.title)}"
            + (f"<br><small>{html.escape(item.reason)}</small>" if item.reason else "")
            + "</li>"
            for item in self.verdict.items
        )
        state = "all public checks pass" if self.passed else "not yet"
        return (
            f'<div role="status"><b>{html.escape(self.verdict.title)}: {state}</b>'
            f'<ul style="list-style:none">{rows}</ul></div>'
        )


class Lab:
    """The lab that this notebook is: where its public checks are."""

    def __init__(self, name):
        self.name = name
        self.rubric = exercises.load(ROOT / "labs" / "checks" / f"{name}.toml")

    def check(self, exercise_id, answer=None):
        """Try an answer with the public checks; Checked.

        A kernel is taken from the notebook's %%kernel cells; a Python function is `answer`.
        """
        exercise = self.rubric.exercise(exercise_id)
        if exercise.kind == exercises.KERNEL:
            return Checked(_check_kernel(exercise))
        if exercise.kind == exercises.PYTHON:
            return Checked(_check_function(exercise, answer))
        raise InputError(f"exercise {exercise_id!r} is a text: a person reads it")


def _check_kernel(exercise):
    if exercise.function not in kernels:
        return judge.fail_all(exercise, f"no %%kernel cell has defined {exercise.function} yet")
    built = kernels[exercise.function]
    reasons = forbidden(built.object, exercise.function, exercise.allowed)
    if reasons:
        return judge.fail_all(exercise, "; ".join(reasons))
    cluster = active_cluster()
    cases, groups = judge.plan(exercise, most_ranks=cluster.n)
    results = interactive.run_cases(
        cluster, built.library, exercise.function, cases, groups=groups, limit=10.0, work=2.0
    )
    return judge.judge_exercise(exercise, results, most_ranks=cluster.n)


def _check_function(exercise, answer):
    if not callable(answer):
        raise InputError(f"check({exercise.id!r}, answer): give your function {exercise.function}")
    returned = {arguments: call(answer, arguments) for arguments in functions.calls(exercise)}
    return functions.judge_function(exercise, returned)


def sweep(functions, *, sizes, ranks=None, repetitions=30, warmup=5, progress=True):
    """Time kernels over block sizes on the active cluster; table with mpilab.plots.sweep.ROW rows.

    functions    kernel names, e.g. ["allgather_ring", "allgather_bruck"].
    sizes        bytes a block (m).
    ranks        list of numbers of ranks; by default the cluster's.
    repetitions  timed calls, after `warmup` calls that are not.

    Two times of each call: span_s, from the first rank's entry to the last rank's exit, and
    mean_s, the mean over ranks of each one's own duration, which is what the OSU benchmarks
    report. Each size is first run once, recorded and compared, so that no wrong result is timed;
    a kernel that fails there is left out of that size, and one that hangs, crashes or isn't
    defined, of all that follow. One warning a kernel says so.
    """
    from tqdm.auto import tqdm

    from mpilab.plots.sweep import ROW

    cluster = active_cluster()
    libraries, left_out = _libraries(functions)
    rows, broken = [], set()
    plan = [
        (function, number, size)
        for function in libraries
        for number in (ranks or [cluster.n])
        for size in sizes
    ]
    for function, number, size in tqdm(plan, desc="sweep", disable=not progress, leave=False):
        if function in broken:
            continue
        collective, _, algorithm = function.partition("_")
        shape = {"collective": collective, "ranks": number, "count": size, "datatype": "byte"}
        probe, measured = interactive.run_cases(
            cluster,
            libraries[function],
            function,
            [
                Case(**shape),
                Case(**shape, record=False, dump=False, warmup=warmup, repetitions=repetitions),
            ],
            groups=[(0,), (0,)],
            limit=SWEEP_LIMIT_S,
        )
        trouble = KernelRun(function, probe).trouble
        if trouble or measured.outcome != DONE:
            where = f"{number} rank{'s' * (number != 1)} and {size} bytes a block"
            left_out.setdefault(function, []).append(f"with {where}: {trouble or measured.outcome}")
            if measured.outcome != DONE:
                broken.add(function)
            continue
        spans = np.stack([output.spans_ns for output in measured.outputs])
        span = (spans[:, :, 1].max(axis=0) - spans[:, :, 0].min(axis=0)) / 1e9
        mean = (spans[:, :, 1] - spans[:, :, 0]).mean(axis=0) / 1e9
        rows += [(algorithm, number, size, k, span[k], mean[k]) for k in range(repetitions)]
    _warn_of(left_out, broken)
    return np.array(rows, ROW)


def _libraries(functions):
    """({function: library}, {function: [why there is none]}); InputError where none has one."""
    libraries, missing = {}, {}
    for function in functions:
        try:
            libraries[function] = library_of(function)
        except InputError as error:
            missing[function] = [str(error)]
    if not libraries:
        raise InputError(
            "; ".join(reason for (reason,) in missing.values())
            or "sweep([]): name at least one kernel"
        )
    return libraries, missing


def _warn_of(left_out, broken):
    for function, reasons in left_out.items():
        more = (
            "; it was not tried any further"
            if function in broken
            else (f"; and {len(reasons) - 1} times more" if len(reasons) > 1 else "")
        )
        warnings.warn(f"{function} is left out of the sweep {reasons[0]}{more}", stacklevel=3)
