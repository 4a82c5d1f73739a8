"""The reference values for lab 04's answers, compared with kernel headers and trees."""

import itertools

import pytest

from mpilab.algorithms import schedule_of
from mpilab.algorithms.formula import cost_of
from mpilab.cases.case import Case
from mpilab.errors import InputError
from mpilab.hosts.orders import order, places_of, regular
from mpilab.hosts.places import Levels
from mpilab.models import textbook
from tests.right_answers import answers_of

right = answers_of("04-topology")

POWERS = [(1, 1, 4), (1, 4, 2), (4, 2, 2), (2, 2, 4), (4, 4, 1), (8, 1, 2)]
ANY = [*POWERS, (3, 2, 2), (1, 5, 3), (2, 3, 5)]
BYTES = 100


def crossed_by_tree(shape, name):
    """[bytes between nodes, bytes between groups] of the binomial broadcast's schedule."""
    cluster = regular(*shape)
    levels = Levels(cluster.places(order(cluster, name)))
    edges = [
        (transfer.source, transfer.dest)
        for transfers in schedule_of("bcast", "binomial", len(levels.places)).rounds
        for transfer in transfers
    ]
    crosses = (levels.between_nodes(), levels.between_groups())
    return [BYTES * sum(int(matrix[edge]) for edge in edges) for matrix in crosses]


@pytest.mark.parametrize("shape", POWERS)
@pytest.mark.parametrize("name", ["seq", "rr"])
def test_what_a_flat_tree_crosses_is_what_its_schedule_crosses(shape, name):
    assert right.crossing(f"flat_{name}", *shape, BYTES) == crossed_by_tree(shape, name)


@pytest.mark.parametrize("shape", ANY)
@pytest.mark.parametrize(
    "way, kernel", [("levels", "bcast_node_group"), ("gather_levels", "gather_node_group")]
)
def test_what_levels_cross_is_what_the_kernel_promises(shape, way, kernel):
    places = places_of(f"{'x'.join(map(str, shape))} rr")
    case = Case(kernel.partition("_")[0], len(places), BYTES, "byte", places=places)
    assert right.crossing(way, *shape, BYTES) == list(cost_of(kernel).across(case))


def test_an_unknown_way_is_refused():
    with pytest.raises(InputError, match="way 'flat': use one of flat_seq"):
        right.crossing("flat", 1, 1, 1, 1)
    with pytest.raises(InputError, match="way 'flat': use one of flat_rr"):
        right.bcast_seconds_by_level("flat", 1, 1, 1, 1, 1, 1.0, (1.0, 1.0, 1.0))


def test_a_broadcast_by_levels_costs_the_sum_of_its_levels():
    """log2 4 steps between groups, one between nodes, three within; computed manually."""
    seconds = right.bcast_seconds_by_level("levels", 4, 2, 8, 1000, 1, 1e-3, (4e-6, 2e-6, 1e-6))
    assert seconds == pytest.approx(2 * (1e-3 + 4e-3) + (1e-3 + 2e-3) + 3 * (1e-3 + 1e-3))


def test_in_rr_order_the_ranks_of_a_node_share_its_link():
    seconds = right.bcast_seconds_by_level("flat_rr", 4, 2, 8, 1000, 1, 1e-3, (4e-6, 2e-6, 1e-6))
    assert seconds == pytest.approx(2 * (1e-3 + 32e-3) + (1e-3 + 16e-3) + 3 * (1e-3 + 1e-3))


def test_a_pipe_goes_at_the_pace_of_the_slowest_level_that_is_used():
    betas = (4e-6, 2e-6, 1e-6)
    seconds = right.bcast_seconds_by_level("chains", 4, 2, 2, 1000, 10, 1e-3, betas)
    assert seconds == pytest.approx(3 * 1.4e-3 + 1.2e-3 + 1.1e-3 + 9 * 1.4e-3)
    seconds = right.bcast_seconds_by_level("chains", 1, 3, 2, 1000, 10, 1e-3, betas)
    assert seconds == pytest.approx(2 * 1.2e-3 + 1.1e-3 + 9 * 1.2e-3)
    assert right.bcast_seconds_by_level("chains", 1, 1, 1, 1000, 10, 1e-3, betas) == 0


def test_one_rank_a_node_makes_flat_and_levels_equal_and_the_first_is_taken():
    assert right.cheapest_bcast(4, 2, 1, 64, 8, 5e-5, 4e-8, 8e-9, 1e-9) == 0
    assert right.cheapest_bcast(4, 2, 2, 64, 8, 5e-5, 4e-8, 8e-9, 1e-9) == 1
    assert right.cheapest_bcast(4, 2, 2, 1 << 24, 256, 5e-5, 4e-8, 8e-9, 1e-9) == 2


def test_the_wanted_crossings_are_the_least_and_the_most_of_all_orders():
    """Of all 2520 ways to put eight ranks on four hosts of two slots."""
    slots = sorted(2 * list(textbook.HOSTS))
    found = {textbook.order_crossings(hosts, 0) for hosts in set(itertools.permutations(slots))}
    assert min(groups for _, groups in found) == 1
    assert min(nodes for nodes, _ in found) == 3
    assert max(found) == (7, 7)
    assert (3, 1) in found


def test_an_order_is_right_from_its_root_only():
    seq = [name for name in textbook.HOSTS for _ in range(2)]
    assert textbook.order_complaint(seq, 0, textbook.BEST) == ""
    assert textbook.order_complaint(seq, 3, textbook.BEST) == (
        "from rank 3, 7 of 7 messages go between nodes and 5 between groups; "
        "the fewest possible are 3 and 1"
    )
    assert textbook.order_complaint(seq[-3:] + seq[:-3], 3, textbook.BEST) == ""


def test_the_worst_order_has_the_most_crossings_not_the_fewest():
    seq = [name for name in textbook.HOSTS for _ in range(2)]
    assert textbook.order_complaint(seq, 3, textbook.WORST) == (
        "from rank 3, 7 of 7 messages go between nodes and 5 between groups; "
        "the most possible are 7 and 7"
    )


@pytest.mark.parametrize(
    "hosts, why",
    [
        (None, "None is not a list of the hosts of 8 ranks"),
        (["n1"] * 7, "is not a list of the hosts of 8 ranks"),
        (["n1"] * 8, "ranks on n1: 8, but it has 2 slots"),
        (["n1", "n1", "n2", "n2", "n3", "n3", "n4", "n5"], "ranks on n4: 1, but it has 2 slots"),
        ([1, 1, 2, 2, 3, 3, 4, 4], "ranks on n1: 0, but it has 2 slots"),
    ],
)
def test_what_is_no_order_of_the_cluster_is_refused(hosts, why):
    with pytest.raises(InputError, match=why):
        textbook.order_complaint(hosts, 0, textbook.BEST)
