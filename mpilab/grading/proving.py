"""Prove a rubric with answers whose verdicts are known: references, blanks and seeded bugs.

A reference gets every point, a blank answer none, and a seeded bug loses the points of exactly the
items that it breaks. Every run gives the same verdict, word for word. Without SimGrid, what only a
simulation can show is listed as unproved. The referee judges all answers in the sandbox, like a
student's.
"""

import tomllib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mpilab.diagnosis.model import Diagnosis, Table
from mpilab.errors import InputError
from mpilab.grading.answers import answer_cells, is_blank
from mpilab.grading.grade import Assignment, prepare
from mpilab.grading.referee import Referee
from mpilab.grading.release import solutions
from mpilab.grading.sandbox import Sandbox
from mpilab.grading.workers import Workers
from mpilab.judging import agreement
from mpilab.judging.rubric import KERNEL, TEXT, Exercise, Item, Rubric
from mpilab.judging.verdict import (
    FAIL,
    MANUAL,
    PASS,
    UNGRADABLE,
    ExerciseVerdict,
    ItemVerdict,
)
from mpilab.kernels.build import function_of
from mpilab.util import door
from mpilab.util.kit import ROOT
from mpilab.util.text import aligned

# grading/LAB/bugs.toml describes the seeded bugs, named EXERCISE-WORDS.c or .py:
#
#     ["reordered-colour-by-first-letter.c"]
#     fault = "Groups are split by the first letter of their names."
#     kind = "other"                      # one of KINDS
#     loses = ["regular", "crossing"]     # ids of items, or "all"
#     edit = [{ replace = "split_by_name(comm, ", by = "MPI_Comm_split(comm, " }]
#     of = "bcast_reordered"              # only if the exercise has variants: which one is edited
#
# The edits turn the reference into the bug, one after the other; each text to be replaced must
# occur exactly once. A bug without edits, one that has little in common with the reference, is a
# file of that name in grading/LAB/bugs/.

ALL = "all"
# What goes wrong in answers; "other" is anything else.
KINDS = (
    "wrong root",
    "off by one",
    "only powers of two",
    "relies on buffering",
    "leaks",
    "forbidden call",
    "another algorithm",
    "hard-coded for the public checks",
    "reads uninitialised memory",
    "wrong for zero counts",
    "wrong for operations that do not commute",
    "deadlocks",
    "ignores the datatype",
    "wrong formula",
    "does not compile, crashes or never ends",
    "other",
)
REFERENCE, BLANK, BUG = "reference", "blank", "seeded bug"
# Evidence that differs from run to run: how many seconds a rank of a hang had waited, how often it
# was seen at a line, how long a call took, and which rank came first if the order is undefined.
BY_THE_CLOCK = ("since", "looks", "took", "svg", "svg_alt")

_KEYS = {"fault", "kind", "loses"}
_EDIT_KEYS = {"edit", "of"}


@dataclass(frozen=True)
class Bug:
    """One seeded bug.

    exercise   id of the exercise that it answers.
    fault      what is wrong with it, in one line; `kind` is one of KINDS.
    loses      ids of exactly the items that it must lose, in the rubric's order.
    """

    name: str
    exercise: str
    source: str
    fault: str
    kind: str
    loses: tuple[str, ...]


def bugs_of(lab: str, rubric: Rubric, root: str | Path = ROOT) -> list[Bug]:
    """The seeded bugs of a lab, a list of Bug in the order of bugs.toml.

    rubric   the lab's Rubric, with the exercises and items.

    Raises InputError, naming file and bug, if a bug has neither edits nor a file, or both, if a
    file has no entry, if an edit does not fit the reference, and for an unknown exercise, item or
    kind.
    """
    folder = Path(root) / "grading" / lab
    listing = folder / "bugs.toml"
    try:
        table = tomllib.loads(listing.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{listing}: no such file; it says what each seeded bug loses") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{listing}: not TOML: {error}") from None
    files = {path.name: path for path in sorted((folder / "bugs").glob("*")) if path.is_file()}
    for name in files:
        if name not in table:
            raise InputError(f"{listing}: nothing about {name}; say what it loses")
    references = references_of(lab, rubric, root)
    bugs = []
    for name, entry in table.items():
        try:
            _check_keys(entry)
            if "edit" in entry and name in files:
                raise InputError(f"has edits, and is also the file {files[name]}; remove one")
            if "edit" in entry:
                source = _edited(name, entry, references)
            elif name in files:
                source = files[name].read_text(encoding="utf-8")
            else:
                raise InputError(
                    f"there is no such file in {folder / 'bugs'}; write it, or give the bug edits "
                    "of the reference: edit = [{ replace = ..., by = ... }]"
                )
            bugs.append(_bug(name, entry, source, rubric))
        except InputError as error:
            raise InputError(f"{listing}: {name!r}: {error}") from None
    return bugs


def _check_keys(entry: object) -> None:
    if not isinstance(entry, dict) or not _KEYS <= set(entry) <= _KEYS | _EDIT_KEYS:
        raise InputError(f"give it {', '.join(sorted(_KEYS))}, and nothing else but edit and of")


def _edited(name: str, entry: dict[str, Any], references: Iterable[tuple[str, str, str]]) -> str:
    """The source of a bug: the reference of its exercise, with its edits."""
    exercise = name.partition("-")[0]
    sources = [source for _, id, source in references if id == exercise]
    if "of" in entry:
        sources = [source for source in sources if function_of(source) == entry["of"]]
    if not sources:
        variant = f" that defines {entry['of']!r}" if "of" in entry else ""
        raise InputError(f"exercise {exercise!r} has no reference{variant}")
    text = sources[0]
    if not isinstance(entry["edit"], list) or not entry["edit"]:
        raise InputError("edit is not a list; write edit = [{ replace = ..., by = ... }]")
    for edit in entry["edit"]:
        if not isinstance(edit, dict) or set(edit) != {"replace", "by"}:
            raise InputError(f"the edit {edit!r} is not {{ replace = ..., by = ... }}")
        count = text.count(edit["replace"]) if edit["replace"] else 0
        if count != 1:
            raise InputError(
                f"the text {edit['replace']!r} occurs {count} times in the reference, and must "
                f"occur once; {'write more of it' if count else 'see labs/source for what it is'}"
            )
        text = text.replace(edit["replace"], edit["by"])
    return text


def references_of(lab: str, rubric: Rubric, root: str | Path = ROOT) -> list[tuple[str, str, str]]:
    """The answers that must get every point: a list of (name, id of exercise, source).

    They are the solutions in the lab's source and, for variants that the source does not choose,
    grading/LAB/reference/FUNCTION.c. Raises InputError if a variant has neither.
    """
    answers = solutions(Path(root) / "labs" / "source" / f"{lab}.py")
    folder, found = Path(root) / "grading" / lab / "reference", []
    for exercise in rubric.exercises:
        if exercise.id not in answers:
            raise InputError(f"{lab}: exercise {exercise.id!r} has no solution in the lab's source")
        found.append(("reference", exercise.id, answers[exercise.id]))
        chosen = function_of(answers[exercise.id])
        for variant in exercise.variants:
            path = folder / f"{variant.function}.c"
            if variant.function == chosen:
                continue
            if not path.exists():
                raise InputError(f"{path}: no such file; a variant needs an answer that is right")
            found.append(
                (f"reference {variant.function}", exercise.id, path.read_text(encoding="utf-8"))
            )
    return found


def _bug(name: str, entry: dict[str, Any], source: str, rubric: Rubric) -> Bug:
    if entry["kind"] not in KINDS:
        raise InputError(f"kind {entry['kind']!r} is unknown; write one of {', '.join(KINDS)}")
    exercise = rubric.exercise(name.partition("-")[0])
    judged_by = exercise.variant(function_of(source))
    if judged_by is None:
        raise InputError(f"its %%kernel line names none of {', '.join(exercise.functions)}")
    items = tuple(item.id for item in judged_by.items)
    loses = items if entry["loses"] == ALL else entry["loses"]
    for item in loses:
        if item not in items:
            raise InputError(f"loses {item!r}: no such item; there are {', '.join(items)}")
    if not loses:
        raise InputError("it loses nothing, so it is no bug")
    return Bug(
        name,
        exercise.id,
        source,
        entry["fault"],
        entry["kind"],
        tuple(item for item in items if item in loses),
    )


@dataclass(frozen=True)
class Answer:
    """One answer whose verdict is known in advance.

    role     REFERENCE, BLANK or BUG.
    wanted   {item id: outcome} that the referee must reach.
    """

    name: str
    role: str
    exercise: str
    source: str
    wanted: dict[str, str]


@dataclass(frozen=True)
class Proved:
    """The result of one answer.

    verdicts     one per run.
    deviations   as sentences.
    unproved     ids of the items that only a simulation could have proved.
    """

    answer: Answer
    verdicts: tuple[ExerciseVerdict, ...]
    deviations: tuple[str, ...]
    unproved: tuple[str, ...] = ()

    @property
    def lost(self) -> tuple[str, ...]:
        """The ids of the items that gave no points in the first run."""
        return tuple(item.item for item in self.verdicts[0].items if item.outcome != PASS)


@dataclass(frozen=True)
class Proof:
    """The results of all answers of a lab, in the rubric's order; each was judged `runs` times."""

    lab: str
    runs: int
    proved: tuple[Proved, ...]

    @property
    def deviations(self) -> list[str]:
        """All deviations, as sentences."""
        return [
            f"{each.answer.exercise}, {each.answer.name}: {said}"
            for each in self.proved
            for said in each.deviations
        ]

    @property
    def unproved(self) -> list[str]:
        """What could not be proved without SimGrid, as sentences."""
        return [
            f"{each.answer.exercise}, {each.answer.name}: {', '.join(each.unproved)}"
            for each in self.proved
            if each.unproved
        ]

    @property
    def unconfirmed(self) -> int:
        """The number of answers whose verdict no simulation has confirmed."""
        return sum(any(item.unconfirmed for item in each.verdicts[0].items) for each in self.proved)

    def count(self, role: str) -> int:
        """The number of answers with this role."""
        return sum(each.answer.role == role for each in self.proved)


def prove(
    lab: str,
    *,
    exercise: str | None = None,
    jobs: int | None = None,
    runs: int = 2,
    first_slot: int = 0,
    unsafe: bool = False,
    progress: bool = True,
    root: str | Path = ROOT,
) -> Proof:
    """Judge the references, the blanks and the seeded bugs of a lab; returns a Proof.

    exercise   judge only the answers to this one.
    jobs       how many answers are judged at a time, in sandbox slots from `first_slot` up.
    runs       how often each is judged: its verdicts must be equal, including reasons and evidence,
               except for BY_THE_CLOCK.

    Raises InputError for an incomplete lab, exercise or list of bugs, SetupError if there is no
    sandbox.
    """
    from tqdm.auto import tqdm

    assignment = Assignment.load(lab, root)
    answers = answers_of(assignment, exercise, root)
    prepare(assignment)

    def judged(sandbox: Sandbox, answer: Answer) -> ExerciseVerdict:
        asked = assignment.rubric.exercise(answer.exercise)
        return Referee(sandbox).judge(asked, answer.source, blank=answer.role == BLANK)

    with (
        Workers(jobs, first_slot=first_slot, unsafe=unsafe) as workers,
        tqdm(
            total=runs * len(answers), desc=f"proving {lab}", unit="answer", disable=not progress
        ) as bar,
    ):
        futures = {
            workers.submit(judged, answer): (run, number)
            for run in range(runs)
            for number, answer in enumerate(answers)
        }
        verdicts = {}
        for future in door.as_completed(futures):
            verdicts[futures[future]] = future.result()
            bar.update()
    proved = tuple(
        compare(answer, [verdicts[run, number] for run in range(runs)])
        for number, answer in enumerate(answers)
    )
    return Proof(lab, runs, proved)


def answers_of(
    assignment: Assignment, exercise: str | None = None, root: str | Path = ROOT
) -> list[Answer]:
    """Every Answer of an Assignment, or those to one exercise, in the rubric's order."""
    rubric = assignment.rubric
    if exercise is not None:
        rubric.exercise(exercise)
    stubs, answers = answer_cells(assignment.notebook), []
    for name, where, source in references_of(assignment.lab, rubric, root):
        by_hand = rubric.exercise(where).kind == TEXT
        wanted = dict.fromkeys(_items(rubric, where, source), MANUAL if by_hand else PASS)
        answers.append(Answer(name, REFERENCE, where, source, wanted))
    for each in rubric.exercises:
        stub = stubs[each.id]
        assert is_blank(stub, stub)
        wanted = dict.fromkeys((item.id for item in each.items), FAIL)
        answers.append(Answer("blank", BLANK, each.id, stub, wanted))
    for bug in bugs_of(assignment.lab, rubric, root):
        wanted = {
            item: FAIL if item in bug.loses else PASS
            for item in _items(rubric, bug.exercise, bug.source)
        }
        answers.append(Answer(bug.name, BUG, bug.exercise, bug.source, wanted))
    order = {each.id: number for number, each in enumerate(rubric.exercises)}
    return sorted(
        (answer for answer in answers if exercise in (None, answer.exercise)),
        key=lambda answer: order[answer.exercise],
    )


def _items(rubric: Rubric, exercise: str, source: str) -> list[str]:
    asked = rubric.exercise(exercise)
    judged_by = asked.variant(function_of(source))
    if judged_by is None:
        raise InputError(
            f"{rubric.lab}: the %%kernel line of an answer to {exercise!r} names none of "
            f"{', '.join(asked.functions)}; correct it in the lab's source"
        )
    return [item.id for item in judged_by.items]


def compare(answer: Answer, verdicts: Sequence[ExerciseVerdict]) -> Proved:
    """Compare the verdicts on an answer with the wanted outcomes and each other; returns Proved."""
    unproved = tuple(
        item.item for item, wanted in _beside(answer, verdicts[0]) if _is_open(item, wanted)
    )
    said = [
        f"{item.item} is {item.outcome}, and should be {wanted}"
        + (f": {item.reason}" if item.reason else "")
        for item, wanted in _beside(answer, verdicts[0])
        if item.outcome != wanted and item.item not in unproved
    ]
    said += _differences(verdicts)
    return Proved(answer, tuple(verdicts), tuple(said), unproved)


def _is_open(item: ItemVerdict, wanted: str) -> bool:
    """True if a simulation was not run and would decide the item."""
    if item.outcome == UNGRADABLE:
        return item.reason == agreement.NO_SIMULATION
    return item.unconfirmed and item.outcome == PASS and wanted == FAIL


def _beside(answer: Answer, verdict: ExerciseVerdict) -> Iterator[tuple[ItemVerdict, str]]:
    got = [item.item for item in verdict.items]
    if got != list(answer.wanted):
        raise AssertionError(f"{answer.name}: judged by {got}, not by {list(answer.wanted)}")
    return zip(verdict.items, answer.wanted.values(), strict=True)


def _is_table(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(row, dict) for row in value)


def _steady(verdict: ExerciseVerdict) -> ExerciseVerdict:
    """The verdict without the evidence in BY_THE_CLOCK."""

    def without(value: Any) -> Any:
        if not _is_table(value):
            return value
        return [
            {name: cell for name, cell in row.items() if name not in BY_THE_CLOCK} for row in value
        ]

    items = tuple(
        replace(
            item,
            evidence={
                name: without(value)
                for name, value in item.evidence.items()
                if name not in BY_THE_CLOCK
            },
            diagnoses=tuple(map(_steady_diagnosis, item.diagnoses)),
        )
        for item in verdict.items
    )
    return replace(verdict, items=items)


def _steady_diagnosis(diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis without its tables' columns in BY_THE_CLOCK."""

    def without(table: Table) -> Table:
        kept = [i for i, name in enumerate(table.columns) if name not in BY_THE_CLOCK]
        rows = tuple(tuple(row[i] for i in kept if i < len(row)) for row in table.rows)
        return replace(table, columns=tuple(table.columns[i] for i in kept), rows=rows)

    return replace(diagnosis, tables=tuple(map(without, diagnosis.tables)))


def _findings(item: ItemVerdict) -> dict[str, Any]:
    """The evidence of an item, and the parts of its diagnoses, by name."""
    findings = dict(item.evidence)
    for diagnosis in item.diagnoses:
        findings |= {
            f"{diagnosis.kind}, {name}": part for name, part in diagnosis.to_json().items()
        }
    return findings


def _differences(verdicts: Iterable[ExerciseVerdict]) -> Iterator[str]:
    """Yield how later verdicts differ from the first, item by item, as sentences."""
    verdicts = [_steady(verdict) for verdict in verdicts]
    for run, other in enumerate(verdicts[1:], 2):
        for first, later in zip(verdicts[0].items, other.items, strict=True):
            if first.outcome != later.outcome or first.reason != later.reason:
                yield (
                    f"{first.item} in run 1: {first.outcome} {first.reason!r}, in run {run}: "
                    f"{later.outcome} {later.reason!r}"
                )
            elif first != later:
                before, after = _findings(first), _findings(later)
                told = "; ".join(
                    f"{name}: {before.get(name)!r}, then {after.get(name)!r}"
                    for name in {**before, **after}
                    if before.get(name) != after.get(name)
                )
                yield f"{first.item}: its evidence in run {run} is another one: {told}"


# Rubrics and proofs as text tables.


def rubric_table(rubric: Rubric) -> str:
    """The exercises and items of a Rubric: points, cases on Open MPI and in simulation."""
    rows = [("exercise", "item", "points", "real", "simulated", "title")]
    for exercise in rubric.exercises:
        for each in exercise.variants or (exercise,):
            rows.append(
                (exercise.id, "", f"{each.points:g}", *_tried(each, each.items), each.title)
            )
            rows += [
                ("", item.id, f"{item.points:g}", *_tried(each, [item]), item.title)
                for item in each.items
            ]
    total = sum(exercise.points for exercise in rubric.exercises)
    return f"{aligned(rows, left=range(len(rows[0])))}\n\n{rubric.title}: {total:g} points"


def _tried(exercise: Exercise, items: Iterable[Item]) -> tuple[str, str]:
    """The number of distinct cases on Open MPI and in simulation, or of calls in Python."""
    if exercise.kind == KERNEL:
        real = {case for item in items for case in item.cases}
        simulated = {case for item in items for case in item.simulated}
        return str(len(real)), str(len(real | simulated))
    calls = {repr(call) for item in items for call in item.arguments}
    return (f"{len(calls)} calls" if calls else "a person"), ""


def proof_table(proof: Proof) -> str:
    """One line per answer of a Proof: what it must lose, what it lost, and its points."""
    rows = [("exercise", "answer", "must lose", "lost", "points", "ok")]
    for each in proof.proved:
        items = [item for item, wanted in each.answer.wanted.items() if wanted == FAIL]
        verdict = each.verdicts[0]
        given = "a person's" if verdict.awarded is None else f"{verdict.awarded:g}"
        lost = [item.item for item in verdict.items if item.outcome == FAIL]
        rows.append(
            (
                each.answer.exercise,
                each.answer.name,
                _named(items, verdict),
                _named(lost, verdict),
                f"{given} of {verdict.points:g}",
                "NO" if each.deviations else "?" if each.unproved else "yes",
            )
        )
    return aligned(rows, left=range(len(rows[0])))


def counts(proof: Proof) -> str:
    """The last line: the numbers of answers and deviations."""
    roles = ", ".join(
        f"{proof.count(role)} {words}"
        for role, words in ((REFERENCE, "references"), (BLANK, "blanks"), (BUG, "seeded bugs"))
    )
    runs = "once" if proof.runs == 1 else f"{proof.runs} times"
    cases = len(proof.deviations)
    said = f"{cases} deviation{'s' * (cases != 1)}" if cases else "all as it should be"
    if proof.unproved or proof.unconfirmed:
        said = f"{cases} deviation{'s' * (cases != 1)} on Open MPI, simulation not tried"
    return f"{proof.lab}: {roles}, each judged {runs}: {said}"


def _named(items: Collection[str], verdict: ExerciseVerdict) -> str:
    if not items:
        return "-"
    return "all" if len(items) == len(verdict.items) else " ".join(items)
