"""A student's rules file is judged by the cost of its choices in the model."""

import pytest

from mpilab.errors import InputError
from mpilab.judging.judge import judge_function, trusted
from mpilab.judging.rubric import PYTHON, Exercise, Item
from mpilab.models import Hockney, cost
from mpilab.tuning import complaint, parse, predicted

ALPHA, BETA = 20e-6, 1e-9
POINTS = "bcast 64 1K, bcast 64 1M, bcast 1024 64K"
GOOD = "1\n7 1\n2 2\n0 6 0 0\n32768 8 0 0\n"


def complain(text, points=POINTS, **more):
    return complaint(text, points, ALPHA, BETA, **more)


def test_a_good_file_gives_no_reason_to_complain():
    assert complain(GOOD) == ""


def test_costs_are_those_of_the_formulas():
    rows = predicted(parse(GOOD), POINTS, ALPHA, BETA)
    model = Hockney(ALPHA, BETA)
    assert rows["chosen_s"].tolist() == [
        cost("bcast", "binomial", 64, 1024, model, library="openmpi"),
        cost("bcast", "scatter_allgather", 64, 1 << 20, model, library="openmpi"),
        cost("bcast", "scatter_allgather", 1024, 65536, model, library="openmpi"),
    ]
    assert rows["ratio"].tolist() == [1, 1, 1] and rows["line"].tolist() == [4, 5, 5]


def test_the_worst_choice_is_named_with_its_line_and_what_it_costs():
    said = complain("1\n7 1\n2 2\n0 6 0 0\n32768 3 0 0\n")
    assert said.startswith("for bcast on 1024 ranks, 65536 bytes it chooses pipeline (3) (line 5)")
    assert "times as long as the best choice by the model; at most 1.1" in said


def test_how_much_more_may_be_lost_is_up_to_the_rubric():
    binomial = "1\n7 1\n2 1\n0 6 0 0\n"
    ratio = predicted(parse(binomial), POINTS, ALPHA, BETA)["ratio"].max()
    assert ratio > 1.1
    assert "binomial" in complain(binomial, most=ratio * 0.99)
    assert complain(binomial, most=ratio * 1.01) == ""


# The last number is that of messages with a handshake. A message of 8,000 bytes is halved to 4,000,
# 2,000 and 1,000 on 8 ranks; on 9, the last one gets all of it.
@pytest.mark.parametrize(
    ("rule", "ranks", "size", "eager", "handshakes"),
    [
        ("6 0 0", 8, 8000, 8000, 0),
        ("6 0 0", 8, 8000, 7999, 3),
        ("8 0 0", 8, 8000, 3999, 2),
        ("8 0 0", 8, 8000, 1500, 4),
        ("8 0 0", 9, 8000, 3999, 3),
        ("9 0 0", 8, 8000, 1500, 2),
        ("9 0 0", 8, 8000, 999, 3 + 7),
        ("3 0 1000", 8, 8000, 1000, 0),
        ("3 0 1000", 8, 8000, 999, 6 + 8),
        ("3 0 65536", 8, 8000, 7999, 7),
        ("4 0 1000", 8, 8000, 1000, 1),
        ("4 0 1000", 8, 8000, 999, 13),
        ("1 0 0", 8, 8000, 7999, 7),
    ],
)
def test_a_message_above_the_eager_limit_costs_two_more(rule, ranks, size, eager, handshakes):
    rules, point = parse(f"1\n7 1\n2 1\n0 {rule}\n"), f"bcast {ranks} {size}"
    without = predicted(rules, point, ALPHA, BETA)["chosen_s"]
    took = predicted(rules, point, ALPHA, BETA, eager=eager)["chosen_s"]
    assert took == pytest.approx(without + 2 * ALPHA * handshakes)


def test_rules_that_ignore_handshakes_are_complained_of():
    point = "bcast 64 16K"
    assert complain("1\n7 1\n2 1\n0 6 0 0\n", point) == ""
    said = complain("1\n7 1\n2 1\n0 6 0 0\n", point, eager=8192)
    assert "chooses binomial (6) (line 4), which takes 1.68 times as long" in said
    assert complain("1\n7 1\n2 1\n0 8 0 0\n", point, eager=8192) == ""
    with pytest.raises(InputError, match="eager=8192: gather is not priced with handshakes"):
        complain("1\n9 1\n2 1\n0 1 0 0\n", "gather 64 16K", eager=8192)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1\n7 1\n2 2\n0 6 0 0\n", "your rules file:4: the file ends"),
        ("1\n7 1\n2 2\n0 6 0 0\n32K 8 0 0\n", "your rules file:5: '32K' is read as 32"),
        ("1\n7 1\n2 2\n0 6 0 0\n32768 11 0 0\n", "your rules file:5: bcast algorithm 11"),
        (
            "1\n7 1\n2 2\n0 6 0 0\n32768 0 0 0\n",
            "it says 'left to Open MPI', which chooses no algorithm",
        ),
        ("0\n", "for bcast on 64 ranks, 1024 bytes it says 'no rule'"),
        # Our kernels, which are simulated, take no such number either.
        (
            "1\n7 1\n2 2\n0 6 0 0\n32768 2 2147483648 0\n",
            "your rules file:5: the fan-out 2147483648 is larger than an int holds",
        ),
    ],
)
def test_what_open_mpi_would_not_do_is_complained_of(text, words):
    assert words in complain(text)


def test_a_file_is_judged_in_a_moment_however_it_is_made():
    numbers = "\n".join(f"{size} 6 0 0" for size in range(1500))
    assert complain(f"1 7 1 2 1500\n{numbers}\n", most=100) == ""
    with pytest.raises(InputError, match="too many for a rules file"):
        complain("1 " * 10000)
    with pytest.raises(InputError, match="a rules file is text, this is int"):
        complain(7)


@pytest.mark.parametrize("points", ["bcast", "bcast 64", "bcast 1 8", "ibcast 4 8", "bcast 4 8 8"])
def test_points_that_make_no_sense_are_told(points):
    with pytest.raises(InputError):
        complain(GOOD, points)


def test_a_rubric_may_use_it():
    arguments = (POINTS, ALPHA, BETA)
    item = Item("rules", "Rules", 4, (), (), (arguments,), "", "mpilab.tuning:complaint")
    exercise = Exercise("rules", "Rules", PYTHON, (item,), "", "my_rules", (), "")
    assert trusted(item.complaint) is complaint
    for text, outcome in ((GOOD, "pass"), ("0\n", "fail")):
        verdict = judge_function(exercise, {arguments: {"value": text}})
        assert verdict.items[0].outcome == outcome
