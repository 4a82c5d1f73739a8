"""Trees contain every rank once, under the parent given by their definition."""

import pytest

from mpilab.algorithms import trees
from mpilab.algorithms.formula import kary_depth, knomial_depth
from mpilab.errors import InputError

RANKS = range(1, 34)
SHAPES = {
    "chain": lambda ranks, root: trees.chain(ranks, root, 3),
    "kary": lambda ranks, root: trees.kary(ranks, root, 3),
    "knomial": lambda ranks, root: trees.knomial(ranks, root, 3),
    "in_order": trees.in_order,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_rank_but_the_root_is_the_child_of_its_parent_and_is_reached(shape):
    for ranks in RANKS:
        for root in {0, ranks // 2, ranks - 1}:
            tree = SHAPES[shape](ranks, root)
            assert sorted(tree.top_down) == list(range(ranks))
            assert tree.top_down[0] == root and tree.parent[root] is None
            for rank in set(range(ranks)) - {root}:
                assert rank in tree.children[tree.parent[rank]]
                assert tree.depths[rank] == tree.depths[tree.parent[rank]] + 1


def test_chains_share_the_ranks_out_and_the_first_are_longer():
    tree = trees.chain(9, 0, 3)
    assert tree.children[0] == (1, 4, 7)
    assert [tree.depths[rank] for rank in range(9)] == [0, 1, 2, 3, 1, 2, 3, 1, 2]


def test_more_chains_than_ranks_are_one_rank_each():
    assert trees.chain(4, 2, 20).children[2] == (3, 0, 1)


@pytest.mark.parametrize("fanout", [1, 2, 3, 5])
def test_a_kary_tree_has_the_children_of_a_heap(fanout):
    for ranks in RANKS:
        tree = trees.kary(ranks, 0, fanout)
        for child in range(1, ranks):
            assert tree.parent[child] == (child - 1) // fanout
        assert tree.depth == kary_depth(ranks, fanout)


@pytest.mark.parametrize("radix", [2, 3, 4, 5])
def test_the_parent_in_a_knomial_tree_lacks_the_lowest_digit(radix):
    for ranks in RANKS:
        tree = trees.knomial(ranks, 0, radix)
        for child in range(1, ranks):
            weight = 1
            while child // weight % radix == 0:
                weight *= radix
            assert tree.parent[child] == child - child // weight % radix * weight
        assert tree.depth == knomial_depth(ranks, radix)


def test_the_binomial_tree_serves_the_largest_subtree_first():
    tree = trees.knomial(8, 0, 2)
    assert tree.children[0] == (4, 2, 1)
    assert tree.children[4] == (6, 5)


def test_an_in_order_tree_keeps_lower_ranks_on_one_side_and_higher_ones_on_the_other():
    for ranks in RANKS:
        for root in range(ranks):
            tree = trees.in_order(ranks, root)

            def under(rank, tree=tree):
                return {rank}.union(*(under(child) for child in tree.children[rank]))

            for rank in range(ranks):
                sides = [{other < rank for other in under(child)} for child in tree.children[rank]]
                assert sides in ([], [{True}], [{False}], [{True}, {False}])


def test_numbers_that_make_no_tree_are_refused():
    with pytest.raises(InputError, match="radix=1 makes no tree; give 2 or more"):
        trees.knomial(4, 0, 1)
    with pytest.raises(InputError, match="fanout=-2 makes no tree"):
        trees.kary(4, 0, -2)
    with pytest.raises(InputError, match="fanout=300: a rank would have 299 children"):
        trees.chain(300, 0, 300)
