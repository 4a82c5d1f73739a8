"""The reads in a recording are compared with those of the algorithm."""

import pytest

from mpilab.cases.case import Case
from mpilab.judging.judge import judge_item
from mpilab.judging.rubric import Exercise, Item
from mpilab.judging.verdict import FAIL, PASS
from mpilab.kernels.build import KERNELS
from mpilab.runners.mpirun import run_cases

CASE = Case("read", 4, 1, "double", matrix="6x8")  # parts of 3 rows by 4 columns
EXERCISE = Exercise("read", "Read", "kernel", (), "read", "read_strided")


@pytest.fixture(scope="module")
def strided():
    """The Result of a read of a row of each part at a time."""
    (result,) = run_cases(KERNELS, "read_strided", [CASE])
    return result


def judged(result, **counted):
    item = Item("item", "Item", 1.0, (CASE,), tuple(counted.items()))
    return judge_item(EXERCISE, item, [result])


def test_right_numbers_pass(strided):
    verdict = judged(
        strided,
        reads="12",
        busiest_reads="3",
        read_bytes="384",
        busiest_read_bytes="96",
        largest_read="32",
        reading_ranks="4",
        collective_reads="0",
        messages="0",
        most_reads="20",
    )
    assert verdict.outcome == PASS, verdict.reason


@pytest.mark.parametrize(
    ("quantity", "formula", "words"),
    [
        ("reads", "4", "12 read requests where the algorithm has 4"),
        (
            "most_busiest_reads",
            "1",
            "3 read requests of one rank where the algorithm has at most 1",
        ),
        ("read_bytes", "6 * 8 * 8 + 8", "384 bytes read where the algorithm has 392"),
        ("busiest_read_bytes", "48", "96 bytes read by one rank where the algorithm has 48"),
        (
            "most_largest_read",
            "16",
            "32 bytes in one read request where the algorithm has at most 16",
        ),
        ("reading_ranks", "2", "4 ranks that read where the algorithm has 2"),
        (
            "most_unexchanged_bytes",
            "32",
            "96 bytes read by one rank without an exchange in between where the algorithm has at "
            "most 32",
        ),
        ("collective_reads", "4", "0 collective read requests where the algorithm has 4"),
    ],
)
def test_wrong_numbers_fail_with_both_of_them(strided, quantity, formula, words):
    verdict = judged(strided, **{quantity: formula})
    assert verdict.outcome == FAIL
    assert words in verdict.reason


def test_an_exchange_behind_each_request_is_told_from_one_behind_all():
    case = Case("read", 4, 1, "double", matrix="6x8", buffer=64, aggregators=2)
    (result,) = run_cases(KERNELS, "read_two_phase_alltoallv", [case])
    item = Item("item", "Item", 1.0, (case,), (("unexchanged_bytes", "F"),))
    assert judge_item(EXERCISE, item, [result]).outcome == PASS


def test_the_call_that_shows_a_failure_again_names_the_matrix(strided):
    evidence = judged(strided, reads="4").evidence
    assert evidence["matrix"] == "6x8"
    assert 'mpilab.run("read_strided", ' in evidence["reproduce"]
    assert 'matrix="6x8"' in evidence["reproduce"]
