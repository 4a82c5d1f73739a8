"""The line through a table of osu_latency."""

import pytest

from mpilab.errors import InputError
from tests.right_answers import answers_of

alpha_beta = answers_of("00-first-contact").alpha_beta


def test_two_points_give_the_line_through_both_and_more_the_fitted_one():
    assert alpha_beta("8 1.08\n1008 11.08") == pytest.approx((1e-6, 1e-8))
    alpha, beta = alpha_beta("# a table\n\n1 1\n1001 11\n2001 21\n2001 21")
    assert (alpha, beta) == pytest.approx((0.99e-6, 1e-8))


@pytest.mark.parametrize(
    "table, message",
    [
        ("8 one", "line 1 of the table: '8 one' is not two numbers"),
        ("# x\n8", "line 2 of the table: '8' is not two numbers"),
        ("8 1", "1 rows; a line needs 2 points"),
        ("8 1\n8 2", "both rows of the table are of 8 bytes"),
    ],
)
def test_a_table_without_a_line_is_refused(table, message):
    with pytest.raises(InputError, match=message):
        alpha_beta(table)
