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
    counts = [1, 7]                     # a barrier has none
    datatypes = ["int"]
    in_place = [false]
    reversed = [false]
    roots = [0, -1]                     # a negative one counts from the last rank
    ops = ["sum", "compose"]
    segments = [0, 64]                  # mpilab_tuning: bytes; 0 is the algorithm's own default
    fanouts = [0, 3]
    radixes = [0]
    strict = false
    messages = "P * ceil_log2(P)"       # what the recording must show (names: mpilab/formula.py)
    rounds = "ceil_log2(P)"
    bytes = "P * (P - 1) * m"
    busiest_messages = "ceil_log2(P)"   # sent by the rank that sends most, and
    busiest_received = "ceil_log2(P)"   # got by the rank that gets most
    most_busiest_bytes = "(P - 1) * m"  # with most_: no more than that

Where students may choose among algorithms, an exercise of kind "kernel" has variants in place of
function, reference and items. `%%kernel NAME` in the answer cell says which one it is, and all are
worth the same:

    [[exercise.variant]]
    function = "bcast_chain"
    collective = "bcast"                # this and `allowed` may also stand in the exercise, for all
    reference = "bcast/chain.c"

    [[exercise.variant.item]]
    id = "any-size"
"""

import hashlib
import tomllib
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path

from mpilab.errors import InputError
from mpilab.expected import collective_of
from mpilab.formula import evaluate, names_of
from mpilab.harness import Case
from mpilab.rubric import COUNTED, KERNEL, PYTHON, TEXT, Exercise, Item, Rubric

__all__ = ["KERNEL", "PYTHON", "TEXT", "Exercise", "Item", "Rubric", "load"]

# key of an item -> (field of a Case, what is tried where the key is left out)
_VARIED = {
    "counts": ("count", [0]), "datatypes": ("datatype", ["int"]),
    "in_place": ("in_place", [False]), "reversed": ("reversed", [False]), "roots": ("root", [0]),
    "ops": ("op", ["sum"]), "segments": ("segment", [0]), "fanouts": ("fanout", [0]),
    "radixes": ("radix", [0]),
}  # fmt: skip
_KERNEL_KEYS = {"collective", "function", "allowed", "reference", "item"}
_EXERCISE_KEYS = {"id", "title", "kind", "variant", *_KERNEL_KEYS}
_ITEM_KEYS = {"id", "title", "points", "ranks", *_VARIED, "strict", "arguments", "expected",
              *COUNTED}  # fmt: skip


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


def _exercise(entry, seed, variant=""):
    where = f"exercise {entry['id']!r}{variant}"
    _refuse_unknown(entry, _EXERCISE_KEYS, where)
    kind = entry["kind"]
    if kind not in (KERNEL, PYTHON, TEXT):
        raise InputError(f"{where}: kind {kind!r} is unknown; write kernel, python or text")
    if "variant" in entry:
        return _with_variants(entry, seed, where)
    items = tuple(_item(item, entry, seed, where) for item in entry["item"])
    _refuse_twins([item.id for item in items], f"{where}: two items")
    return Exercise(entry["id"], entry["title"], kind, items, entry.get("collective", ""),
                    entry.get("function", ""), tuple(entry.get("allowed", ())),
                    entry.get("reference", ""))  # fmt: skip


def _with_variants(entry, seed, where):
    """An exercise whose answer may be one of several kernels."""
    if entry["kind"] != KERNEL:
        raise InputError(f"{where}: kind {entry['kind']!r} has no variants; only kernels do")
    for key in ("function", "reference", "item"):
        if key in entry:
            raise InputError(f"{where}: {key!r} beside variants; move it into each of them")
    common = {key: value for key, value in entry.items() if key != "variant"}
    variants = []
    for own in entry["variant"]:
        place = f", variant {own['function']!r}"
        _refuse_unknown(own, _KERNEL_KEYS, where + place)
        read = _exercise({**common, **own}, seed, place)
        # Check, feedback and gradebook show the title: it tells which variant was judged.
        variants.append(replace(read, title=f"{read.title}: {read.function}"))
    _refuse_twins([variant.function for variant in variants], f"{where}: two variants")
    worth = {variant.function: variant.points for variant in variants}
    if len(set(worth.values())) != 1:
        told = ", ".join(f"{function} {points:g}" for function, points in worth.items())
        raise InputError(f"{where}: its variants are worth {told} points; make them worth the same")
    names = ", ".join(worth)
    choice = Item("choice", f"One of {names}", variants[0].points)
    return Exercise(entry["id"], entry["title"], KERNEL, (choice,), variants=tuple(variants))


def _item(entry, exercise, seed, where):
    where = f"{where}, item {entry['id']!r}"
    _refuse_unknown(entry, _ITEM_KEYS, where)
    if not entry["points"] >= 0:
        raise InputError(f"{where}: points = {entry['points']}: has to be 0 or more")
    cases = ()
    if exercise["kind"] == KERNEL:
        try:
            cases = tuple(_cases(exercise["collective"], entry, seed))
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        if not cases:
            raise InputError(f"{where}: no case in it; name at least one of ranks and of counts")
    if exercise["kind"] == PYTHON and not (entry["arguments"] and entry["expected"]):
        raise InputError(
            f"{where}: nothing to call or to compare with; fill in arguments and expected"
        )
    counted = tuple((what, entry[what]) for what in COUNTED if what in entry)
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


def _cases(collective, entry, seed):
    """Every combination of what an item varies, each once, fewer ranks first."""
    if collective_of(collective).has_blocks and "counts" not in entry:
        raise KeyError("counts")
    _check_list("ranks", entry["ranks"], 0)
    values = {key: entry.get(key, default) for key, (_, default) in _VARIED.items()}
    for key, (_, default) in _VARIED.items():
        _check_list(key, values[key], default[0])
    fields = [field for field, _ in _VARIED.values()]
    strict = entry.get("strict", False)
    found = {}
    for ranks in sorted(entry["ranks"]):
        for combination in product(*(values[key] for key in _VARIED)):
            named = dict(zip(fields, combination, strict=True))
            if named["root"] < 0:
                # On one rank, the first and the last are the same: one case, not two.
                named["root"] += ranks
            found[_case(Case(collective, ranks, **named, strict=strict), seed)] = None
    return found


def _check_list(key, given, like):
    """InputError for anything but a list of values of the type of `like`."""
    if not isinstance(given, list):
        raise InputError(f"{key} = {given!r}: not a list; write [{given!r}]")
    for value in given:
        if type(value) is not type(like):
            raise InputError(f"{key}: {value!r} is of the wrong type; write e.g. {like!r}")


def _case(case, seed):
    """The case with a seed of its own, which depends on what it is: the same case in two items is
    the same case."""
    text = repr((seed, sorted(asdict(case).items()))).encode()
    return replace(case, seed=int.from_bytes(hashlib.sha256(text).digest()[:7], "big"))


def _refuse_twins(names, what):
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{what} are called {name!r}; rename one")


def _refuse_unknown(entry, known, where):
    for key in entry:
        if key not in known:
            raise InputError(f"{where}: unknown key {key!r}; known are {', '.join(sorted(known))}")
