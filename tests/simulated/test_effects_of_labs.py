"""The ratios that labs 01 and 02 show on simulated clusters; the same on every machine."""

import pytest

from mpilab import models
from mpilab.errors import InputError
from mpilab.notebook import simulated
from mpilab.plots import sweep as plots


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


def test_a_kernel_that_does_not_exist_is_refused_by_its_name():
    with pytest.raises(InputError, match="bcast_magic"):
        simulated.sweep(["bcast_magic"], "flat-4x1", sizes=[8])
