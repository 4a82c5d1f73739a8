"""A student's rules file is judged by simulated time."""

import pytest

from mpilab.errors import InputError, Ungradable
from mpilab.tuning import judge, parse

ALPHA, BETA = 20e-6, 1e-9
POINTS = "bcast 16 1024, bcast 16 65536"


@pytest.mark.slow
def test_choices_cost_what_our_kernels_take_in_simulated_time():
    rows = judge.costs(parse("1\n7 1\n2 2\n0 6 0 0\n8192 1 0 0\n"), POINTS, ALPHA, BETA)
    assert rows["line"].tolist() == [4, 5]
    # A tree of four levels, each of which takes about one message; then 15 messages in turn.
    assert rows["chosen_s"][0] == pytest.approx(4 * (ALPHA + 1024 * BETA), rel=0.05)
    assert rows["chosen_s"][1] > 15 * 65536 * BETA
    assert rows["ratio"][0] == pytest.approx(1, abs=0.1) and rows["ratio"][1] > 3


@pytest.mark.slow
def test_a_dear_choice_is_told_with_its_line():
    assert (
        judge.simulated_complaint("1\n7 1\n2 2\n0 6 0 0\n32768 8 0 0\n", POINTS, ALPHA, BETA) == ""
    )
    said = judge.simulated_complaint("1\n7 1\n2 1\n0 1 0 0\n", POINTS, ALPHA, BETA)
    assert "it chooses basic_linear (1) (line 4)" in said and "in simulated time" in said
    # A segment for each byte would take minutes to simulate, so it is not simulated.
    said = judge.simulated_complaint("1\n7 1\n2 1\n0 3 0 1\n", POINTS, ALPHA, BETA)
    assert "whose cost can be simulated" in said


def test_what_cannot_be_simulated_is_refused_and_no_fault_of_the_answer(monkeypatch):
    rules = parse("1\n7 1\n2 1\n0 6 0 0\n")
    for point in ("bcast 512 64", "gather 8 64"):
        with pytest.raises(InputError, match="broadcasts on 2 to 256 ranks"):
            judge.costs(rules, point, ALPHA, BETA)
    monkeypatch.setenv("PATH", "/nonexistent")
    judge._seconds.cache_clear()
    with pytest.raises(Ungradable, match="SimGrid"):
        judge.simulated_complaint("1\n7 1\n2 1\n0 6 0 0\n", POINTS, ALPHA, BETA)
