"""What remapping saves on emulated hosts: the kit's file, and new measurements."""

import numpy as np
import pytest

from mpilab.errors import InputError
from mpilab.hosts import hostfile
from mpilab.kernels.build import KERNELS
from mpilab.measure import remapping


def points(rows):
    """Which kernels, orders and sizes there are, and how many rows of each."""
    chosen, counts = np.unique(rows[["kernel", "order", "bytes"]], return_counts=True)
    return dict(zip(chosen.tolist(), counts.tolist(), strict=True))


def wanted(sizes, kernels=remapping.LAB):
    orders = {"bcast": ("seq", "rr", remapping.SLOWEST)}
    return {
        (kernel, order, size)
        for collective, names in kernels.items()
        for kernel in names
        for order in orders.get(collective, ("seq", "rr"))
        for size in sizes
    }


def test_the_file_of_the_kit_has_each_kernel_in_each_order_and_says_where_and_when():
    rows = remapping.read()
    found = points(rows)
    assert set(found) == wanted(remapping.FILE_SIZES, remapping.ALL)
    assert set(found.values()) == {7}
    assert len(set(rows["machine"])) == len(set(rows["date"])) == 1
    assert (rows["seconds"] > 0).all()


def test_the_simulated_file_has_every_point_once_and_is_simulated_again_exactly():
    rows = remapping.SIMULATED.read()
    every = {
        (f"{kernel}{version}", order, size)
        for kernel, sizes in remapping.SIMULATED_SIZES.items()
        for version in ("", "_remapped")
        for order in ("seq", "rr")
        for size in sizes
    }
    assert set(rows[["kernel", "order", "bytes"]].tolist()) == every and len(rows) == len(every)
    again = remapping.simulate({"bcast_binomial": (1024,)})
    for row in again:
        (kept,) = remapping.seconds(rows, row["kernel"], row["order"], row["bytes"])
        assert kept == pytest.approx(row["seconds"], rel=1e-3)


def test_a_rank_s_bandwidth_counts_what_a_call_brings_it_and_takes_the_median():
    kinds = [("kernel", "U40"), ("order", "U8"), ("bytes", "i8"), ("seconds", "f8")]
    rows = np.array(
        [
            ("allgather_ring", "seq", 1000, 1e-3),
            ("allgather_ring", "seq", 1000, 2e-3),
            ("allgather_ring", "seq", 1000, 9e-3),
            ("allreduce_ring_remapped", "rr", 1000, 1e-3),
            ("bcast_binomial", "slowest", 1000, 1.0),
        ],
        kinds,
    )
    assert remapping.bandwidths(rows, 8) == {
        "allgather_ring": {"SEQ": {1000: pytest.approx(7 * 1000 / 2e-3)}},
        "allreduce_ring": {"RR, remapped": {1000: pytest.approx(1e6)}},
    }


def test_long_messages_show_in_the_file_what_the_lab_says():
    rows, size = remapping.read(), remapping.SIZES[-1]

    def median(kernel, order):
        return np.median(remapping.seconds(rows, kernel, order, size))

    doubling, ring = "allgather_recursive_doubling", "allgather_ring"
    assert median(doubling, "seq") > 1.5 * median(doubling, "rr")
    assert median(doubling, "seq") > 1.5 * median(f"{doubling}_remapped", "seq")
    assert median(ring, "rr") > 1.5 * median(ring, "seq")
    assert median(ring, "rr") > 1.5 * median(f"{ring}_remapped", "rr")
    for kernel in ("allgather_neighbor_exchange", "allreduce_ring"):
        assert median(kernel, "rr") > 1.5 * median(kernel, "seq")
        assert median(kernel, "rr") > 1.5 * median(f"{kernel}_remapped", "rr")
    assert median("bcast_binomial", "slowest") > 3 * median("bcast_binomial", "seq")


def test_the_model_is_close_to_the_simulated_allgathers():
    found = 0
    for cluster, kernel, order, size, seconds in remapping.SIMULATED.read().tolist():
        name = kernel.removeprefix("allgather_").removesuffix("_remapped")
        if name not in remapping.REMAPPED or size == 16384 and name != "recursive_doubling":
            continue
        near = pytest.approx(seconds, rel=0.07 if size >= 1024 else 0.15)
        assert remapping.modeled(kernel, order, size, cluster) == near
        found += 1
    assert found == 4 * (5 + 4 + 4)


def test_what_is_written_is_read_again(tmp_path):
    rows = remapping.read()[:20]
    remapping.write(rows, tmp_path / "rows.csv")
    assert (remapping.read(tmp_path / "rows.csv") == rows).all()
    with pytest.raises(InputError, match="cannot be written: No such file.*write to a folder"):
        remapping.write(rows, tmp_path / "none" / "rows.csv")


def test_in_the_slowest_order_the_hosts_of_each_parent_and_child_differ():
    numbers = hostfile.read(remapping.SLOWEST_HOSTFILE).placement(policy="seq")
    names = remapping.orders_of_bcast(numbers)[remapping.SLOWEST]
    assert sorted(names) == ["n1"] * 4 + ["n2"] * 4
    assert all(names[rank] != names[rank & (rank - 1)] for rank in range(1, 8))
    assert list(remapping.orders_of_bcast()) == ["seq", "rr"], "handouts have no slowest order"
    assert remapping.orders_of_bcast([0, 1] * 4)[remapping.SLOWEST] == ["n1", "n2"] * 4


@pytest.mark.slow
def test_measuring_times_all_points_also_of_a_kernel_of_ones_own(namespaces):
    own = {"allgather_ring_remapped": KERNELS}
    rows = remapping.measure([64], 2, remapping.orders_of_bcast([0, 1] * 4), own)
    found = points(rows)
    assert set(found) == wanted([64]) and set(found.values()) == {2}
    assert rows["machine"][0] and (rows["seconds"] > 0).all()
