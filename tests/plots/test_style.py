"""Figures are legible in both themes and carry their text with them."""

import json
import subprocess
import sys

import plotly.graph_objects as go
import pytest

from mpilab.algorithms import ALGORITHMS, COLLECTIVES, algorithms
from mpilab.plots import style
from mpilab.util import units

LIGHT, DARK = "#ffffff", "#111111"


def luminance(hex_color):
    """Relative luminance, as WCAG 2.2 defines it."""

    def linear(value):
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(int(hex_color[i : i + 2], 16) / 255) for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    "color",
    [*style.ALGORITHM_COLORS.values(), *style.OTHER_COLORS, *style.ORDER_COLORS, style.TEXT],
)
def test_every_color_keeps_a_contrast_of_three_on_light_and_dark(color):
    assert contrast(color, LIGHT) >= 3
    assert contrast(color, DARK) >= 3


def theirs_of(collective):
    """Open MPI's names of the algorithms that we also have; its allreduce has one more."""
    names = [one.openmpi for one in ALGORITHMS[collective].values() if one.openmpi]
    return [*names, "basic_linear"] if collective == "allreduce" else names


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_two_algorithms_of_a_collective_share_neither_color_nor_marker(collective):
    for names in (algorithms(collective), theirs_of(collective)):
        for look in (style.ALGORITHM_COLORS, style.ALGORITHM_MARKERS):
            assert len({look[name] for name in (*names, "default")}) == len(names) + 1


def test_algorithms_of_one_name_look_alike_in_every_collective():
    for known in ALGORITHMS.values():
        for name, algorithm in known.items():
            look = algorithm.look
            assert (style.color(name), style.marker(name)) == look
            if algorithm.openmpi:
                assert (style.color(algorithm.openmpi), style.marker(algorithm.openmpi)) == look


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("basic_linear", "linear"),
        ("linear", "nonblocking_gather_bcast"),
        ("bruck", "dissemination"),
        ("neighbor", "neighbor_exchange"),
        ("binary_tree", "binary"),
        ("split_binary_tree", "split_binary"),
        ("in-order_binary", "in_order_binary"),
    ],
)
def test_an_algorithm_of_open_mpi_looks_like_ours_although_its_name_is_another(theirs, ours):
    assert style.color(theirs) == style.color(ours)
    assert style.marker(theirs) == style.marker(ours)


def test_a_students_own_algorithm_keeps_its_color_from_figure_to_figure():
    assert style.color("my_allgather") == style.color("my_allgather")
    assert style.color("my_allgather") in style.OTHER_COLORS


@pytest.mark.parametrize(
    "size, text", [(0, "0 B"), (512, "512 B"), (4096, "4 KiB"), (1 << 20, "1 MiB")]
)
def test_sizes_are_written_in_powers_of_1024(size, text):
    assert units.byte_size(size) == text


@pytest.mark.parametrize("seconds, text", [(1.34e-9, "1.34 ns"), (3.2e-6, "3.2 µs"), (2, "2 s")])
def test_times_are_written_with_a_prefix(seconds, text):
    assert units.duration(seconds) == text


@pytest.fixture
def figure():
    return style.finish(go.Figure(go.Scatter(x=[1, 2], y=[3, 4])), "A <line>.\nIt rises.")


def test_a_finished_figure_is_transparent(figure):
    assert figure.layout.template.layout.paper_bgcolor == "rgba(0,0,0,0)"
    assert figure.layout.template.layout.plot_bgcolor == "rgba(0,0,0,0)"


def test_a_notebook_gets_the_figure_as_json_for_the_plotly_extension(figure):
    bundle = style.bundle(figure)
    content = bundle["application/vnd.plotly.v1+json"]
    assert json.loads(json.dumps(content))["data"][0]["type"] == "scatter"
    assert bundle["text/plain"] == "[figure: A <line>.]"
    assert len(json.dumps(bundle)) < 5_000


def test_the_note_names_the_figure_and_folds_its_whole_text(figure):
    note = style.note(figure)
    assert 'role="img" aria-label="A &lt;line&gt;." alt="A &lt;line&gt;."' in note
    assert "<p>A &lt;line&gt;.<br>It rises.</p></details>" in note


def test_a_fragment_needs_no_network(figure):
    small, whole = style.fragment(figure), style.fragment(figure, plotlyjs=True)
    assert 'role="group" aria-label="A &lt;line&gt;."' in small
    assert "cdn" not in small and "<script src=" not in small + whole
    assert len(small) < 10_000 < 1_000_000 < len(whole)


def test_show_displays_the_figure_and_then_its_note(figure, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda thing, **_: shown.append(thing))
    style.show(figure)
    assert "application/vnd.plotly.v1+json" in shown[0]
    assert shown[1].data == style.note(figure)


def test_a_figure_of_another_maker_is_described_by_its_title():
    assert style.alt(go.Figure(layout=dict(title=dict(text="Bytes")))) == "Bytes"
    assert "without" in style.alt(go.Figure())


def test_plotly_is_imported_with_the_first_figure():
    program = (
        "import sys; from mpilab.notebook import session; from mpilab.plots import schedule, style;"
        "assert 'plotly' not in sys.modules; style.go.Figure(); assert 'plotly' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
