"""The timings of lab 04: written, read, and compared with what links allow."""

import numpy as np
import pytest

from mpilab.errors import InputError, MpilabError
from mpilab.hosts import description
from mpilab.hosts.orders import order
from mpilab.hosts.places import Levels
from mpilab.measure import by_level
from mpilab.measure.by_level import (
    CLUSTER,
    KERNELS,
    ORDERS,
    SIZES,
    bounds,
    read,
    rows_of,
    timed_of,
    write,
)
from mpilab.measure.timing import Timed
from mpilab.models import declared
from mpilab.tuning import decisions


def made_up(kernel, ordered="rr", size=16384, seconds=(0.003, 0.004)):
    described = description.read(CLUSTER)
    levels = Levels(described.places(order(described, ordered)))
    return Timed(kernel.partition("_")[0], kernel, ordered, levels, size, seconds)


def test_what_is_written_is_read_again(tmp_path):
    timed = [made_up("bcast_node"), made_up("bcast_openmpi_no_han", "shuffled", 64)]
    write(rows_of(timed), tmp_path / "some.csv")
    assert timed_of(read(tmp_path / "some.csv")) == timed


def test_the_columns_say_where_ranks_were(tmp_path):
    rows = rows_of([made_up("gather_node")])
    shape = {name: rows[name].tolist() for name in ("groups", "nodes", "ppn", "ranks")}
    assert shape == {"groups": [4, 4], "nodes": [8, 8], "ppn": [2, 2], "ranks": [16, 16]}
    assert rows["repetition"].tolist() == [1, 2]


def test_figures_of_a_cluster_that_has_changed_are_refused():
    rows = rows_of([made_up("bcast_node")])
    rows["groups"] = 3
    with pytest.raises(InputError, match="are on 8 nodes in 4 groups, not on 8 nodes in 3 groups"):
        timed_of(rows)


def test_a_line_that_is_none_is_named(tmp_path):
    path = tmp_path / "some.csv"
    write(rows_of([made_up("bcast_node")]), path)
    path.write_text(path.read_text().replace("3.000e-03", "soon"))
    with pytest.raises(InputError, match="some.csv:2"):
        read(path)


def test_every_kernel_that_is_compared_is_there():
    for collective, names in KERNELS.items():
        assert {f"{collective}_{name}" for name in names} <= set(declared.kernels_of(collective))


def test_our_figures_hold_all_kernels_orders_and_sizes():
    """So that the lab can show them where hosts cannot be emulated, and rules be learned."""
    timed = timed_of(read())
    points = {(one.kernel, one.order, one.bytes) for one in timed}
    assert points == {
        (kernel, ordered, size)
        for collective in KERNELS
        for kernel in by_level.names(collective)
        for ordered in ORDERS
        for size in SIZES[collective]
    }
    assert len({len(one.seconds) for one in timed}) == 1
    assert all(min(one.seconds) > 0 for one in timed)
    ours = [one for one in timed if not one.is_openmpis]
    lost = decisions.regret(decisions.learn(ours), ours)
    assert all(one["regret"] is not None for one in lost)


def test_bounds_are_the_bytes_of_the_busiest_link_at_its_speed():
    """16 KiB at 200 Mbit/s are 0.655 ms. A tree over four groups sends two copies up the root's
    link, a chain one; the flat tree in RR order four."""
    timed = [made_up(f"bcast_{name}") for name in ("binomial", "node_group", "pipelined")]
    timed += [made_up("reduce_node_group"), made_up("bcast_openmpi")]
    once = 16384 * 8 / 200e6
    assert bounds(timed) == pytest.approx(
        {
            ("bcast_binomial", "rr", 16384): 4 * once,
            ("bcast_node_group", "rr", 16384): 2 * once,
            ("bcast_pipelined", "rr", 16384): once,
            ("reduce_node_group", "rr", 16384): 2 * once,
        }
    )


def test_a_kernel_that_does_not_end_has_no_bound_but_an_error(monkeypatch):
    monkeypatch.setattr(by_level, "RECORDING_LIMIT_S", 0.0)
    with pytest.raises(MpilabError, match="bcast_node with 16 ranks.*run it again"):
        bounds([made_up("bcast_node")])


def test_nothing_that_we_have_measured_beats_what_its_links_allow():
    """Except for the few KiB that a link lets through at once before it limits the rate."""
    timed = [one for one in timed_of(read()) if one.collective == "bcast" and one.bytes <= 262144]
    least = bounds(timed)
    burst_s = 2 * 20_000 * 8 / 200e6
    assert len(least) == len(KERNELS["bcast"]) * len(ORDERS) * 2
    for one in timed:
        limit = least.get((one.kernel, one.order, one.bytes), 0.0)
        assert np.min(one.seconds) > limit - burst_s
