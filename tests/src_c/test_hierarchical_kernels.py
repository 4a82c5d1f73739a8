"""Gather by levels, and hierarchical allgather and allreduce: what test_topology_kernels.py does
not require of every kernel.

The headers' formulas hold on regular topologies of many shapes, with ranks in any order; single
links carry no more than needed.
"""

import random
from collections import Counter

import numpy as np
import pytest

from mpilab.algorithms.formula import cost_of
from mpilab.cases.case import Case
from mpilab.cases.output import compare
from mpilab.hosts.places import Place
from mpilab.kernels.build import KERNELS
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE
from mpilab.trace.recording import operations

GATHERS = ("node", "group", "node_group", "rank_order", "pipelined")
NAMES = [f"gather_{name}" for name in GATHERS] + [
    "allgather_hierarchical",
    "allgather_pipelined",
    "allreduce_hierarchical",
    "allreduce_multilane",
]
# Groups, nodes of each, ranks of each node.
SHAPES = [
    (1, 1, 3),
    (1, 2, 1),
    (1, 3, 2),
    (1, 5, 3),
    (2, 1, 1),
    (2, 1, 3),
    (2, 2, 1),
    (2, 4, 2),
    (3, 1, 1),
    (3, 2, 1),
    (3, 3, 2),
    (5, 1, 2),
    (6, 1, 1),
    (7, 2, 1),
]
# The ranks of one node, and the nodes of one group, are not neighbors, and no two have equal sizes.
UNEVEN = tuple(Place(f"n{name}", name[0]) for name in "a1 b1 a2 a1 c1 b1 a1 b2 b1 a2 a1 b3".split())
BLOCK = 7 * 4  # bytes of seven ints


def shuffled(shape):
    groups, nodes, ranks = shape
    places = [Place(f"n{g}.{n}", f"g{g}") for g in range(groups) for n in range(nodes)] * ranks
    random.Random(repr(shape)).shuffle(places)
    return tuple(places)


def make_case(function, places, **more):
    collective, _, _ = function.partition("_")
    root = len(places) // 2 if collective == "gather" else 0
    return Case(collective, len(places), 7, function=function, places=places, root=root, **more)


def run(cases):
    """{(function, places): Result}; all ended correctly."""
    results = run_cases(KERNELS, "", cases, limit=60.0)
    for result in results:
        case = result.case.describe()
        assert result.outcome == DONE, f"{result.case.function}, {case}: {result.detail}"
        wrong = [difference.describe() for difference in compare(result.case, result.outputs)]
        assert wrong == [], f"{result.case.function}, {case}"
    return {(result.case.function, result.case.places): result for result in results}


@pytest.fixture(scope="module", params=SHAPES, ids=lambda shape: "{} of {} of {}".format(*shape))
def regular(request):
    return run([make_case(function, shuffled(request.param)) for function in NAMES])


@pytest.fixture(scope="module")
def uneven():
    """{function: Result} on nodes and groups of all sizes."""
    done = run([make_case(function, UNEVEN) for function in NAMES])
    return {function: result for (function, _), result in done.items()}


def test_headers_hold_on_shuffled_ranks_of_any_regular_shape(regular):
    for (function, places), result in regular.items():
        messages = result.recording.messages
        counted = (result.recording.rounds, len(messages), int(messages["bytes"].sum()))
        assert counted == cost_of(function).at(result.case), (function, places)


def crossing(result, numbers):
    """{(number, number): bytes} between the nodes or groups that `numbers` gives for each rank."""
    _, volume = result.recording.matrix()
    found = Counter()
    for source, dest in np.argwhere(volume):
        if numbers[source] != numbers[dest]:
            found[int(numbers[source]), int(numbers[dest])] += int(volume[source, dest])
    return found


def sums(crossings, side):
    """{number: bytes}, of what leaves (side 0) or enters (side 1)."""
    found = Counter()
    for pair, amount in crossings.items():
        found[pair[side]] += amount
    return dict(found)


@pytest.mark.parametrize("name", ["node", "group", "node_group", "pipelined"])
def test_each_group_sends_the_root_s_group_its_blocks_and_nothing_goes_elsewhere(name, uneven):
    result = uneven[f"gather_{name}"]
    group = result.case.levels.group
    home = int(group[result.case.root])
    assert crossing(result, group) == {
        (number, home): int((group == number).sum()) * BLOCK
        for number in range(result.case.levels.groups)
        if number != home
    }


def test_by_nodes_each_node_sends_its_blocks_straight_to_the_root_s_node(uneven):
    result = uneven["gather_node"]
    node = result.case.levels.node
    home = int(node[result.case.root])
    assert crossing(result, node) == {
        (number, home): int((node == number).sum()) * BLOCK
        for number in range(result.case.levels.nodes)
        if number != home
    }


@pytest.mark.parametrize("name", ["hierarchical", "pipelined"])
@pytest.mark.parametrize("level", ["node", "group"])
def test_an_allgather_brings_every_other_block_into_a_node_and_a_group_once(name, level, uneven):
    result = uneven[f"allgather_{name}"]
    numbers = getattr(result.case.levels, level)
    assert sums(crossing(result, numbers), 1) == {
        int(number): int((numbers != number).sum()) * BLOCK for number in set(numbers)
    }


def test_the_pipelined_allgather_sends_every_rank_every_block_once(uneven):
    received = Counter(
        int(message["dest"]) for message in uneven["allgather_pipelined"].recording.messages
    )
    assert received == {rank: len(UNEVEN) - 1 for rank in range(len(UNEVEN))}


@pytest.mark.parametrize("function", ["gather_pipelined", "allgather_pipelined"])
def test_a_pipeline_fills_the_links_between_groups_from_the_first_round_on(function, uneven):
    result = uneven[function]
    group = result.case.levels.group
    messages = result.recording.messages
    first = messages[messages["round"] == 1]
    across = first[group[first["source"]] != group[first["dest"]]]
    home = {int(group[result.case.root])} if function.startswith("gather") else set()
    assert set(group[across["source"]]) == {0, 1, 2} - home


def test_the_pipelined_gather_hands_up_blocks_one_by_one(uneven):
    messages = uneven["gather_pipelined"].recording.messages
    assert set(messages["bytes"]) == {BLOCK}
    assert set(uneven["gather_node_group"].recording.messages["bytes"]) != {BLOCK}


def test_lanes_share_what_goes_between_nodes():
    places = shuffled((2, 2, 3))
    (result,) = run([make_case("allreduce_multilane", places)]).values()
    _, volume = result.recording.matrix()
    sent = (volume * result.case.levels.between_nodes()).sum(axis=1)
    # Seven elements are not a multiple of three lanes of two pieces each: a few more or less.
    assert sent.min() > 0 and sent.sum() == 2 * 3 * BLOCK and sent.max() <= 3 * 2 * 4


@pytest.mark.parametrize("shape", [(2, 2, 2), (3, 1, 2), (1, 4, 1), (1, 1, 1)])
def test_a_multilane_allreduce_in_segments_is_right_and_keeps_all_levels_busy(shape):
    """Three segments of up to three ints follow each other: each step is a round."""
    places = shuffled(shape)
    (result,) = run([make_case("allreduce_multilane", places, segment=12)]).values()
    messages = result.recording.messages
    counted = (result.recording.rounds, len(messages), int(messages["bytes"].sum()))
    assert counted == cost_of("allreduce_multilane").at(result.case)


@pytest.mark.parametrize("more", [{"in_place": True}, {"warmup": 1, "repetitions": 2}])
def test_a_multilane_allreduce_in_segments_is_right_on_nodes_and_groups_of_all_sizes(more):
    run([make_case("allreduce_multilane", UNEVEN, segment=8, **more)])


@pytest.mark.parametrize("name", ["hierarchical", "multilane"])
def test_an_operation_that_does_not_commute_goes_the_way_that_keeps_the_order(name):
    (result,) = run([make_case(f"allreduce_{name}", UNEVEN, op="compose")]).values()
    plain = cost_of("allreduce_recursive_doubling").at(result.case)
    messages = result.recording.messages
    assert (result.recording.rounds, len(messages), int(messages["bytes"].sum())) == plain


@pytest.mark.parametrize("function", NAMES)
def test_the_topology_is_asked_for_once_and_nothing_is_left_over(function):
    (gather,) = (n for n, name in operations().items() if name == "MPI_Gather")
    (result,) = run([make_case(function, UNEVEN, warmup=1, repetitions=2)]).values()
    for rank in result.recording.ranks:
        assert (rank.records["operation"] == gather).sum() == 1
        assert len(rank.leaked) == len(rank.errors) == 0
