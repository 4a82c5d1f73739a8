"""The ratios that labs 01 to 03 show on simulated clusters; the same on every machine."""

import re

import pytest

from mpilab import models
from mpilab.cases.case import Case
from mpilab.errors import InputError
from mpilab.kernels import simgrid
from mpilab.measure import remapping
from mpilab.notebook import simulated
from mpilab.plots import sweep as plots
from mpilab.runners.simgrid import seconds_of, simulate
from mpilab.util.kit import ROOT


def seconds(table):
    """{(algorithm, ranks, bytes): simulated seconds}."""
    return {
        (row["algorithm"].item(), row["ranks"].item(), row["bytes"].item()): row["span_s"]
        for row in table
    }


def test_on_64_ranks_the_ring_pays_63_start_ups_and_bruck_6_as_the_model_says():
    names = ("ring", "bruck")
    table = simulated.sweep(
        [f"allgather_{name}" for name in names], "flat-64x1", sizes=[32, 131072]
    )
    took = seconds(table)
    assert took["ring", 64, 32] / took["bruck", 64, 32] == pytest.approx(63 / 6, rel=0.1)
    assert took["ring", 64, 131072] / took["bruck", 64, 131072] < 1.2
    for name in names:
        for size in (32, 131072):
            model = models.predict(name, 64, size, simulated.LINK)
            assert took[name, 64, size] == pytest.approx(model, rel=0.05)
    figure = plots.time_against_size(table, models=simulated.LINK)
    assert "<sub>Simulated on flat-64x1, 64 ranks</sub>" in figure.layout.title.text
    assert {"ring", "ring, model", "bruck, model"} <= {trace.name for trace in figure.data}


def test_a_pipeline_overtakes_the_binomial_tree_at_larger_sizes_on_more_ranks():
    names = ("bcast_binomial", "bcast_pipeline")
    few, many = (
        seconds(simulated.sweep(names, f"flat-{ranks}x1", sizes=[65536, 262144]))
        for ranks in (64, 256)
    )
    assert few["pipeline", 64, 262144] < few["binomial", 64, 262144] / 2
    lost = [
        took["pipeline", ranks, 65536] / took["binomial", ranks, 65536]
        for took, ranks in ((few, 64), (many, 256))
    ]
    assert 1.2 < lost[0] < lost[1] / 2
    model = models.cost("bcast", "pipeline", 64, 262144, simulated.LINK)
    assert few["pipeline", 64, 262144] == pytest.approx(model, rel=0.25)


def test_a_barrier_in_each_round_costs_short_blocks_as_many_start_ups_as_lab_02_says(tmp_path):
    lab = (ROOT / "labs" / "source" / "02-allgather.py").read_text(encoding="utf-8")
    cell = re.search(r"# %%kernel allgather_ring_barriers\n((?:#.*\n)+)", lab).group(1)
    library = simgrid.build(re.sub("(?m)^# ?", "", cell), tmp_path).library

    def slower(ranks, size):
        case = Case("allgather", ranks, size, "byte", warmup=1, record=False, dump=False)
        where = f"flat-{ranks}x1"
        plain, with_barriers = (
            seconds_of(simulate(built, f"allgather_{name}", [case], where)[0])
            for built, name in ((simgrid.kernels(), "ring"), (library, "ring_barriers"))
        )
        return with_barriers / plain

    assert slower(4, 32) == pytest.approx(1 + 2, rel=0.1)
    assert slower(32, 32) == pytest.approx(1 + 5, rel=0.1)
    assert 1 < slower(32, 131072) < 2


def test_the_wrong_order_costs_more_on_more_nodes_where_remapping_brings_back_more():
    """As in lab 03, on smaller clusters; the table of the lab has 16 nodes of 12."""

    def lost(where):
        rows = remapping.simulate({"allgather_recursive_doubling": (16384,)}, where)
        took = dict(zip(rows[["kernel", "order"]].tolist(), rows["seconds"].tolist(), strict=True))
        kernel = "allgather_recursive_doubling"
        right = took[kernel, "rr"]
        assert took[f"{kernel}_remapped", "rr"] == right
        return took[kernel, "seq"] / right, took[f"{kernel}_remapped", "seq"] / right

    few, many = lost("flat-2x4"), lost("flat-8x4")
    assert 1.5 < few[0] < 1.7 and 1.9 < many[0] < 2
    assert 1.05 < many[1] < 1.1 < few[1] < 1.25  # phase 1 is a smaller share on more nodes


def test_a_kernel_that_does_not_exist_is_refused_by_its_name():
    with pytest.raises(InputError, match="bcast_magic"):
        simulated.sweep(["bcast_magic"], "flat-4x1", sizes=[8])
