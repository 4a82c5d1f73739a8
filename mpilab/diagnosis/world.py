"""A kernel that uses MPI_COMM_WORLD where it was given a communicator of its own."""

import re
from functools import lru_cache

import numpy as np

from mpilab.diagnosis import words
from mpilab.diagnosis.model import COMPILE_WARNING, Diagnosis, Place
from mpilab.symbols import used

PATTERN = "MPI_COMM_WORLD instead of comm"
HINT = (
    "Write comm: a caller may give any communicator, with fewer ranks or in another order, and "
    "then a rank of one is not the same process in the other."
)
SHOWN = 8
_NAME = re.compile(r"\bMPI_COMM_WORLD\b")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_SYMBOL = "ompi_mpi_comm_world"  # what MPI_COMM_WORLD is the address of in Open MPI
_UNDEFINED = -32766  # MPI_UNDEFINED of Open MPI: the rank in comm of a process that is not in it
# Engines may be more than the ranks of a case. So many are thought of.
_MOST_RANKS = 256


def diagnose_world(source, object_file):
    """The warning of a source that compiles and uses MPI_COMM_WORLD; None for one that does not."""
    if _SYMBOL not in used(object_file):
        return None
    code = _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)
    texts = source.split("\n")
    places = [Place(number, texts[number - 1].strip(), "not comm here")
              for number, line in enumerate(code.split("\n"), 1) if _NAME.search(line)]  # fmt: skip
    lines = [place.line for place in places]
    where = f" in line{'s' * (len(lines) > 1)} {words.runs(lines)}" if lines else ""
    return Diagnosis(
        COMPILE_WARNING, f"it compiles, but it uses MPI_COMM_WORLD{where} instead of comm",
        pattern=PATTERN, hint=HINT, places=tuple(places[:SHOWN]),
    )  # fmt: skip


def note(evidence):
    """A sentence on calls of the run on MPI_COMM_WORLD, or ''."""
    numbers = list(_numbers(evidence.size, bool(evidence.result.case.reversed)))
    sites = set()
    for rank in evidence.ranks:
        if rank is not None:
            chosen = np.isin(rank.records["communicator"], numbers)
            sites.update(np.unique(rank.records["site"][chosen]).tolist())
    lines = {evidence.spot(site)[1] for site in sorted(sites)[:SHOWN]} - {0}
    if not lines:
        return ""
    return (f"Line{'s' * (len(lines) > 1)} {words.runs(lines)} use{'s' * (len(lines) == 1)} "
            "MPI_COMM_WORLD instead of comm: ranks may be others there.")  # fmt: skip


@lru_cache(maxsize=64)
def _numbers(size, is_reversed):
    """The numbers that the recorder may give MPI_COMM_WORLD (src_c/recorder/communicators.c): a
    hash of its processes as ranks of comm, and of how many such communicators were met before."""
    members = 2166136261
    for rank in range(size):
        members = _mix(members, size - 1 - rank if is_reversed else rank)
    is_same_as_comm = not is_reversed or size == 1
    found = [_mix(members, 1 if is_same_as_comm else 0)]
    for _ in range(size, _MOST_RANKS):
        members = _mix(members, _UNDEFINED)
        found.append(_mix(members, 0))
    return tuple(found)


def _mix(number, value):
    """FNV-1a over the four bytes of `value`."""
    for byte in (value & 0xFFFFFFFF).to_bytes(4, "little"):
        number = (number ^ byte) * 16777619 & 0xFFFFFFFF
    return number
