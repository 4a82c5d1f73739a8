"""The guard: from the messages that were counted, which of Open MPI's algorithms ran?

Open MPI ignores a setting without a word when it can't or won't heed it: dynamic rules are off
(coll_tuned_use_dynamic_rules), another component comes before coll/tuned, an algorithm is not made
for this number of ranks or elements. So a row gets an algorithm's name only

 - if the messages and the bytes between every two ranks are what it must send, and
 - if in the same job two *witnesses*, different algorithms of the same collective and shape, each
   sent what they must: whatever Open MPI decides by itself, it can't have been both.

The second is needed where algorithms send the same, as on 2 ranks many do.
"""

from dataclasses import dataclass, replace

from mpilab import openmpi
from mpilab.sweeps.algorithms import OPENMPI, Algorithm
from mpilab.sweeps.openmpi_traffic import PATTERNS, Shape, expected, matching

HINT = (
    "Open MPI did not heed the choice: coll_tuned_use_dynamic_rules has to be true and coll/tuned "
    "the component in charge (OMPI_MCA_coll=^han); look for OMPI_MCA_coll* in the environment and "
    "for coll settings in ~/.openmpi/mca-params.conf"
)


@dataclass(frozen=True)
class Witnesses:
    """Two algorithms of a collective that send different messages for this Shape."""

    collective: str
    algorithms: tuple
    shape: Shape

    def refuse(self, counted):
        """Why the settings of this job cannot be trusted; "" if they can.

        counted   what each of the two sent, in their order: Counted, or None where it did not run.
        """
        for algorithm, sent in zip(self.algorithms, counted, strict=True):
            if sent is None:
                return f"Open MPI's {self.collective} {algorithm.name} could not be run as a test"
            wrong = refuse(self.collective, algorithm, sent, self.shape)
            if wrong:
                return f"{HINT}. As a test, {self.collective} was {wrong}"
        return ""


def witnesses(collective, ranks):
    """The Witnesses of a collective on so many ranks; those of bcast where it has none.

    There are none where no two algorithms differ, as for scatter on 2 or 3 ranks: bcast then shows
    that settings are heeded at all.
    """
    count = 8 * ranks  # enough for every algorithm to cut it
    shape = Shape(ranks, 0 if collective == "barrier" else count, _element(collective), segment=8)
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


def _element(collective):
    return 4 if collective in ("reduce", "allreduce") else 1


def refuse(collective, algorithm, counted, shape):
    """Why a row must not be called by this algorithm's name; "" if it may.

    'asked for recursive_doubling (3), ran like bruck (2)'
    """
    if any(counted == pattern for pattern in expected(collective, algorithm.name, shape)):
        return ""
    like = likeness(collective, counted, shape)
    ran = f"ran like {like}" if like else f"ran like none that is known ({counted.describe()})"
    return f"asked for {algorithm.name} ({algorithm.number}), {ran}"


def _named(collective, names):
    numbers = {name: number for number, name in openmpi.algorithms()[collective].items()}
    words = [f"{name} ({numbers[name]})" if name in numbers else name for name in names]
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def likeness(collective, counted, shape):
    """Name and number of the algorithms that send what was counted, 'ring (4)'; "" for none.

    More than one, 'ring (4) or neighbor (5)', where they send the same for this shape. What Open
    MPI decides by itself is tuned by nothing: where nothing fits, that is tried too.
    """
    names = matching(collective, counted, shape)
    if names:
        return _named(collective, names)
    plain = replace(shape, segment=0, fanout=0, radix=0)
    names = matching(collective, counted, plain) if plain != shape else []
    return f"{_named(collective, names)} without any tuning" if names else ""
