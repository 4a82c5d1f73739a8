"""The cases of an item of a rubric: every combination of what it varies."""

import hashlib
from dataclasses import fields, replace
from itertools import product

from mpilab.errors import InputError
from mpilab.expected import collective_of
from mpilab.harness import Case
from mpilab.orders import places_of
from mpilab.simulated import standing

# key of an item -> (field of a Case, what is tried where the key is left out)
VARIED = {
    "counts": ("count", [0]), "datatypes": ("datatype", ["int"]),
    "in_place": ("in_place", [False]), "reversed": ("reversed", [False]), "roots": ("root", [0]),
    "ops": ("op", ["sum"]), "segments": ("segment", [0]), "fanouts": ("fanout", [0]),
    "radixes": ("radix", [0]), "budgets": ("budget", [0]), "patterns": ("pattern", ["even"]),
    "matrices": ("matrix", [""]), "buffers": ("buffer", [0]), "aggregators": ("aggregators", [0]),
}  # fmt: skip
# How many ranks, and where: run for real (and simulated, too), or simulated alone.
REAL = ("ranks", "places")
SIMULATED = ("simulated_ranks", "simulated_places", "platforms")


def cases_of(collective, entry, seed, jobs):
    """Every combination of what an item varies, each once, fewer ranks first.

    jobs   (ranks, {field of Case that says where they are: value}) of each number of ranks.
    """
    if collective_of(collective).reads:
        # What a read is of, its matrices say.
        entry = {"counts": [1], "datatypes": ["double"], "matrices": entry["matrices"], **entry}
    elif collective_of(collective).has_blocks and "counts" not in entry:
        raise KeyError("counts")
    values = {key: entry.get(key, default) for key, (_, default) in VARIED.items()}
    for key, (_, default) in VARIED.items():
        check_list(key, values[key], default[0])
    varied = [field for field, _ in VARIED.values()]
    strict = entry.get("strict", False)
    found = {}
    for ranks, where in sorted(jobs, key=lambda job: job[0]):
        for combination in product(*(values[key] for key in VARIED)):
            named = dict(zip(varied, combination, strict=True))
            if named["root"] < 0:
                # On one rank, the first and the last are the same: one case, not two.
                named["root"] += ranks
            case = Case(collective, ranks, **named, strict=strict, **where)
            found[_case(case, seed)] = None
    return found


def real_jobs(entry):
    """The numbers of ranks of an item and where they are; see `cases_of`."""
    if "ranks" in entry and "places" in entry:
        raise InputError("'ranks' beside places, which tell how many there are; leave it out")
    if not any(key in entry for key in (*REAL, *SIMULATED)):
        raise KeyError("ranks")
    return [*_of_ranks(entry, "ranks"), *_of_places(entry, "places")]


def simulated_jobs(entry):
    """The same of what is tried in simulation only."""
    check_list("platforms", entry.get("platforms", []), "")
    return [
        *_of_ranks(entry, "simulated_ranks"),
        *_of_places(entry, "simulated_places"),
        *((len(standing.places(text)), {"platform": text}) for text in entry.get("platforms", [])),
    ]


def _of_ranks(entry, key):
    check_list(key, entry.get(key, []), 0)
    return [(ranks, {}) for ranks in entry.get(key, [])]


def _of_places(entry, key):
    check_list(key, entry.get(key, []), "")
    return [(len(places), {"places": places}) for places in map(places_of, entry.get(key, []))]


def check_list(key, given, like):
    """InputError for anything but a list of values of the type of `like`."""
    if not isinstance(given, list):
        raise InputError(f"{key} = {given!r}: not a list; write [{given!r}]")
    for value in given:
        if type(value) is not type(like):
            raise InputError(f"{key}: {value!r} is of the wrong type; write e.g. {like!r}")


def _case(case, seed):
    """The case with a seed of its own, which depends on what it is: the same case in two items is
    the same case."""
    # What is as usual is left out, so that a new field of Case changes no seed.
    said = {f.name: getattr(case, f.name) for f in fields(case)
            if getattr(case, f.name) != f.default}  # fmt: skip
    text = repr((seed, sorted(said.items()))).encode()
    return replace(case, seed=int.from_bytes(hashlib.sha256(text).digest()[:7], "big"))
