"""What a message costs at each level of emulated hosts, measured for a simulated platform."""

import numpy as np
import pytest

from mpilab.hosts.platforms import calibrated
from mpilab.measure import level_costs
from mpilab.measure.level_costs import LEVELS, SIZES

pytestmark = pytest.mark.privileged


def test_two_ranks_are_measured_at_every_level_and_make_a_platform(namespaces, tmp_path):
    file = tmp_path / "some.csv"
    level_costs.main([str(file), "--repetitions", "1"])
    found = level_costs.read(file)
    levels, counted = np.unique(found["distance"], return_counts=True)
    assert sorted(levels) == sorted(LEVELS)
    assert set(counted) == {4 * len(SIZES)}
    # The rates in the description are upper limits, whatever the load.
    for level, rate in ("group", 1e9), ("world", 200e6):
        longest = found[(found["distance"] == level) & (found["bytes"] == max(SIZES))]
        one_way = longest["seconds"][longest["quantity"] == "one_way"]
        assert one_way.min() > 0.9 * max(SIZES) * 8 / rate
    costs, overhead = level_costs.costs(found)
    platform = calibrated("four-groups", costs, overhead=overhead)
    assert platform.group_link.rate == pytest.approx(8 / costs["world"][1])
