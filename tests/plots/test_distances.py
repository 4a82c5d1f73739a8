"""Messages by distance: times over sizes, and parameters with error bars."""

import numpy as np
import pytest
from distances_made_up import TRUTH, table_of

from mpilab.errors import InputError
from mpilab.measure.distances import fit_distances
from mpilab.models import Hockney
from mpilab.plots import distances, style

TABLE = table_of(TRUTH)


def test_each_distance_has_medians_with_quartiles_and_its_fit_dashed():
    fits = fit_distances(TABLE, "loggp")
    figure = distances.time_against_size(TABLE, fits)
    names = [trace.name for trace in figure.data if trace.mode == "markers"]
    assert names == ["same core", "shared L3", "other socket"]
    curve = next(trace for trace in figure.data if trace.name == "shared L3, model")
    assert curve.line.dash == "dash"
    assert curve.y == pytest.approx(fits["shared L3"].time(np.array(curve.x)))
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"


def test_gaps_and_overheads_can_be_drawn_too():
    figure = distances.time_against_size(TABLE, quantity="gap")
    assert "gap between messages" in figure.layout.yaxis.title.text
    with pytest.raises(InputError, match="quantity='delay'"):
        distances.time_against_size(TABLE, quantity="delay")


def test_parameters_have_a_panel_each_with_units_and_standard_errors():
    fits = fit_distances(TABLE, "loggp")
    figure = distances.parameters(fits)
    titles = [note.text for note in figure.layout.annotations]
    assert titles == ["L, µs", "o, µs", "g, µs", "G, ns/B"]
    latency, *_, per_byte = figure.data
    assert list(latency.x) == ["same core", "shared L3", "other socket"]
    assert latency.y == pytest.approx([fit.L * 1e6 for fit in fits.values()])
    assert latency.error_y.array == pytest.approx([f.L_error * 1e6 for f in fits.values()])
    assert per_byte.y == pytest.approx([fit.G * 1e9 for fit in fits.values()])


def test_an_unknown_error_has_no_bar_and_hockney_two_panels():
    figure = distances.parameters({"shared L3": Hockney(1e-6, 1e-9)})
    assert [note.text for note in figure.layout.annotations] == ["α, µs", "β, ns/B"]
    assert list(figure.data[0].error_y.array) == [0]


def test_text_alternatives_list_times_and_parameters():
    fits = fit_distances(TABLE)
    text = style.alt(distances.time_against_size(TABLE, fits))
    assert f"shared L3, dashed: {fits['shared L3']}." in text
    assert "1 B " in text
    assert f"same core: {fits['same core']}." in style.alt(distances.parameters(fits))


def test_fits_of_two_models_do_not_share_a_figure():
    mixed = {"shared L3": Hockney(1e-6, 1e-9), "other socket": TRUTH["other socket"]}
    with pytest.raises(InputError, match="fits of 2 models"):
        distances.parameters(mixed)
    with pytest.raises(InputError, match="fits of 0 models"):
        distances.parameters({})
