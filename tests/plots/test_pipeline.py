"""The pipeline figure has a cell for each rank's sends and receives in each round."""

import pytest

from mpilab.algorithms import COLLECTIVES, algorithms, schedule_in_segments
from mpilab.plots import style
from mpilab.plots.schedule import pipeline

NAMES = [(collective, name) for collective in COLLECTIVES for name in algorithms(collective)]
RECEIVES, SENDS = 0, 1


def cells(bars):
    """{(rank, round)} of the cells of a trace."""
    return {
        (round(y), round(base + x / 2))
        for y, base, x in zip(bars.y, bars.base, bars.x, strict=True)
    }


@pytest.mark.parametrize("collective, name", NAMES)
def test_there_is_a_cell_where_a_rank_sends_or_receives_and_nowhere_else(collective, name):
    for ranks in (1, 2, 7):
        schedule = schedule_in_segments(collective, name, ranks, 3)
        figure = pipeline(schedule)
        numbered = [(t, n) for n, ts in enumerate(schedule.rounds, 1) for t in ts]
        assert cells(figure.data[SENDS]) == {(t.source, n) for t, n in numbered}
        assert cells(figure.data[RECEIVES]) == {(t.dest, n) for t, n in numbered}
        assert len(figure.data[SENDS].y) == len(cells(figure.data[SENDS]))


def test_a_segment_moves_one_rank_on_in_each_round_in_its_own_color():
    figure = pipeline(schedule_in_segments("bcast", "pipeline", 4, 3))
    sends = figure.data[SENDS]
    found = {
        (round(y), round(base + x / 2)): (text, color)
        for y, base, x, text, color in zip(
            sends.y, sends.base, sends.x, sends.text, sends.marker.color, strict=True
        )
    }
    for segment in range(3):
        way = [found[rank, rank + segment + 1] for rank in range(3)]
        assert {text for text, _ in way} == {str(segment)}
        assert len({color for _, color in way}) == 1
    assert len({color for _, color in found.values()}) == 3


def test_sends_to_several_ranks_at_once_are_counted():
    figure = pipeline(schedule_in_segments("bcast", "binary", 7, 2))
    assert figure.data[SENDS].text[0] == "0 ×2"
    assert figure.data[SENDS].hovertext[0] == "round 1: rank 0 sends 0 to 1–2"


def test_sends_and_receives_are_told_apart_by_more_than_color():
    figure = pipeline(schedule_in_segments("allgather", "ring", 4))
    assert all(y > round(y) for y in figure.data[SENDS].y)
    assert all(y < round(y) for y in figure.data[RECEIVES].y)
    assert [bars.name for bars in figure.data] == ["receives (above)", "sends (below)"]


def test_very_many_rounds_have_no_words_in_their_cells():
    figure = pipeline(schedule_in_segments("allreduce", "segmented_ring", 16, 8))
    assert figure.data[SENDS].text is None


def test_axes_say_what_they_are():
    figure = pipeline(schedule_in_segments("bcast", "chain", 5, 2))
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("round", "rank")
    assert figure.layout.yaxis.range == (4.5, -0.5)


def test_the_text_alternative_tells_when_each_rank_is_busy():
    assert style.alt(pipeline(schedule_in_segments("bcast", "pipeline", 3, 4))).splitlines() == [
        "Who sends when in bcast pipeline, P = 3, root 0: 5 rounds.",
        "Rank 0 sends in rounds 1–4.",
        "Rank 1 sends in rounds 2–5, receives in rounds 1–4.",
        "Rank 2 receives in rounds 2–5.",
    ]
    alone = style.alt(pipeline(schedule_in_segments("bcast", "linear", 1)))
    assert alone.splitlines()[1] == "Rank 0 neither sends nor receives."
