"""LogP and LogGP: times of messages, and parameters recovered from exact and noisy measurements."""

import numpy as np
import pytest

from mpilab.errors import InputError
from mpilab.models import LogGP, LogP, fit_loggp, fit_logp

SIZES = np.array([4**power for power in range(11)], float)
TRUTH = LogGP(L=2e-6, o=4e-7, g=6e-7, G=3e-10)


def measurements(seed=None, repetitions=1, noise=0.03):
    """The four measurements that LogGP with TRUTH's parameters would give."""
    sizes = np.repeat(SIZES, repetitions)
    random = np.random.default_rng(seed)
    factor = (lambda: random.normal(1, noise, len(sizes))) if seed is not None else lambda: 1.0
    return (
        (sizes, TRUTH.time(sizes) * factor()),
        (sizes, np.full(len(sizes), TRUTH.o) * 1.25 * factor()),
        (sizes, np.full(len(sizes), TRUTH.o) * 0.75 * factor()),
        (sizes, (TRUTH.g + (sizes - 1) * TRUTH.G) * factor()),
    )


def test_a_loggp_message_costs_latency_two_overheads_and_a_gap_a_byte():
    assert TRUTH.time(1) == pytest.approx(2e-6 + 2 * 4e-7)
    assert TRUTH.time(1001) == pytest.approx(2e-6 + 2 * 4e-7 + 1000 * 3e-10)
    assert TRUTH.time(0) == TRUTH.time(1)
    assert TRUTH.time(SIZES).shape == SIZES.shape


def test_loggp_has_the_hockney_of_the_same_message():
    assert TRUTH.alpha + TRUTH.beta * 5000 == pytest.approx(TRUTH.time(5000))


def test_a_long_logp_message_is_many_that_leave_a_gap_apart():
    model = LogP(L=2e-6, o=4e-7, g=6e-7, packet=100)
    assert model.time(0) == model.time(100) == pytest.approx(2.8e-6)
    assert model.time(101) == pytest.approx(2.8e-6 + 6e-7)
    assert model.time(1000) == pytest.approx(2.8e-6 + 9 * 6e-7)


def test_a_processor_slower_than_the_network_sets_logps_pace():
    model = LogP(L=2e-6, o=4e-7, g=1e-7, packet=100)
    assert model.time(300) == pytest.approx(2e-6 + 2 * 4e-7 + 2 * 4e-7)


def test_fitting_exact_measurements_returns_loggps_parameters():
    fitted = fit_loggp(*measurements())
    for name in "LogG":
        assert getattr(fitted, name) == pytest.approx(getattr(TRUTH, name), rel=1e-6)


def test_loggps_standard_errors_cover_the_truth_about_as_often_as_they_should():
    fits = [fit_loggp(*measurements(seed, repetitions=25)) for seed in range(200)]
    for name in "LogG":
        off = [abs(getattr(f, name) - getattr(TRUTH, name)) for f in fits]
        claimed = [getattr(f, f"{name}_error") for f in fits]
        within = np.mean(np.array(off) < 2 * np.array(claimed))
        assert 0.88 < within <= 1, name


def test_latency_below_zero_is_told_and_the_time_is_still_the_ping_pongs():
    way, send, receive, gap = measurements()
    fitted = fit_loggp(way, (send[0], send[1] * 10), (receive[0], receive[1] * 10), gap)
    assert fitted.L < 0
    assert fitted.time(1) == pytest.approx(TRUTH.time(1))


def test_logp_takes_its_numbers_from_one_size():
    fitted = fit_logp(*measurements(), packet=1024)
    assert fitted.packet == 1024
    assert fitted.g == pytest.approx(TRUTH.g + 1023 * TRUTH.G)
    assert fitted.time(1024) == pytest.approx(TRUTH.time(1024))


def test_logp_chooses_the_packet_that_describes_all_sizes_best():
    def misfit(model):
        return (np.log(model.time(SIZES) / TRUTH.time(SIZES)) ** 2).sum()

    chosen = fit_logp(*measurements())
    others = [fit_logp(*measurements(), packet=int(size)) for size in SIZES]
    assert misfit(chosen) == min(map(misfit, others))


def test_a_packet_that_was_not_measured_is_refused():
    with pytest.raises(InputError, match="packet=1000"):
        fit_logp(*measurements(), packet=1000)


def test_measurements_without_points_are_refused():
    way, send, receive, gap = measurements()
    with pytest.raises(InputError, match="0 sizes"):
        fit_loggp(way, ([], []), receive, gap)


def test_both_models_say_what_they_are_in_microseconds():
    assert "L = 2 ± nan µs" in str(TRUTH) and "G = 0.3 ± nan ns/B" in str(TRUTH)
    assert str(LogP(2e-6, 4e-7, 6e-7, 64)).endswith("messages of 64 B")
