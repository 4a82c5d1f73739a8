"""Prove a rubric with answers whose correct verdicts are known, and test it with mutants.

The former are references, honest variants, blanks and seeded bugs (`prove`). Mutants are references
with one small mistake each (`mutate`), which a good rubric detects.

References get every point, and so do honest variants, which are rewritten references; a blank
answer gets none, and a seeded bug loses the points of exactly the items that it breaks. Every run
gives the same verdict, word for word. Without SimGrid, items that only a simulation can decide are
listed as unproved. The referee judges all answers in the sandbox, like a student's.
"""

import json
import re
import tempfile
import tomllib
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from mpilab.diagnosis.model import Diagnosis, Table
from mpilab.errors import InputError
from mpilab.grading.answers import answer_cells, is_blank
from mpilab.grading.grade import Assignment, prepare
from mpilab.grading.gradebook import key
from mpilab.grading.referee import Referee, kernel_reserve
from mpilab.grading.release import solutions
from mpilab.grading.sandbox import Sandbox
from mpilab.grading.workers import Workers
from mpilab.judging import agreement, battery, mutation
from mpilab.judging.mutation import Judged, Mutant, Score
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
from mpilab.util import door, kit
from mpilab.util.files import atomic_write
from mpilab.util.kit import ROOT
from mpilab.util.text import aligned

# grading/LAB/bugs.toml describes the seeded bugs, named EXERCISE-WORDS.c or .py:
#
#     ["reordered-color-by-first-letter.c"]
#     fault = "Groups are split by the first letter of their names."
#     kind = "other"                      # one of KINDS
#     loses = ["regular", "crossing"]     # ids of items, or "all"
#     edit = [{ replace = "split_by_name(comm, ", by = "MPI_Comm_split(comm, " }]
#     of = "bcast_reordered"              # only if the exercise has variants: which one is edited
#
# The edits turn the reference into the bug, one after another; each text to be replaced must occur
# exactly once. A bug that has little in common with the reference has no edits; it is a file of
# that name in grading/LAB/bugs/.

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
    "reads uninitialized memory",
    "wrong for zero counts",
    "wrong for operations that do not commute",
    "another communicator",
    "state of an earlier call",
    "deadlocks",
    "ignores the datatype",
    "wrong formula",
    "does not compile, crashes or never ends",
    "other",
)
REFERENCE, BLANK, BUG, VARIANT = "reference", "blank", "seeded bug", "honest variant"
# Evidence that differs from run to run: how many seconds a rank of a hang had waited, how often it
# was seen at a line, how long a call took, and which rank came first if the order is undefined.
BY_THE_CLOCK = ("since", "looks", "took", "svg", "svg_alt")

_KEYS = {"fault", "kind", "loses"}
_EDIT_KEYS = {"edit", "of"}

# grading/variants.toml describes the variants that every lab has, named WORDS:
#
#     [waitany]
#     what = "non-blocking calls, completed in the order in which they end"
#     calls = { MPI_Send = "my_send" }    # functions, and what replaces them
#     with = "static int my_send(…"       # text inserted after the #include lines
#     uses = "nonblocking"                # the one of `pieces` that is inserted after `with`
#     layout = "crlf"                     # one of LAYOUTS
#
# Only `what` is required. A variant is made from the reference of each C exercise that calls one of
# `calls`; without `calls`, from every reference. grading/LAB/variants.toml describes a lab's own
# variants, named EXERCISE-WORDS.c: `what`, with `edit` and `of` as for a seeded bug.
PIECES = "pieces"
LAYOUTS = ("crlf", "tabs", "comments")
_VARIANT_KEYS = {"what", "calls", "with", "uses", "layout"}


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
        raise InputError(
            f"{listing}: no such file; it must list what each seeded bug loses"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{listing}: not TOML: {error}") from None
    files = {path.name: path for path in sorted((folder / "bugs").glob("*")) if path.is_file()}
    for name in files:
        if name not in table:
            raise InputError(
                f"{listing}: no entry for {name}; add one with the items that it loses"
            )
    references = references_of(lab, rubric, root)
    bugs = []
    for name, entry in table.items():
        try:
            _check_keys(entry, _KEYS, _EDIT_KEYS)
            if "edit" in entry and name in files:
                raise InputError(f"it has edits, but is also the file {files[name]}; remove one")
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


def _check_keys(entry: object, needed: set[str], other: set[str]) -> None:
    if not isinstance(entry, dict) or not needed <= set(entry) <= needed | other:
        raise InputError(
            f"give it {', '.join(sorted(needed))}; it may also have {', '.join(sorted(other))}"
        )


def _edited(name: str, entry: dict[str, Any], references: Iterable[tuple[str, str, str]]) -> str:
    """The source of a bug: the reference of its exercise, with its edits."""
    exercise = name.partition("-")[0]
    sources = [source for _, id, source in references if id == exercise]
    if "of" in entry:
        sources = [source for source in sources if function_of(source) == entry["of"]]
    if not sources:
        defining = f" that defines {entry['of']!r}" if "of" in entry else ""
        raise InputError(f"exercise {exercise!r} has no reference{defining}")
    text = sources[0]
    if not isinstance(entry["edit"], list) or not entry["edit"]:
        raise InputError("edit is not a list; write edit = [{ replace = ..., by = ... }]")
    for edit in entry["edit"]:
        if not isinstance(edit, dict) or set(edit) != {"replace", "by"}:
            raise InputError(f"the edit {edit!r} is not {{ replace = ..., by = ... }}")
        count = text.count(edit["replace"]) if edit["replace"] else 0
        if count != 1:
            raise InputError(
                f"the text {edit['replace']!r} occurs {count} times in the reference, but must "
                f"occur once; {'quote more of it' if count else 'see the reference in labs/source'}"
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
                raise InputError(f"{path}: no such file; a variant needs a correct answer")
            found.append(
                (f"reference {variant.function}", exercise.id, path.read_text(encoding="utf-8"))
            )
    return found


@dataclass(frozen=True)
class Variant:
    """An honest variant: the reference of an exercise, rewritten as `what` says."""

    name: str
    exercise: str
    source: str
    what: str


def variants_of(lab: str, rubric: Rubric, root: str | Path = ROOT) -> list[Variant]:
    """The honest variants of a lab's C answers: those of all labs, then those of this lab.

    Raises InputError, naming file and variant, for an entry that is incomplete or does not fit.
    """
    references = [
        each for each in references_of(lab, rubric, root) if rubric.exercise(each[1]).kind == KERNEL
    ]
    folder = Path(root) / "grading"
    variants: list[Variant] = []
    for listing in (folder / "variants.toml", folder / lab / "variants.toml"):
        table = _read(listing) if listing.exists() else {}
        pieces = table.pop(PIECES, {})
        for name, entry in table.items():
            try:
                if listing.parent == folder:
                    variants += _rewritten(name, entry, pieces, references)
                    continue
                _check_keys(entry, {"what", "edit"}, {"of"})
                source, exercise = _edited(name, entry, references), name.partition("-")[0]
                variants.append(Variant(name, exercise, source, entry["what"]))
            except InputError as error:
                raise InputError(f"{listing}: {name!r}: {error}") from None
    return variants


def _read(listing: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(listing.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{listing}: not TOML: {error}") from None


def _rewritten(
    name: str,
    entry: dict[str, Any],
    pieces: dict[str, str],
    references: Iterable[tuple[str, str, str]],
) -> Iterator[Variant]:
    """Yield the Variant of each reference that an entry of grading/variants.toml applies to."""
    _check_keys(entry, {"what"}, _VARIANT_KEYS)
    calls, layout = entry.get("calls", {}), entry.get("layout", "")
    if layout and layout not in LAYOUTS:
        raise InputError(f"layout {layout!r} is unknown; write one of {', '.join(LAYOUTS)}")
    if entry.get("uses", PIECES) not in (PIECES, *pieces):
        raise InputError(f"uses {entry['uses']!r}: no such piece; there are {', '.join(pieces)}")
    more = entry.get("with", "") + pieces.get(entry.get("uses", ""), "")
    called = re.compile(rf"\b({'|'.join(calls)})(?= ?\()") if calls else None
    for _, exercise, source in references:
        if called and not called.search(source):
            continue
        text = called.sub(lambda found: calls[found[1]], source) if called else source
        head, include, body = text.rpartition("#include ")
        line, _, body = body.partition("\n")
        text = f"{head}{include}{line}\n{more}{body}"
        function = function_of(source)
        yield Variant(f"{function}-{name}.c", exercise, _laid_out(text, layout), entry["what"])


def _laid_out(text: str, layout: str) -> str:
    """C text with changed line ends, indentation or comments."""
    if layout == "crlf":
        return text.replace("\n", "\r\n")
    if layout == "tabs":
        lines = (re.sub("^( {4})+", _as_tabs, line) for line in text.split("\n"))
        return " \t\n".join(lines)
    if layout == "comments":
        return re.sub(r";$", r"; // \"ü\" it's; \\\\ ?", text, flags=re.MULTILINE)
    return text


def _as_tabs(blanks: re.Match[str]) -> str:
    return "\t" * (len(blanks[0]) // 4)


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
        raise InputError("it loses nothing, so it is not a bug")
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

    role     REFERENCE, BLANK, BUG or VARIANT.
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
    variants: bool = False,
    sample: int | None = None,
    quick: bool = False,
    root: str | Path = ROOT,
) -> Proof:
    """Judge the references, the blanks and the seeded bugs of a lab; returns a Proof.

    exercise   judge only the answers to this one.
    variants   judge the honest variants of the C answers instead.
    sample     judge only that many variants of each function, different ones for each function and
               lab, or that many seeded bugs of each exercise, first those that lose other items.
    quick      judge honest variants with a few cases of each item only, and a seeded bug in C by
               simulation alone, unless that finds that it loses anything else than it must.
    jobs       how many answers are judged at once, in sandbox slots from `first_slot` up.
    runs       how often each is judged: its verdicts must be equal, including reasons and evidence,
               except for BY_THE_CLOCK.

    Raises InputError for an incomplete lab, exercise or list of bugs, SetupError if there is no
    sandbox.
    """
    assignment = Assignment.load(lab, root)
    if variants:
        answers = variant_answers(assignment, exercise, sample, root)
    else:
        answers = answers_of(assignment, exercise, sample, root)
    prepare(assignment)
    reserve = kernel_reserve(assignment.rubric.exercises)

    def judged(sandbox: Sandbox, answer: Answer) -> ExerciseVerdict:
        asked = assignment.rubric.exercise(answer.exercise)
        referee = Referee(sandbox, reserve=reserve)
        if quick and asked.kind == KERNEL:
            if answer.role == VARIANT:
                asked = agreement.with_few_cases(asked)
            elif answer.role == BUG:
                verdict = referee.judge_simulated(asked, answer.source)
                if not compare(answer, [verdict]).deviations:
                    return verdict
        return referee.judge(asked, answer.source, blank=answer.role == BLANK)

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
    assignment: Assignment,
    exercise: str | None = None,
    sample: int | None = None,
    root: str | Path = ROOT,
) -> list[Answer]:
    """Every Answer of an Assignment, or those to one exercise, in the rubric's order.

    With `sample`, only that many seeded bugs of each exercise.
    """
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
    for bug in _sampled(bugs_of(assignment.lab, rubric, root), sample):
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


def _sampled(bugs: Sequence[Bug], sample: int | None) -> list[Bug]:
    """At most `sample` bugs of each exercise: those first that lose other items than those before.

    They stay in their order.
    """
    losing: dict[tuple[str, tuple[str, ...]], list[Bug]] = {}
    for bug in bugs:
        losing.setdefault((bug.exercise, bug.loses), []).append(bug)
    by_turns = [bug for turn in zip_longest(*losing.values()) for bug in turn if bug is not None]
    chosen = Counter[str]()
    kept = set()
    for bug in by_turns:
        if sample is None or chosen[bug.exercise] < sample:
            chosen[bug.exercise] += 1
            kept.add(bug.name)
    return [bug for bug in bugs if bug.name in kept]


def variant_answers(
    assignment: Assignment,
    exercise: str | None = None,
    sample: int | None = None,
    root: str | Path = ROOT,
) -> list[Answer]:
    """An Answer for each honest variant of an Assignment, or of one exercise, by function.

    With `sample`, only that many for each function, evenly spread and different for each function.
    """
    rubric = assignment.rubric
    if exercise is not None:
        rubric.exercise(exercise)
    functions: dict[str, list[Answer]] = {}
    for variant in variants_of(assignment.lab, rubric, root):
        if exercise in (None, variant.exercise):
            wanted = dict.fromkeys(_items(rubric, variant.exercise, variant.source), PASS)
            answer = Answer(variant.name, VARIANT, variant.exercise, variant.source, wanted)
            functions.setdefault(function_of(variant.source), []).append(answer)
    answers = []
    for function, found in functions.items():
        count = len(found) if sample is None else min(sample, len(found))
        first = zlib.crc32(function.encode()) if sample else 0
        chosen = sorted((first + i * len(found) // count) % len(found) for i in range(count))
        answers += [found[i] for i in chosen]
    order = {each.id: number for number, each in enumerate(rubric.exercises)}
    return sorted(answers, key=lambda answer: order[answer.exercise])


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
        f"{item.item} is {item.outcome}, but should be {wanted}"
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
                yield f"{first.item}: its evidence differs in run {run}: {told}"


# Mutants: does the rubric detect small mistakes?

# A file beside the rubric: mutants that behave like the reference (see mpilab.judging.mutation).
EQUIVALENT = "equivalent.toml"


def mutate(
    lab: str,
    exercises: Collection[str] = (),
    *,
    sample: int | None = None,
    seed: int = 1,
    listed: bool = False,
    again: bool = False,
    quick: bool = False,
    jobs: int | None = None,
    first_slot: int = 0,
    unsafe: bool = False,
    progress: bool = True,
    root: str | Path = ROOT,
) -> list[Score]:
    """Judge mutants of the references of a lab's C exercises, by simulation; a Score for each.

    exercises   judge only those of these exercises.
    sample      how many mutants of each reference are judged, chosen by `seed`; default: all.
    listed      judge the mutants that equivalent.toml lists, instead of the others.
    again       also judge those whose verdict is in the user's cache.
    quick       judge a mutant with few cases first, and with all only if it loses no item by these:
                the scores are the same, the counts of items that were lost too low.

    Raises InputError for an unknown exercise and an incomplete lab, or if an entry of
    equivalent.toml matches no mutant; SetupError without tree-sitter or a sandbox.
    """
    assignment = Assignment.load(lab, root)
    for name in exercises:
        if assignment.rubric.exercise(name).kind != KERNEL:
            raise InputError(f"exercise {name!r}: not in C; only kernels have mutants")
    references = [
        (exercise, source, mutation.mutants_of(exercise, source))
        for _, exercise, source in references_of(lab, assignment.rubric, root)
        if assignment.rubric.exercise(exercise).kind == KERNEL
    ]
    equivalents = mutation.read_equivalents(
        Path(root) / "grading" / lab / EQUIVALENT,
        [mutant for *_, mutants in references for mutant in mutants],
    )
    prepare(assignment)
    judge = _MutantJudge(assignment, again, quick)
    with (
        Workers(jobs, first_slot=first_slot, unsafe=unsafe) as workers,
        tqdm(desc=f"mutants of {lab}", unit="mutant", disable=not progress) as bar,
    ):
        started = []
        for exercise, source, mutants in references:
            if exercises and exercise not in exercises:
                continue
            chosen = [
                mutant
                for mutant in mutation.in_random_order(mutants, seed)
                if any(one.matches(mutant) for one in equivalents) == listed
            ]
            draw = _Draw(exercise, source, chosen, sample)
            draw.equivalent = 0 if listed else len(mutants) - len(chosen)
            started.append((draw, [workers.submit(judge, mutant) for mutant in draw.distinct]))
        bar.reset(total=sum(len(futures) for _, futures in started))
        for future in door.as_completed([each for _, futures in started for each in futures]):
            future.result()
            bar.update()
        return [
            draw.score(assignment.rubric, [future.result() for future in futures])
            for draw, futures in started
        ]


class _Draw:
    """The first `most` of some mutants that compile, each to different machine code."""

    def __init__(
        self, exercise: str, source: str, mutants: Sequence[Mutant], most: int | None
    ) -> None:
        self.exercise, self.source = exercise, source
        self.distinct: list[Mutant] = []
        self.not_compiled = self.same = self.equivalent = 0
        with tempfile.TemporaryDirectory(prefix="mpilab-mutants-") as folder:
            known = {mutation.machine_code(source, Path(folder))}
            for mutant in mutants:
                if most is not None and len(self.distinct) >= most:
                    break
                code = mutation.machine_code(mutant.source, Path(folder))
                if code is None:
                    self.not_compiled += 1
                elif code in known:
                    self.same += 1
                else:
                    known.add(code)
                    self.distinct.append(mutant)

    def score(self, rubric: Rubric, judged: Sequence[Judged]) -> Score:
        """The Score of the mutants."""
        return Score(
            self.exercise,
            function_of(self.source),
            self.source,
            tuple(_items(rubric, self.exercise, self.source)),
            self.not_compiled + self.same + self.equivalent + len(judged),
            self.not_compiled,
            self.same,
            self.equivalent,
            tuple(judged),
        )


class _MutantJudge:
    """Judges a mutant in a sandbox, unless the cache has a verdict on the same text."""

    def __init__(self, assignment: Assignment, again: bool, quick: bool = False) -> None:
        self.assignment, self.again, self.quick = assignment, again, quick
        self.reserve = kernel_reserve(assignment.rubric.exercises)
        self.cache = kit.user_cache() / "mutants"

    def __call__(self, sandbox: Sandbox, mutant: Mutant) -> Judged:
        asked = self.assignment.parts[mutant.exercise]
        path = self.cache / f"{key(mutant.source, asked)}.json"
        if self.quick and not path.exists():
            path = path.with_suffix(".quick.json")
        if not self.again and path.exists():
            return Judged(mutant, json.loads(path.read_text(encoding="utf-8"))["lost"])
        exercise = self.assignment.rubric.exercise(mutant.exercise)
        for _ in range(2):  # a machine under load may not reach a verdict the first time
            referee = Referee(sandbox, reserve=self.reserve)
            verdict = referee.judge_simulated(exercise, mutant.source, quick=self.quick)
            judged = Judged.of(mutant, verdict)
            if not judged.undecided:
                atomic_write(path, json.dumps({"lost": judged.lost}))
                break
        return judged


# Rubrics and proofs as text tables.


def rubric_table(rubric: Rubric) -> str:
    """The exercises and items of a Rubric: points, and cases on Open MPI and in simulation."""
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
    left_out = [
        f"{each.function}: not tried {battery.FACETS[facet].words}: {reason}\n"
        for exercise in rubric.exercises
        for each in exercise.variants or (exercise,)
        for facet, reason in each.narrow
    ]
    table = aligned(rows, left=range(len(rows[0])))
    return f"{table}\n\n{''.join(left_out)}{rubric.title}: {total:g} points"


def _tried(exercise: Exercise, items: Iterable[Item]) -> tuple[str, str]:
    """The number of distinct cases on Open MPI and in simulation, or of calls in Python."""
    if exercise.kind == KERNEL:
        real = {case for item in items for case in item.cases}
        simulated = {case for item in items for case in item.simulated}
        return str(len(real)), str(len(real | simulated))
    calls = {repr(call) for item in items for call in item.arguments}
    return (f"{len(calls)} calls" if calls else "manual"), ""


def proof_table(proof: Proof) -> str:
    """One line per answer of a Proof: what it must lose, what it lost, and its points."""
    rows = [("exercise", "answer", "must lose", "lost", "points", "ok")]
    for each in proof.proved:
        items = [item for item, wanted in each.answer.wanted.items() if wanted == FAIL]
        verdict = each.verdicts[0]
        given = "manual" if verdict.awarded is None else f"{verdict.awarded:g}"
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


def variant_table(proof: Proof) -> str:
    """One line per function of a Proof of honest variants: how many exist, how many passed."""
    rows = [("exercise", "function", "variants", "full marks")]
    functions: dict[tuple[str, str], list[Proved]] = {}
    for each in proof.proved:
        functions.setdefault((each.answer.exercise, function_of(each.answer.source)), []).append(
            each
        )
    for (exercise, function), found in functions.items():
        full = sum(not each.lost for each in found)
        rows.append((exercise, function, str(len(found)), str(full)))
    return aligned(rows, left=(0, 1))


def counts(proof: Proof) -> str:
    """The last line: the numbers of answers and deviations."""
    words = {REFERENCE: "references", BLANK: "blanks", BUG: "seeded bugs"}
    if proof.count(VARIANT):
        words = {VARIANT: "honest variants"}
    roles = ", ".join(f"{proof.count(role)} {name}" for role, name in words.items())
    runs = "once" if proof.runs == 1 else f"{proof.runs} times"
    cases = len(proof.deviations)
    said = f"{cases} deviation{'s' * (cases != 1)}" if cases else "no deviations"
    if proof.unproved or proof.unconfirmed:
        said = f"{cases} deviation{'s' * (cases != 1)} on Open MPI, not simulated"
    return f"{proof.lab}: {roles}, each judged {runs}: {said}"


def _named(items: Collection[str], verdict: ExerciseVerdict) -> str:
    if not items:
        return "-"
    return "all" if len(items) == len(verdict.items) else " ".join(items)
