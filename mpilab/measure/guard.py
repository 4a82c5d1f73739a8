"""The guard: determine which of Open MPI's algorithms ran, from the counted messages.

Open MPI silently ignores a setting if dynamic rules are off (coll_tuned_use_dynamic_rules), another
component takes precedence over coll/tuned, or an algorithm does not support this number of ranks or
elements. So a row gets an algorithm's name only

 - if the messages and bytes between every two ranks are those that the algorithm must send, and
 - if in the same job two *witnesses*, different algorithms of the same collective and shape, each
   sent what it must: Open MPI's own choice cannot have been both.

The second condition is needed where algorithms send the same messages, as many do on 2 ranks.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mpilab import algorithms as schedules
from mpilab.cases.case import collective_of
from mpilab.errors import InputError
from mpilab.kernels import openmpi
from mpilab.measure.openmpi_traffic import PATTERNS, Counted, Shape, expected, matching
from mpilab.models.declared import kernels_of, shared_of

OURS, OPENMPI, DEFAULT = "ours", "openmpi", 0
HINT = (
    "Open MPI ignored the choice: coll_tuned_use_dynamic_rules must be true and coll/tuned "
    "the component in charge (OMPI_MCA_coll=^han); look for OMPI_MCA_coll* in the environment and "
    "for coll settings in ~/.openmpi/mca-params.conf"
)

# The algorithms of a sweep: ours by their kernels' names, Open MPI's by name or number.


@dataclass(frozen=True)
class Algorithm:
    """An algorithm: library is "ours" or "openmpi"; number is Open MPI's, -1 for one of ours."""

    library: str
    name: str
    number: int = -1

    def __str__(self) -> str:
        return f"{self.library}:{self.name}"

    @property
    def is_chosen(self) -> bool:
        """Must Open MPI be told to use it?"""
        return self.number > DEFAULT

    def function(self, collective: str) -> str:
        """The kernel that runs it."""
        return f"{collective}_{OPENMPI if self.library == OPENMPI else self.name}"


def known(collective: str) -> list[Algorithm]:
    """All algorithms of a collective, ours first; InputError for an unknown collective.

    A handout lacks the kernels that students have to write. Of Open MPI's alltoallvs, which all
    send the same messages, only its own choice can be timed.
    """
    there = kernels_of(collective)
    has_schedules = collective in schedules.ALGORITHMS
    names = (
        schedules.algorithms(collective)
        if has_schedules
        else [name.partition("_")[2] for name in there]
    )
    ours = [Algorithm(OURS, name) for name in names if f"{collective}_{name}" in there]
    theirs = openmpi.algorithms().get(collective, {})
    if collective not in PATTERNS:  # nothing could tell which of them ran
        theirs = {DEFAULT: "default"}
    return ours + [Algorithm(OPENMPI, name, number) for number, name in sorted(theirs.items())]


def choose(
    collective: str, words: str | Iterable[str]
) -> tuple[tuple[Algorithm, ...], frozenset[Algorithm]]:
    """The algorithms named by `words`, each once, in order.

    words  'ours,openmpi:3', or a list of such words: a group ("ours", "openmpi"), or one member by
           name or (Open MPI's) number: "ours:pipeline", "openmpi:3", "openmpi:default".
           "ours:shared", which sends no messages, belongs to no group.

    Returns (algorithms, those named individually). Raises InputError, listing the known ones, for a
    word that names no algorithm.
    """
    words = words.split(",") if isinstance(words, str) else list(words)
    algorithms = known(collective)
    apart = [Algorithm(OURS, kernel.partition("_")[2]) for kernel in shared_of(collective)]
    chosen: dict[Algorithm, None] = {}
    named: set[Algorithm] = set()
    for word in (str(word).strip() for word in words):
        library, colon, which = word.partition(":")
        found = [
            algorithm
            for algorithm in [*algorithms, *(apart if colon else ())]
            if algorithm.library == library
            and (not colon or which in (algorithm.name, str(algorithm.number)))
        ]
        if not found or which == "-1":
            raise InputError(_unknown(collective, word, library, [*algorithms, *apart]))
        chosen |= dict.fromkeys(found)
        named |= set(found) if colon else set()
    if not chosen:
        raise InputError("no algorithms: write e.g. ours,openmpi, or ours:ring,openmpi:4")
    return tuple(chosen), frozenset(named)


def _unknown(collective: str, word: str, library: str, algorithms: Iterable[Algorithm]) -> str:
    names = [
        f"{algorithm.name} ({algorithm.number})" if algorithm.number >= 0 else algorithm.name
        for algorithm in algorithms
        if algorithm.library == library
    ]
    if not names:
        return f"algorithms {word!r}: write 'ours', 'openmpi', or one of them, e.g. openmpi:default"
    return f"algorithms {word!r}: there is no such {collective}; {library} has {', '.join(names)}"


@dataclass(frozen=True)
class Witnesses:
    """Two algorithms of a collective that send different messages for this Shape."""

    collective: str
    algorithms: tuple[Algorithm, Algorithm]
    shape: Shape

    def refuse(self, counted: Sequence[Counted | None]) -> str:
        """Why the settings of this job cannot be trusted; "" if they can.

        counted   what each of the two sent, in order: Counted, or None if it did not run.
        """
        for algorithm, sent in zip(self.algorithms, counted, strict=True):
            if sent is None:
                return f"Open MPI's {self.collective} {algorithm.name} could not be run as a test"
            wrong = refuse(self.collective, algorithm, sent, self.shape)
            if wrong:
                return f"{HINT}. As a test, {self.collective} was {wrong}"
        return ""


def witnesses(collective: str, ranks: int) -> Witnesses:
    """The Witnesses of a collective on `ranks` ranks; those of bcast if it has none.

    A collective has none if no two algorithms differ, as for scatter on 2 or 3 ranks. Then bcast
    shows that settings take effect at all.
    """
    _, element = collective_of(collective).timed_element
    count = 8 * ranks  # enough for every algorithm to segment it
    shape = Shape(ranks, 0 if collective == "barrier" else count, element, segment=8)
    offered = [
        Algorithm(OPENMPI, name, number)
        for number, name in openmpi.algorithms().get(collective, {}).items()
        if name in PATTERNS[collective]
    ]
    patterns = {algorithm: expected(collective, algorithm.name, shape) for algorithm in offered}
    for first in offered:
        for second in offered:
            both = patterns[first], patterns[second]
            if all(both) and not any(one == other for one in both[0] for other in both[1]):
                return Witnesses(collective, (first, second), shape)
    return witnesses("bcast", ranks)


def refuse(collective: str, algorithm: Algorithm, counted: Counted, shape: Shape) -> str:
    """Why a row must not get this algorithm's name; "" if it may.

    Example: 'asked for recursive_doubling (3), ran like bruck (2)'.
    """
    if any(counted == pattern for pattern in expected(collective, algorithm.name, shape)):
        return ""
    like = likeness(collective, counted, shape)
    ran = f"ran like {like}" if like else f"ran like no known algorithm ({counted.describe()})"
    return f"asked for {algorithm.name} ({algorithm.number}), {ran}"


def _named(collective: str, names: Iterable[str]) -> str:
    numbers = {name: number for number, name in openmpi.algorithms()[collective].items()}
    words = [f"{name} ({numbers[name]})" if name in numbers else name for name in names]
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def likeness(collective: str, counted: Counted, shape: Shape) -> str:
    """Name and number of the algorithms that send what was counted, 'ring (4)'; "" for none.

    Several, 'ring (4) or neighbor (5)', if they send the same for this shape. Open MPI's own choice
    uses no tuning, so if nothing matches, the shape without tuning is tried too.
    """
    names = matching(collective, counted, shape)
    if names:
        return _named(collective, names)
    plain = replace(shape, segment=0, fanout=0, radix=0)
    names = matching(collective, counted, plain) if plain != shape else []
    return f"{_named(collective, names)} without any tuning" if names else ""
