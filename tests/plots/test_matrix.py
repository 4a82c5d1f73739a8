"""The heat map of messages between ranks."""

import numpy as np
import pytest
from timeline_recordings import rank_of

from mpilab.algorithms import counts
from mpilab.algorithms.allgather import schedule
from mpilab.errors import InputError
from mpilab.plots import matrix, style
from mpilab.trace.recording import Recording


@pytest.fixture
def added():
    return counts(schedule("nonblocking_gather_bcast", 3), block_bytes=1024)


def test_messages_and_bytes_stand_side_by_side_with_labeled_axes(added):
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


def test_many_ranks_get_a_color_bar_in_place_of_numbers():
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
    assert "Rank 0 sends to no rank." in style.alt(matrix.messages(np.zeros((2, 2), dtype=int)))


@pytest.mark.parametrize("other", [np.zeros((2, 3)), np.zeros((3, 3)), np.zeros(2)])
def test_matrices_that_do_not_fit_are_refused(other):
    with pytest.raises(InputError, match="shape"):
        matrix.messages(np.zeros((2, 2), dtype=int), other)


# --- By host


def test_ranks_on_several_hosts_get_panels_that_add_up_by_host(added):
    figure = matrix.messages(added.messages_between, added.bytes_between, hosts=["n1", "n2", "n2"])
    ranks, ranks_bytes, hosts, hosts_bytes = figure.data
    assert np.nan_to_num(hosts.z).tolist() == [[0, 2], [2, 0]]
    assert np.nan_to_num(hosts_bytes.z).tolist() == [[0, 6144], [2048, 0]]
    assert hosts_bytes.text[0][1] == "6 KiB"
    assert figure.layout.xaxis3.ticktext == ("n1", "n2")
    assert figure.layout.yaxis3.title.text == "sender (host)"
    assert hosts.customdata[0][1] == "n1 → n2"


def test_the_text_alternative_tells_what_stays_inside_a_host():
    added = counts(schedule("ring", 4), block_bytes=1024)
    figure = matrix.messages(added.messages_between, added.bytes_between, hosts=list("aabb"))
    assert style.alt(figure).splitlines()[-3:] == [
        "6 messages of 12 go from one host to another, among 2 hosts.",
        "Host a (ranks 0, 1) sends to itself (3×, 3 KiB), b (3×, 3 KiB).",
        "Host b (ranks 2, 3) sends to a (3×, 3 KiB), itself (3×, 3 KiB).",
    ]


def test_on_one_host_there_is_nothing_to_add_up(added):
    figure = matrix.messages(added.messages_between, hosts=["vm"] * 3)
    assert len(figure.data) == 1
    assert style.alt(figure).splitlines()[-1] == "All ranks are on one host, vm."


def test_the_hosts_of_a_recording_are_those_of_its_headers():
    ranks = [rank_of(0, 2, [], host=b"n1"), rank_of(1, 2, [], host=b"n2")]
    assert matrix.hosts(Recording(ranks)) == matrix.hosts(ranks) == ["n1", "n2"]


def test_hosts_of_another_number_of_ranks_are_refused(added):
    with pytest.raises(InputError, match="hosts: 2 names for 3 ranks"):
        matrix.messages(added.messages_between, hosts=["a", "b"])


def test_64_ranks_stay_a_small_figure_with_ticks_that_can_be_read():
    added = counts(schedule("pairwise", 64), block_bytes=8)
    figure = matrix.messages(
        added.messages_between, added.bytes_between, hosts=[f"n{i % 4}" for i in range(64)]
    )
    assert len(figure.to_json()) < 400_000
    assert len(figure.layout.xaxis.tickvals) == 16
    assert figure.layout.height < 1000
