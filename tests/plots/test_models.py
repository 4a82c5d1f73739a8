"""Measured times with the fitted model of each algorithm."""

import numpy as np
import pytest
from sweeps_made_up import models, sweep

from mpilab.errors import InputError
from mpilab.models import cost, fit_per_algorithm
from mpilab.plots import style
from mpilab.plots.models import measured_and_fitted

TRUTH = models("bcast", ["linear", "pipeline"])
TABLE = sweep("bcast", TRUTH, ranks=(2, 4), sizes=[0, 8, 1024, 1 << 17], noise=0)


def traces(figure, name):
    return [trace for trace in figure.data if trace.name == name]


def test_every_algorithm_has_points_and_a_curve_in_its_color_in_each_panel():
    figure = measured_and_fitted(TABLE, TRUTH)
    assert [note.text for note in figure.layout.annotations] == ["2 ranks", "4 ranks"]
    for name in ("linear", "pipeline"):
        points, curves = traces(figure, name), traces(figure, f"{name}, model")
        assert len(points) == len(curves) == 2
        assert {trace.marker.color for trace in points} == {style.color(name)}
        assert {trace.line.color for trace in curves} == {style.color(name)}
        assert [trace.showlegend for trace in points] == [True, False]


def test_the_curve_is_the_cost_of_the_model_and_goes_through_exact_points():
    figure = measured_and_fitted(TABLE, TRUTH)
    curve = traces(figure, "pipeline, model")[1]
    model = TRUTH["ours", "pipeline"]
    assert curve.y == pytest.approx(cost("bcast", "pipeline", 4, np.array(curve.x), model))
    assert curve.y[-1] == pytest.approx(traces(figure, "pipeline")[1].y[-1])


def test_no_bytes_stand_where_one_byte_does_on_the_logarithmic_axis():
    (points, _) = traces(measured_and_fitted(TABLE, TRUTH), "linear")
    assert points.x[0] == 1 and points.customdata[0][0] == "0 B"


def test_an_algorithm_without_a_model_has_points_only():
    figure = measured_and_fitted(TABLE, {("ours", "linear"): TRUTH["ours", "linear"]})
    assert traces(figure, "pipeline") and not traces(figure, "pipeline, model")
    assert "pipeline: no model." in style.alt(figure)


def test_open_mpis_algorithms_are_told_from_ours():
    theirs = models("bcast", ["binomial"], library="openmpi")
    both = np.concatenate([TABLE, sweep("bcast", theirs, ranks=(2, 4), sizes=[8, 1024])])
    figure = measured_and_fitted(both, {**TRUTH, **theirs})
    (points, _) = traces(figure, "binomial (openmpi)")
    assert points.marker.symbol.endswith("-open")
    assert traces(figure, "binomial (openmpi), model")[0].line.dash == "dot"


def test_segments_of_one_algorithm_are_lines_of_their_own():
    cut = sweep("bcast", TRUTH, ranks=(4,), sizes=[8, 1 << 17], segment=1024)
    names = {trace.name for trace in measured_and_fitted(np.concatenate([TABLE, cut]), {}).data}
    assert {"pipeline", "pipeline (segment 1 KiB)"} <= names


def test_a_barrier_is_drawn_over_the_ranks():
    truth = models("barrier", ["tree"])
    table = sweep("barrier", truth, ranks=(2, 4, 8), sizes=[0])
    figure = measured_and_fitted(table, fit_per_algorithm(table))
    assert figure.layout.xaxis.title.text == "ranks"
    assert list(traces(figure, "tree")[0].x) == [2, 4, 8]
    assert list(traces(figure, "tree, model")[0].x) == list(range(2, 9))


def test_the_text_alternative_has_the_parameters_and_how_far_off_they_are():
    line = next(
        line
        for line in style.alt(measured_and_fitted(TABLE, TRUTH)).splitlines()
        if line.startswith("pipeline")
    )
    assert "α = " in line and "β = " in line
    assert line.endswith(" %.")


def test_a_table_of_two_collectives_wants_to_know_which():
    both = np.concatenate([TABLE, sweep("reduce", models("reduce", ["linear"]))])
    with pytest.raises(InputError, match="bcast, reduce"):
        measured_and_fitted(both, TRUTH)
    assert traces(measured_and_fitted(both, TRUTH, collective="bcast"), "linear")


def test_the_figure_says_where_it_was_measured_and_which_ranks_shared_cores():
    rows = sweep("bcast", TRUTH, ranks=(2, 4), sizes=[8, 1024], cores=2, machine="AMD EPYC")
    figure = measured_and_fitted(rows, TRUTH)
    assert "Measured on AMD EPYC, 2 cores, 2 and 4 ranks" in figure.layout.title.text
    notes = [note.text for note in figure.layout.annotations]
    assert notes == ["2 ranks", "4 ranks, oversubscribed"]
    assert "4 ranks: oversubscribed, more ranks than cores." in style.alt(figure)
