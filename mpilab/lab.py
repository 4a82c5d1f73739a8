"""A lab's public checks, as its notebook calls them: mpilab.Lab("02-allgather").check("ring")."""

import html
from dataclasses import dataclass, replace

from mpilab import confirmed, exercises, functions, judge, session
from mpilab.build import ROOT
from mpilab.calls import call
from mpilab.cluster.engines import active_cluster
from mpilab.diagnosis.error_classes import NUMBERS
from mpilab.errors import InputError
from mpilab.kernelrun import KernelRun
from mpilab.symbols import forbidden
from mpilab.verdict import FAIL, PASS, ExerciseVerdict

LIMIT_S, WORK_S, STANDSTILL_S = 60.0, 1.0, 0.5


@dataclass(frozen=True)
class Checked:
    """The outcome of `check`: a line an item, and the run that tells more: the first that failed,
    or one that leaves something behind although all is right."""

    verdict: ExerciseVerdict
    telling: KernelRun | None = None

    @property
    def passed(self):
        """Did every item pass that could be tried on this machine?"""
        outcomes = {item.outcome for item in self.verdict.items if not _is_left_out(item)}
        return outcomes == {PASS}

    def _state(self):
        return "all public checks pass" if self.passed else "not yet"

    def _list(self):
        lines = [f"{self.verdict.title}: {self._state()}"]
        for item in self.verdict.items:
            lines.append(f"  {_mark(item)} {item.title}")
            if item.reason:
                lines.append(f"      {item.reason}")
        return "\n".join(lines)

    def __repr__(self):
        return self._list() if self.telling is None else f"{self._list()}\n{self.telling!r}"

    def _html(self):
        rows = "".join(
            f"<li>{_mark(item)} {html.escape(item.title)}"
            + (f"<br><small>{html.escape(item.reason)}</small>" if item.reason else "")
            + "</li>"
            for item in self.verdict.items
        )
        return (
            f'<div role="status"><b>{html.escape(self.verdict.title)}: {self._state()}</b>'
            f'<ul style="list-style:none">{rows}</ul></div>'
        )

    def _ipython_display_(self):
        from IPython.display import display

        display({"text/plain": self._list(), "text/html": self._html()}, raw=True)
        if self.telling is not None:
            display(self.telling)


def _is_left_out(item):
    """Is it one that only a machine with SimGrid can try?"""
    return item.reason == confirmed.NO_SIMULATION_HERE


def _mark(item):
    return "–" if _is_left_out(item) else "✓" if item.outcome == PASS else "✗"


class Lab:
    """The lab that this notebook is: where its public checks are."""

    def __init__(self, name):
        self.name = name
        self.rubric = exercises.load(ROOT / "labs" / "checks" / f"{name}.toml")

    def check(self, exercise_id, answer=None, *, strict=False):
        """Try an answer with the public checks; Checked.

        A kernel is taken from the notebook's %%kernel cells (the one defined last, where there is a
        choice); a Python function is `answer`. With `strict`, every run makes buffered sends
        synchronous: reliance on buffering hangs visibly.
        """
        exercise = self.rubric.exercise(exercise_id)
        if exercise.kind == exercises.KERNEL:
            return _check_kernel(exercise, strict)
        if exercise.kind == exercises.PYTHON:
            return Checked(_check_function(exercise, answer))
        raise InputError(f"exercise {exercise_id!r} is a text: a person reads it")


def strictly(exercise):
    """The exercise with every case of every item in strict mode."""

    def of(item):
        cases, simulated = (tuple(replace(case, strict=True) for case in some)
                            for some in (item.cases, item.simulated))  # fmt: skip
        return replace(item, cases=cases, simulated=simulated)

    return replace(exercise, items=tuple(map(of, exercise.items)))


def _check_kernel(exercise, strict):
    wanted = exercise.functions
    # The last one that was defined: an answer may be one of several kernels.
    function = next((name for name in reversed(session.kernels) if name in wanted), None)
    if function is None:
        one_of = "one of " * (len(wanted) > 1)
        reason = f"no %%kernel cell has defined {one_of}{', '.join(wanted)} yet"
        return Checked(judge.fail_all(exercise, reason))
    exercise = exercise.variant(function)
    if strict:
        exercise = strictly(exercise)
    reasons = forbidden(session.kernels[function].object, function, exercise.allowed)
    if reasons:
        return Checked(judge.fail_all(exercise, "; ".join(reasons)))
    most = active_cluster().n
    cases, groups = judge.plan(exercise, most_ranks=most)
    results = session.run_cases(function, cases, groups=groups, limit=LIMIT_S, work=WORK_S,
                                standstill=STANDSTILL_S)  # fmt: skip
    verdict = confirmed.check_exercise(exercise, results, _simulated(exercise), most)
    return Checked(verdict, _telling(exercise, verdict, results, most))


def _simulated(exercise):
    """The Results of the cases that are simulated only; None without SimGrid."""
    if not exercise.needs_simulation:
        return ()
    from mpilab.simulated import simulate
    from mpilab.simulated.build import available

    if not available():
        return None
    cases, groups = confirmed.to_simulate(exercise, alone=True)
    library = session.simulated_library(exercise.function)
    return simulate(library, exercise.function, cases, groups=groups)


def _telling(exercise, verdict, results, most):
    """The KernelRun that tells more than the verdict, or None."""
    for item, judged in zip(exercise.items, verdict.items, strict=True):
        if judged.outcome == FAIL:
            wrong = judge.first_wrong(item, judge.of_item(item, results, most))
            if wrong is None:  # it is wrong, or slow, in simulation alone: the reason says it
                return None
            run = KernelRun(exercise.function, wrong[0])
            return None if run.diagnosis is None or _is_stub(run.result) else run
    runs = (KernelRun(exercise.function, result) for result in results)
    return next((run for run in runs if run.diagnosis is not None), None)


def _is_stub(result):
    """Does it look like a cell that nobody has written in yet: MPI_ERR_OTHER, without a message?"""
    returned = {output.returned for output in result.outputs}
    silent = result.recording is not None and not len(result.recording.messages)
    return returned == {NUMBERS["MPI_ERR_OTHER"]} and silent


def _check_function(exercise, answer):
    if not callable(answer):
        raise InputError(f"check({exercise.id!r}, answer): give your function {exercise.function}")
    returned = {arguments: call(answer, arguments) for arguments in functions.calls(exercise)}
    return functions.judge_function(exercise, returned)
