"""The picture of a wrong result."""

import json

import numpy as np
import pytest

from mpilab.errors import InputError
from mpilab.plots import style
from mpilab.plots.failures import ABSENT, ELSEWHERE, RIGHT, UNTOUCHED, WRONG, blocks


@pytest.fixture
def figure():
    grid = np.zeros((3, 3), int)
    source = np.full((3, 3), -1)
    grid[0, 1], grid[1, 2] = WRONG, UNTOUCHED
    grid[2, 0], source[2, 0] = ELSEWHERE, 1
    return blocks(grid, source, {(0, 1): "expected 5, got <7>"})


def heat(figure):
    return figure.data[0]


def test_every_state_has_a_symbol_and_a_misplaced_block_the_number_of_its_rank(figure):
    assert [list(row) for row in heat(figure).text] == [
        ["✓", "✗", "✓"],
        ["✓", "✓", "○"],
        ["1", "✓", "✓"],
    ]


def test_hover_says_what_was_expected_with_markup_escaped(figure):
    hover = heat(figure).hovertext
    assert hover[0][1] == "rank 0, block 1: wrong<br>expected 5, got &lt;7&gt;"
    assert hover[1][2] == "rank 1, block 2: never written"
    assert hover[2][0] == "rank 2, block 0: rank 1&#x27;s block"


def test_the_text_alternative_lists_only_what_is_not_right(figure):
    assert style.alt(figure).splitlines() == [
        "Blocks of the receive buffers: 3 of 9 blocks on 3 ranks are wrong "
        "(1 wrong, 1 never written, 1 another rank's block).",
        "Rank 0: block 1: wrong (expected 5, got <7>).",
        "Rank 1: block 2: never written.",
        "Rank 2: block 0: rank 1's block.",
    ]


def test_the_legend_names_the_states_that_occur_and_no_others(figure):
    assert [t.name.split(" ")[0] for t in figure.data[1:]] == ["right", "wrong", "never", "another"]
    assert len(blocks(np.full((2, 2), UNTOUCHED)).data) == 2


def test_each_code_gets_its_own_band_of_the_color_scale(figure):
    trace = heat(figure)
    bands = {}
    for code in (RIGHT, WRONG, UNTOUCHED, ELSEWHERE):
        place = (code - trace.zmin) / (trace.zmax - trace.zmin)
        below = [color for at, color in trace.colorscale if at <= place][-1]
        above = next(color for at, color in trace.colorscale if at >= place)
        assert below == above
        bands[code] = below
    assert len(set(bands.values())) == 4


def test_64_ranks_and_blocks_show_symbols_for_the_faults_only():
    grid = np.zeros((64, 64), int)
    grid[5, 6] = WRONG
    figure = blocks(grid)
    shown = {symbol for row in heat(figure).text for symbol in row}
    assert shown == {"", "✗"}
    assert len(figure.layout.yaxis.tickvals) <= 16
    assert len(json.dumps(figure.to_plotly_json(), default=str)) < 1_000_000


def test_the_text_alternative_of_a_rank_with_nothing_right_is_cut():
    words = style.alt(blocks(np.full((1, 64), WRONG))).splitlines()[1]
    assert words.endswith("and 40 more.")


@pytest.mark.parametrize(
    ("grid", "source"), [([1, 2], None), ([[5]], None), ([[0, 0]], [[0]]), ([[-1]], None)]
)
def test_what_is_no_grid_of_codes_is_refused(grid, source):
    with pytest.raises(InputError, match="shape"):
        blocks(grid, source)


def test_elements_are_named_and_ranks_without_a_buffer_stay_empty():
    figure = blocks(
        [[RIGHT, WRONG], [ABSENT, ABSENT]],
        details={(0, 1): "rank 1 alone"},
        columns=("0", "1 to 3"),
    )
    assert figure.layout.xaxis.title.text == "elements of the buffer"
    assert list(figure.layout.xaxis.ticktext) == ["0", "1 to 3"]
    assert [list(row) for row in heat(figure).text] == [["✓", "✗"], ["", ""]]
    assert style.alt(figure).splitlines() == [
        "Elements of the receive buffers: 1 of 2 places on 1 ranks are wrong (1 wrong).",
        "Rank 0: elements 1 to 3: wrong (rank 1 alone).",
    ]
    assert "no receive buffer" in {trace.name for trace in figure.data[1:]}


def test_names_for_another_number_of_columns_are_refused():
    with pytest.raises(InputError, match="2 columns named"):
        blocks([[RIGHT]], columns=("0", "1"))
