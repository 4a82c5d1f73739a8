"""The α-β model: the fit finds what is there, and predictions equal the textbook's formulas."""

from math import ceil, log2

import numpy as np
import pytest

from mpilab.errors import InputError
from mpilab.models import Hockney, fit_hockney, predict
from mpilab.schedules.allgather import ALGORITHMS

SIZES = np.array([2**power for power in range(21)])
MODEL = Hockney(alpha=3e-6, beta=5e-10)


def noisy(seed, sizes=SIZES, noise=0.05):
    random = np.random.default_rng(seed)
    return MODEL.time(sizes) * random.normal(1, noise, len(sizes))


def test_a_fit_of_exact_times_returns_the_model_with_no_error():
    fitted = fit_hockney(SIZES, MODEL.time(SIZES))
    assert fitted.alpha == pytest.approx(MODEL.alpha, rel=1e-9)
    assert fitted.beta == pytest.approx(MODEL.beta, rel=1e-9)
    assert fitted.alpha_error < 1e-6 * fitted.alpha
    assert fitted.beta_error < 1e-6 * fitted.beta


def test_the_standard_errors_are_the_spread_of_many_fits():
    fits = [fit_hockney(SIZES, noisy(seed)) for seed in range(400)]
    for value, error in (("alpha", "alpha_error"), ("beta", "beta_error")):
        scatter = np.std([getattr(fit, value) for fit in fits])
        claimed = np.mean([getattr(fit, error) for fit in fits])
        assert claimed == pytest.approx(scatter, rel=0.15)


def test_the_fit_equals_numpys_weighted_polynomial_fit():
    seconds = noisy(7)
    fitted = fit_hockney(SIZES, seconds)
    (beta, alpha), covariance = np.polyfit(SIZES, seconds, 1, w=1 / seconds, cov=True)
    assert fitted.alpha == pytest.approx(alpha, rel=1e-6)
    assert fitted.beta == pytest.approx(beta, rel=1e-6)
    assert fitted.beta_error == pytest.approx(covariance[0, 0] ** 0.5, rel=1e-6)
    assert fitted.alpha_error == pytest.approx(covariance[1, 1] ** 0.5, rel=1e-6)


def test_latency_survives_a_fit_over_six_decades_where_plain_least_squares_loses_it():
    sweeps = [noisy(seed) for seed in range(100)]
    fitted = np.array([fit_hockney(SIZES, seconds).alpha for seconds in sweeps])
    plain = np.array([np.polyfit(SIZES, seconds, 1)[1] for seconds in sweeps])
    assert abs(fitted - MODEL.alpha).max() < 0.1 * MODEL.alpha
    assert abs(plain - MODEL.alpha).max() > 0.5 * MODEL.alpha


@pytest.mark.parametrize(
    "sizes, seconds, word",
    [
        ([1, 2], [1e-6, 2e-6], "2 points"),
        ([8, 8, 8], [1e-6, 2e-6, 3e-6], "1 different sizes"),
        ([1, 2, 4], [1e-6, 0.0, 2e-6], "point 1"),
        ([1, 2, 4], [1e-6, 1e-6, float("nan")], "point 2"),
        ([1, 2, 4], [1e-6, 1e-6], "same length"),
    ],
)
def test_points_that_cannot_be_fitted_are_refused_by_name(sizes, seconds, word):
    with pytest.raises(InputError, match=word):
        fit_hockney(sizes, seconds)


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("ranks", [1, 2, 4, 8, 16])
def test_predictions_on_powers_of_two_are_the_textbooks(name, ranks):
    m, (a, b) = 4096, (MODEL.alpha, MODEL.beta)
    all_blocks = (ranks - 1) * m * b
    logarithmic = log2(ranks) * a + all_blocks
    linear = (ranks - 1) * a + all_blocks
    assert predict(name, ranks, m, MODEL) == pytest.approx(
        {
            "nonblocking_gather_bcast": 2 * (ranks - 1) * a + (1 + ranks) * all_blocks,
            "nonblocking_all": linear,
            "pairwise": logarithmic,
            "ring": linear,
            "recursive_doubling": logarithmic,
            "bruck": logarithmic,
            "neighbor_exchange": (ranks // 2) * a + all_blocks,
        }[name]
    )


@pytest.mark.parametrize("ranks", [3, 5, 6, 7, 11, 13])
def test_bruck_and_pairwise_keep_their_cost_on_every_number_of_ranks(ranks):
    expected = ceil(log2(ranks)) * MODEL.alpha + (ranks - 1) * 100 * MODEL.beta
    assert predict("bruck", ranks, 100, MODEL) == pytest.approx(expected)
    assert predict("pairwise", ranks, 100, MODEL) == pytest.approx(expected)


def test_recursive_doubling_pays_for_folding_on_other_numbers_of_ranks():
    # 6 ranks: fold 1 block, swap 2 and 4 blocks (ranks 0 and 1 hold two each), unfold 6 blocks.
    expected = 4 * MODEL.alpha + (1 + 2 + 4 + 6) * 100 * MODEL.beta
    assert predict("recursive_doubling", 6, 100, MODEL) == pytest.approx(expected)


def test_an_array_of_sizes_gives_an_array_of_times():
    times = predict("ring", 4, np.array([0, 10, 1000]), MODEL)
    assert times.shape == (3,)
    assert times[2] == predict("ring", 4, 1000, MODEL)


def test_fewer_cores_than_ranks_share_the_work_of_all_messages():
    one_round = 56 * (MODEL.alpha + 100 * MODEL.beta)
    assert predict("nonblocking_all", 8, 100, MODEL, cores=2) == pytest.approx(one_round / 2)
    assert predict("nonblocking_all", 8, 100, MODEL, cores=8) == predict(
        "nonblocking_all", 8, 100, MODEL
    )


def test_on_two_cores_few_messages_beat_many_although_both_are_one_step_deep():
    few = predict("nonblocking_gather_bcast", 16, 8, MODEL, cores=2)
    many = predict("nonblocking_all", 16, 8, MODEL, cores=2)
    assert few < many
    assert predict("nonblocking_gather_bcast", 16, 8, MODEL) > predict(
        "nonblocking_all", 16, 8, MODEL
    )


def test_no_cores_at_all_are_refused():
    with pytest.raises(InputError, match="cores=0"):
        predict("ring", 4, 8, MODEL, cores=0)


def test_the_half_size_message_is_half_latency():
    assert MODEL.time(MODEL.half_size) == pytest.approx(2 * MODEL.alpha)
