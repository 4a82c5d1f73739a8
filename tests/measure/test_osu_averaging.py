"""OMB's averages and the true span of the same calls."""

import numpy as np
import pytest

from mpilab.errors import InputError
from mpilab.measure.osu import both_ways


def test_both_are_computed_from_the_spans_of_every_rank():
    # Two calls on three ranks, in µs: rank 2 is late in the first, rank 0 leaves early in both.
    spans = (
        np.array(
            [
                [[0, 2], [100, 101]],
                [[1, 6], [100, 106]],
                [[4, 9], [102, 108]],
            ]
        )
        * 1000
    )
    both = both_ways(spans)
    # Own means: (2 + 1) / 2, (5 + 6) / 2, (5 + 6) / 2.
    assert both.min_us == pytest.approx(1.5)
    assert both.max_us == pytest.approx(5.5)
    assert both.avg_us == pytest.approx((1.5 + 5.5 + 5.5) / 3)
    # First entry to last exit: 9 and 8.
    assert both.span_us == pytest.approx(8.5)
    assert both.ratio == pytest.approx(8.5 / both.avg_us)


def test_the_span_is_never_below_the_mean():
    spans = np.random.default_rng(1).integers(0, 10**6, (8, 20, 2)).cumsum(axis=2)
    assert both_ways(spans).ratio >= 1


def test_it_takes_what_the_harness_gives(tmp_path):
    from mpilab.cases.case import Case
    from mpilab.kernels.build import KERNELS, need
    from mpilab.runners.mpirun import run_cases

    case = Case("allgather", 2, 4, "int", record=False, dump=False, repetitions=5)
    (result,) = run_cases(need(KERNELS), "allgather_ring", [case])
    both = both_ways([output.spans_ns for output in result.outputs])
    assert both.span_us >= both.avg_us > 0


@pytest.mark.parametrize("shape", [(0, 3, 2), (2, 3), (2, 3, 3), (2, 0, 2)])
def test_another_shape_is_refused(shape):
    with pytest.raises(InputError, match=r"give \[ranks, repetitions, 2\]"):
        both_ways(np.zeros(shape))
