"""What a lab asks for: exercises and their items, read from a TOML file.

The same form serves twice: labs/checks/LAB.toml is what students may try their answer with, and
grading/LAB/rubric.toml what the referee decides by.

    lab = "02-allgather"
    title = "Allgather"

    [parameters]                        # rubric only: for the notebook's `parameters` cell
    RANKS = 4

    [[exercise]]
    id = "pairwise"                     # the answer cell's grade_id
    title = "Pairwise exchange"
    kind = "kernel"                     # or "python", "text"
    collective = "allgather"            # kernel: the prototype
    function = "allgather_pairwise"     # kernel, python: what the answer has to define
    allowed = ["point-to-point"]        # kernel: groups of MPI calls, see mpilab/symbols.py
    reference = "allgather/pairwise.c"  # kernel: our own, below src_c

    [[exercise.item]]
    id = "any-size"
    title = "Right for every number of ranks"
    points = 6
    ranks = [3, 5, 6, 7]                # all combinations of these are tried
    counts = [1, 7]
    datatypes = ["int"]
    in_place = [false]
    reversed = [false]
    strict = false
    messages = "P * ceil_log2(P)"       # what the recording must show, in P and m
    rounds = "ceil_log2(P)"
    bytes = "P * (P - 1) * m"
"""

import hashlib
import tomllib
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from mpilab.errors import InputError
from mpilab.formula import evaluate, names_of
from mpilab.harness import Case

KERNEL, PYTHON, TEXT = "kernel", "python", "text"
_COUNTED = ("rounds", "messages", "bytes")
_EXERCISE_KEYS = {"id", "title", "kind", "collective", "function", "allowed", "reference", "item"}
_ITEM_KEYS = {"id", "title", "points", "ranks", "counts", "datatypes", "in_place", "reversed",
              "strict", "arguments", "expected", *_COUNTED}  # fmt: skip


@dataclass(frozen=True)
class Item:
    """The smallest thing that carries points.

    cases      for a kernel: what it is run with.
    counted    for a kernel: {"rounds" | "messages" | "bytes": formula} that recordings must show.
    arguments  for a Python function: the argument lists it is called with.
    expected   for a Python function: name of the trusted function in grading/LAB/expected.py.
    """

    id: str
    title: str
    points: float
    cases: tuple = ()
    counted: tuple = ()
    arguments: tuple = ()
    expected: str = ""


@dataclass(frozen=True)
class Exercise:
    """One answer that the lab asks for."""

    id: str
    title: str
    kind: str
    items: tuple
    collective: str = ""
    function: str = ""
    allowed: tuple = ()
    reference: str = ""

    @property
    def points(self):
        """Points that can be had."""
        return sum(item.points for item in self.items)


@dataclass(frozen=True)
class Rubric:
    """All exercises of a lab.

    digest_text  decides whether the rubric has changed.
    parameters   what papermill sets when it runs a submission.
    """

    lab: str
    title: str
    exercises: tuple
    digest_text: str
    parameters: dict = field(default_factory=dict)

    def exercise(self, name):
        """The exercise with this id; InputError, with the known ones, where there is none."""
        for exercise in self.exercises:
            if exercise.id == name:
                return exercise
        known = ", ".join(exercise.id for exercise in self.exercises)
        raise InputError(f"exercise {name!r}: not in lab {self.lab}; it has {known}")


def load(path, seed=1):
    """Read a rubric; `seed` is what the buffers of its cases are made from.

    Raises InputError that names the file, the place and the value.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
        table = tomllib.loads(text)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; is the name of the lab right?") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not TOML: {error}") from None
    try:
        exercises = tuple(_exercise(entry, seed) for entry in table["exercise"])
        rubric = Rubric(table["lab"], table.get("title", table["lab"]), exercises, text,
                        table.get("parameters", {}))  # fmt: skip
    except KeyError as error:
        raise InputError(f"{path}: the key {error} is missing") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    _refuse_twins([exercise.id for exercise in exercises], f"{path}: two exercises")
    return rubric


def _exercise(entry, seed):
    where = f"exercise {entry['id']!r}"
    _refuse_unknown(entry, _EXERCISE_KEYS, where)
    kind = entry["kind"]
    if kind not in (KERNEL, PYTHON, TEXT):
        raise InputError(f"{where}: kind {kind!r} is unknown; write kernel, python or text")
    items = tuple(_item(item, entry, seed, where) for item in entry["item"])
    _refuse_twins([item.id for item in items], f"{where}: two items")
    return Exercise(entry["id"], entry["title"], kind, items, entry.get("collective", ""),
                    entry.get("function", ""), tuple(entry.get("allowed", ())),
                    entry.get("reference", ""))  # fmt: skip


def _item(entry, exercise, seed, where):
    where = f"{where}, item {entry['id']!r}"
    _refuse_unknown(entry, _ITEM_KEYS, where)
    if not entry["points"] >= 0:
        raise InputError(f"{where}: points = {entry['points']}: has to be 0 or more")
    cases = ()
    if exercise["kind"] == KERNEL:
        combinations = product(
            sorted(entry["ranks"]), entry["counts"], entry.get("datatypes", ["int"]),
            entry.get("in_place", [False]), entry.get("reversed", [False]))  # fmt: skip
        strict = entry.get("strict", False)
        cases = tuple(
            _case(exercise["collective"], strict, seed, *combination)
            for combination in combinations
        )
        if not cases:
            raise InputError(f"{where}: no case in it; name at least one of ranks and of counts")
    if exercise["kind"] == PYTHON and not (entry["arguments"] and entry["expected"]):
        raise InputError(
            f"{where}: nothing to call or to compare with; fill in arguments and expected"
        )
    counted = tuple((what, entry[what]) for what in _COUNTED if what in entry)
    for case in cases:
        for what, formula in counted:
            _evaluate(formula, case, f"{where}, {what}")
    arguments = tuple(map(tuple, entry.get("arguments", ())))
    return Item(entry["id"], entry["title"], entry["points"], cases, counted, arguments,
                entry.get("expected", ""))  # fmt: skip


def _evaluate(formula, case, where):
    try:
        evaluate(formula, **names_of(case))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _case(collective, strict, seed, *parameters):
    """A case whose seed depends on its parameters: the same case in two items is the same case."""
    text = repr((seed, collective, strict, *parameters)).encode()
    own_seed = int.from_bytes(hashlib.sha256(text).digest()[:7], "big")
    return Case(collective, *parameters, strict=strict, seed=own_seed)


def _refuse_twins(names, what):
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{what} are called {name!r}; rename one")


def _refuse_unknown(entry, known, where):
    for key in entry:
        if key not in known:
            raise InputError(f"{where}: unknown key {key!r}; known are {', '.join(sorted(known))}")
