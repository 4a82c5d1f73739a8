"""The heat map of regrets."""

import numpy as np
import pytest
from sweeps_made_up import models as models_of
from sweeps_made_up import sweep

from mpilab.errors import InputError
from mpilab.models.choice import REGRET_ROW
from mpilab.plots import models, style

TABLE = np.array(
    [
        ("bcast", 2, 8, "linear", "linear", 1e-6, 1e-6, 0.0),
        ("bcast", 2, 4096, "linear", "pipeline", 3e-6, 2e-6, 0.5),
        ("bcast", 8, 8, "scatter_allgather", "binomial", 9e-6, 3e-6, 2.0),
    ],
    REGRET_ROW,
)


def heat():
    return models.heat_map(TABLE).data[0]


def test_a_cell_stands_at_its_ranks_and_size_and_is_colored_by_its_regret():
    assert list(heat().x) == ["8 B", "4 KiB"] and list(heat().y) == ["2", "8"]
    assert np.array_equal(heat().z, [[0, 0.5], [2, np.nan]], equal_nan=True)


def test_the_scale_begins_at_no_regret_whatever_the_table():
    assert (heat().zmin, heat().zmax) == (0, 1)


def test_a_cell_names_the_chosen_algorithm_and_hovering_tells_the_best_one():
    assert heat().text[0][1] == "linear"
    assert "best pipeline, 2 µs: 50 % lost" in heat().customdata[0][1]
    assert heat().customdata[0][0].endswith("the best")
    assert heat().text[1][1] == ""


def test_a_long_name_is_broken_at_its_underscores():
    assert heat().text[1][0] == "scatter_<br>allgather"


def test_the_axes_say_what_their_numbers_are():
    layout = models.heat_map(TABLE).layout
    assert layout.xaxis.title.text == "bytes of the message"
    assert layout.yaxis.title.text == "ranks"
    blocks = TABLE.copy()
    blocks["collective"] = "gather"
    assert models.heat_map(blocks).layout.xaxis.title.text == "bytes of a rank's block"


def test_the_text_alternative_sums_up_and_lists_every_point():
    lines = style.alt(models.heat_map(TABLE)).splitlines()
    assert "at 3 points the best algorithm is chosen 1 times" in lines[0]
    assert "largest 200 %" in lines[0]
    assert lines[3] == (
        "8 ranks, 8 B: chosen scatter_allgather, 9 µs; best binomial, 3 µs: 200 % lost."
    )


def test_one_collective_is_drawn_at_a_time():
    two = np.concatenate([TABLE, TABLE])
    two["collective"][3:] = "reduce"
    with pytest.raises(InputError, match="bcast, reduce"):
        models.heat_map(two)
    with pytest.raises(InputError, match="empty"):
        models.heat_map(TABLE[:0])


def test_the_figure_says_where_the_sweep_was_measured_and_which_ranks_shared_cores():
    truth = models_of("bcast", ["linear"])
    rows = sweep("bcast", truth, ranks=(2, 4), sizes=[32], cores=2, machine="AMD EPYC")
    regrets = TABLE.copy()
    regrets["ranks"] = [2, 2, 4]
    figure = models.heat_map(regrets, measured=rows)
    assert "Measured on AMD EPYC, 2 cores, 2 and 4 ranks" in figure.layout.title.text
    assert "4<br>oversubscribed" in figure.data[0].y and "2" in figure.data[0].y
    assert "4 ranks: oversubscribed, more ranks than cores." in style.alt(figure)
    assert "oversubscribed" not in style.alt(models.heat_map(TABLE))
