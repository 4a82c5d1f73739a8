"""The referee: what an answer is worth, decided outside of the process that the answer ran in.

A C answer is compiled, its symbols are looked at, and it is tried with many cases, simulated and
on Open MPI, all in the sandbox (mpilab.grading.trials); the raw buffers and recordings that come
out are compared here, with what numpy and the rubric say. A Python answer is called in the sandbox;
what it returned is compared here.
"""

from dataclasses import replace
from pathlib import Path

from mpilab import confirmed, functions, judge, kernelcell
from mpilab.build import ROOT
from mpilab.errors import Ungradable
from mpilab.grading import trials
from mpilab.grading.errand import send
from mpilab.grading.sandbox import Limits
from mpilab.rubric import KERNEL, PYTHON
from mpilab.simulated.build import available
from mpilab.verdict import FAIL, MANUAL, ExerciseVerdict, ItemVerdict

# All of mpilab that a Python answer's process may read: the rest holds the right values.
CALLER = ROOT / "mpilab" / "calls.py"
# Processor time decides: a busy machine costs nobody a mark. The wall time is for who sleeps.
CALL_LIMITS = Limits(wall_seconds=60, memory=1 << 30, cpu_seconds=15)


class Referee:
    """Judges the answers of one submission, in `sandbox`.

    keep   a directory for what is left of cases that came out differently in simulation and on
           Open MPI: EXERCISE/ITEM/{simulated,real}/. Without it nothing is kept.
    """

    def __init__(self, sandbox, keep=None):
        self.sandbox = sandbox
        self.keep = keep and Path(keep)

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
        simulates = confirmed.can_be_simulated(exercise) and available()
        compiled = trials.compile_kernel(self.sandbox, exercise, source, simulated=simulates)
        said = compiled.said
        if said["error"]:
            told = trials.told(said["diagnosis"])
            evidence = {**judge.evidence_of(told), "compiler": said["error"]}
            return judge.fail_all(exercise, told.headline, evidence)
        if said["forbidden"]:
            return judge.fail_all(exercise, "It was not run: " + "; ".join(said["forbidden"]) + ".")
        verdict = self._tried(exercise, compiled, simulates)
        return with_warning(verdict, said["warning"] and trials.told(said["warning"]))

    def _tried(self, exercise, compiled, simulates):
        simulated = found = None
        if simulates:
            plan = confirmed.to_simulate(exercise)
            simulated = trials.simulate(self.sandbox, exercise, compiled, plan)
            found = confirmed.Simulated(simulated.results)
        real = trials.run(self.sandbox, exercise, compiled, confirmed.to_run(exercise, found))
        verdict, differences = confirmed.judge_exercise(exercise, real.results, found)
        for difference in differences if self.keep else ():
            folder = self.keep / exercise.id / difference.item
            simulated.keep(difference.simulated.case, folder / "simulated")
            real.keep(difference.real.case, folder / "real")
        return verdict

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
        trials.check_machine(outcome)
        if outcome.reason:
            return judge.fail_all(
                exercise, f"It did not come to its end: {outcome.reason} was the limit."
            )
        returned = trials.read_json(outcome, "called.json", "calling the answer")
        if not isinstance(returned, list) or len(returned) != len(calls):
            raise Ungradable("what the answer returned did not come out of the sandbox whole")
        return functions.judge_function(exercise, dict(zip(calls, returned, strict=True)))


def _for_a_person(exercise):
    items = tuple(
        ItemVerdict(item.id, item.title, item.points, MANUAL, "A person reads this.")
        for item in exercise.items
    )
    return ExerciseVerdict(exercise.id, exercise.title, items)


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
