"""Judge a rules file by what its choices cost in simulated time: by our kernels of the same
algorithms, on a simulated cluster of one rank a host where a message costs α + mβ.

The α-β model counts messages one after the other. In a simulation they meet: those that leave a
rank at the same time share its link. Both are the same on every machine.
"""

from functools import cache

import numpy as np

from mpilab import simulated
from mpilab.errors import InputError, SetupError, Ungradable
from mpilab.harness import Case
from mpilab.openmpi_rules import judge
from mpilab.openmpi_rules.predicting import choices
from mpilab.openmpi_rules.vocabulary import (
    CHAINS,
    CUT,
    algorithm_name,
    shape_of,
    substitute,
)
from mpilab.promises import kernels_of
from mpilab.simulated.scaling import seconds_of

# Open MPI's names of broadcasts that we call by another one.
OURS = {"basic_linear": "linear", "split_binary_tree": "split_binary", "binary_tree": "binary"}
# What is tried for the cheapest choice; less than the model tries, for each is a simulation.
SEGMENTS = (0, 8192, 16384)
FANOUTS = (4,)
# A ring sends P² messages, and a linear broadcast all from one rank: seconds of simulation, and the
# cheapest nowhere.
MOST_RANKS, NEVER_CHEAPEST = 256, ("basic_linear", "scatter_allgather_ring")
# Nobody is helped by segments of a byte: what would take minutes to simulate is not.
MOST_SEGMENTS = 1024


def costs(rules, points, alpha, beta):
    """What the choices of a file cost in simulated time, beside the cheapest that was tried: table
    of mpilab.openmpi_rules.judge.PREDICTED; arguments as of `predicted` there.

    Only broadcasts, on at most 256 ranks. Raises InputError for other points, SetupError without
    SimGrid.
    """
    rows = []
    for collective, ranks, size in judge.points_of(points):
        if collective != "bcast" or not 2 <= ranks <= MOST_RANKS:
            raise InputError(f"{collective} on {ranks} ranks: what can be simulated here are "
                             f"broadcasts on 2 to {MOST_RANKS} ranks")  # fmt: skip
        tried = tuple(choice for choice in choices(collective, SEGMENTS, FANOUTS)
                      if choice[2] < size
                      and algorithm_name(collective, choice[0]) not in NEVER_CHEAPEST)  # fmt: skip
        rule = rules.deciding(collective, ranks, size)
        took = _seconds(ranks, size, tried, alpha, beta)
        if rule is not None and not rule.is_left and not rule.is_fatal(ranks):
            took = {**_seconds(ranks, size, (rule.choice,), alpha, beta), **took}
        chosen_s = np.nan if rule is None else took.get(rule.choice, np.nan)
        rows.append(judge.row(collective, ranks, size, rule, chosen_s, min(took.values())))
    return np.array(rows, judge.PREDICTED)


def complaint(text, points, alpha, beta, most=1.5):
    """What is wrong with a rules file (its text); "" if nothing is. To be used by rubrics.

    As mpilab.openmpi_rules.complaint, by simulated time. Raises Ungradable without SimGrid.
    """
    rules, wrong = judge.readable(text)
    if wrong:
        return wrong
    try:
        rows = costs(rules, points, alpha, beta)
    except SetupError as error:
        raise Ungradable(str(error)) from None
    return judge.verdict(rows, most, "in simulated time", "can be simulated")


@cache
def _seconds(ranks, size, tried, alpha, beta):
    """{choice: simulated seconds} of broadcasts; without those that we have no kernel of."""
    named = {choice: _case(ranks, size, choice) for choice in tried}
    cases = {choice: case for choice, case in named.items() if case is not None}
    # All of a message's time is spent at its ends: so ranks are as busy as the model has them.
    cluster = simulated.calibrated(f"flat-{ranks}x1", {"node": (alpha, beta),
                                                       "group": (alpha, beta)},
                                   overhead=alpha / 2)  # fmt: skip
    distinct = list(dict.fromkeys(cases.values()))
    results = simulated.simulate(simulated.kernels(), "", distinct, cluster, limit=600.0)
    for result in results:
        if result.outcome != "done":
            raise Ungradable(f"{result.case.function} on {ranks} ranks: {result.outcome}")
    took = dict(zip(distinct, map(seconds_of, results), strict=True))
    return {choice: took[case] for choice, case in cases.items()}


def _case(ranks, size, choice):
    """The Case of our kernel that does what a choice makes Open MPI do; None where there is none,
    and for too many segments."""
    number, fanout, segment = choice
    name = algorithm_name("bcast", number)
    instead = substitute("bcast", name, shape_of("bcast", ranks, size, segment, fanout))
    name = instead.name if instead else name
    kernel = f"bcast_{OURS.get(name, name)}"
    if kernel not in kernels_of("bcast"):
        return None
    cuts = segment if name in CUT["bcast"] else 0
    if cuts and size / cuts > MOST_SEGMENTS:
        return None
    return Case("bcast", ranks, size, "byte", record=False, dump=False, function=kernel,
                # Ours has segments where nothing is said.
                segment=cuts or (max(1, size) if name in CUT["bcast"] else 0),
                fanout=max(1, fanout) if name in CHAINS["bcast"] else 0)  # fmt: skip
