"""What a lab asks for: exercises and their items, read from a TOML file.

The same form serves twice: labs/checks/LAB.toml is what students may try their answer with, and
grading/LAB/rubric.toml what the referee decides by.

    lab = "02-allgather"
    title = "Allgather"
    leave_out = ["bcast/auto.c"]        # rubric only: files below src_c that are not handed out,
                                        # beside the references: they need one, or tell too much

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
    counts = [1, 7]                     # a barrier and a read have none
    datatypes = ["int"]
    in_place = [false]
    reversed = [false]
    roots = [0, -1]                     # a negative one counts from the last rank
    ops = ["sum", "compose"]
    segments = [0, 64]                  # mpilab_tuning: bytes; 0 is the algorithm's own default
    fanouts = [0, 3]
    radixes = [0]
    budgets = [0, 65536]                # bytes of others' data that a rank may hold; 0 as above
    patterns = ["even", "ragged"]       # of an alltoallv (mpilab/exchange.py)
    matrices = ["12x10 by 4x2 on 2x3"]  # of a read (mpilab/matrices/distribution.py)
    buffers = [0, 4096]                 # bytes of one request to a file; 0 as above
    aggregators = [0, 2]                # ranks that read for all
    strict = false
    places = ["2x2x2 rr", "a/n1*2 b/n2"]    # in place of ranks: where they pretend to be, in the
                                        # words of mpilab/orders.py
    simulated_ranks = [17, 64]          # ranks and places that are tried in simulation only, and
    simulated_places = ["4x4x8 rr"]     # the same on every slot of a platform, as
    platforms = ["groups-4x4x8 rr"]     # mpilab/simulated/standing.py says it
    simulated_counts = [2, 33]          # more counts for its ranks and places, in simulation only
    than = "bcast_binomial"             # in simulated time: `faster` times as fast as this kernel
    faster = 2.0                        # of ours, in each of those; then no ranks and no places
    messages = "P * ceil_log2(P)"       # what the recording must show (names: mpilab/formula.py)
    rounds = "ceil_log2(P)"
    bytes = "P * (P - 1) * m"
    busiest_messages = "ceil_log2(P)"   # sent by the rank that sends most, and
    busiest_received = "ceil_log2(P)"   # got by the rank that gets most
    most_busiest_bytes = "(P - 1) * m"  # with most_: no more than that
    node_messages = "M - 1"             # what crosses between nodes, and between groups
    node_bytes = "(M - 1) * m"
    node_received_bytes = "m"           # got from other nodes by the rank that gets most of them
    group_messages = "G - 1"
    group_bytes = "(G - 1) * m"
    group_received_bytes = "m"
    reads = "A"                         # requests to a file that are for some bytes, in all, and
    busiest_reads = "ceil_div(N, F)"    # of the rank with most; their bytes likewise
    read_bytes = "N"
    busiest_read_bytes = "N"
    most_largest_read = "F"             # bytes of a single one
    reading_ranks = "A"
    collective_reads = "0"              # that collective calls made
    most_unexchanged_bytes = "F"        # that one rank read without an exchange in between
    views_left = "0"                    # ranks that left a view of their own on the file
    leaks = "0"                         # things that calls made and nobody freed

    arguments = [["ring", 4]]           # python: what the function is called with, each time
    expected = "mpilab.schedules:costs" # and the trusted function that returns the right values;
    complaint = "mpilab.answers:wrong"  # or, in its place, one that is given what was returned and
                                        # the arguments, and says what is wrong ("" if nothing is);
                                        # an InputError of it counts as that

With places, formulas may use M (nodes), G (groups), Q (ranks of the fullest node), R (ranks on the
root's node) and U (ranks in the root's group); without, all ranks are on one node. Rounds and
messages of an algorithm often hold on regular places only, GROUPSxNODESxRANKS; write an item of its
own for others, that counts what crosses.

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

import tomllib
from dataclasses import replace
from pathlib import Path

from mpilab.errors import InputError
from mpilab.exercise_cases import (
    REAL,
    SIMULATED,
    VARIED,
    cases_of,
    check_list,
    real_jobs,
    simulated_jobs,
)
from mpilab.formula import evaluate, names_of
from mpilab.places import as_text
from mpilab.rubric import COUNTED, KERNEL, PYTHON, TEXT, Exercise, Item, Rubric

__all__ = ["KERNEL", "PYTHON", "TEXT", "Exercise", "Item", "Rubric", "load"]

_KERNEL_KEYS = {"collective", "function", "allowed", "reference", "item"}
_EXERCISE_KEYS = {"id", "title", "kind", "variant", *_KERNEL_KEYS}
_MORE_COUNTS = "simulated_counts"
_ITEM_KEYS = {"id", "title", "points", *REAL, *SIMULATED, _MORE_COUNTS, "than", "faster",
              *VARIED, "strict", "arguments", "expected", "complaint", *COUNTED}  # fmt: skip


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
        rubric = Rubric(table["lab"], table.get("title", table["lab"]), exercises,
                        _digest_text(text, exercises), table.get("parameters", {}),
                        tuple(table.get("leave_out", ())))  # fmt: skip
    except KeyError as error:
        raise InputError(f"{path}: the key {error} is missing") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    _refuse_twins([exercise.id for exercise in exercises], f"{path}: two exercises")
    return rubric


def _digest_text(text, exercises):
    """The text, and the places that it names: of a cluster whose description may change."""
    each = (variant for exercise in exercises for variant in exercise.variants or (exercise,))
    cases = (case for exercise in each for item in exercise.items
             for case in (*item.cases, *item.simulated))  # fmt: skip
    return "\n".join([text, *dict.fromkeys(as_text(case.levels.places) for case in cases
                                           if case.places or case.platform)])  # fmt: skip


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
    cases, simulated = (), ()
    if exercise["kind"] == KERNEL:
        _refuse_real_times(entry, where)
        try:
            cases = tuple(cases_of(exercise["collective"], entry, seed, real_jobs(entry)))
            simulated = cases_of(exercise["collective"], entry, seed, simulated_jobs(entry))
            if _MORE_COUNTS in entry:
                check_list(_MORE_COUNTS, entry[_MORE_COUNTS], 0)
                more = {**entry, "counts": entry[_MORE_COUNTS]}
                simulated |= cases_of(exercise["collective"], more, seed, real_jobs(entry))
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        if not cases and not simulated:
            raise InputError(
                f"{where}: no case in it; name at least one of ranks, or places, and of counts"
            )
    if "complaint" in entry and "expected" in entry:
        raise InputError(f"{where}: complaint beside expected; leave one of them out")
    judged_by = "complaint" if "complaint" in entry else "expected"
    if exercise["kind"] == PYTHON and not (entry["arguments"] and entry[judged_by]):
        raise InputError(
            f"{where}: nothing to call or to compare with; fill in arguments and expected"
        )
    counted = tuple((what, entry[what]) for what in COUNTED if what in entry)
    for case in (*cases, *simulated):
        for what, formula in counted:
            _evaluate(formula, case, f"{where}, {what}")
    arguments = tuple(map(tuple, entry.get("arguments", ())))
    return Item(entry["id"], entry["title"], entry["points"], cases, counted, arguments,
                entry.get("expected", ""), entry.get("complaint", ""),
                tuple(case for case in simulated if case not in cases),
                entry.get("than", ""), float(entry.get("faster", 1.0)))  # fmt: skip


def _refuse_real_times(entry, where):
    """InputError unless what is said of time makes sense: only simulated time counts for marks."""
    if "than" not in entry:
        if "faster" in entry:
            raise InputError(f"{where}: faster without than; name the kernel that is compared with")
        return
    for key in REAL:
        if key in entry:
            raise InputError(f"{where}: than beside {key}; write simulated_{key}")
    if not isinstance(entry.get("faster", 1.0), int | float) or not entry.get("faster", 1.0) > 0:
        raise InputError(f"{where}: faster = {entry['faster']!r}: has to be a number above 0")


def _evaluate(formula, case, where):
    try:
        evaluate(formula, **names_of(case))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _refuse_twins(names, what):
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{what} are called {name!r}; rename one")


def _refuse_unknown(entry, known, where):
    for key in entry:
        if key not in known:
            raise InputError(f"{where}: unknown key {key!r}; known are {', '.join(sorted(known))}")
