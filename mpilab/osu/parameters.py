"""MCA parameters for mpirun. Open MPI ignores what it doesn't know without a word: we don't."""

import difflib
import os
import re
import subprocess
from functools import cache

from mpilab import openmpi
from mpilab.errors import InputError, SetupError

_PARAMETER = re.compile(r"^mca:[^:]*:[^:]*:param:([^:]+):(.*)$")
_ENUMERATOR = re.compile(r"enumerator:value:([^:]*):(.*)")
_FORCED = re.compile(r"coll_tuned_\w+_algorithm(_segmentsize|_tree_fanout|_chain_fanout)?$")
DYNAMIC_RULES = "coll_tuned_use_dynamic_rules"
# The launcher has parameters of its own, which nothing lists; some begin like Open MPI's.
SHARED = {"hwloc", "if", "mca", "pmix"}
_ON = ("1", "true", "t", "yes", "y", "enabled")


def mca_arguments(pairs):
    """The words of mpirun for `pairs` of MCA names and values (a mapping, or a list of pairs).

    Raises InputError for a name or a value that Open MPI would ignore in silence: one that it
    doesn't have, a number of an algorithm that isn't there, an algorithm of coll/tuned without
    coll_tuned_use_dynamic_rules.
    """
    pairs = [(str(name), str(value)) for name, value in dict(pairs).items()]
    known = _known() if pairs else {}
    frameworks = {name.partition("_")[0] for name in known} - SHARED
    for name, value in pairs:
        if name not in known and name.partition("_")[0] in frameworks:
            near = difflib.get_close_matches(name, known, n=1)
            remedy = f"do you mean {near[0]}?" if near else "see ompi_info --all --level 9"
            raise InputError(f"--mca {name} {value}: Open MPI has no such parameter, and would say "
                             f"nothing; {remedy}")  # fmt: skip
        choices = known.get(name)
        if choices and name.endswith("_algorithm") and not _is_among(value, choices):
            raise InputError(f"--mca {name} {value}: no such choice, and Open MPI would say "
                             f"nothing; take one of {_listed(choices)}")  # fmt: skip
    forced = [name for name, _ in pairs if _FORCED.match(name)]
    rules = dict(pairs).get(DYNAMIC_RULES, os.environ.get(f"OMPI_MCA_{DYNAMIC_RULES}", ""))
    if forced and rules.lower() not in _ON:
        raise InputError(f"--mca {forced[0]}: has no effect without {DYNAMIC_RULES}; add "
                         f"--mca {DYNAMIC_RULES} 1")  # fmt: skip
    return [word for name, value in pairs for word in ("--mca", name, value)]


def _is_among(value, choices):
    return any(value.lower() in (number.lower(), name.lower()) for number, name in choices)


def _listed(choices):
    return ", ".join(f"{number} {name}" for number, name in choices)


@cache
def _known():
    """{parameter: [(number, name) of each value it may have, [] where any]}; {} if unknown."""
    try:
        command = [openmpi.tool("ompi_info"), "--parsable", "--all", "--level", "9"]
    except SetupError:
        return {}  # some packages of Open MPI leave ompi_info out: then nothing can be checked
    said = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60)
    known = {}
    for line in said.stdout.splitlines():
        if match := _PARAMETER.match(line):
            choices = known.setdefault(match[1], [])
            if (found := _ENUMERATOR.match(match[2])) and found.groups() not in choices:
                choices.append(found.groups())
    return known
