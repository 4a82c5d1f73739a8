"""Seeded bugs: answers that are wrong on purpose, and what each of them must lose.

They are in grading/LAB/bugs/, named EXERCISE-WORDS.c or .py, as a student would hand them in.
grading/LAB/bugs.toml says the rest of each:

    ["pairwise-only-powers-of-two.c"]
    fault = "Partners by exclusive or: those beyond the last rank are left out."
    kind = "only powers of two"         # one of KINDS
    loses = ["any-size"]                # ids of items, or "all"
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from mpilab.build import ROOT
from mpilab.errors import InputError
from mpilab.grading.release import solutions
from mpilab.kernelcell import function_of

ALL = "all"
# What goes wrong in answers; "other" is none of these.
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
_KEYS = {"fault", "kind", "loses"}


@dataclass(frozen=True)
class Bug:
    """One seeded bug.

    exercise   id of the exercise that it is an answer to.
    fault      what is wrong with it, in a line; `kind` is one of KINDS.
    loses      ids of the items that it must lose, each of them and no other, in the rubric's order.
    """

    name: str
    exercise: str
    source: str
    fault: str
    kind: str
    loses: tuple


def bugs_of(lab, rubric, root=ROOT):
    """The seeded bugs of a lab in the order of bugs.toml: list of Bug.

    rubric   the lab's Rubric, which knows the exercises and items.

    Raises InputError, with file and bug, where a file has no entry or an entry no file, and for an
    exercise, item or kind that there is not.
    """
    folder = Path(root) / "grading" / lab
    listing = folder / "bugs.toml"
    try:
        table = tomllib.loads(listing.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{listing}: no such file; it says what each seeded bug loses") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{listing}: not TOML: {error}") from None
    files = {path.name: path for path in sorted((folder / "bugs").iterdir()) if path.is_file()}
    for name in files:
        if name not in table:
            raise InputError(f"{listing}: nothing about {name}; say what it loses")
    bugs = []
    for name, entry in table.items():
        if name not in files:
            raise InputError(f"{listing}: {name!r}: there is no such file in {folder / 'bugs'}")
        try:
            bugs.append(_bug(name, entry, files[name].read_text(encoding="utf-8"), rubric))
        except InputError as error:
            raise InputError(f"{listing}: {name!r}: {error}") from None
    return bugs


def references_of(lab, rubric, root=ROOT):
    """Answers that must get every point: list of (name, id of exercise, source).

    The solutions in the lab's source, and grading/LAB/reference/FUNCTION.c for the variants that
    the source does not choose. Raises InputError where a variant has neither.
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
            found.append((f"reference {variant.function}", exercise.id,
                          path.read_text(encoding="utf-8")))  # fmt: skip
    return found


def _bug(name, entry, source, rubric):
    if not isinstance(entry, dict) or set(entry) != _KEYS:
        raise InputError(f"give it {', '.join(sorted(_KEYS))}, and nothing else")
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
    return Bug(name, exercise.id, source, entry["fault"], entry["kind"],
               tuple(item for item in items if item in loses))  # fmt: skip
