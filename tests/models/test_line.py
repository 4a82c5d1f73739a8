"""The line through a table of times with spreads."""

import pytest

from mpilab.errors import InputError
from mpilab.models import fit_hockney
from tests.right_answers import answers_of

alpha_beta = answers_of("00-first-contact").alpha_beta


def test_two_points_give_the_line_through_both_whatever_their_spreads():
    assert alpha_beta("8 1.08 0.1\n1008 11.08 7") == pytest.approx((1e-6, 1e-8))
    assert alpha_beta("# a table\n\n1008 11.08 7\n8 1.08 0.1") == pytest.approx((1e-6, 1e-8))


def test_a_point_with_half_the_spread_counts_like_four():
    once = alpha_beta("1 1 0.2\n1001 12 0.1\n2001 21 0.2")
    four_times = alpha_beta("1 1 0.2\n" + "1001 12 0.2\n" * 4 + "2001 21 0.2")
    assert once == pytest.approx(four_times)
    assert once != pytest.approx(alpha_beta("1 1 1\n1001 12 1\n2001 21 1"))


def test_with_the_times_as_spreads_errors_are_relative():
    sizes, times = [1, 64, 4096, 65536], [0.15, 0.3, 1.3, 3.6]
    rows = "\n".join(f"{n} {t} {t}" for n, t in zip(sizes, times, strict=True))
    fitted = fit_hockney(sizes, [time * 1e-6 for time in times])
    assert alpha_beta(rows) == pytest.approx((fitted.alpha, fitted.beta))


@pytest.mark.parametrize(
    "table, message",
    [
        ("8 one 1", "line 1 of the table: '8 one 1' is not three numbers"),
        ("# x\n8 1", "line 2 of the table: '8 1' is not three numbers"),
        ("8 1 0", "line 1 of the table: '8 1 0' is not three numbers, the last two above 0"),
        ("", "the table has 0 sizes; a line needs 2 or more"),
        ("8 1 1\n8 2 1", "the table has 1 sizes"),
    ],
)
def test_a_table_without_a_line_is_refused(table, message):
    with pytest.raises(InputError, match=message):
        alpha_beta(table)
