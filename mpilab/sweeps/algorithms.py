"""Which algorithms a sweep compares: ours by their kernels' names, Open MPI's by name or number."""

from dataclasses import dataclass

from mpilab import openmpi, schedules
from mpilab.errors import InputError
from mpilab.promises import kernels_of

OURS, OPENMPI, DEFAULT = "ours", "openmpi", 0


@dataclass(frozen=True)
class Algorithm:
    """library "ours" or "openmpi"; number is Open MPI's, -1 for one of ours."""

    library: str
    name: str
    number: int = -1

    def __str__(self):
        return f"{self.library}:{self.name}"

    @property
    def is_chosen(self):
        """Is it one that Open MPI has to be told to use?"""
        return self.number > DEFAULT

    def function(self, collective):
        """The kernel that runs it."""
        return f"{collective}_{OPENMPI if self.library == OPENMPI else self.name}"


def known(collective):
    """All algorithms of a collective, ours first; InputError for an unknown collective.

    A copy of the kit that was handed out lacks the kernels that students are to write.
    """
    there = kernels_of(collective)
    ours = [
        Algorithm(OURS, name)
        for name in schedules.algorithms(collective)
        if f"{collective}_{name}" in there
    ]
    theirs = openmpi.algorithms().get(collective, {})
    return ours + [Algorithm(OPENMPI, name, number) for number, name in sorted(theirs.items())]


def choose(collective, words):
    """The algorithms that `words` name, each once and in their order.

    words  'ours,openmpi:3', or a list of such words: a group ("ours", "openmpi"), or one of it by
           name or (Open MPI's) number: "ours:pipeline", "openmpi:3", "openmpi:default".

    Returns (algorithms, those that were named singly). InputError, with what there is, for a word
    that names nothing.
    """
    words = words.split(",") if isinstance(words, str) else list(words)
    algorithms = known(collective)
    chosen, named = {}, set()
    for word in (str(word).strip() for word in words):
        library, colon, which = word.partition(":")
        found = [
            algorithm
            for algorithm in algorithms
            if algorithm.library == library
            and (not colon or which in (algorithm.name, str(algorithm.number)))
        ]
        if not found or which == "-1":
            raise InputError(_unknown(collective, word, library, algorithms))
        chosen |= dict.fromkeys(found)
        named |= set(found) if colon else set()
    if not chosen:
        raise InputError("no algorithms: write e.g. ours,openmpi, or ours:ring,openmpi:4")
    return tuple(chosen), frozenset(named)


def _unknown(collective, word, library, algorithms):
    names = [
        f"{algorithm.name} ({algorithm.number})" if algorithm.number >= 0 else algorithm.name
        for algorithm in algorithms
        if algorithm.library == library
    ]
    if not names:
        return f"algorithms {word!r}: write 'ours', 'openmpi', or one of them, e.g. openmpi:default"
    return f"algorithms {word!r}: there is no such {collective}; {library} has {', '.join(names)}"
