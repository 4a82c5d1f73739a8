"""The picture of ranks that wait for one another."""

import pytest

from mpilab.plots import style
from mpilab.plots.failures import wait_for_graph
from mpilab.runners.hang import BLOCKED, COMPUTING, FINISHED, NOT_BEGUN, RankState


def blocked(rank, peer):
    return RankState(rank, BLOCKED, "MPI_Recv", peer, 7, 40, 12, 1.5, (peer,))


@pytest.fixture
def pair():
    """Ranks 0 and 1 wait for each other, 2 waits for 0, 3 has finished."""
    return (blocked(0, 1), blocked(1, 0), blocked(2, 0), RankState(3, FINISHED))


def trace(figure, name):
    return next(trace for trace in figure.data if trace.name == name)


def arrows(figure, name):
    return list(trace(figure, name).x).count(None)


def test_the_cycle_is_drawn_apart_from_the_other_arrows(pair):
    figure = wait_for_graph(pair, (0, 1))
    assert arrows(figure, "the cycle") == 2
    assert arrows(figure, "waits for") == 1
    assert trace(figure, "the cycle").line.width > trace(figure, "waits for").line.width


def test_two_ranks_that_wait_for_each_other_have_arrows_that_do_not_lie_on_each_other(pair):
    points = list(
        zip(
            trace(wait_for_graph(pair, (0, 1)), "the cycle").x,
            trace(wait_for_graph(pair, (0, 1)), "the cycle").y,
            strict=True,
        )
    )
    gap = points.index((None, None))
    there, back = points[:gap], points[gap + 1 : -1]
    assert len(there) == len(back) > 2
    assert not set(there) & set(back)


def test_each_arrow_has_one_head_at_the_rank_that_is_waited_for(pair):
    drawn = trace(wait_for_graph(pair, ()), "waits for")
    heads = [(x, y) for x, y, size in zip(drawn.x, drawn.y, drawn.marker.size, strict=True) if size]
    assert len(heads) == 3
    # Rank 0 is at the top of the circle, (0, 1); ranks 1 and 2 wait for it.
    assert sum(abs(x) + abs(y - 1) < 0.4 for x, y in heads) == 2


def test_hover_over_a_rank_names_its_call_peer_tag_bytes_and_line(pair):
    assert trace(wait_for_graph(pair), "blocked").hovertext[0] == (
        "rank 0 is blocked in MPI_Recv from rank 1 (tag 7, 40 bytes), line 12<br>for 1.5 s"
    )


def test_finished_ranks_are_faint_and_every_state_has_a_shape_or_shade_of_its_own():
    states = (
        RankState(0, FINISHED),
        RankState(1, COMPUTING),
        RankState(2, NOT_BEGUN),
        blocked(3, 1),
    )
    looks = {
        t.name: (t.marker.symbol, t.marker.color)
        for t in wait_for_graph(states).data
        if t.mode == "markers+text"
    }
    assert set(looks) == {"finished", "computing", "not begun", "blocked"}
    assert len(set(looks.values())) == 4
    assert looks["finished"][1].endswith("0.12)")


def test_the_text_alternative_says_the_cycle_and_what_each_rank_waits_for(pair):
    assert style.alt(wait_for_graph(pair, (0, 1))).splitlines() == [
        "Wait-for graph: 3 of 4 ranks have not finished; cycle 0 → 1 → 0.",
        "Rank 0 is blocked in MPI_Recv from rank 1 (tag 7, 40 bytes), line 12; it waits for 1.",
        "Rank 1 is blocked in MPI_Recv from rank 0 (tag 7, 40 bytes), line 12; it waits for 0.",
        "Rank 2 is blocked in MPI_Recv from rank 0 (tag 7, 40 bytes), line 12; it waits for 0.",
        "Finished: 3.",
    ]


def test_a_rank_may_wait_for_itself_or_for_one_that_is_not_there():
    figure = wait_for_graph((blocked(0, 0), blocked(1, 9)))
    assert arrows(figure, "waits for") == 1
    assert all(value is None or abs(value) < 1.5 for value in trace(figure, "waits for").y)


def test_a_barrier_of_64_ranks_of_which_half_do_not_come_is_drawn_thinly():
    missing = tuple(range(32, 64))
    states = [RankState(r, BLOCKED, "MPI_Barrier", waits_for=missing) for r in range(32)]
    states += [RankState(r, FINISHED) for r in missing]
    figure = wait_for_graph(states)
    assert arrows(figure, "waits for") == 32 * 32
    assert trace(figure, "waits for").line.width < 1
    assert len(figure.to_json()) < 2_000_000
