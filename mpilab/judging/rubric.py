"""Rubrics: the exercises, items and cases of a lab, read from a TOML file.

The referee decides by grading/LAB/rubric.toml. Students try their answers with the public checks,
labs/checks/LAB.toml, a file of the same format that `mpilab release` cuts out of the rubric:

    lab = "02-allgather"
    title = "Allgather"
    solutions = false                   # lab.solution never shows this lab's; or a date, such as
                                        # 2027-02-01, from which it does; default: true
    notebook_seconds = 15               # rubric only: the processor time that the notebook takes
                                        # with right answers (default 30)
    leave_out = ["bcast/auto.c"]        # rubric only: files below src_c that are not handed out,
                                        # besides the references: they need one, or reveal too much

    [parameters]                        # rubric only: for the notebook's `parameters` cell
    RANKS = 4

    [[exercise]]
    id = "pairwise"                     # the answer cell's grade_id
    title = "Pairwise exchange"
    kind = "kernel"                     # or "python", "text"
    collective = "allgather"            # kernel: the prototype
    function = "allgather_pairwise"     # kernel, python: what the answer must define
    allowed = ["point-to-point"]        # kernel: groups of MPI calls, see
                                        # mpilab/kernels/symbols.py
    reference = "allgather/pairwise.c"  # kernel: our own answer, below src_c
    battery_on = "nodes"                # the cases of the battery pretend to be on several nodes
                                        # (battery.places_on_nodes); default: on one
    narrow = { unused = "why this facet of the battery does not apply" }

    hints = ["…", "…", "…"]             # lab.hint shows them one by one: the idea, the structure,
                                        # the steps in words; never code

    [[exercise.item]]
    id = "any-size"
    title = "Right for every number of ranks"
    points = 6
    public = { ranks = [3], counts = [4] }  # the cases of this item that students try, and what its
                                        # public check counts; it has the item's title, strict,
                                        # expected, complaint, than and faster, unless it sets them.
                                        # An item with only id and public carries no points.
    battery = ["other-sizes", "roots"]  # facets of mpilab.judging.battery: it gets their cases,
                                        # which take segments, fanouts, radixes and budgets in turn
    ranks = [3, 5, 6, 7]                # all combinations of these are tried, besides the battery
    counts = [1, 7]                     # not for a barrier or a read
    datatypes = ["int"]
    in_place = [false]
    reversed = [false]
    roots = [0, -1]                     # a negative one counts from the last rank
    ops = ["sum", "compose"]
    segments = [0, 64]                  # mpilab_tuning: bytes; 0 is the algorithm's own default
    fanouts = [0, 3]
    radixes = [0]
    budgets = [0, 65536]                # bytes of others' data that a rank may hold; 0 as above
    patterns = ["even", "ragged"]       # of an alltoallv (mpilab/cases/counts.py)
    matrices = ["12x10 by 4x2 on 2x3"]  # of a read (mpilab/cases/distribution.py)
    buffers = [0, 4096]                 # bytes of one request to a file; 0 as above
    aggregators = [0, 2]                # ranks that read for all
    strict = false
    places = ["2x2x2 rr", "a/n1*2 b/n2"]    # instead of ranks: where they pretend to be, in the
                                        # notation of mpilab/hosts/orders.py
    parts = ["3 of 5"]                  # a read's communicator in a larger MPI_COMM_WORLD
    simulated_ranks = [17, 64]          # ranks and places that are only simulated, and all slots
    simulated_places = ["4x4x8 rr"]     # of a platform, in the notation of
    platforms = ["groups-4x4x8 rr"]     # mpilab/hosts/platforms.py
    simulated_counts = [2, 33]          # more counts for ranks and places, only simulated
    than = "bcast_binomial"             # in simulated time: `faster` times as fast as this kernel
    faster = 2.0                        # of ours, in each simulated case; then no ranks or places
    messages = "P * ceil_log2(P)"       # what the recording must show (names:
                                        # mpilab/algorithms/formula.py)
    rounds = "ceil_log2(P)"             # with a battery, in every case of the exercise that has a
    bytes = "P * (P - 1) * m"           # right result, more than one rank and some data
    counted_if = "P != 2"               # of the cases of other items: only if this holds
    busiest_messages = "ceil_log2(P)"   # sent by the rank that sends most
    busiest_received = "ceil_log2(P)"   # received by the rank that receives most
    most_busiest_bytes = "(P - 1) * m"  # with most_: at most that
    node_messages = "M - 1"             # traffic between nodes, and between groups
    node_bytes = "(M - 1) * m"
    node_received_bytes = "m"           # by the rank that receives most from other nodes
    group_messages = "G - 1"
    group_bytes = "(G - 1) * m"
    group_received_bytes = "m"
    reads = "A"                         # all requests to a file that ask for some bytes, and
    busiest_reads = "ceil_div(N, F)"    # those of the rank with most; their bytes likewise
    read_bytes = "N"
    busiest_read_bytes = "N"
    most_largest_read = "F"             # bytes of a single request
    reading_ranks = "A"
    collective_reads = "0"              # requests made by collective calls
    most_unexchanged_bytes = "F"        # read by one rank without an exchange in between
    views_left = "0"                    # ranks that left their own view on the file
    leaks = "0"                         # objects and memory that were never freed
    to = "(rank + 2 ** (round - 1)) % P"    # the rank to which a message of `rank` must go, in the
                                        # rounds 1, 2, … of mpilab/trace/recording.py

    arguments = [["ring", 4]]           # python: the arguments of each call of the function
    expected = "answers.py:costs"       # and the trusted function that returns the right values:
                                        # module:function, or a file beside the rubric
    # or, instead, one that gets what was returned and the arguments, and says what is wrong
    # ("" if nothing is); if it raises InputError, that counts as its answer
    complaint = "mpilab.algorithms.remapping:is_no_hostfile"
    # or the right value of each call; `mpilab release` writes these into the public checks, so that
    # students get no function that knows the answer
    values = [[3, 12, 3]]

    [[practice]]                        # an exercise that is not graded, with the keys above: of
                                        # its items only `public` counts, and its solution is in
                                        # practice/ID.c beside the rubric

    criteria = [                        # text: what earns how many of its points. Students read
        { points = 3, text = "…" },     # them in the lab, graders on the marks page
    ]

With places, formulas may use M (nodes), G (groups), Q (ranks of the fullest node), R (ranks on the
root's node) and U (ranks in the root's group); without, all ranks are on one node. The rounds and
messages of an algorithm often hold only on regular places, GROUPSxNODESxRANKS; for others, write a
separate item that counts the traffic between nodes or groups.

If students may choose among algorithms, an exercise of kind "kernel" has variants instead of
function, reference and items. `%%kernel NAME` in the answer cell chooses one, and all are worth the
same:

    [[exercise.variant]]
    function = "bcast_chain"
    collective = "bcast"                # this and `allowed` may also stand in the exercise, for
                                        # all
    reference = "bcast/chain.c"

    [[exercise.variant.item]]
    id = "any-size"
"""

import hashlib
import importlib
import json
import runpy
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime
from functools import cache
from itertools import cycle, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mpilab.algorithms.formula import evaluate, names_of
from mpilab.cases.case import Case, collective_of
from mpilab.errors import InputError
from mpilab.hosts import platforms
from mpilab.hosts.orders import places_of
from mpilab.hosts.places import as_text
from mpilab.judging import battery
from mpilab.models.declared import READ_QUANTITIES
from mpilab.util.text import suggestion

# A TOML table, and where ranks are: how many, and the fields of a Case that give their places.
Table = dict[str, Any]
Job = tuple[int, dict[str, Any]]

# The cases of an item: every combination of what it varies.

# key of an item -> (field of a Case, what is tried if the key is left out)
VARIED: dict[str, tuple[str, list[Any]]] = {
    "counts": ("count", [0]),
    "datatypes": ("datatype", ["int"]),
    "in_place": ("in_place", [False]),
    "reversed": ("reversed", [False]),
    "roots": ("root", [0]),
    "ops": ("op", ["sum"]),
    "segments": ("segment", [0]),
    "fanouts": ("fanout", [0]),
    "radixes": ("radix", [0]),
    "budgets": ("budget", [0]),
    "patterns": ("pattern", ["even"]),
    "matrices": ("matrix", [""]),
    "buffers": ("buffer", [0]),
    "aggregators": ("aggregators", [0]),
}
# How many ranks, and where: run on Open MPI and simulated, or only simulated.
REAL = ("ranks", "places", "parts")
SIMULATED = ("simulated_ranks", "simulated_places", "platforms")

KERNEL, PYTHON, TEXT = "kernel", "python", "text"

# Quantities in a recording: of all ranks together, or of the rank that sends or receives most.
# Nodes and groups: the traffic between them, and the most that one rank receives from others.
# File reads: requests and bytes of all ranks, or of the rank with the most; the largest request;
# the number of ranks that read; collective requests; bytes read without an exchange in between.
# Leftovers: ranks with their own view of a file, and things that were created but never freed.
QUANTITIES = (
    "rounds",
    "messages",
    "bytes",
    "busiest_messages",
    "busiest_bytes",
    "busiest_received",
    "node_messages",
    "node_bytes",
    "node_received_bytes",
    "group_messages",
    "group_bytes",
    "group_received_bytes",
    *READ_QUANTITIES,
    "views_left",
    "leaks",
)
MOST = "most_"  # before a quantity: an upper bound
PARTNERS = "to"  # where messages go, by sender and round: a formula for each message
COUNTED = (*QUANTITIES, *(MOST + quantity for quantity in QUANTITIES), PARTNERS)

_KERNEL_KEYS = {
    "collective",
    "function",
    "allowed",
    "reference",
    "item",
    "battery_on",
    "narrow",
}
_EXERCISE_KEYS = {"id", "title", "kind", "variant", "hints", *_KERNEL_KEYS}
_PUBLIC = "public"
# What a public check takes from its exercise and its item: neither cases nor what is counted.
_PUBLIC_OF_EXERCISE = ("id", "title", "kind", "collective", "function", "allowed", "hints")
_PUBLIC_OF_ITEM = ("title", "strict", "expected", "complaint", "than", "faster")
# What a Python answer is compared with.
_JUDGED_BY = ("expected", "complaint", "values")
_MORE_COUNTS = "simulated_counts"
_ITEM_KEYS = {
    "id",
    "title",
    "points",
    *REAL,
    *SIMULATED,
    _MORE_COUNTS,
    "battery",
    "counted_if",
    "than",
    "faster",
    *VARIED,
    "strict",
    "arguments",
    "expected",
    "complaint",
    "values",
    "criteria",
    *COUNTED,
    _PUBLIC,
}


def cases_of(collective: str, entry: Table, seed: int, jobs: Iterable[Job]) -> dict[Case, None]:
    """Every combination of what an item varies, each once, fewest ranks first.

    jobs   list of (ranks, {field of Case that says where they are: value}).
    """
    if collective_of(collective).reads:
        # The matrices describe a read.
        matrices = entry.get("matrices", []) if "battery" in entry else entry["matrices"]
        entry = {"counts": [1], "datatypes": ["double"], "matrices": matrices, **entry}
    elif collective_of(collective).has_blocks and not {"counts", "battery"} & entry.keys():
        raise KeyError("counts")
    values = {key: entry.get(key, default) for key, (_, default) in VARIED.items()}
    for key, (_, default) in VARIED.items():
        check_list(key, values[key], default[0])
    varied = [field for field, _ in VARIED.values()]
    strict = entry.get("strict", False)
    found: dict[Case, None] = {}
    for ranks, where in sorted(jobs, key=lambda job: job[0]):
        for combination in product(*(values[key] for key in VARIED)):
            named = dict(zip(varied, combination, strict=True))
            if named["root"] < 0:
                # On one rank, the first and the last root are the same: one case, not two.
                named["root"] += ranks
            case = Case(collective, ranks, **named, strict=strict, **where)
            found[_case(case, seed)] = None
    return found


# What the cases of the battery take in turn from an item.
_IN_TURN = ("segments", "fanouts", "radixes", "budgets", "buffers", "aggregators")
_LONG_SEGMENT = 16384  # bytes, for blocks of battery.LONG elements


def battery_cases(
    collective: str, entry: Table, seed: int, where: str = ""
) -> tuple[dict[Case, None], dict[Case, None]]:
    """(cases, cases that are only simulated) of the facets that an item names, each once.

    where   "nodes" if the ranks pretend to be on several nodes.
    """
    real: dict[Case, None] = {}
    simulated: dict[Case, None] = {}
    check_list("battery", entry.get("battery", []), "")
    turns = {VARIED[key][0]: cycle(entry[key]) for key in _IN_TURN if entry.get(key)}
    for trial in battery.trials(collective, entry.get("battery", [])):
        fields = {**{name: next(values) for name, values in turns.items()}, **trial.fields}
        if fields["count"] == battery.LONG and fields.get("segment"):
            fields["segment"] = _LONG_SEGMENT
        if where == "nodes" and trial.ranks > 1 and "latencies" not in fields:
            fields["places"] = battery.places_on_nodes(trial.ranks)
        case = _case(Case(collective, trial.ranks, **fields), seed)
        (real if trial.real else simulated)[case] = None
    return real, simulated


def real_jobs(entry: Table) -> list[Job]:
    """The `jobs` of an item for `cases_of`: numbers of ranks, and where they are."""
    if "ranks" in entry and "places" in entry:
        raise InputError("'ranks' beside places, which already give the number; remove it")
    if not any(key in entry for key in (*REAL, *SIMULATED, "battery")):
        raise KeyError("ranks")
    return [*_of_ranks(entry, "ranks"), *_of_places(entry, "places"), *_of_parts(entry)]


def simulated_jobs(entry: Table) -> list[Job]:
    """Like `real_jobs`, for what is only simulated."""
    check_list("platforms", entry.get("platforms", []), "")
    return [
        *_of_ranks(entry, "simulated_ranks"),
        *_of_places(entry, "simulated_places"),
        *((len(platforms.places(text)), {"platform": text}) for text in entry.get("platforms", [])),
    ]


def _of_ranks(entry: Table, key: str) -> list[Job]:
    check_list(key, entry.get(key, []), 0)
    return [(ranks, {}) for ranks in entry.get(key, [])]


def _of_places(entry: Table, key: str) -> list[Job]:
    check_list(key, entry.get(key, []), "")
    return [(len(places), {"places": places}) for places in map(places_of, entry.get(key, []))]


def _of_parts(entry: Table) -> list[Job]:
    check_list("parts", entry.get("parts", []), "")
    jobs: list[Job] = []
    for text in entry.get("parts", []):
        ranks, _, all_ranks = text.partition(" of ")
        if not (ranks.isdecimal() and all_ranks.isdecimal() and int(ranks) < int(all_ranks)):
            raise InputError(f"parts: {text!r} is no part of all ranks; write e.g. '3 of 5'")
        jobs.append((int(ranks), {"bystanders": int(all_ranks) - int(ranks)}))
    return jobs


def check_list(key: str, given: object, like: object) -> None:
    """Raise InputError unless `given` is a list of values of the type of `like`."""
    if not isinstance(given, list):
        raise InputError(f"{key} = {given!r}: not a list; write [{given!r}]")
    for value in given:
        if type(value) is not type(like):
            raise InputError(f"{key}: {value!r} is of the wrong type; write e.g. {like!r}")


def _case(case: Case, seed: int) -> Case:
    """The case with a seed derived from its fields, so that it is the same case in two items."""
    # Default values are left out, so that a new field of Case changes no seed.
    said = {
        f.name: getattr(case, f.name) for f in fields(case) if getattr(case, f.name) != f.default
    }
    text = repr((seed, sorted(said.items()))).encode()
    return replace(case, seed=int.from_bytes(hashlib.sha256(text).digest()[:7], "big"))


@dataclass(frozen=True)
class Criterion:
    """What earns some of the points of a free text."""

    points: float
    text: str


@dataclass(frozen=True)
class Item:
    """The smallest part of an exercise that carries points.

    cases      for a kernel: the cases it is run on.
    simulated  for a kernel: additional cases that are only simulated.
    also       for a kernel: cases of other items in which `counted` must hold, too, if their result
               is right; whether it is right is not this item's business.
    than, faster   for a kernel: in each of `simulated`, its simulated time times `faster` must be
               at most that of our kernel `than`; "" if time does not count.
    counted    for a kernel: pairs (one of COUNTED, formula) that recordings must match.
    arguments  for a Python function: the argument lists it is called with.
    expected   for a Python function: name of the trusted function that returns the right value.
    complaint  instead of `expected`: name of a trusted function that says what is wrong with a
               value.
    values     instead of both: the right value of each call.
    criteria   for a text: what its points are given for, as the lab says it.
    """

    id: str
    title: str
    points: float
    cases: tuple[Case, ...] = ()
    counted: tuple[tuple[str, str], ...] = ()
    arguments: tuple[tuple[Any, ...], ...] = ()
    expected: str = ""
    complaint: str = ""
    simulated: tuple[Case, ...] = ()
    than: str = ""
    faster: float = 1.0
    criteria: tuple[Criterion, ...] = ()
    also: tuple[Case, ...] = ()
    values: tuple[Any, ...] = ()

    @property
    def every(self) -> tuple[Case, ...]:
        """All cases that have a say in this item."""
        return (*self.cases, *self.simulated, *self.also)


@dataclass(frozen=True)
class Exercise:
    """One answer that the lab asks for.

    variants  if the answer may be one of several kernels: an Exercise for each, with the same id
              and the same number of points. The exercise itself then has no function, and one item
              that stands for those of the chosen variant.
    narrow    facets of the battery that no item has, with the reason: ((facet, reason), …).
    hints     what lab.hint shows, one after the other.
    """

    id: str
    title: str
    kind: str
    items: tuple[Item, ...]
    collective: str = ""
    function: str = ""
    allowed: tuple[str, ...] = ()
    reference: str = ""
    variants: "tuple[Exercise, ...]" = ()
    narrow: tuple[tuple[str, str], ...] = ()
    hints: tuple[str, ...] = ()

    @property
    def points(self) -> float:
        """The maximum points."""
        return sum(item.points for item in self.items)

    @property
    def functions(self) -> tuple[str, ...]:
        """The names that the function of an answer may have."""
        return tuple(each.function for each in self.variants or (self,) if each.function)

    @property
    def references(self) -> tuple[str, ...]:
        """Our own answers, below src_c: one, or one per variant."""
        return tuple(each.reference for each in self.variants or (self,) if each.reference)

    @property
    def needs_simulation(self) -> bool:
        """True if some item, of any variant, has cases that are only simulated."""
        return any(item.simulated for each in self.variants or (self,) for item in each.items)

    def variant(self, function: str) -> "Exercise | None":
        """The exercise that judges an answer that defines `function`.

        Without variants, it is this one, whatever the answer defines; None if no variant has a
        function of this name.
        """
        if not self.variants:
            return self
        return next((each for each in self.variants if each.function == function), None)


@dataclass(frozen=True)
class Rubric:
    """All exercises of a lab.

    practice     exercises that are not graded: they only have public checks and hints.
    digest_text  decides whether the rubric has changed.
    parameters   what papermill sets when it runs a submission.
    notebook_seconds   the processor time that the notebook takes with right answers.
    leave_out    files below src_c besides the references that are not handed out.
    solutions    whether lab.solution shows our answers, or the date from which it does.
    """

    lab: str
    title: str
    exercises: tuple[Exercise, ...]
    digest_text: str
    parameters: dict[str, Any] = field(default_factory=dict)
    notebook_seconds: float = 30.0
    leave_out: tuple[str, ...] = ()
    solutions: bool | date = True
    practice: tuple[Exercise, ...] = ()

    def exercise(self, name: str) -> Exercise:
        """The exercise with this id, graded or not; InputError, with the known ones, if there is
        none."""
        every = (*self.exercises, *self.practice)
        for exercise in every:
            if exercise.id == name:
                return exercise
        known = [exercise.id for exercise in every]
        listed = f"{', '.join(known)}{suggestion(name, known)}"
        raise InputError(f"exercise {name!r}: not in lab {self.lab}; it has {listed}")

    @property
    def references(self) -> tuple[str, ...]:
        """The files below src_c that must not be handed out: our own answers, and `leave_out`."""
        answers = (name for exercise in self.exercises for name in exercise.references)
        return (*answers, *self.leave_out)


# Trusted functions for Python exercises, which return the right value or say what is wrong.


def trusted(name: str) -> Callable[..., Any]:
    """The function that `module:function` or `FILE.py:function` names; InputError if there is none.

    In a rubric, FILE.py is a file beside it; `load` completes its path.
    """
    module, _, attribute = name.rpartition(":")
    try:
        found = _run(module) if module.endswith(".py") else importlib.import_module(module)
        return getattr(found, attribute)
    except (ImportError, AttributeError, ValueError, OSError) as error:
        raise InputError(
            f"expected = {name!r}: {error}; write 'module:function', or 'answers.py:function' for "
            "a file beside the rubric"
        ) from None


def right_value(name: str, arguments: Iterable[Any]) -> Any:
    """What the trusted function `name` returns, as it comes out of JSON like what an answer
    returns: a tuple becomes a list."""
    return json.loads(json.dumps(trusted(name)(*arguments)))


@cache
def _run(path: str) -> SimpleNamespace:
    """The names that the Python file `path` defines."""
    return SimpleNamespace(**runpy.run_path(path))


def _complete(entry: Any, folder: Path) -> None:
    """Complete the paths of files with trusted functions in a table, and in those in it."""
    for each in entry if isinstance(entry, list) else entry.values():
        if isinstance(each, dict | list):
            _complete(each, folder)
    for key in ("expected", "complaint") if isinstance(entry, dict) else ():
        if ".py:" in str(entry.get(key)):
            entry[key] = str(folder.absolute() / entry[key])


# Read a rubric from its TOML file.


def _read(path: Path) -> tuple[str, Table]:
    """The text of a rubric's file with those of `answers.py`, and the table in it."""
    try:
        text = path.read_text(encoding="utf-8")
        table = tomllib.loads(text)
    except FileNotFoundError:
        # grading/LAB/rubric.toml, or labs/checks/LAB.toml
        lab, labs = path.stem, [each.stem for each in path.parent.glob("*.toml")]
        if lab == "rubric":
            lab = path.parent.name
            labs = [each.parent.name for each in path.parents[1].glob("*/rubric.toml")]
        meant = suggestion(lab, labs).removeprefix(".")
        raise InputError(f"{path}: no such file; is the name of the lab right?{meant}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not TOML: {error}") from None
    _complete(table, path.parent)
    answers = path.with_name("answers.py")
    if path.name == "rubric.toml" and answers.is_file():
        text += answers.read_text(encoding="utf-8")
    return text, table


def load(path: str | Path, seed: int = 1) -> Rubric:
    """Read a rubric; `seed` determines what the buffers of its cases contain.

    Raises InputError that names the file, the place and the value.
    """
    path = Path(path)
    text, table = _read(path)
    try:
        exercises = tuple(_exercise(entry, seed) for entry in table["exercise"])
        practice = tuple(_exercise(entry, seed) for entry in table.get("practice", ()))
        if any(exercise.points for exercise in practice) and path.name == "rubric.toml":
            raise InputError("practice: is not graded, so its items only have id and public")
        rubric = Rubric(
            table["lab"],
            table.get("title") or table["lab"],
            exercises,
            _digest_text(text, exercises),
            table.get("parameters", {}),
            _seconds(table.get("notebook_seconds", 30)),
            tuple(table.get("leave_out", ())),
            _when(table.get("solutions", True)),
            practice,
        )
    except KeyError as error:
        raise InputError(f"{path}: the key {error} is missing") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    _refuse_twins([each.id for each in (*exercises, *practice)], f"{path}: two exercises")
    return rubric


def _seconds(notebook: object) -> float:
    if isinstance(notebook, bool) or not isinstance(notebook, (int, float)) or notebook <= 0:
        raise InputError(
            f"notebook_seconds = {notebook!r}: give the processor time that the notebook takes "
            "with right answers, in seconds, e.g. 30 (docs/rubrics.md)"
        )
    return float(notebook)


def _when(solutions: object) -> bool | date:
    """The value of `solutions`; InputError unless it is true, false or a date."""
    if isinstance(solutions, datetime):
        return solutions.date()
    if isinstance(solutions, bool | date):
        return solutions
    raise InputError(f"solutions = {solutions!r}: write true, false, or a date such as 2027-02-01")


def _digest_text(text: str, exercises: Iterable[Exercise]) -> str:
    """The text, and the places that it names, because a cluster's description may change."""
    each = (variant for exercise in exercises for variant in exercise.variants or (exercise,))
    cases = (
        case
        for exercise in each
        for item in exercise.items
        for case in (*item.cases, *item.simulated)
    )
    return "\n".join(
        [
            text,
            *dict.fromkeys(
                as_text(case.levels.places) for case in cases if case.places or case.platform
            ),
        ]
    )


def _exercise(entry: Table, seed: int, variant: str = "") -> Exercise:
    where = f"exercise {entry['id']!r}{variant}"
    _refuse_unknown(entry, _EXERCISE_KEYS, where)
    kind = entry["kind"]
    if kind not in (KERNEL, PYTHON, TEXT):
        raise InputError(f"{where}: kind {kind!r} is unknown; write kernel, python or text")
    if entry.get("battery_on", "nodes") != "nodes":
        raise InputError(
            f'{where}: battery_on = {entry["battery_on"]!r} is unknown; write "nodes", or nothing '
            "if the ranks share one"
        )
    if "variant" in entry:
        return _with_variants(entry, seed, where)
    _refuse_twins([item["id"] for item in entry["item"]], f"{where}: two items")
    for item in entry["item"]:
        if _PUBLIC in item:
            _item(_public_item(item, where), entry, seed, f"{where}, public")
    items = tuple(
        _item(item, entry, seed, where) for item in entry["item"] if not _is_only_public(item)
    )
    narrow = entry.get("narrow", {})
    if narrow or any("battery" in item for item in entry["item"]):
        named = {facet for item in entry["item"] for facet in item.get("battery", ())}
        try:
            battery.check_complete(entry["collective"], named, narrow)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        conditions = {item["id"]: item.get("counted_if", "1") for item in entry["item"]}
        items = tuple(_counting_more(items, conditions, where))
    return Exercise(
        entry["id"],
        entry["title"],
        kind,
        items,
        entry.get("collective", ""),
        entry.get("function", ""),
        tuple(entry.get("allowed", ())),
        entry.get("reference", ""),
        narrow=tuple(narrow.items()),
        hints=tuple(entry.get("hints", ())),
    )


def _is_countable(case: Case) -> bool:
    """Whether formulas speak of a case: messages without data may be left out, and an operation
    that does not commute may need others."""
    about = collective_of(case.collective)
    if about.reads:
        return case.distribution.bytes > 0 and case.warmup == 0
    has_data = case.count > 0 or not about.has_blocks
    return case.ranks > 1 and has_data and case.op == "sum"


def _counting_more(
    items: Sequence[Item], conditions: Mapping[str, str], where: str
) -> Iterator[Item]:
    """The items, with the cases of others for which their formulas speak."""
    for item in items:
        if not item.counted:
            yield item
            continue
        here = f"{where}, item {item.id!r}"
        own = {*item.cases, *item.simulated}
        others = dict.fromkeys(
            case
            for other in items
            if not other.than
            for case in (*other.cases, *other.simulated)
            if case not in own and _is_countable(case)
        )
        also = [
            case for case in others if _evaluate(conditions[item.id], case, f"{here}, counted_if")
        ]
        for case in also:
            for what, formula in item.counted:
                _try(what, formula, case, f"{here}, {what} with {case.describe()}")
        yield replace(item, also=tuple(also))


def _with_variants(entry: Table, seed: int, where: str) -> Exercise:
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
        # Check, feedback and gradebook show the title, so it tells which variant was judged.
        variants.append(replace(read, title=f"{read.title}: {read.function}"))
    _refuse_twins([variant.function for variant in variants], f"{where}: two variants")
    worth = {variant.function: variant.points for variant in variants}
    if len(set(worth.values())) != 1:
        told = ", ".join(f"{function} {points:g}" for function, points in worth.items())
        raise InputError(f"{where}: its variants are worth {told} points; make them worth the same")
    names = ", ".join(worth)
    choice = Item("choice", f"One of {names}", variants[0].points)
    hints = tuple(entry.get("hints", ()))
    return Exercise(
        entry["id"], entry["title"], KERNEL, (choice,), variants=tuple(variants), hints=hints
    )


def _item(entry: Table, exercise: Table, seed: int, where: str) -> Item:
    where = f"{where}, item {entry['id']!r}"
    _refuse_unknown(entry, _ITEM_KEYS, where)
    if not entry["points"] >= 0:
        raise InputError(f"{where}: points = {entry['points']}: must be 0 or more")
    cases: tuple[Case, ...] = ()
    simulated: dict[Case, None] = {}
    if exercise["kind"] == KERNEL:
        _refuse_real_times(entry, where)
        try:
            cases = tuple(cases_of(exercise["collective"], entry, seed, real_jobs(entry)))
            simulated = cases_of(exercise["collective"], entry, seed, simulated_jobs(entry))
            if _MORE_COUNTS in entry:
                check_list(_MORE_COUNTS, entry[_MORE_COUNTS], 0)
                more = {**entry, "counts": entry[_MORE_COUNTS]}
                simulated |= cases_of(exercise["collective"], more, seed, real_jobs(entry))
            on = exercise.get("battery_on", "")
            real, only_simulated = battery_cases(exercise["collective"], entry, seed, on)
            cases = tuple({**dict.fromkeys(cases), **real})
            simulated |= only_simulated
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        if not cases and not simulated:
            raise InputError(
                f"{where}: no case in it; name at least one of ranks, or places, and of counts"
            )
    judged_by = [key for key in _JUDGED_BY if key in entry] or ["expected"]
    if len(judged_by) > 1:
        raise InputError(f"{where}: {judged_by[1]} beside {judged_by[0]}; remove one of them")
    if exercise["kind"] == PYTHON and not (entry["arguments"] and entry[judged_by[0]]):
        raise InputError(f"{where}: nothing to call or compare with; add arguments and expected")
    values, arguments = entry.get("values", []), tuple(map(tuple, entry.get("arguments", ())))
    if values and len(values) != len(arguments):
        raise InputError(
            f"{where}: {len(values)} values for {len(arguments)} calls in arguments; write one for "
            "each"
        )
    counted = tuple((what, entry[what]) for what in COUNTED if what in entry)
    for case in (*cases, *simulated):
        for what, formula in counted:
            _try(what, formula, case, f"{where}, {what}")
    return Item(
        entry["id"],
        entry["title"],
        entry["points"],
        cases,
        counted,
        arguments,
        entry.get("expected", ""),
        entry.get("complaint", ""),
        tuple(case for case in simulated if case not in cases),
        entry.get("than", ""),
        float(entry.get("faster", 1.0)),
        _criteria(entry, exercise["kind"], where),
        values=tuple(values),
    )


def _criteria(entry: Table, kind: str, where: str) -> tuple[Criterion, ...]:
    """The criteria of an item; InputError unless its points are theirs."""
    given = entry.get("criteria", [])
    if given and kind != TEXT:
        raise InputError(f"{where}: criteria of a {kind}: they are for texts, which people grade")
    check_list("criteria", given, {})
    for each in given:
        if set(each) != {"points", "text"} or not each["text"] or not each["points"] > 0:
            raise InputError(
                f"{where}: criteria: {each}: write e.g. "
                '{ points = 3, text = "the bytes that the root sends" }'
            )
    if given and (total := sum(each["points"] for each in given)) != entry["points"]:
        raise InputError(
            f"{where}: its criteria are worth {total:g} points, the item {entry['points']:g}; make "
            "them worth the same"
        )
    return tuple(Criterion(each["points"], each["text"]) for each in given)


def worth(path: str | Path) -> dict[str, list[tuple[str, float, tuple[str, ...]]]]:
    """{exercise: [(title, points, functions) of each item]} of a rubric, free texts excluded.

    functions   the variants that have this item; () if the exercise has none, or all have it.

    Raises InputError for a file that is no rubric.
    """
    _, table = _read(Path(path))
    try:
        return {
            entry["id"]: _worth(entry.get("variant", [entry]))
            for entry in table["exercise"]
            if entry["kind"] != TEXT
        }
    except KeyError as error:
        raise InputError(f"{path}: the key {error} is missing") from None


def _worth(parts: Sequence[Table]) -> list[tuple[str, float, tuple[str, ...]]]:
    """The rows of `worth` for an exercise with these variants."""
    rows: dict[tuple[str, float], list[str]] = {}
    for part in parts:
        for item in part["item"]:
            if not _is_only_public(item):
                rows.setdefault((item["title"], item["points"]), []).append(part["function"])
    return [
        (title, points, () if len(functions) == len(parts) else tuple(functions))
        for (title, points), functions in rows.items()
    ]


def public_checks(path: str | Path) -> str:
    """The public checks of the rubric in the file `path`, as the text of labs/checks/LAB.toml.

    They hold what the rubric marks as public, and none of its other cases. "" if nothing is public.
    """
    path = Path(path)
    load(path)
    _, table = _read(path)
    exercises = [
        _public_exercise(entry, kind)
        for kind in ("exercise", "practice")
        for entry in table.get(kind, ())
    ]
    lines = [line for each in exercises for line in each]
    if not lines:
        return ""
    head = [
        f"# Made by 'make refresh' from what is public in grading/{table['lab']}/rubric.toml: what",
        "# `lab.check(...)` tries. The marks come from more cases than these.",
        "",
        *_toml({key: table[key] for key in ("lab", "title", "solutions") if key in table}),
    ]
    return "\n".join([*head, *lines, ""])


def _public_exercise(entry: Table, kind: str) -> list[str]:
    """The lines of an exercise's public checks, below [[kind]]; none if it has none."""
    parts = entry.get("variant", [entry])
    if not any(_PUBLIC in item for part in parts for item in part["item"]):
        return []
    own = {key: entry[key] for key in _PUBLIC_OF_EXERCISE if key in entry}
    lines = ["", f"[[{kind}]]", *_toml(own)]
    for part in parts:
        name = kind
        if "variant" in entry:
            name = f"{kind}.variant"
            own = {key: part[key] for key in _PUBLIC_OF_EXERCISE if key in part}
            lines += ["", f"[[{name}]]", *_toml(own)]
        for item in part["item"]:
            if _PUBLIC in item:
                lines += ["", f"[[{name}.item]]", *_toml(_public_item(item, entry["id"]))]
    return lines


def _public_item(item: Table, where: str) -> Table:
    """The entry of the public check of an item that has one."""
    public = item[_PUBLIC]
    if not isinstance(public, dict) or {"id", _PUBLIC} & set(public):
        raise InputError(
            f"{where}, item {item['id']!r}: public = {public!r}: write the cases that students "
            "try, e.g. public = { ranks = [3], counts = [4] }"
        )
    taken = {key: item[key] for key in _PUBLIC_OF_ITEM if key in item}
    # The order in which a reader expects them, whatever the order in the rubric.
    first = {"id": item["id"], "title": None, "points": 1}
    entry = {**first, **taken, **public}
    if "expected" in entry and "arguments" in entry:
        expected = entry.pop("expected")
        entry["values"] = [right_value(expected, each) for each in entry["arguments"]]
    if ".py:" in entry.get("complaint", ""):
        raise InputError(
            f"{where}, item {item['id']!r}: complaint = {entry['complaint']!r}: a handout has no "
            "such file, so students could not check their answers; move the function into mpilab"
        )
    return {key: value for key, value in entry.items() if value is not None}


def _is_only_public(item: Table) -> bool:
    """Whether the item carries no points, because it is only a public check."""
    return set(item) == {"id", _PUBLIC}


def _toml(table: Table) -> list[str]:
    """A table's values as lines of TOML; a list too long for a line gets a line per element."""
    lines = []
    for key, value in table.items():
        line = f"{key} = {_toml_value(value)}"
        if isinstance(value, list) and len(line) > 100:
            lines += [f"{key} = [", *(f"    {_toml_value(each)}," for each in value), "]"]
        else:
            lines.append(line)
    return lines


def _toml_value(value: Any) -> str:
    """A string, number, truth value, date or list of these as TOML."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


def _refuse_real_times(entry: Table, where: str) -> None:
    """Raise InputError unless `than` and `faster` are consistent: only simulated time is judged."""
    if "than" not in entry:
        if "faster" in entry:
            raise InputError(f"{where}: faster without than; name the kernel that is compared with")
        return
    for key in REAL:
        if key in entry:
            raise InputError(f"{where}: than beside {key}; write simulated_{key}")
    if not isinstance(entry.get("faster", 1.0), int | float) or not entry.get("faster", 1.0) > 0:
        raise InputError(f"{where}: faster = {entry['faster']!r}: must be a number above 0")


def _try(what: str, formula: str, case: Case, where: str) -> None:
    """Raise InputError unless the formula of what is counted has a value."""
    message = {"rank": 0, "round": 1} if what == PARTNERS else {}
    _evaluate(formula, case, where, **message)


def _evaluate(formula: str, case: Case, where: str, **more: int) -> int:
    try:
        return evaluate(formula, **names_of(case), **more)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _refuse_twins(names: Sequence[str], what: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{what} are called {name!r}; rename one")


def _refuse_unknown(entry: Table, known: Collection[str], where: str) -> None:
    for key in entry:
        if key not in known:
            raise InputError(f"{where}: unknown key {key!r}; known are {', '.join(sorted(known))}")
