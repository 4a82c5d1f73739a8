"""The referee: what an answer is worth, decided outside of the process that the answer ran in.

A C answer is compiled, its symbols are looked at, and it is run over many cases, all in the
sandbox; the raw buffers and recordings that come out are compared here, with what numpy and the
rubric say. A Python answer is called in the sandbox; what it returned is compared here.
"""

import json
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

from mpilab import build, functions, judge, kernelcell
from mpilab.diagnosis.model import Diagnosis
from mpilab.errors import InputError, Ungradable
from mpilab.grading.errand import send, send_inside
from mpilab.grading.sandbox import Limits
from mpilab.hang import Hang, RankState
from mpilab.harness import Output
from mpilab.recording import Recording
from mpilab.result import (
    CRASH,
    DEADLOCK,
    DONE,
    ERROR,
    SKIPPED,
    TIME_OUT,
    Result,
    read_ranks,
)
from mpilab.rubric import KERNEL, PYTHON
from mpilab.verdict import FAIL, MANUAL, ExerciseVerdict, ItemVerdict

ROOT = build.ROOT
# A case takes milliseconds. It is given up when its ranks have computed that long without an MPI
# call, in processor time, so that a busy machine costs nobody a mark.
CASE_WORK_S = 3.0
CASE_LIMIT_S = 60.0
# Everything that runs inside may read; no rubric, no reference answer, no other submission.
READABLE = (ROOT / "mpilab", build.INCLUDE, ROOT / "src_c" / "recorder" / "record.h")
# All of mpilab that a Python answer's process may read: the rest holds the right values.
CALLER = ROOT / "mpilab" / "calls.py"
COMPILE_LIMITS = Limits(wall_seconds=90, memory=1 << 30, cpu_seconds=60)
RUN_LIMITS = Limits(wall_seconds=240, output_bytes=128 << 20, disk_bytes=512 << 20,
                    shm_bytes=512 << 20, memory=4 << 30)  # fmt: skip
CALL_LIMITS = Limits(wall_seconds=20, memory=1 << 30, cpu_seconds=15)


class Referee:
    """Judges the answers of one submission, in `sandbox`."""

    def __init__(self, sandbox):
        self.sandbox = sandbox

    def judge(self, exercise, source, *, blank):
        """ExerciseVerdict on the text of an answer cell. Never raises for what an answer does."""
        if blank:
            return judge.fail_all(exercise, "This answer was left blank.")
        try:
            if exercise.kind == KERNEL:
                return with_source(self._kernel(exercise, source), source)
            if exercise.kind == PYTHON:
                return self._function(exercise, source)
        except Ungradable as error:
            return judge.ungradable(exercise, str(error))
        return _for_a_person(exercise)

    # --- C

    def _kernel(self, exercise, source):
        chosen = exercise.variant(kernelcell.function_of(source))
        if chosen is None:
            names = ", ".join(exercise.functions)
            reason = f"The first line of the cell has to be %%kernel and one of {names}."
            return judge.fail_all(exercise, reason)
        return self._compiled(chosen, kernelcell.split(source)[1])

    def _compiled(self, exercise, source):
        job = {"function": exercise.function, "allowed": exercise.allowed,
               "source": source}  # fmt: skip
        outcome = send_inside(
            self.sandbox,
            "compile",
            job,
            limits=COMPILE_LIMITS,
            collect=["*"],
            readable=[*READABLE, build.need(build.RECORDER)],
            ranks=1,
        )
        _check_machine(outcome)
        said = _json(outcome, "compiled.json", "compiling")
        if said["error"]:
            told = _told(said["diagnosis"])
            evidence = {**judge.evidence_of(told), "compiler": said["error"]}
            return judge.fail_all(exercise, told.headline, evidence)
        if said["forbidden"]:
            return judge.fail_all(exercise, "It was not run: " + "; ".join(said["forbidden"]) + ".")
        library = outcome.files.get("kernel.so")
        if library is None:
            raise Ungradable("the compiled answer did not come out of the sandbox")
        verdict = judge.judge_exercise(exercise, self._results(exercise, library))
        return with_warning(verdict, said["warning"] and _told(said["warning"]))

    def _results(self, exercise, library):
        cases, groups = judge.plan(exercise)
        job = {"function": exercise.function, "cases": [asdict(case) for case in cases],
               "groups": groups, "limit": CASE_LIMIT_S, "work": CASE_WORK_S}  # fmt: skip
        outcome = send_inside(
            self.sandbox,
            "run",
            job,
            limits=RUN_LIMITS,
            files={"kernel.so": library},
            collect=["results/*"],
            readable=[*READABLE, build.need(build.HARNESS), build.need(build.HARNESS_PROGRAM)],
            ranks=max(case.ranks for case in cases),
        )
        _check_machine(outcome)
        if outcome.reason or outcome.returncode != 0:
            said = outcome.stderr.decode(errors="replace").strip()[-500:]
            raise Ungradable(
                f"the run ended before all cases were tried: {outcome.reason or said or 'no word'}"
            )
        with tempfile.TemporaryDirectory(prefix="mpilab-results-") as folder:
            for name, content in outcome.files.items():
                (Path(folder) / Path(name).name).write_bytes(content)
            return [_result(Path(folder), number, case) for number, case in enumerate(cases)]

    # --- Python

    def _function(self, exercise, source):
        calls = functions.calls(exercise)
        job = {"function": exercise.function, "source": source, "calls": calls}
        outcome = send(
            self.sandbox,
            [str(CALLER)],
            job,
            readable=[CALLER],
            limits=CALL_LIMITS,
            collect=["called.json"],
        )
        _check_machine(outcome)
        if outcome.reason:
            return judge.fail_all(
                exercise, f"It did not come to its end: {outcome.reason} was the limit."
            )
        returned = _json(outcome, "called.json", "calling the answer")
        if not isinstance(returned, list) or len(returned) != len(calls):
            raise Ungradable("what the answer returned did not come out of the sandbox whole")
        return functions.judge_function(exercise, dict(zip(calls, returned, strict=True)))


def _check_machine(outcome):
    """Raise Ungradable where the machine, not the answer, met a limit."""
    if outcome.reason == "host memory":
        raise Ungradable("the grading machine ran out of memory; grade again when it has more")


def _told(said):
    """A diagnosis that came out of the sandbox as JSON."""
    try:
        return Diagnosis.from_json(said)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Ungradable(f"a diagnosis did not come out of the sandbox whole: {error}") from None


def _for_a_person(exercise):
    items = tuple(
        ItemVerdict(item.id, item.title, item.points, MANUAL, "A person reads this.")
        for item in exercise.items
    )
    return ExerciseVerdict(exercise.id, exercise.title, items)


def _json(outcome, name, doing):
    """A JSON file that came out of the sandbox; Ungradable if it is missing or torn."""
    try:
        return json.loads(outcome.files[name])
    except (KeyError, ValueError):
        why = outcome.reason or outcome.stderr.decode(errors="replace").strip()[-500:]
        raise Ungradable(f"no answer from the sandbox while {doing}: {why or 'no word'}") from None


def _result(folder, number, case):
    """The Result of a case, from the files that it left."""
    path = folder / f"{number}.json"
    if not path.exists():
        return Result(case, SKIPPED)
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        outcome = said["outcome"]
        states = tuple(
            RankState(**{**state, "waits_for": tuple(state["waits_for"])})
            for state in said["states"]
        )
        told = said["diagnosis"] and _told(said["diagnosis"])
        ranks = read_ranks(folder, number, case)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Ungradable(f"a result did not come out of the sandbox whole: {error}") from None
    result = Result(case, outcome, detail=said["detail"], states=states, ranks=ranks,
                    diagnosis=told)  # fmt: skip
    if outcome == DONE:
        try:
            outputs = [Output.read(folder / f"{number}.{rank}.out") for rank in range(case.ranks)]
            recording = Recording.load(folder, number, case.ranks)
        except (InputError, FileNotFoundError) as error:
            raise Ungradable(f"a result did not come out of the sandbox whole: {error}") from None
        return replace(result, outputs=outputs, recording=recording)
    if outcome in (DEADLOCK, TIME_OUT):
        return replace(result, hang=Hang(outcome, states))
    if outcome == CRASH:
        return replace(result, crashed=tuple(said["crashed"]))
    if outcome in (ERROR, SKIPPED):
        return result
    raise Ungradable(f"a result has an unknown outcome: {outcome!r}")


def with_warning(verdict, warning):
    """The verdict with what the compiler warned of, told once, at the first item that failed.

    A warning costs no points; but where something fails, it is often the reason.
    """
    failed = [number for number, item in enumerate(verdict.items) if item.outcome == FAIL]
    if not warning or not failed:
        return verdict
    items = list(verdict.items)
    first = items[failed[0]]
    told = f"{warning.headline} {warning.hint}".strip()
    items[failed[0]] = replace(first, evidence={**first.evidence, "compiler warning": told})
    return replace(verdict, items=tuple(items))


def with_source(verdict, source):
    """The verdict with the text of the line, wherever its evidence names one."""
    lines = source.splitlines()

    def shown(item):
        line = item.evidence.get("line")
        if item.outcome != FAIL or not line or not 0 < line <= len(lines):
            return item
        evidence = {**item.evidence, "source": {"line": line, "text": lines[line - 1]}}
        return replace(item, evidence=evidence)

    return replace(verdict, items=tuple(map(shown, verdict.items)))
