"""The referee: judge an answer, outside the process that runs it.

A C answer is compiled and run on many cases: simulated in the jail, and natively on Open MPI, all
in the sandbox; the raw buffers and recordings are compared here with numpy's results and the
rubric (mpilab.judging.agreement). On a machine that cannot build for the jail, the simulated kernel
is native, too, and the symbols that it uses are checked. A Python answer is called in the sandbox;
its return values are compared here.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from mpilab.cases.case import Case
from mpilab.cases.output import Output
from mpilab.diagnosis.model import Diagnosis, Place
from mpilab.errors import InputError, Ungradable
from mpilab.grading.run import PACE, Budget, Limits, Share
from mpilab.grading.sandbox import Outcome, Sandbox
from mpilab.grading.workers import run_inside, run_job
from mpilab.judging import agreement, judge
from mpilab.judging.rubric import KERNEL, PYTHON, Exercise
from mpilab.judging.verdict import BLANK, FAIL, MANUAL, ExerciseVerdict, ItemVerdict
from mpilab.kernels import build, jail
from mpilab.kernels.simgrid import DIFFERENCES, FOLDER, LIBRARY, available, kernels
from mpilab.runners.hang import Hang, RankState
from mpilab.runners.result import (
    CRASH,
    DEADLOCK,
    DONE,
    ERROR,
    SKIPPED,
    SPENT,
    TIME_OUT,
    TRAP,
    Result,
)
from mpilab.runners.simgrid import MOST_RECORDED, as_open_mpi
from mpilab.trace.recording import HEADER, RankRecording, Recording
from mpilab.util import kit
from mpilab.util.kit import PACKAGES

ROOT = kit.ROOT
# A case takes milliseconds. It is stopped when its ranks have computed for CASE_WORK_S without an
# MPI call, in processor time, so that no mark depends on the machine's load. This is checked after
# STANDSTILL_S without progress (a deadlock is proved by the recordings, independent of time).
CASE_WORK_S = 1.0
CASE_MOST_WORK_S = 5.0  # of all its ranks together, also while they make progress
STANDSTILL_S = 0.5
CASE_LIMIT_S = 60.0
# What every command in the sandbox may read: no rubric, reference answer or other submission.
READABLE = (
    kit.PACKAGES / "mpilab",
    build.INCLUDE,
    ROOT / "src_c" / "runtime" / "recorder" / "record.h",
)
# A compiler that never ends reaches a processor time limit before the wall time limit in
# mpilab.kernels.build, which may also be reached because the machine is busy.
COMPILE_LIMITS = Limits(wall_seconds=90, memory=1 << 30, cpu_seconds=15, total_cpu_seconds=25)
RUN_LIMITS = Limits(
    wall_seconds=240,
    output_bytes=128 << 20,
    disk_bytes=512 << 20,
    shm_bytes=512 << 20,
    memory=4 << 30,
)
# What a run takes with a right answer, in seconds of processor time: our answers take 0.5 to 1.05
# of it (tools/phases.py --rubric measures it). The ranks are those of all cases together.
COMPILE_WORK_S, CALL_WORK_S = 2.0, 0.2
SIMULATE_WORK_S, SIMULATED_RANK_WORK_S = 1.0, 0.0025
RUN_WORK_S, REAL_RANK_WORK_S = 1.5, 0.005
# What a submission may take beyond that, and what of it is for its notebook and for each answer in
# Python. Answers in C share the rest (kernel_reserve): right ones that poll take most.
MOST_BEYOND_S, NOTEBOOK_RESERVE_S, PYTHON_RESERVE_S = 60.0, 12.0, 2.0
LEAST_KERNEL_RESERVE_S, KERNEL_RESERVE_S = 7.0, 30.0
# Processor time is looked at every second, and ranks on two cores take that twice.
LATE_S, PYTHON_LATE_S = 2.0, 1.0
# What a third witness may take in any event: to be compiled, and to try a case that never ends.
THIRD_COMPILE_WORK_S, THIRD_WORK_S = 1.0, 1.7
# A run ends by itself once its cases have used up what there is; the sandbox ends it a bit later.
OVERRUN_S = 3.0
PROCESSES_A_RANK = 6  # mpirun and its ranks, with their threads
COMPILED = "compiled.json"
# What comes out of a sandbox as JSON is parsed up to here; honest files have a hundredth of this.
MOST_JSON_BYTES, MOST_JSON_VALUES = 8 << 20, 250_000
# The forms in which an answer is built, and the files of each; the first one is the library.
REAL, SIMULATED, JAILED, JAILED_SIMULATED = "real", "simulated", "jailed", "jailed-simulated"
FILES = {
    REAL: ("kernel.so",),
    SIMULATED: ("simulated.so", "simulated.run"),
    JAILED: ("jailed.so",),
    JAILED_SIMULATED: ("jailed-simulated.so", "jailed-simulated.run"),
}
_OF_SIMULATION, _OF_JAIL = {SIMULATED, JAILED_SIMULATED}, {JAILED, JAILED_SIMULATED}

# Evidence for the instructor only: feedback pages never show names that begin with '_'.
DETAILS, LOG = "_details", "_log"

# The only file of mpilab that a Python answer may read: the rest contains the right values.
CALLER = PACKAGES / "mpilab" / "judging" / "calls.py"

# Processor time decides, so no mark depends on the machine's load. Wall time stops answers that
# sleep.
CALL_LIMITS = Limits(wall_seconds=60, memory=1 << 30, cpu_seconds=15, total_cpu_seconds=25)


# Cases, and the groups of their indices that one job runs together.
Plan = tuple[Sequence[Case], Sequence[tuple[object, ...]]]


# Compile, simulate and run kernels in the sandbox; each case gives a Result.


@dataclass(frozen=True)
class Compiled:
    """The result of compiling an answer.

    said    the contents of compiled.json (see mpilab.grading.inside).
    files   {name: bytes} of what was built.
    """

    said: dict[str, Any]
    files: dict[str, bytes] = field(repr=False)


@dataclass(frozen=True)
class Tried:
    """The Results of cases, and their raw files: {"N.RANK.rec": bytes, ...} for case number N."""

    results: tuple[Result, ...]
    files: dict[str, bytes] = field(repr=False)

    def keep(self, case: Case, folder: Path) -> None:
        """Write the files of `case` into `folder`."""
        number = [result.case for result in self.results].index(case)
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self.files.items():
            first, _, rest = Path(name).name.partition(".")
            if first == str(number):
                (folder / rest).write_bytes(content)


def kernel_reserve(exercises: Sequence[Exercise]) -> float:
    """The reserve of each answer in C to one of these exercises, in seconds of processor time.

    With it, all answers together take at most MOST_BEYOND_S beyond right ones. Where there are so
    many that less than LEAST_KERNEL_RESERVE_S is left for each, it is this, and they may take more.
    """
    kinds = [each.kind for each in exercises]
    beside = NOTEBOOK_RESERVE_S + LATE_S + kinds.count(PYTHON) * (PYTHON_RESERVE_S + PYTHON_LATE_S)
    share = (MOST_BEYOND_S - beside) / max(kinds.count(KERNEL), 1)
    share -= LATE_S + THIRD_COMPILE_WORK_S + THIRD_WORK_S
    return min(max(share, LEAST_KERNEL_RESERVE_S), KERNEL_RESERVE_S)


def isolates() -> bool:
    """True if answers are judged in the jail on this machine."""
    return not jail.unavailable()


def compile_kernel(
    sandbox: Sandbox,
    exercise: Exercise,
    source: str,
    forms: Sequence[str],
    *,
    check_symbols: bool = True,
    budget: Budget | None = None,
    usual: float = COMPILE_WORK_S,
) -> Compiled:
    """Compile the C text of an answer in `forms`, of which REAL is always one; returns Compiled.

    check_symbols   refuse an answer for any symbol that it must not use, where no form is jailed.
    budget, usual   the answer's, and what this adds to it; default: a new one.
    """
    forms = list(dict.fromkeys((REAL, *forms)))
    job = {
        "function": exercise.function,
        "collective": exercise.collective,
        "allowed": exercise.allowed,
        "source": source,
        "forms": forms,
        "check_symbols": check_symbols,
    }
    readable = [*READABLE, build.need(build.RECORDER)]
    readable += _of_simulation(not _OF_SIMULATION.isdisjoint(forms))
    if not _OF_JAIL.isdisjoint(forms):
        jail.prepare(simulated=JAILED_SIMULATED in forms)
        readable += [jail.SOURCES, jail.FOLDER]
        readable += [FOLDER / "jail"] * (JAILED_SIMULATED in forms)
    with (budget or Budget(KERNEL_RESERVE_S)).run(usual) as share:
        outcome = run_inside(
            sandbox,
            "compile",
            job,
            limits=_within(COMPILE_LIMITS, share),
            collect=["*"],
            readable=readable,
            ranks=1,
        )
        share.used = outcome.cpu_seconds
    check_machine(outcome)
    said = read_json(outcome, COMPILED, "compiling")
    if said.get("doubt"):
        where = "" if _OF_JAIL.isdisjoint(forms) else " in isolation"
        raise Ungradable(f"it could not be built{where}", said["doubt"])
    files = {}
    if not said["error"] and not said["forbidden"]:
        for name in [name for form in forms for name in FILES[form]]:
            if name not in outcome.files:
                raise Ungradable("the compiled answer did not come out of the sandbox")
            files[name] = outcome.files[name]
    return Compiled(said, files)


def run(
    sandbox: Sandbox,
    exercise: Exercise,
    compiled: Compiled,
    plan: Plan,
    form: str = REAL,
    budget: Budget | None = None,
    usual: float | None = None,
) -> Tried:
    """Run the cases of a plan, (cases, groups), with one form of an answer; returns Tried.

    budget   the answer's; default: a new one.
    usual    what the run adds to it; default: what it takes with a right answer.
    """
    budget = budget or Budget(KERNEL_RESERVE_S)
    if usual is None:
        usual = usual_work(plan[0], form)
    if form in _OF_SIMULATION:
        readable = _of_simulation(True)
        return _try(sandbox, "simulate", exercise, compiled, form, plan, readable, budget, usual)
    readable = [
        build.need(build.HARNESS),
        build.need(build.HARNESS_PROGRAM),
        build.need(build.SEEDS),
    ]
    return _try(sandbox, "run", exercise, compiled, form, plan, readable, budget, usual)


def usual_work(cases: Sequence[Case], form: str) -> float:
    """About the seconds of processor time in which a right answer is run with these cases."""
    ranks = sum(case.ranks + case.bystanders for case in cases)
    if form in _OF_SIMULATION:
        return SIMULATE_WORK_S + SIMULATED_RANK_WORK_S * ranks
    return RUN_WORK_S + REAL_RANK_WORK_S * ranks


def _within(limits: Limits, share: Share) -> Limits:
    """The limits of a run that also ends when its share of the answer's Budget does."""
    most = limits.total_cpu_seconds
    return replace(limits, total_cpu_seconds=min(most or share.seconds, share.seconds))


def _of_simulation(wanted: bool) -> list[Path]:
    """What a simulation reads besides READABLE."""
    if not wanted:
        return []
    kernels()  # builds the library, which the sandbox cannot do
    return [LIBRARY, DIFFERENCES, ROOT / "hostfiles"]


def _try(
    sandbox: Sandbox,
    verb: str,
    exercise: Exercise,
    compiled: Compiled,
    form: str,
    plan: Plan,
    readable: Sequence[Path],
    budget: Budget,
    usual: float,
) -> Tried:
    cases, groups = plan
    if not cases:
        return Tried((), {})
    job = {
        "function": exercise.function,
        "library": FILES[form][0],
        "cases": [asdict(case) for case in cases],
        "groups": groups,
        "limit": CASE_LIMIT_S,
        "work": CASE_WORK_S,
        "most_work": CASE_MOST_WORK_S * PACE.factor,
        "standstill": STANDSTILL_S,
    }
    most = max(case.ranks + case.bystanders for case in cases)
    with budget.run(usual) as share:
        outcome = run_inside(
            sandbox,
            verb,
            {**job, "budget": share.seconds},
            limits=replace(
                RUN_LIMITS,
                processes=max(RUN_LIMITS.processes, PROCESSES_A_RANK * most),
                total_cpu_seconds=share.seconds + OVERRUN_S,
            ),
            files={name: compiled.files[name] for name in FILES[form]},
            collect=["results/*"],
            readable=[*READABLE, *readable],
            ranks=most,
        )
        share.used = outcome.cpu_seconds
    check_machine(outcome)
    left = {name.rpartition("/")[2]: content for name, content in outcome.files.items()}
    ended = ""
    if outcome.reason or outcome.returncode != 0:
        ended = "the run ended before all cases were tried"
        ended += f": {outcome.reason}" if outcome.reason else ""
        if not any(name.endswith(".json") for name in left):
            said = outcome.stderr.decode(errors="replace").strip()[-500:]
            raise Ungradable(ended, "" if outcome.reason else said or "no message")
    results = tuple(_whole(left, number, case, ended) for number, case in enumerate(cases))
    if form in _OF_SIMULATION:
        results = tuple(replace(one, outputs=as_open_mpi(one.outputs)) for one in results)
    return Tried(results, outcome.files)


def _whole(left: dict[str, bytes], number: int, case: Case, ended: str) -> Result:
    """The Result of a case; an ERROR if it is incomplete, or missing because the run `ended`.

    Items with other cases are judged by those.
    """
    if ended and f"{number}.json" not in left:
        return Result(case, ERROR, detail=ended)
    try:
        return _result(left, number, case)
    except Ungradable as error:
        return Result(case, ERROR, detail=error.public)


def check_machine(outcome: Outcome) -> None:
    """Raise Ungradable if the machine, not the answer, reached a limit."""
    if outcome.reason == "host memory":
        raise Ungradable("the grading machine ran out of memory; grade again when it has more")


def read_diagnosis(said: Any) -> Diagnosis:
    """A diagnosis that came out of the sandbox as JSON."""
    try:
        return Diagnosis.from_json(said)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Ungradable("a diagnosis came out of the sandbox incomplete", error) from None


def parse(data: bytes) -> Any:
    """JSON that came out of a sandbox; ValueError if it is none, or would need much memory.

    A megabyte of empty lists becomes 30 MB of objects.
    """
    values = data.count(b",") + data.count(b"[") + data.count(b"{")
    if len(data) > MOST_JSON_BYTES or values > MOST_JSON_VALUES:
        raise ValueError(f"{len(data)} bytes of JSON with about {values} values")
    return json.loads(data)


def read_json(outcome: Outcome, name: str, doing: str) -> Any:
    """A JSON file that came out of the sandbox; Ungradable if it is missing or incomplete."""
    try:
        return parse(outcome.files[name])
    except (KeyError, ValueError, RecursionError):
        said = outcome.stderr.decode(errors="replace").strip()[-500:]
        why = f"no answer from the sandbox while {doing}"
        if outcome.reason:
            raise Ungradable(f"{why}: {outcome.reason}") from None
        raise Ungradable(why, said or "no message") from None


def _result(left: dict[str, bytes], number: int, case: Case) -> Result:
    """The Result of a case, from the files that all cases left: {name: bytes}."""
    if f"{number}.json" not in left:
        return Result(case, SKIPPED)
    try:
        said = parse(left[f"{number}.json"])
        outcome = said["outcome"]
        states = tuple(
            RankState(**{**state, "waits_for": tuple(state["waits_for"])})
            for state in said["states"]
        )
        diagnosis = said["diagnosis"] and read_diagnosis(said["diagnosis"])
        detail, crashed = said["detail"], tuple(said["crashed"] or ())
        names = [f"{number}.{rank}.rec" for rank in range(case.ranks if case.record else 0)]
        recordings = [_recording(left, name) for name in names]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Ungradable("a result came out of the sandbox incomplete", error) from None
    result = Result(
        case, outcome, detail=detail, states=states, ranks=recordings, diagnosis=diagnosis
    )
    if outcome == DONE:
        try:
            names = [f"{number}.{rank}.out" for rank in range(case.ranks)]
            outputs = [Output.parse(left[name], name) for name in names]
        except (InputError, KeyError) as error:
            raise Ungradable("a result came out of the sandbox incomplete", error) from None
        ranks = [each for each in recordings if each is not None]
        if len(ranks) < len(recordings):
            raise Ungradable(
                "a result came out of the sandbox incomplete: its recording is missing"
            )
        recording = Recording(ranks) if case.record else None
        return replace(result, outputs=outputs, recording=recording)
    if outcome in (DEADLOCK, TIME_OUT):
        return replace(result, hang=Hang(outcome, states))
    if outcome in (CRASH, TRAP):
        return replace(result, crashed=crashed)
    if outcome == SPENT:
        return replace(result, detail=_SPENT)
    if outcome in (ERROR, SKIPPED):
        return result
    raise Ungradable(f"a result has an unknown outcome: {outcome!r}")


_SPENT = (
    "it was not run to its end, because the answer had used up the processor time that it has; a "
    "right one takes about half of that"
)


def _recording(left: dict[str, bytes], name: str) -> RankRecording | None:
    """A rank's recording; None if the rank never started, or the recording is inconsistent or
    longer than ours are: an answer could make it so long that nobody can judge it."""
    content = left.get(name, b"")
    if len(content) > HEADER.itemsize + MOST_RECORDED:
        return None
    try:
        return RankRecording(name, content)
    except InputError:
        return None


class Referee:
    """Judges the answers of one submission, in `sandbox`.

    keep   a folder for the files of cases on which the first witness (simulated, isolated or both)
           and Open MPI disagree: EXERCISE/ITEM/{first,real}/. Without it, nothing is kept.
    reserve  of each answer in C, in seconds of processor time; see kernel_reserve.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        keep: str | Path | None = None,
        reserve: float = KERNEL_RESERVE_S,
    ) -> None:
        self.sandbox = sandbox
        self.keep = Path(keep) if keep else None
        self.reserve = reserve
        self.budget = Budget(reserve)  # of the answer that is being judged

    def judge(self, exercise: Exercise, source: str, *, blank: bool) -> ExerciseVerdict:
        """The ExerciseVerdict on the text of an answer cell; no answer makes it raise."""
        if blank:
            return judge.fail_all(exercise, BLANK)
        is_kernel = exercise.kind == KERNEL
        self.budget = Budget(self.reserve if is_kernel else PYTHON_RESERVE_S)
        try:
            if is_kernel:
                return with_source(self._kernel(exercise, source), source)
            if exercise.kind == PYTHON:
                return self._function(exercise, source)
        except Ungradable as error:
            return undecided(exercise, error)
        return _graded_manually(exercise)

    def judge_simulated(
        self, exercise: Exercise, source: str, *, quick: bool = False
    ) -> ExerciseVerdict:
        """Like `judge`, for a C answer, but by simulation alone and without evidence: much faster.

        quick   end after a few cases of each item if one of these fails: the items that are lost
                are true, the others may be lost, too.

        Open MPI decides as in `judge` where nothing can be simulated: kernels that read files, and
        machines without SimGrid.
        """
        self.budget = Budget(self.reserve)
        chosen = exercise.variant(build.function_of(source))
        if chosen is None:
            return self.judge(exercise, source, blank=False)
        simulates = agreement.can_be_simulated(chosen) and available()
        form = SIMULATED if simulates else REAL
        try:
            if simulates or quick:
                compiled = self._build(chosen, build.split(source)[1], form)
                refused = _refused(chosen, compiled)
                if refused:
                    return refused
            if quick:
                verdict = self._tried(agreement.with_few_cases(chosen), compiled, form)
                if any(item.outcome == FAIL for item in verdict.items):
                    return verdict
            if simulates:
                return self._tried(chosen, compiled, form)
        except Ungradable as error:
            return undecided(chosen, error)
        return self.judge(exercise, source, blank=False)

    def _tried(self, exercise: Exercise, compiled: Compiled, form: str) -> ExerciseVerdict:
        """The verdict of one witness, which runs a native kernel in `form`, without evidence."""
        plan = (agreement.to_simulate if form == SIMULATED else agreement.to_isolate)(exercise)
        tried = self._run(exercise, compiled, plan, form)
        return agreement.judge_simulated(exercise, agreement.Witness(tried.results))

    # --- C

    def _build(self, exercise: Exercise, source: str, form: str, **more: Any) -> Compiled:
        return compile_kernel(self.sandbox, exercise, source, [form], budget=self.budget, **more)

    def _run(
        self,
        exercise: Exercise,
        compiled: Compiled,
        plan: Plan,
        form: str = REAL,
        usual: float | None = None,
    ) -> Tried:
        return run(self.sandbox, exercise, compiled, plan, form, self.budget, usual)

    def _kernel(self, exercise: Exercise, source: str) -> ExerciseVerdict:
        chosen = exercise.variant(build.function_of(source))
        if chosen is None:
            names = ", ".join(exercise.functions)
            reason = f"The first line of the cell must be %%kernel and one of {names}."
            return judge.fail_all(exercise, reason)
        return self._compiled(chosen, build.split(source)[1])

    def _compiled(self, exercise: Exercise, source: str) -> ExerciseVerdict:
        simulates = agreement.can_be_simulated(exercise)
        form = _first_form(simulates and available())
        compiled = self._build(exercise, source, form)
        refused = _refused(exercise, compiled)
        if refused:
            return refused
        if available() or not simulates:
            verdict = self._witnessed(exercise, source, compiled, form)
        else:
            real = agreement.without_simulation(exercise)
            verdict = self._witnessed(real, source, compiled, form)
            verdict = agreement.unconfirmed(exercise, verdict)
        warning = compiled.said["warning"]
        return with_warning(verdict, warning and read_diagnosis(warning))

    def _witnessed(
        self, exercise: Exercise, source: str, compiled: Compiled, form: str
    ) -> ExerciseVerdict:
        """The verdict of all witnesses; the first one runs the kernel in `form`."""
        first = found = third = None
        if form != REAL:
            is_simulated = form in _OF_SIMULATION
            planned = agreement.to_simulate if is_simulated else agreement.to_isolate
            first = self._run(exercise, compiled, planned(exercise), form)
            found = agreement.Witness(first.results, isolated=form in _OF_JAIL)
            if found.cannot:
                return self._not_simulated(exercise, source, found.cannot)
        ran = self._run(exercise, compiled, agreement.to_run(exercise, found))
        real = agreement.Witness(ran.results)
        if found and found.isolated:
            plan = agreement.disputed(exercise, real, found)
            third = self._third(exercise, source, compiled, plan, form) if plan[0] else None
        verdict, differences = agreement.judge_exercise(exercise, real, found, third)
        if self.keep and first:
            for difference in differences:
                folder = self.keep / exercise.id / difference.item
                first.keep(difference.first.case, folder / "first")
                ran.keep(difference.real.case, folder / "real")
        return verdict

    def _not_simulated(self, exercise: Exercise, source: str, why: str) -> ExerciseVerdict:
        """The verdict on an answer that calls what SimGrid cannot simulate."""
        alone, form = agreement.run_alone(exercise), _first_form(simulates=False)
        compiled = self._build(exercise, source, form, usual=0.0)
        verdict = self._witnessed(alone, source, compiled, form)
        return agreement.unconfirmed(exercise, verdict, why)

    def _third(
        self, exercise: Exercise, source: str, compiled: Compiled, plan: Plan, form: str
    ) -> agreement.Witness:
        """The third witness of the cases in dispute: native, simulated or again on Open MPI.

        An answer that agrees with itself has none: most of what it takes is from the reserve.
        """
        if form == JAILED:
            tried = self._run(exercise, compiled, plan, usual=THIRD_WORK_S)
            return agreement.Witness(tried.results)
        # It cannot make an answer pass, so no symbol needs to be refused.
        usual = THIRD_COMPILE_WORK_S
        compiled = self._build(exercise, source, SIMULATED, check_symbols=False, usual=usual)
        tried = self._run(exercise, compiled, plan, SIMULATED, THIRD_WORK_S)
        return agreement.Witness(tried.results)

    # --- Python

    def _function(self, exercise: Exercise, source: str) -> ExerciseVerdict:
        calls = judge.calls(exercise)
        job = {"function": exercise.function, "source": source, "calls": calls}
        with self.budget.run(CALL_WORK_S) as share:
            outcome = run_job(
                self.sandbox,
                [str(CALLER)],
                job,
                readable=[CALLER],
                limits=_within(CALL_LIMITS, share),
                collect=["called.json"],
            )
            share.used = outcome.cpu_seconds
        check_machine(outcome)
        if outcome.reason:
            return judge.fail_all(
                exercise, f"It did not finish: it exceeded the limit on {outcome.reason}."
            )
        returned = read_json(outcome, "called.json", "calling the answer")
        if not isinstance(returned, list) or len(returned) != len(calls):
            raise Ungradable("the values that the answer returned are incomplete")
        return judge.judge_function(exercise, dict(zip(calls, returned, strict=True)))


def _first_form(simulates: bool) -> str:
    """The form of an answer that the first witness runs."""
    if isolates():
        return JAILED_SIMULATED if simulates else JAILED
    return SIMULATED if simulates else REAL


def _refused(exercise: Exercise, compiled: Compiled) -> ExerciseVerdict | None:
    """The verdict on an answer that does not compile or calls a forbidden function, else None."""
    said = compiled.said
    if said["error"]:
        told = read_diagnosis(said["diagnosis"])
        return judge.fail_all(exercise, told.headline, diagnoses=(told,))
    if said["forbidden"]:
        return judge.fail_all(exercise, "It was not run: " + "; ".join(said["forbidden"]) + ".")
    return None


def undecided(exercise: Exercise, error: Ungradable) -> ExerciseVerdict:
    """The ungradable verdict for an Ungradable; students do not see its details."""
    evidence = {DETAILS: error.details} if error.details else None
    return judge.ungradable(exercise, error.public, evidence)


def _graded_manually(exercise: Exercise) -> ExerciseVerdict:
    items = tuple(
        ItemVerdict(
            item.id,
            item.title,
            item.points,
            MANUAL,
            "This is graded manually.",
            {"criteria": [vars(each) for each in item.criteria]} if item.criteria else {},
        )
        for item in exercise.items
    )
    return ExerciseVerdict(exercise.id, exercise.title, items)


def with_warning(verdict: ExerciseVerdict, warning: Diagnosis | None) -> ExerciseVerdict:
    """The verdict with the compiler's warning, shown once, at the first item that failed.

    A warning costs no points, but it is often the reason why an item fails.
    """
    failed = [number for number, item in enumerate(verdict.items) if item.outcome == FAIL]
    if not warning or not failed:
        return verdict
    items = list(verdict.items)
    first = items[failed[0]]
    diagnoses = (*first.diagnoses, judge.for_student(warning))
    items[failed[0]] = replace(first, diagnoses=diagnoses)
    return replace(verdict, items=tuple(items))


def with_source(verdict: ExerciseVerdict, source: str) -> ExerciseVerdict:
    """The verdict, with diagnoses that quote the answer itself, not what the sandbox reports."""
    lines = source.splitlines()

    def quoted(place: Place) -> Place:
        known = not place.file and 0 < place.line <= len(lines)
        return replace(place, text=lines[place.line - 1]) if known else place

    def quoting(diagnosis: Diagnosis) -> Diagnosis:
        return replace(diagnosis, places=tuple(map(quoted, diagnosis.places)))

    items = (replace(item, diagnoses=tuple(map(quoting, item.diagnoses))) for item in verdict.items)
    return replace(verdict, items=tuple(items))
