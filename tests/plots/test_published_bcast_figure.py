"""A published broadcast beside one measured here."""

import numpy as np
import pytest

from mpilab.errors import InputError
from mpilab.measure.dataset import published_bcast
from mpilab.plots import style
from mpilab.plots.sweep import bcast_against_published

ROW = np.dtype(
    [
        ("collective", "U20"),
        ("library", "U20"),
        ("algorithm", "U40"),
        ("number", "i4"),
        ("ranks", "i4"),
        ("bytes", "i8"),
        ("segment", "i8"),
        ("fanout", "i4"),
        ("radix", "i4"),
        ("repetition", "i4"),
        ("span_s", "f8"),
        ("mean_s", "f8"),
        ("max_s", "f8"),
        ("min_s", "f8"),
    ]
)


def sweep(library, algorithm, ranks=4, segment=0, collective="bcast", radix=0):
    """Two sizes, three repetitions: means of 1, 2, 3 µs times the size, spans twice that."""
    return [
        (
            collective,
            library,
            algorithm,
            3,
            ranks,
            size,
            segment,
            0,
            radix,
            k,
            2e-6 * (k + 1) * size,
            1e-6 * (k + 1) * size,
            0,
            0,
        )
        for size in (1, 1024)
        for k in range(3)
    ]


def table(*rows):
    return np.array(sum(rows, []), ROW)


@pytest.fixture
def mine():
    return table(
        sweep("openmpi", "default"),
        sweep("openmpi", "pipeline"),
        sweep("ours", "pipeline", segment=8192),
        sweep("ours", "pipeline", ranks=8, segment=8192),
        sweep("ours", "knomial", radix=4),
        sweep("ours", "linear", collective="gather"),
    )


def test_published_lines_are_dotted_and_measured_ones_solid(mine):
    figure = bcast_against_published(published_bcast(), mine)
    dotted = [trace.name for trace in figure.data if trace.line.dash == "dot"]
    solid = [trace.name for trace in figure.data if trace.line.dash is None]
    assert dotted == ["default, published, P = 128", "pipeline, published, P = 128"]
    assert solid == [
        "default, Open MPI's, P = 4",
        "pipeline, Open MPI's, P = 4",
        "pipeline, ours, P = 4, segments of 8 KiB",
        "pipeline, ours, P = 8, segments of 8 KiB",
        "knomial, ours, P = 4, radix 4",
    ]


def test_an_algorithm_has_one_color_whoever_measured_it(mine):
    figure = bcast_against_published(published_bcast(), mine)
    for algorithm in ("default", "pipeline", "knomial"):
        colors = {t.line.color for t in figure.data if t.name.startswith(algorithm)}
        assert colors == {style.color(algorithm)}


def test_medians_and_quartiles_are_drawn_of_the_measure_that_osu_shows(mine):
    figure = bcast_against_published(published_bcast(), mine)
    line = next(t for t in figure.data if t.name == "pipeline, Open MPI's, P = 4")
    assert line.x.tolist() == [1, 1024]
    assert np.allclose(line.y, [2e-6, 2e-6 * 1024])
    assert np.allclose(line.error_y.array, [0.5e-6, 0.5e-6 * 1024])
    span = bcast_against_published(published_bcast(), mine, measure="span_s")
    line = next(t for t in span.data if t.name == "pipeline, Open MPI's, P = 4")
    assert np.allclose(line.y, [4e-6, 4e-6 * 1024])


def test_published_values_are_drawn_in_seconds_at_every_size(mine):
    figure = bcast_against_published(published_bcast(), mine)
    assert len(figure.data[1].x) == 21
    assert figure.data[1].y[-1] == pytest.approx(11033.92e-6)


def test_the_text_alternative_has_a_line_for_each_line(mine):
    lines = style.alt(bcast_against_published(published_bcast(), mine)).splitlines()
    assert len(lines) == 8
    assert lines[1].startswith("default, published, P = 128: 1 B 13.5 µs, 2 B 14.1 µs")
    assert "pipeline, Open MPI's, P = 4: 1 B 2 µs, 1 KiB 2.05 ms." in lines


@pytest.mark.parametrize(
    "wrong, more, message",
    [
        (table(sweep("ours", "linear", collective="gather")), {}, "holds no bcast"),
        (np.zeros(1, [("bytes", "i8")]), {}, "no field algorithm, collective, fanout, library"),
        (table(sweep("ours", "linear")), {"measure": "max_s"}, "'mean_s' or 'span_s'"),
    ],
)
def test_a_table_that_cannot_be_drawn_is_refused(wrong, more, message):
    with pytest.raises(InputError, match=message):
        bcast_against_published(published_bcast(), wrong, **more)
