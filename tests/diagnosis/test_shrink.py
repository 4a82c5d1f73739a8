"""The smallest failing case is found with few runs, and always the same one."""

from dataclasses import replace

import pytest

from mpilab.cases.case import Case
from mpilab.diagnosis import smallest
from mpilab.hosts.orders import places_of

LARGE = Case("allgather", 7, 100, "vector", in_place=True, reversed=True, strict=True)


@pytest.mark.parametrize(
    ("fails", "expected"),
    [
        (lambda case: True, Case("allgather", 1, 0)),
        (lambda case: case.ranks >= 3, Case("allgather", 3, 0)),
        (lambda case: case.ranks % 2 and case.ranks > 1, Case("allgather", 3, 0)),
        (lambda case: case.count >= 2, Case("allgather", 1, 2)),
        (lambda case: case.datatype == "vector", Case("allgather", 1, 0, "vector")),
        (lambda case: case.in_place and case.ranks == 7, Case("allgather", 7, 0, in_place=True)),
        (lambda case: False, LARGE),
    ],
)
def test_ranks_shrink_first_then_the_count_then_all_that_is_special(fails, expected):
    found, tried = smallest(LARGE, fails, budget=40)
    assert found == expected
    assert tried <= 40


READ = Case("read", 6, 1, "double", matrix="40x30 by 4x2 on 2x3", buffer=100, aggregators=3)


@pytest.mark.parametrize(
    ("fails", "expected"),
    [
        # The matrix names a grid of six ranks.
        (lambda case: True, Case("read", 6, 1, "double", matrix="1x2")),
        (
            lambda case: case.distribution.elements_of(5) > 0,
            Case("read", 6, 1, "double", matrix="2x3"),
        ),
        (lambda case: "by" in case.matrix, Case("read", 6, 1, "double", matrix=READ.matrix)),
        (
            lambda case: case.buffer > 0 and case.distribution.rows > 5,
            Case("read", 6, 1, "double", matrix="40x30", buffer=100),
        ),
    ],
)
def test_the_matrix_of_a_read_shrinks(fails, expected):
    assert smallest(READ, fails, budget=40)[0] == expected


@pytest.mark.parametrize("budget", [0, 1, 5, 16])
def test_no_more_cases_are_tried_than_allowed(budget):
    asked = []

    def fails(case):
        asked.append(case)
        return case.ranks >= 6

    found, tried = smallest(LARGE, fails, budget=budget)
    assert tried == len(asked) <= budget
    assert found == LARGE or found in asked


def test_a_case_that_is_as_small_as_can_be_costs_nothing():
    case = Case("allgather", 1, 0)
    assert smallest(case, lambda smaller: pytest.fail("asked")) == (case, 0)


def test_what_does_not_matter_for_the_fault_is_kept():
    case = replace(LARGE, seed=9)
    assert smallest(case, lambda smaller: True, budget=40)[0].seed == 9


def test_with_fewer_ranks_than_its_number_the_root_is_the_last_one():
    asked = []
    case = Case("reduce", 5, 8, root=4, op="compose", segment=8)
    found, _ = smallest(case, lambda one: asked.append(one) or one.ranks >= 3, budget=40)
    assert found == Case("reduce", 3, 0)
    assert [one.root for one in asked[:3]] == [0, 1, 2]


def test_a_root_and_an_operation_that_matter_are_kept():
    case = Case("reduce", 4, 2, root=3, op="compose")
    found, _ = smallest(case, lambda one: one.root > 0 and one.op == "compose", budget=40)
    assert found == Case("reduce", 2, 0, root=1, op="compose")


def test_a_case_of_a_barrier_gets_smaller_too():
    assert smallest(Case("barrier", 6, 0), lambda one: one.ranks > 2)[0] == Case("barrier", 3, 0)


def test_fewer_ranks_stay_where_they_pretended_to_be_unless_that_does_not_matter():
    places = places_of("2x2x2 rr")
    case = Case("bcast", 8, 100, places=places)
    found, _ = smallest(case, lambda one: one.places and one.levels.groups == 2, budget=40)
    assert found == Case("bcast", 3, 0, places=places[:3])
    assert smallest(case, lambda one: True, budget=40)[0] == Case("bcast", 1, 0)
