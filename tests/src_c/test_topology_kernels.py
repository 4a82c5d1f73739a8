"""The topology-aware kernels, on many pretended topologies: the correct bytes and nothing else, and
the counts declared in their headers, including the traffic between nodes and groups.
"""

import pytest

from mpilab.algorithms.formula import cost_of
from mpilab.cases.case import COLLECTIVES, Case
from mpilab.cases.output import compare
from mpilab.hosts.places import Place
from mpilab.kernels.build import KERNELS
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE
from mpilab.util.kit import ROOT
from tests.src_c.test_collective_kernels import TOPOLOGY_AWARE

NAMES = [
    f"{collective}_{name}"
    for collective in TOPOLOGY_AWARE
    for name in sorted(TOPOLOGY_AWARE[collective])
]


def placed(hosts):
    """Places from a text: 'a1 a2 b1' are hosts 1 and 2 of group a and host 1 of group b."""
    return tuple(Place(name, name[0]) for name in hosts.split())


# Equal numbers of ranks on each node and of nodes in each group, for which the formulas hold.
REGULAR = {
    "1 of 1 of 1": placed("a1"),
    "1 of 1 of 4": placed("a1 a1 a1 a1"),
    "1 of 4 of 1": placed("a1 a2 a3 a4"),
    "2 of 2 of 2, by slot": placed("a1 a1 a2 a2 b1 b1 b2 b2"),
    "2 of 2 of 2, by node": placed("a1 b1 a2 b2 a1 b1 a2 b2"),
    "3 of 1 of 3": placed("c1 b1 a1 a1 b1 c1 c1 a1 b1"),
    "4 of 2 of 2": placed("a1 b1 c1 d1 a2 b2 c2 d2 d1 d2 c1 c2 b1 b2 a1 a2"),
}
UNEVEN = {
    "of all sizes": placed("b1 a1 a2 a1 c1 a1 b1 a2 a3 b2 a3"),
    "one far away": placed("a1 a1 a1 a1 b1"),
    "same names": (Place("n1", "a"), Place("n1", "b"), Place("n1", "a"), Place("n2", "b")),
}
PLACES = REGULAR | UNEVEN


def cases(function, places):
    """Each root, sizes with and without a remainder, segments, every datatype, both operations."""
    collective, _, _ = function.partition("_")
    about = COLLECTIVES[collective]
    ranks = len(places)
    shape = {"collective": collective, "ranks": ranks, "function": function, "places": places}
    roots = range(ranks) if about.is_rooted else (0,)
    made = [Case(**shape, count=101, root=root) for root in roots]
    made += [
        Case(**shape, count=count, root=root, segment=segment)
        for root in sorted({roots[0], roots[len(roots) // 2], roots[-1]})
        for count, segment in ((0, 0), (1, 0), (1001, 256))
    ]
    last = ranks - 1 if about.is_rooted else 0
    made += [
        Case(**shape, count=37, root=last, segment=16, strict=True),
        Case(**shape, count=37, root=last, reversed=True),
    ]
    for datatype in ("contiguous", "vector", "shifted") + ("mixed",) * (not about.one_type):
        for op in ("sum", "compose") if about.reduces and datatype != "mixed" else ("sum",):
            for in_place in (False, True) if about.in_place else (False,):
                made.append(
                    Case(
                        **shape,
                        count=5,
                        root=last,
                        datatype=datatype,
                        op=op,
                        in_place=in_place,
                        segment=40,
                    )
                )
    return made


@pytest.fixture(scope="module")
def results():
    """A function: the Results of all cases of one kernel on one topology; one mpirun for all."""
    done = {}

    def of(function, name):
        if name not in done:
            wanted = [case for function in NAMES for case in cases(function, PLACES[name])]
            done[name] = run_cases(KERNELS, "", wanted, limit=60.0)
        return [result for result in done[name] if result.case.function == function]

    return of


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("function", NAMES)
def test_every_rank_ends_with_the_right_bytes_and_nothing_else_is_touched(function, name, results):
    tried = results(function, name)
    assert len(tried) == len(cases(function, PLACES[name]))
    for result in tried:
        case = result.case.describe()
        assert result.outcome == DONE, f"{case}: {result.hang or result.detail}"
        assert [output.returned for output in result.outputs] == [0] * result.case.ranks, case
        wrong = [difference.describe() for difference in compare(result.case, result.outputs)]
        assert wrong == [], case


def across(result):
    """(bytes between nodes, bytes between groups) in a recording."""
    _, volume = result.recording.matrix()
    levels = result.case.levels
    return (int(volume[levels.between_nodes()].sum()), int(volume[levels.between_groups()].sum()))


@pytest.mark.parametrize("name", REGULAR)
@pytest.mark.parametrize("function", NAMES)
def test_counts_are_those_of_the_header(function, name, results):
    cost, compared = cost_of(function), 0
    for result in results(function, name):
        if result.case.op != "sum":
            continue
        messages = result.recording.messages
        counted = (result.recording.rounds, len(messages), int(messages["bytes"].sum()))
        assert counted == cost.at(result.case), result.case.describe()
        compared += 1
    assert compared >= 3


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("function", NAMES)
def test_what_crosses_is_as_in_the_header_on_any_topology(function, name, results):
    cost = cost_of(function)
    assert cost.between_nodes and cost.between_groups, "a header has to say what crosses"
    for result in results(function, name):
        if result.case.op == "sum":
            assert across(result) == cost.across(result.case), result.case.describe()


def test_every_kernel_that_knows_topologies_is_a_file():
    for collective, names in TOPOLOGY_AWARE.items():
        files = {path.stem for path in (ROOT / "src_c" / collective).glob("*.c")}
        assert names <= files, collective
