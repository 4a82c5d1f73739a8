"""Judge the items of an exercise by the results of their cases or calls.

`check` in the notebook and the referee both use it. They differ in the cases and in where those
ran, but not in how they are judged.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mpilab.algorithms.formula import Value, evaluate, names_of
from mpilab.cases.case import COLLECTIVES, Case
from mpilab.cases.output import wrong_calls
from mpilab.diagnosis import diagnose, model
from mpilab.diagnosis.model import COMPILE_ERROR, COMPILE_WARNING, LEAK, Diagnosis
from mpilab.diagnosis.render import bounded
from mpilab.diagnosis.requests import UNRECEIVED
from mpilab.errors import InputError, Ungradable
from mpilab.hosts.orders import text_of
from mpilab.judging.rubric import MOST, PARTNERS, Exercise, Item, right_value, trusted
from mpilab.judging.transfers import shortfall
from mpilab.judging.verdict import FAIL, PASS, UNGRADABLE, ExerciseVerdict, ItemVerdict
from mpilab.models.declared import counts
from mpilab.plots import failures
from mpilab.runners.result import DONE, ERROR, SKIPPED, SPENT, Result
from mpilab.trace.recording import Recording
from mpilab.util import faults

# Cases, each once, and for each the ids of the items that contain it.
Plan = tuple[list[Case], list[tuple[str, ...]]]

# Python answers: compare what they returned (mpilab/judging/calls.py) with a trusted function.

# Characters that a reason has of an exception or of a complaint about a value. The answer's process
# wrote both, so they are as long as the answer likes.
MOST_TOLD = 1000


def calls(exercise: Exercise) -> list[tuple[Any, ...]]:
    """All argument tuples with which an exercise's items call the function, each once."""
    return list(dict.fromkeys(arguments for item in exercise.items for arguments in item.arguments))


def judge_function(exercise: Exercise, returned: Mapping[tuple[Any, ...], Any]) -> ExerciseVerdict:
    """The ExerciseVerdict from {arguments: result of `call`}; a missing entry is ungradable."""
    items = tuple(_judge_item(exercise, item, returned) for item in exercise.items)
    return ExerciseVerdict(exercise.id, exercise.title, items)


def _judge_item(
    exercise: Exercise, item: Item, returned: Mapping[tuple[Any, ...], Any]
) -> ItemVerdict:
    if not item.arguments:
        return _verdict(item, UNGRADABLE, "the rubric lists no calls of it")
    for number, arguments in enumerate(item.arguments):
        shown = f"{exercise.function}({', '.join(map(repr, arguments))})"
        came = returned.get(arguments)
        if came is None:
            return _verdict(item, UNGRADABLE, f"{shown} was not called")
        if not isinstance(came, dict) or not came.keys() & {"error", "value"}:
            # The answer's process wrote it, so the answer may have forged it.
            return _verdict(item, UNGRADABLE, f"the record of {shown} is not that of a call")
        if "error" in came:
            told = _cut(str(came["error"]), MOST_TOLD)
            return _verdict(item, FAIL, f"{shown} raised {told}", reproduce=shown)
        value = came["value"]
        if item.complaint:
            wrong = _cut(_complaint(trusted(item.complaint), value, arguments), MOST_TOLD)
        elif same(value, _right(item, number)):
            wrong = ""
        else:
            wrong = f"{shown} returned {_short(value)}, which is wrong."
        if wrong:
            return _verdict(item, FAIL, wrong, call=shown, got=_short(value), reproduce=shown)
    return _verdict(item, PASS, "")


def _right(item: Item, number: int) -> Any:
    """The right value of the call of this number, as it comes out of JSON."""
    if item.values:
        return item.values[number]
    return right_value(item.expected, item.arguments[number])


def _complaint(judge: Callable[..., str], value: Any, arguments: tuple[Any, ...]) -> str:
    """What is wrong with a value according to a trusted function; "" if nothing is."""
    try:
        return judge(value, *arguments)
    except InputError as error:
        return str(error)


def _verdict(item: Item, outcome: str, reason: str, **evidence: Any) -> ItemVerdict:
    return ItemVerdict(item.id, item.title, item.points, outcome, reason, evidence)


def same(value: Any, expected: Any) -> bool:
    """True for equal numbers (within a relative 1e-9), or lists of such numbers of the same
    length."""
    if isinstance(expected, list):
        return (
            isinstance(value, list)
            and len(value) == len(expected)
            and all(map(same, value, expected))
        )
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isclose(value, expected, rel_tol=1e-9)
    except OverflowError:  # an integer beyond all floating-point numbers
        return value == expected


def _short(value: Any) -> str:
    return _cut(json.dumps(value), 200)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + " …"


# Kernels: judge the Results of their cases.

# With more ranks, the line that reproduces a failure simulates it.
MOST_ON_A_LAPTOP = 16

# quantity -> (its unit, where it was counted, its name in the evidence)
_WORDS = {
    "rounds": ("round", "", "rounds counted"),
    "messages": ("message", "", "messages counted"),
    "bytes": ("byte", " in messages", "bytes counted"),
    "busiest_messages": ("message", " from one rank", "most messages from one rank"),
    "busiest_bytes": ("byte", " from one rank", "most bytes from one rank"),
    "busiest_received": ("message", " to one rank", "most messages to one rank"),
    "node_messages": ("message", " between nodes", "messages between nodes"),
    "node_bytes": ("byte", " between nodes", "bytes between nodes"),
    "node_received_bytes": (
        "byte",
        " from other nodes to one rank",
        "most bytes from other nodes to one rank",
    ),
    "group_messages": ("message", " between groups", "messages between groups"),
    "group_bytes": ("byte", " between groups", "bytes between groups"),
    "group_received_bytes": (
        "byte",
        " from other groups to one rank",
        "most bytes from other groups to one rank",
    ),
    "reads": ("read request", "", "read requests counted"),
    "busiest_reads": ("read request", " of one rank", "most read requests of one rank"),
    "read_bytes": ("byte", " read", "bytes read"),
    "busiest_read_bytes": ("byte", " read by one rank", "most bytes read by one rank"),
    "largest_read": ("byte", " in one read request", "most bytes in one read request"),
    "reading_ranks": ("rank", " that read", "ranks that read"),
    "collective_reads": ("collective read request", "", "collective read requests counted"),
    "unexchanged_bytes": (
        "byte",
        " read by one rank without an exchange in between",
        "most bytes read without an exchange in between",
    ),
    "views_left": ("rank", " that left their own view on a file", "ranks that left a view"),
    "leaks": ("thing", " created but never freed", "things created but never freed"),
}
# What a kernel leaves behind says nothing of its algorithm.
_LEFT_BEHIND = {"leaks", "views_left"}


@dataclass(frozen=True)
class Wrong:
    """A Result that proves an item wrong: the reason in a sentence, evidence, and the Diagnosis.

    Without a Diagnosis, the run itself was correct, but it sent too much or took too long.
    """

    result: Result
    reason: str
    evidence: dict[str, Any] = field(default_factory=dict)
    diagnosis: Diagnosis | None = None


def plan(exercise: Exercise, most_ranks: int | None = None) -> Plan:
    """All cases of a kernel exercise, each once, and for each the items that contain it.

    With `most_ranks`, cases with more ranks are left out.
    """
    return each_once(
        (case, item.id)
        for item in exercise.items
        for case in item.cases
        if most_ranks is None or case.ranks <= most_ranks
    )


def each_once(pairs: Iterable[tuple[Case, str]]) -> Plan:
    """(cases, for each the items that contain it), from pairs of a case and an item's id.

    Those with the fewest ranks come first: cases after a failure may be skipped, and students
    understand a failure best on few ranks.
    """
    groups: dict[Case, list[str]] = {}
    for case, item in pairs:
        groups.setdefault(case, []).append(item)
    cases = sorted(groups, key=lambda case: case.ranks)
    return cases, [tuple(groups[case]) for case in cases]


def judge_exercise(
    exercise: Exercise, results: Iterable[Result], most_ranks: int | None = None
) -> ExerciseVerdict:
    """The ExerciseVerdict on a kernel from the Results of its planned cases (see `plan`)."""
    items = tuple(
        judge_item(exercise, item, of_item(item, results, most_ranks)) for item in exercise.items
    )
    return ExerciseVerdict(exercise.id, exercise.title, items)


def of_item(item: Item, results: Iterable[Result], most_ranks: int | None = None) -> list[Result]:
    """The Results of an item's cases, in order; an ERROR for a case without a Result."""
    by_case = {result.case: result for result in results}
    wanted = [case for case in item.cases if most_ranks is None or case.ranks <= most_ranks]
    return [by_case.get(case) or Result(case, ERROR, detail="it gave no result") for case in wanted]


def fail_all(
    exercise: Exercise,
    reason: str,
    evidence: dict[str, Any] | None = None,
    diagnoses: Sequence[Diagnosis] = (),
) -> ExerciseVerdict:
    """The verdict on an answer that is not run: every item fails for the same reason."""
    return _all(exercise, FAIL, reason, evidence, diagnoses)


def ungradable(
    exercise: Exercise, reason: str, evidence: dict[str, Any] | None = None
) -> ExerciseVerdict:
    """The verdict on an answer that cannot be judged."""
    return _all(exercise, UNGRADABLE, reason, evidence)


def _all(
    exercise: Exercise,
    outcome: str,
    reason: str,
    evidence: dict[str, Any] | None,
    diagnoses: Sequence[Diagnosis] = (),
) -> ExerciseVerdict:
    # Evidence and diagnoses are the same for all items, so they are shown once.
    items = tuple(
        ItemVerdict(
            item.id,
            item.title,
            item.points,
            outcome,
            reason,
            (evidence or {}) if number == 0 else {},
            diagnoses=tuple(map(for_student, diagnoses)) if number == 0 else (),
        )
        for number, item in enumerate(exercise.items)
    )
    return ExerciseVerdict(exercise.id, exercise.title, items)


def judge_item(exercise: Exercise, item: Item, results: Sequence[Result]) -> ItemVerdict:
    """The ItemVerdict on a kernel's item: the first case that is proved wrong decides."""
    if not results:
        return ItemVerdict(
            item.id,
            item.title,
            item.points,
            UNGRADABLE,
            "none of its cases was run: the cluster has too few ranks",
        )
    doubts: list[str] = []
    wrong = first_wrong(item, results, doubts)
    if wrong:
        return failed(exercise, item, wrong)
    if not doubts and any(result.outcome == SKIPPED for result in results):
        doubts.append("a case was skipped, although none before it failed")
    if doubts:
        return ItemVerdict(item.id, item.title, item.points, UNGRADABLE, doubts[0])
    return ItemVerdict(item.id, item.title, item.points, PASS)


def failed(exercise: Exercise, item: Item, wrong: Wrong) -> ItemVerdict:
    """The verdict on an item that a Wrong proves wrong."""
    case = wrong.result.case
    return ItemVerdict(
        item.id,
        item.title,
        item.points,
        FAIL,
        f"With {case.describe()}: {wrong.reason}",
        {**_about(exercise, case), **wrong.evidence, **_picture(wrong.result)},
        diagnoses=(for_student(wrong.diagnosis),) if wrong.diagnosis else (),
    )


def for_student(diagnosis: Diagnosis) -> Diagnosis:
    """A diagnosis as a verdict keeps it, for the feedback page.

    Output of Open MPI or a sanitizer stays with the referee, since it names paths of the grading
    machine. The compiler's output refers only to the answer's own lines. Hostile amounts of text
    are truncated.
    """
    compiler = diagnosis.kind in (COMPILE_ERROR, COMPILE_WARNING)
    return bounded(diagnosis if compiler else replace(diagnosis, log=""))


def _picture(result: Result) -> dict[str, str]:
    """A picture of the run and its text alternative as evidence, or why there is no picture."""
    try:
        svg, words = failures.space_time_diagram(result.ranks)
    except Exception:  # a recording may contain anything, and the picture is optional
        return {}
    if not svg:
        return {"svg_alt": words} if words else {}
    return {"svg": svg, "svg_alt": f"What the ranks called. {words}"}


@dataclass(frozen=True)
class Known:
    """What does not depend on the item: the diagnosis of a case, which messages it lacks, and what
    is counted, in which recording."""

    diagnoses: dict[Case, Diagnosis | None] = field(default_factory=dict)
    missing: dict[Case, str] = field(default_factory=dict)
    counted: dict[Case, tuple[Recording, dict[str, int]]] = field(default_factory=dict)


def first_wrong(
    item: Item,
    results: Iterable[Result],
    doubts: list[str] | None = None,
    known: Known | None = None,
) -> Wrong | None:
    """The Wrong for the first case that is proved wrong, or None.

    Appends to the list `doubts` why other cases could not be judged. `known` keeps what was found
    about cases that several items share.
    """
    for result in results:
        if result.outcome == SKIPPED:
            continue
        try:
            wrong = _wrong(item, result, Known() if known is None else known)
        except Ungradable as error:
            if doubts is not None and result.case not in item.also:
                doubts.append(f"With {result.case.describe()}: {error.public}")
            continue
        if wrong:
            return wrong
    return None


def _about(exercise: Exercise, case: Case) -> dict[str, Any]:
    """The case as evidence, with the call that reproduces it."""
    about: dict[str, Any] = {"ranks": case.ranks}
    collective = COLLECTIVES[case.collective]
    if collective.has_blocks and not collective.reads:  # the matrix describes a read completely
        about |= {"count": case.count, "datatype": case.datatype}
    options = [f"{name}={value!r}" for name, value in about.items() if value != "int"]
    for name, usual in (
        ("root", 0),
        ("op", "sum"),
        ("segment", 0),
        ("fanout", 0),
        ("radix", 0),
        ("budget", 0),
        ("pattern", "even"),
        ("matrix", ""),
        ("buffer", 0),
        ("aggregators", 0),
        ("sequence", ""),
        ("latencies", 0),
        ("bystanders", 0),
    ):
        if (value := getattr(case, name)) != usual:
            about[name] = value
            options.append(f"{name}={value!r}")
    if case.places:
        about["places"] = text_of(case.places)
        options.append(f"places={about['places']!r}")
    flags = ("in_place", "reversed", "strict", "unused")
    options += [f"{name}=True" for name in flags if getattr(case, name)]
    run = "mpilab.run"
    if case.platform or case.latencies or case.ranks > MOST_ON_A_LAPTOP:
        run = "mpilab.simulated.run"
    if case.platform:
        about["platform"] = case.platform
        options.append(f"platform={case.platform!r}")
    words = ", ".join(options).replace("'", '"')
    return {**about, "reproduce": f'{run}("{exercise.function}", {words})'}


def _wrong(item: Item, result: Result, known: Known) -> Wrong | None:
    """The Wrong of this case, or None."""
    if result.outcome == ERROR:
        raise Ungradable(f"the case could not be run: {result.detail or result.outcome}")
    if result.outcome == SPENT:
        return Wrong(result, f"{result.detail}.")
    if result.crashed and result.crashed[1] == "SIGBUS":
        # A memory-mapped file got no space: the disk or /dev/shm is full.
        raise Ungradable("a rank was ended by SIGBUS: the disk or the shared memory was full")
    # The Result's own diagnosis was made where the answer ran: it explains but does not decide.
    try:
        if result.case not in known.diagnoses:
            known.diagnoses[result.case] = diagnose(replace(result, diagnosis=None))
        found = known.diagnoses[result.case]
    except Exception as error:  # whatever a recording contains, the grader continues
        faults.record(error, f"judging {result.case.describe()}")
        raise Ungradable("its output could not be read") from error
    if found is None or (found.kind == LEAK and not _reaches_the_next_call(found, result)):
        if result.case.collective == "barrier":
            _need_recording(result)  # nothing else shows whether it was a barrier
        wrong = _wrong_counts(item, result, found, known)
        if wrong is None:
            if result.case not in known.missing:
                last = result.of_last_call() if result.case.sequence else result
                known.missing[result.case] = _missing_messages(last)
            if missing := known.missing[result.case]:
                raise Ungradable(missing)
        return wrong
    if result.case in item.also:
        return None
    told = found
    if isinstance(result.diagnosis, Diagnosis) and result.diagnosis.kind == found.kind:
        told = result.diagnosis
    return Wrong(result, f"{told.headline.rstrip('.')}.", diagnosis=told)


def _reaches_the_next_call(leak: Diagnosis, result: Result) -> bool:
    """Whether calls of a sequence leave messages that nobody receives, so that the next call gets
    them instead of its own."""
    return leak.pattern == UNRECEIVED and bool(result.case.sequence)


_TIMES = {1: "once", 2: "a second time", 3: "a third time"}
_ORDINALS = {1: "second", 2: "third"}


def wrong_later(result: Result) -> Wrong | None:
    """The Wrong of a case that calls the kernel again and times the last call, or None.

    Raises Ungradable for a run whose record cannot be true: without messages for the data of the
    last call, or without time.
    """
    case, outputs = result.case, result.outputs
    if result.outcome in (ERROR, SKIPPED):
        raise Ungradable(result.detail or "the case could not be run")
    if result.outcome == SPENT:
        return Wrong(result, f"{result.detail}.")
    again = f"called {_TIMES.get(case.calls, f'{case.calls} times')}"
    if result.outcome != DONE:
        return Wrong(result, f"{again}, it did not finish ({result.outcome}).")
    if refused := [output.rank for output in outputs if output.returned]:
        return Wrong(result, f"{again}, it returned an error on {model.ranks(refused)}.")
    for call, ranks in wrong_calls(case, outputs).items():
        # Call 0 is not the first call of its process, which has already recorded the same case.
        which = f"the {_ORDINALS.get(call, f'{call + 1}th')} call" if call else "called again, it"
        reason = (
            f"{which} left a wrong result on {model.ranks(ranks)}: each call gets its own data, "
            "and must do all of the work."
        )
        return Wrong(result, reason)
    if any(len(output.spans_ns) != case.repetitions for output in outputs):
        raise Ungradable("the times of its calls are missing")
    if case.ranks > 1 and result.last_call_ns <= 0:
        raise Ungradable(f"its last call took {result.last_call_ns} ns, which is impossible")
    if missing := _missing_messages(result.of_last_call()):
        raise Ungradable(missing)
    return None


def _need_recording(result: Result) -> Recording:
    recording = result.recording
    if recording is None or len(recording.ranks) != result.case.ranks or not recording.complete:
        raise Ungradable("the recording of the run is not complete")
    return recording


def _missing_messages(result: Result) -> str:
    """Why a correct result cannot be judged: it holds data that no recorded message carried."""
    recording = result.recording
    if recording is None or len(recording.ranks) != result.case.ranks:
        return "the recording of the run is not complete" if result.case.record else ""
    missing = shortfall(result.case, recording)
    return f"the recording of the run is not complete: {missing}" if missing else ""


def _wrong_counts(item: Item, result: Result, leak: Diagnosis | None, known: Known) -> Wrong | None:
    """The Wrong of a case with a correct result, based on what is counted; `leak` says what
    leaked."""
    if not item.counted:
        return None
    if result.case not in known.counted:
        known.counted[result.case] = _counted(result)
    (recording, got), names = known.counted[result.case], names_of(result.case)
    if leak is not None and leak.pattern == UNRECEIVED:
        # The recording counts what was made and not freed.
        got = got | {"leaks": max(got["leaks"], 1)}
    wrong: dict[str, str] = {}
    for what, formula in item.counted:
        if what == PARTNERS:
            if astray := _astray(formula, names, recording):
                wrong[what] = astray
            continue
        quantity = what.removeprefix(MOST)
        expected, found = evaluate(formula, **names), got[quantity]
        if found > expected or (found < expected and what == quantity):
            unit, where, _ = _WORDS[quantity]
            most = "" if what == quantity else "at most "
            said = f"{found} {unit}{'s' * (found != 1)}{where}"
            wrong[quantity] = f"{said} where the algorithm has {most}{expected}"
    if not wrong:
        return None
    if leak is not None and wrong.keys() <= _LEFT_BEHIND:
        told = leak
        if isinstance(result.diagnosis, Diagnosis) and result.diagnosis.kind == LEAK:
            told = result.diagnosis
        evidence = {_WORDS[quantity][2]: got[quantity] for quantity in wrong}
        return Wrong(result, f"{told.headline.rstrip('.')}.", evidence, told)
    quantities = [what.removeprefix(MOST) for what, _ in item.counted]
    return Wrong(
        result,
        f"the result is right, but by another algorithm: {', '.join(wrong.values())}.",
        {_WORDS[quantity][2]: got[quantity] for quantity in quantities if quantity in _WORDS},
    )


def _counted(result: Result) -> tuple[Recording, dict[str, int]]:
    """(recording, counts) of the last call; what is left behind counts for every call."""
    recording = _need_recording(result)
    got = counts(recording, result.case.levels)
    if result.case.calls == 1 and not result.case.sequence:
        return recording, got
    last = _need_recording(result.of_last_call())
    return last, counts(last, result.case.levels) | {name: got[name] for name in _LEFT_BEHIND}


def _astray(formula: str, names: Mapping[str, Value], recording: Recording) -> str:
    """The first message that goes elsewhere than `formula` says, in words; "" if none does."""
    found = recording.messages
    # A pipeline sends thousands of messages to few partners, in other rounds.
    columns = ("round", "source", "dest") if "round" in formula else ("source", "dest")
    for row in np.unique(np.stack([found[name] for name in columns], axis=1), axis=0).tolist():
        *round_, source, dest = row
        to = evaluate(formula, **names, rank=source, round=round_[0] if round_ else 1)
        if dest != to:
            when = f"in round {round_[0]}, " if round_ else ""
            return f"{when}rank {source} sends to rank {dest}, where the algorithm has rank {to}"
    return ""
