"""The public checks, hints and solutions of a lab, mpilab.Lab("02-allgather").check("ring"),
mpilab.progress(), and mpilab.predict("...")."""

import html
import inspect
import json
import os
import re
import resource
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from functools import wraps
from html import escape
from pathlib import Path
from typing import Any

from mpilab.cluster.engines import active_cluster
from mpilab.diagnosis.model import NUMBERS
from mpilab.errors import InputError
from mpilab.grading.answers import answer_cells, is_blank, stripped
from mpilab.grading.release import solutions
from mpilab.judging import agreement, judge, rubric
from mpilab.judging.calls import call
from mpilab.judging.verdict import FAIL, PASS, ExerciseVerdict, ItemVerdict
from mpilab.kernels import simgrid
from mpilab.kernels.symbols import forbidden
from mpilab.notebook import panel, session
from mpilab.notebook.session import KernelRun
from mpilab.runners.result import Result
from mpilab.runners.simgrid import simulate
from mpilab.util.door import LatePackage
from mpilab.util.files import atomic_write
from mpilab.util.kit import ROOT

nbformat: Any = LatePackage("nbformat")

# The last result of `lab.check` for each answer, in .mpilab-checks/LAB.json next to the notebook.
#
# It is saved only in interactive notebooks, for which JupyterLab sets JPY_SESSION_NAME; a grader's
# run leaves no files. The text of the answer is saved as well, because a result does not apply to
# an answer that has changed since.

DIRECTORY = ".mpilab-checks"


@dataclass(frozen=True)
class Found:
    """The last check of an answer: its text then, and whether all public checks passed.

    seen   whether `lab.solution` has shown ours before.
    """

    answer: str
    passed: bool
    seen: bool = False


def note(
    lab: str, exercise: str, answer: str = "", passed: bool = False, *, seen: bool = False
) -> None:
    """Save the result of a check in an interactive notebook, if the file can be written.

    seen   our solution was shown: this stays, and the last check as well.
    """
    if "JPY_SESSION_NAME" not in os.environ:
        return
    path = _file(panel.home(), lab)
    known = checks_found(panel.home(), lab)
    before = known.get(exercise, Found("", False))
    known[exercise] = replace(before, seen=True) if seen else Found(answer, passed, before.seen)
    try:
        content = {name: vars(each) for name, each in known.items()}
        atomic_write(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    except OSError:
        return


def checks_found(folder: Path, lab: str) -> dict[str, Found]:
    """The last results of the checks of `lab` in `folder`, by exercise."""
    try:
        content = json.loads(_file(folder, lab).read_text(encoding="utf-8"))
        return {
            name: Found(str(each["answer"]), each["passed"] is True, each.get("seen") is True)
            for name, each in content.items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}  # missing or edited manually: nothing is known


def _file(folder: str | Path, lab: str) -> Path:
    return Path(folder) / DIRECTORY / f"{lab}.json"


LIMIT_S, WORK_S, STANDSTILL_S = 60.0, 1.0, 0.5
CALL_S, CALL_BYTES = 10.0, 1 << 30  # of a call of a Python answer


@dataclass(frozen=True)
class Checked:
    """The result of `check`, displayed as a line per item and `telling`.

    telling  the first run that failed, or a correct one with leftover MPI state
    answer   the text of the answer that was tried
    """

    verdict: ExerciseVerdict
    telling: KernelRun | None = None
    answer: str = ""

    @property
    def passed(self) -> bool:
        """Whether every item that can be checked on this machine passed."""
        outcomes = {item.outcome for item in self.verdict.items if not _is_left_out(item)}
        return outcomes == {PASS}

    def require(self) -> None:
        """Display this; AssertionError unless `passed`. The test cells for nbgrader call it."""
        self._ipython_display_()
        assert self.passed, "not all public checks pass"

    def _state(self) -> str:
        return "all public checks pass" if self.passed else "not yet"

    def _list(self) -> str:
        lines = [f"{self.verdict.title}: {self._state()}"]
        for item in self.verdict.items:
            lines.append(f"  {_mark(item)} {item.title}")
            if said := _said(item):
                lines.append(f"      {said}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self._list() if self.telling is None else f"{self._list()}\n{self.telling!r}"

    def _html(self) -> str:
        rows = "".join(
            f"<li>{_mark(item)} {html.escape(item.title)}"
            + (f"<br><small>{html.escape(said)}</small>" if (said := _said(item)) else "")
            + "</li>"
            for item in self.verdict.items
        )
        return (
            f'<div role="status"><b>{html.escape(self.verdict.title)}: {self._state()}</b>'
            f'<ul style="list-style:none">{rows}</ul></div>'
        )

    def _ipython_display_(self) -> None:
        from IPython.display import display  # noqa: PLC0415 (slow; a notebook has it)

        display({"text/plain": self._list(), "text/html": self._html()}, raw=True)
        if self.telling is not None:
            display(self.telling)


def _is_left_out(item: ItemVerdict) -> bool:
    """Whether the item was not tried because it needs SimGrid."""
    return item.reason == agreement.NO_SIMULATION_HERE


def _said(item: ItemVerdict) -> str:
    """The remark on an item below its title."""
    return item.reason or agreement.UNCONFIRMED_HERE * item.unconfirmed


def _mark(item: ItemVerdict) -> str:
    is_open = _is_left_out(item) or item.reason.startswith(agreement.NOT_TRIED_YET)
    return "–" if is_open else "✓" if item.outcome == PASS else "✗"


class Lab:
    """A lab and its public checks."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rubric = rubric.load(ROOT / "labs" / "checks" / f"{name}.toml")
        self._hinted: dict[str, int] = {}

    def __repr__(self) -> str:
        lines = [
            f"Lab {self.name}: lab.check(...) tests an answer with its public checks, "
            "lab.hint(...) helps in three stages, lab.solution(...) shows ours."
        ]
        for one in self.rubric.exercises:
            more = f", {one.function}" if one.kind == rubric.PYTHON else ""
            lines.append(f'  lab.check("{one.id}"{more})  {one.title}')
        for one in self.rubric.practice:
            lines.append(f'  lab.check("{one.id}")  {one.title} (not graded)')
        return "\n".join(lines)

    def check(
        self, exercise_id: str, answer: Callable[..., Any] | None = None, *, strict: bool = False
    ) -> Checked:
        """Try an answer with the public checks; Checked.

        A kernel is taken from the notebook's %%kernel cells (if several qualify, the one defined
        last); a Python function is passed as `answer`. With `strict`, all runs use strict mode, so
        that an answer that relies on buffering hangs visibly.
        """
        exercise = self.rubric.exercise(exercise_id)
        if exercise.kind == rubric.KERNEL:
            found = _check_kernel(exercise, strict)
        elif exercise.kind == rubric.PYTHON:
            found = Checked(_check_function(exercise, answer), answer=_source(answer))
        else:
            raise InputError(f"exercise {exercise_id!r} is a text answer: it is graded manually")
        if found.answer:
            note(self.name, exercise_id, found.answer, found.passed)
        return found

    def hint(self, exercise_id: str) -> "Told":
        """The next hint for an exercise, with those shown before in this session; Told.

        The first points to the idea, the second names the structure, the third has the steps in
        words. Raises InputError for an exercise without hints.
        """
        exercise = self.rubric.exercise(exercise_id)
        total = len(exercise.hints)
        if not total:
            raise InputError(f"exercise {exercise_id!r}: has no hints; ask your instructor")
        shown = self._hinted[exercise_id] = min(self._hinted.get(exercise_id, 0) + 1, total)
        left = total - shown
        more = (
            f'{left} left: lab.hint("{exercise_id}") shows the next.' if left else "No more left."
        )
        return Told(
            f"{exercise.title}: hint {shown} of {total}",
            tuple(f"{number}. {text}" for number, text in enumerate(exercise.hints[:shown], 1)),
            after=more,
        )

    def solution(self, exercise_id: str, *, confirm: bool = False) -> "Told":
        """Our answer to an exercise, with an explanation, for those who learn by themselves; Told.

        Without `confirm`, it says what that costs and shows nothing. That the solution was shown is
        noted beside the notebook, and mpilab.progress() tells it. Handouts hold no solutions, and
        an instructor may set `solutions` in the rubric to false or to a date: then it says so.
        Raises InputError for an unknown exercise.
        """
        source = ROOT / "labs" / "source" / f"{self.name}.py"
        path = ROOT / "grading" / self.name / "rubric.toml"
        if not source.is_file() or not path.is_file():
            self.rubric.exercise(exercise_id)
            return Told(
                f"Solution of {exercise_id}",
                (
                    "It is not in this folder: your instructor has it.",
                    f'lab.hint("{exercise_id}") helps in three stages.',
                ),
            )
        full = rubric.load(path)
        exercise = full.exercise(exercise_id)
        title = f"{exercise.title}: our solution"
        if full.solutions is False:
            return Told(title, ("Your instructor has switched off the solutions of this lab.",))
        if full.solutions is not True and date.today() < full.solutions:
            return Told(title, (f"It is shown from {full.solutions.isoformat()} on.",))
        if not confirm:
            left = len(exercise.hints) - self._hinted.get(exercise_id, 0)
            hints = f'First try lab.hint("{exercise_id}"): {left} hints left.' if left > 0 else ""
            costs = (
                f"This exercise is worth {exercise.points:g} of 100 points. After you have "
                "seen our solution, they no longer say what you can do, and mpilab.progress() "
                "marks the exercise."
            )
            if exercise in full.practice:
                costs = "This exercise is not graded. Try it first: you learn less from ours."
            return Told(
                title,
                (costs, hints),
                after=f'If you want it anyway: lab.solution("{exercise_id}", confirm=True)',
            )
        if exercise in full.practice:
            code = (path.parent / "practice" / f"{exercise.id}.c").read_text(encoding="utf-8")
            return Told(title, exercise.hints, code, "c")
        note(self.name, exercise_id, seen=True)
        return _solved(exercise, source, title)


@dataclass(frozen=True)
class Told:
    """What `hint` and `solution` say: a title, paragraphs, code with its language, a last line."""

    title: str
    paragraphs: tuple[str, ...]
    code: str = ""
    language: str = ""
    after: str = ""

    def __repr__(self) -> str:
        return "\n\n".join(filter(None, (self.title, *self.paragraphs, self.code, self.after)))

    def _repr_html_(self) -> str:
        code = ""
        if self.code:
            from IPython.display import Code  # noqa: PLC0415 (slow; a notebook has it)

            code = Code(self.code, language=self.language)._repr_html_()
        paragraphs = "".join(f"<p>{escape(text)}</p>" for text in self.paragraphs if text)
        after = f"<p><small>{escape(self.after)}</small></p>" if self.after else ""
        return f'<div role="status"><b>{escape(self.title)}</b>{paragraphs}{code}{after}</div>'


def _solved(exercise: rubric.Exercise, source: Path, title: str) -> Told:
    """The solution in a lab's source, with what explains it: the kernel's header, or the hints."""
    text = solutions(source)[exercise.id]
    if exercise.kind == rubric.TEXT:
        return Told(title, tuple(text.split("\n\n")))
    if exercise.kind == rubric.PYTHON:
        return Told(title, exercise.hints, text, "python")
    _, _, code = text.partition("\n")  # without the line that begins with %%kernel
    written = next((each for each in exercise.functions if f"{each}(" in code), "")
    chosen = exercise.variant(written) or exercise
    header = (ROOT / "src_c" / chosen.reference).read_text(encoding="utf-8").partition("*/")
    return Told(title, exercise.hints, f"{header[0]}{header[1]}\n\n{code}", "c")


def strictly(exercise: rubric.Exercise) -> rubric.Exercise:
    """The exercise with every case of every item in strict mode."""

    def of(item: rubric.Item) -> rubric.Item:
        cases, simulated = (
            tuple(replace(case, strict=True) for case in some)
            for some in (item.cases, item.simulated)
        )
        return replace(item, cases=cases, simulated=simulated)

    return replace(exercise, items=tuple(map(of, exercise.items)))


def _check_kernel(exercise: rubric.Exercise, strict: bool) -> Checked:
    wanted = exercise.functions
    # The one defined last: the exercise may accept several kernels.
    function = next((name for name in reversed(session.kernels) if name in wanted), None)
    if function is None:
        one_of = "one of " * (len(wanted) > 1)
        reason = f"no %%kernel cell has defined {one_of}{', '.join(wanted)} yet"
        return Checked(judge.fail_all(exercise, reason))
    exercise = exercise.variant(function) or exercise
    source = session.kernels[function].source
    if strict:
        exercise = strictly(exercise)
    reasons = forbidden(session.kernels[function].object, function, exercise.allowed)
    if reasons:
        return Checked(judge.fail_all(exercise, "; ".join(reasons)), answer=source)
    most = active_cluster().n
    cases, _ = judge.plan(exercise, most_ranks=most)
    # A run that does not end restarts the cluster, and the later ones would most likely not end
    # either: all cases are in one group, so that they are skipped.
    groups = [(exercise.id,)] * len(cases)
    results = session.run_cases(
        function, cases, groups=groups, limit=LIMIT_S, work=WORK_S, standstill=STANDSTILL_S
    )
    verdict = agreement.check_exercise(exercise, results, _simulated(exercise), most)
    return Checked(verdict, _telling(exercise, verdict, results, most), source)


def _simulated(exercise: rubric.Exercise) -> Sequence[Result] | None:
    """The Results of the cases that are only simulated; None without SimGrid."""
    if not exercise.needs_simulation:
        return ()
    library = session.simulated_library(exercise.function) if simgrid.available() else None
    if library is None:
        return None
    cases, groups = agreement.to_simulate(exercise, alone=True)
    return simulate(library, exercise.function, cases, groups=groups)


def _telling(
    exercise: rubric.Exercise, verdict: ExerciseVerdict, results: Sequence[Result], most: int
) -> KernelRun | None:
    """The KernelRun to show with the verdict (see Checked.telling), or None."""
    for item, judged in zip(exercise.items, verdict.items, strict=True):
        if judged.outcome == FAIL:
            wrong = judge.first_wrong(item, judge.of_item(item, results, most))
            if wrong is None:  # wrong or slow only in simulation: the reason says so
                return None
            run = KernelRun(exercise.function, wrong.result)
            return None if run.diagnosis is None or _is_stub(run.result) else run
    runs = (KernelRun(exercise.function, result) for result in results)
    return next((run for run in runs if run.diagnosis is not None), None)


def _is_stub(result: Result) -> bool:
    """Whether the kernel looks like a blank answer: MPI_ERR_OTHER and no message."""
    returned = {output.returned for output in result.outputs}
    silent = result.recording is not None and not len(result.recording.messages)
    return returned == {NUMBERS["MPI_ERR_OTHER"]} and silent


def _source(function: Any) -> str:
    """The source of a notebook's function; "" if Python does not know it."""
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return ""


def _check_function(
    exercise: rubric.Exercise, answer: Callable[..., Any] | None
) -> ExerciseVerdict:
    if not callable(answer):
        raise InputError(f"check({exercise.id!r}, answer): give your function {exercise.function}")
    # It runs in the notebook's own process: without limits, a list of all ranks of a large cluster
    # would take all memory of the student's machine.
    answer = limited(answer, CALL_S, CALL_BYTES)
    returned = {arguments: call(answer, arguments) for arguments in judge.calls(exercise)}
    return judge.judge_function(exercise, returned)


def limited(
    function: Callable[..., object], seconds: float, more_bytes: int
) -> Callable[..., object]:
    """`function`, for a process that has other work: a call raises TimeoutError after `seconds`,
    and MemoryError if it needs `more_bytes` more than the process has now.

    Time is limited in the main thread only, where signals are handled.
    """

    @wraps(function)
    def run(*arguments: Any) -> object:
        with _time_limit(seconds), _memory_limit(more_bytes):
            return function(*arguments)

    return run


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(*_: object) -> None:
        raise TimeoutError(f"not done after {seconds:g} s; does it go through all of something?")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _memory_limit(more_bytes: int) -> Iterator[None]:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    before, most = resource.getrlimit(resource.RLIMIT_AS)
    wanted = pages * resource.getpagesize() + more_bytes
    lower = [limit for limit in (before, most) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min([wanted, *lower]), most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, most))


# Predictions. A student writes one into the source of a cell, so it is part of the notebook: it
# survives a restart of the kernel, and a run by papermill. A widget's value would not. The kit's
# extension of JupyterLab (labextension/static/predictions.js) shows such a cell with a form, which
# writes into the source, too, and needs no kernel.


@dataclass(frozen=True)
class Answered:
    """A prediction and what happens instead, displayed side by side.

    right   whether the prediction was right; None if that is for the reader to judge
    """

    prediction: str
    answer: str
    right: bool | None

    def _rows(self) -> tuple[tuple[str, str], ...]:
        mark = {True: "✓ ", False: "✗ ", None: ""}[self.right]
        predicted = mark + self.prediction if self.prediction else "(nothing written)"
        return ("You predicted", predicted), ("What happens", self.answer)

    def __repr__(self) -> str:
        return "\n".join(f"{name + ':':14} {text}" for name, text in self._rows())

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th scope="row" {_CELL}>{escape(name)}</th><td {_CELL}>{escape(text)}</td></tr>'
            for name, text in self._rows()
        )
        return f'<div role="status"><table><tbody>{rows}</tbody></table></div>'


@dataclass(frozen=True)
class Prediction:
    """What a student predicts before a cell runs; `answer` shows it beside what happens."""

    text: str
    choices: tuple[str, ...] = ()
    unit: str = ""

    def answer(
        self, answer: str, *, right: str | float | tuple[float, float] | None = None
    ) -> Answered:
        """The prediction beside `answer`, which says what happens and why; Answered.

        right   the right choice, the right number, or the least and the greatest number that count
                as right; then the prediction is judged. Words around a number don't matter: "56
                blocks" is 56. A text without a number, or with several, is not judged.
        """
        bare = bool(self.unit) and _is_number(self.text)
        return Answered(f"{self.text} {self.unit}" if bare else self.text, answer, self._is(right))

    def _is(self, right: str | float | tuple[float, float] | None) -> bool | None:
        if isinstance(right, str) and right not in self.choices:
            raise InputError(
                f"right={right!r} is not among the choices of this prediction: "
                f"{', '.join(map(repr, self.choices))}"
            )
        if not self.text or right is None:
            return None
        if isinstance(right, str):
            return self.text == right
        numbers = re.findall(_NUMBER, self.text)
        if len(numbers) != 1:
            return None
        low, high = right if isinstance(right, tuple) else (right, right)
        return low <= float(numbers[0]) <= high


_NUMBER = r"\d+(?:\.\d+)?"


def _is_number(text: str) -> bool:
    return re.fullmatch(_NUMBER, text) is not None


def predict(
    prediction: str | float = "",
    *,
    choices: Sequence[str] = (),
    between: tuple[float, float] | None = None,
    unit: str = "",
) -> Prediction:
    """A Prediction, written into the cell before it runs; "" if there is none.

    Its method `answer` shows it beside what happens. With `choices`, the prediction is one of them
    (case does not matter), or InputError is raised. The kit's extension of JupyterLab shows the
    choices as buttons, and a slider for a number `between` two others; `unit` says what the number
    counts. The extension reads these arguments in the source: write them as literals.
    """
    text = str(prediction).strip()
    if choices and between:
        raise InputError(
            f"predict(choices={list(choices)!r}, between={between!r}): it is either a choice or a "
            "number\n  remedy: leave out one of the two"
        )
    if between and not between[0] < between[1]:
        raise InputError(
            f"predict(between={between!r}): the first number is not less than the second\n"
            "  remedy: write the least and the greatest number to choose, e.g. between=(0, 8)"
        )
    named = {choice.casefold(): choice for choice in choices}
    if text and named and text.casefold() not in named:
        raise InputError(
            f"predict({text!r}): this is none of the choices\n  remedy: write one of "
            f'{", ".join(map(repr, choices))}, or "" to go on without a prediction'
        )
    return Prediction(named.get(text.casefold(), text), tuple(choices), unit)


# Progress: compares the answer cells of saved notebooks with blank ones (labs/checks/answers.json,
# written by `mpilab release`) and reads the last results of the public checks. It runs nothing and
# predicts no marks: grading uses different cases.

BLANK, WRITTEN, FAILED, CHANGED, PASSED = "blank", "written", "failed", "changed", "passed"
# {state: (mark, description, whether the answer counts as done)}
_STATES = {
    BLANK: ("○", "not started", False),
    WRITTEN: ("●", "answered", True),
    FAILED: ("✗", "not all public checks pass yet", False),
    CHANGED: ("◐", "changed since the last check: check it again", False),
    PASSED: ("✓", "all public checks pass", True),
}
_UNCHECKED = ("◐", "answered, not checked yet", False)
_CELL = 'style="text-align:left; vertical-align:top"'


@dataclass(frozen=True)
class Answer:
    """An answer of a lab: its grade_id, title and state.

    checkable  whether lab.check can try it
    seen       whether lab.solution has shown ours
    """

    id: str
    title: str
    state: str
    checkable: bool
    seen: bool = False

    def _shown(self) -> tuple[str, str, bool]:
        return _UNCHECKED if self.state == WRITTEN and self.checkable else _STATES[self.state]

    @property
    def mark(self) -> str:
        """One character for the state."""
        return self._shown()[0]

    @property
    def words(self) -> str:
        """The state in words."""
        return self._shown()[1] + ", after you saw our solution" * self.seen

    @property
    def done(self) -> bool:
        """Whether nothing is left to do, as far as can be determined without grading."""
        return self._shown()[2]


@dataclass(frozen=True)
class LabProgress:
    """The answers of one lab, or why its notebook cannot be evaluated (`trouble`)."""

    lab: str
    answers: tuple[Answer, ...] = ()
    trouble: str = ""

    @property
    def done(self) -> int:
        """The number of answers that are done."""
        return sum(answer.done for answer in self.answers)


@dataclass(frozen=True)
class Progress:
    """The progress in the labs of a folder, displayed as a table."""

    labs: tuple[LabProgress, ...]

    def __repr__(self) -> str:
        lines = []
        for lab in self.labs:
            lines.append(f"{lab.lab}: {lab.trouble or f'{lab.done} of {len(lab.answers)} done'}")
            lines += [f"  {each.mark} {each.title}: {each.words}" for each in lab.answers]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(map(_row, self.labs))
        head = "".join(
            f'<th scope="col" {_CELL}>{word}</th>' for word in ("lab", "done", "answers")
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{_legend()}"


def progress(folder: str | Path | None = None) -> Progress:
    """The Progress in the saved notebooks of `folder`, by default the folder of this notebook.

    Raises InputError if the kit's list of answers is missing.
    """
    folder = panel.home() if folder is None else Path(folder)
    path = ROOT / "labs" / "checks" / "answers.json"
    try:
        labs = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"the list of the labs' answer cells cannot be read: {error}\n  where:  {path}\n"
            "  remedy: 'mpilab release' makes it again"
        ) from error
    return Progress(tuple(_of_lab(folder, lab, wanted) for lab, wanted in labs.items()))


def _of_lab(folder: Path, lab: str, wanted: Mapping[str, Mapping[str, Any]]) -> LabProgress:
    path = folder / f"{lab}.ipynb"
    if not path.is_file():
        return LabProgress(lab, trouble="the notebook is not in this folder")
    try:
        cells = answer_cells(nbformat.read(path, as_version=4))
    except InputError as error:
        return LabProgress(lab, trouble=str(error))
    except Exception:  # nbformat passes on whatever json and jsonschema raise
        return LabProgress(lab, trouble="the notebook cannot be read: get a fresh copy of it")
    found = checks_found(folder, lab)
    return LabProgress(
        lab,
        tuple(
            Answer(
                name,
                about["title"],
                _state(cells.get(name, ""), about, found.get(name)),
                about["checkable"],
                name in found and found[name].seen,
            )
            for name, about in wanted.items()
        ),
    )


def _state(source: str, about: Mapping[str, Any], found: Found | None) -> str:
    if is_blank(source, about["stub"]):
        return BLANK
    if found is None or not found.answer:
        return WRITTEN
    if stripped(found.answer) not in stripped(source):
        return CHANGED
    return PASSED if found.passed else FAILED


def _row(lab: LabProgress) -> str:
    name = f'<a href="{escape(lab.lab)}.ipynb">{escape(lab.lab)}</a>'
    if lab.trouble:
        return (
            f'<tr><th scope="row" {_CELL}>{escape(lab.lab)}</th>'
            f"<td {_CELL}>–</td><td {_CELL}>{escape(lab.trouble)}</td></tr>"
        )
    count = f"{lab.done}&nbsp;of&nbsp;{len(lab.answers)}"
    answers = "".join(
        f'<div><span title="{escape(each.words)}">{each.mark}</span> {escape(each.title)}'
        f"{_remark(each)}</div>"
        for each in lab.answers
    )
    return (
        f'<tr><th scope="row" {_CELL}>{name}</th><td {_CELL}>{count}</td>'
        f"<td {_CELL}>{answers}</td></tr>"
    )


def _remark(answer: Answer) -> str:
    """The state in words, unless the symbol is self-explanatory."""
    told = answer.state in (BLANK, PASSED) and not answer.seen
    return "" if told else f" <small>({escape(answer.words)})</small>"


def _legend() -> str:
    shown = [*(_STATES[state] for state in (BLANK, WRITTEN, FAILED, PASSED)), _UNCHECKED]
    return f"<p><small>{' &nbsp; '.join(f'{mark} {words}' for mark, words, _ in shown)}</small></p>"
