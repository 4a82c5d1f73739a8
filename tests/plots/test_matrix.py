"""The heat map of messages between ranks."""

import numpy as np
import pytest

from mpilab.errors import InputError
from mpilab.plots import matrix, style
from mpilab.schedules import counts
from mpilab.schedules.allgather import schedule


@pytest.fixture
def added():
    return counts(schedule("nonblocking_gather_bcast", 3), block_bytes=1024)


def test_messages_and_bytes_stand_side_by_side_with_labelled_axes(added):
    figure = matrix.messages(added.messages_between, added.bytes_between)
    assert [trace.type for trace in figure.data] == ["heatmap", "heatmap"]
    for axis in (figure.layout.xaxis, figure.layout.xaxis2):
        assert axis.title.text == "receiver (rank)"
    assert figure.layout.yaxis.title.text == "sender (rank)"


def test_pairs_that_exchanged_nothing_stay_empty(added):
    (heat,) = matrix.messages(added.messages_between).data
    assert np.isnan(heat.z[1][2]) and np.isnan(heat.z[0][0])
    assert heat.z[0][1] == 1
    assert heat.text[1][2] == ""


def test_bytes_are_written_with_their_unit(added):
    heat = matrix.messages(added.messages_between, added.bytes_between).data[1]
    assert heat.text[0][1] == "3 KiB"


def test_many_ranks_get_a_colour_bar_in_place_of_numbers():
    added = counts(schedule("ring", 24), block_bytes=8)
    figure = matrix.messages(added.messages_between, added.bytes_between)
    for heat in figure.data:
        assert heat.showscale and heat.texttemplate is None


def test_the_text_alternative_lists_what_each_rank_sends(added):
    figure = matrix.messages(added.messages_between, added.bytes_between, title="Recorded")
    assert style.alt(figure).splitlines() == [
        "Recorded: 4 messages between 4 of 6 ordered pairs of 3 ranks.",
        "Rank 0 sends to 1 (1×, 3 KiB), 2 (1×, 3 KiB).",
        "Rank 1 sends to 0 (1×, 1 KiB).",
        "Rank 2 sends to 0 (1×, 1 KiB).",
    ]


def test_an_empty_matrix_is_drawn_too():
    assert "Rank 0 sends to nobody." in style.alt(matrix.messages(np.zeros((2, 2), dtype=int)))


@pytest.mark.parametrize("other", [np.zeros((2, 3)), np.zeros((3, 3)), np.zeros(2)])
def test_matrices_that_do_not_fit_are_refused(other):
    with pytest.raises(InputError, match="shape"):
        matrix.messages(np.zeros((2, 2), dtype=int), other)
