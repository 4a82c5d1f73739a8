"""γ(P): measured on linear broadcasts, a straight line where it was not measured."""

import numpy as np
import pytest
from sweeps_made_up import sweep

from mpilab.errors import InputError
from mpilab.models import Gamma, Hockney, fit_gamma
from mpilab.models.choice import one_by_one

LINEAR = {("ours", "linear"): Hockney(2e-6, 1e-9)}


def half(ranks):
    """Receivers disturb each other half as much as if they were served one by one."""
    return 1 + 0.5 * (ranks - 2)


def test_gamma_is_found_again_in_the_broadcasts_that_it_made():
    table = sweep("bcast", LINEAR, ranks=(2, 3, 4, 8), gamma=half, noise=0)
    fitted = fit_gamma(table, segment_bytes=4096)
    assert [fitted(ranks) for ranks in (2, 3, 4, 8)] == pytest.approx([1, 1.5, 2, 4])


def test_gamma_of_other_numbers_of_ranks_lies_on_a_line():
    fitted = fit_gamma(sweep("bcast", LINEAR, ranks=(2, 4, 8), gamma=half, noise=0))
    assert fitted(6) == pytest.approx(3) and fitted(16) == pytest.approx(8)


def test_gamma_is_1_for_one_receiver_and_never_less():
    table = sweep("bcast", LINEAR, ranks=(2, 4), gamma=lambda ranks: 0.9 if ranks > 2 else 1)
    fitted = fit_gamma(table)
    assert fitted(1) == 0 and fitted(2) == 1 and fitted(4) == 1 and fitted(3) >= 1


def test_open_mpis_linear_broadcast_will_do():
    table = sweep("bcast", {("openmpi", "basic_linear"): Hockney(2e-6, 1e-9)}, gamma=half)
    assert fit_gamma(table)(8) == pytest.approx(half(8), rel=0.1)


def test_receivers_one_by_one_are_the_models_single_port():
    assert [one_by_one(ranks) for ranks in (1, 2, 5)] == [0, 1, 4]


@pytest.mark.parametrize("ranks", [(2,), (4, 8)])
def test_a_sweep_without_2_ranks_or_without_more_has_no_gamma(ranks):
    with pytest.raises(InputError, match="on 2 ranks and on more"):
        fit_gamma(sweep("bcast", LINEAR, ranks=ranks))


def test_a_gamma_can_be_written_down():
    assert Gamma(((2, 1.0), (4, 2.2)), 0.5)(4) == 2.2
    assert np.isclose(Gamma(((2, 1.0),), 0.5)(6), 3)
