"""Space-time diagrams: steps that follow from which rank needs which, and the same in words."""

from xml.etree import ElementTree

import numpy as np
import pytest
from made_up import FINISHED, meet, over, rank_of, recv, run_of, send, wait

from mpilab.judging.judge import Wrong, failed
from mpilab.judging.rubric import Exercise, Item
from mpilab.plots.failures import (
    MOST_CALLS,
    _collective_calls,
    _links,
    _steps,
    space_time_diagram,
)
from mpilab.plots.timeline import calls_of

SVG = "{http://www.w3.org/2000/svg}"


def steps(ranks):
    calls = calls_of(ranks)
    begins, ends = _steps(calls, _links(ranks, calls), _collective_calls(ranks, calls))
    return list(zip(calls["rank"].tolist(), begins.tolist(), ends.tolist(), strict=True))


def drawn(ranks):
    svg, words = space_time_diagram(ranks)
    return ElementTree.fromstring(svg), words


def chain():
    """Rank 0 sends to 1, which sends on to 2."""
    return run_of([over(send(1))], [over(recv(0)), over(send(2))], [over(recv(1))]).ranks


def test_what_needs_a_message_ends_a_step_after_it_was_sent():
    assert steps(chain()) == [(0, 0, 1), (1, 0, 1), (1, 1, 2), (2, 0, 2)]


def test_the_clock_has_no_say_in_it():
    ranks = chain()
    for number, rank in enumerate(ranks):
        rank.records["begin_ns"] += 1000 * (3 - number)  # as if clocks were set differently
    assert steps(ranks) == steps(chain())


def test_a_receive_is_over_where_its_wait_is():
    first, second = over(send(1)), over(send(1, tag=1))
    early = over(recv(0, tag=1, name="Irecv"), waiter=2)
    late = over(recv(0, name="Irecv"), waiter=2)
    ranks = run_of([first, second], [early, late, over(wait(name="Waitall"))]).ranks
    assert steps(ranks) == [(0, 0, 1), (0, 1, 2), (1, 0, 1), (1, 1, 2), (1, 2, 3)]


def test_a_collective_ends_for_nobody_before_all_have_come():
    met = over(meet("Barrier"))
    ranks = run_of([over(send(1)), over(send(1)), met], [over(recv(0)), over(recv(0)), met]).ranks
    assert (steps(ranks)[2], steps(ranks)[5]) == ((0, 2, 3), (1, 2, 3))
    lonely = run_of([met], [over(send(0)), over(send(0)), met]).ranks
    assert steps(lonely)[0] == (0, 0, 3)


def test_what_never_returned_lasts_to_the_end_and_is_marked():
    ranks = run_of([recv(1)], [recv(0)]).ranks
    assert steps(ranks) == [(0, 0, 2), (1, 0, 2)]
    picture, words = drawn(ranks)
    texts = [text.text for text in picture.iter(f"{SVG}text")]
    assert "✗ MPI_Recv from 1" in texts and "rank 0" in texts
    assert words == (
        "Rank 0: MPI_Recv from 1 (never returned). Rank 1: MPI_Recv from 0 (never returned)."
    )


def test_a_message_that_nobody_received_and_a_rank_that_never_began_are_told():
    ranks = run_of([over(send(1)), over(send(2))], [], None).ranks
    picture, words = drawn(ranks)
    assert "Rank 1: no call. Rank 2: never started. 2 messages never received." in words
    assert "message never received" in [text.text for text in picture.iter(f"{SVG}text")]
    arrows = [path for path in picture.iter(f"{SVG}path") if path.get("class") == "arrow"]
    assert len(arrows) == 2 + 1  # and one in the legend


def test_a_picture_holds_no_script_and_loads_nothing():
    svg, _ = space_time_diagram(chain())
    names = {element.tag.removeprefix(SVG) for element in ElementTree.fromstring(svg).iter()}
    assert names <= {"svg", "style", "rect", "text", "path", "title"}
    assert "href" not in svg and "url(" not in svg


def test_of_nothing_there_is_none():
    assert space_time_diagram([rank_of(0, 1, [], **FINISHED)]) == ("", "")


@pytest.mark.parametrize(
    "ranks",
    [
        [rank_of(0, 1, [over(send(0))] * (MOST_CALLS + 1), **FINISHED)],
        [rank_of(number, 17, [over(send(0))], **FINISHED) for number in range(17)],
    ],
)
def test_of_too_much_there_is_none_and_why(ranks):
    assert space_time_diagram(ranks) == (
        "",
        "Not drawn: more than 16 ranks, or more than 160 calls.",
    )


def test_a_verdict_carries_it_and_a_recording_of_nonsense_costs_only_the_picture():
    item = Item("any", "Any size", 3)
    exercise = Exercise("ring", "Ring", "kernel", (item,), function="allgather_ring")
    result = run_of([recv(1)], [recv(0)])
    evidence = failed(exercise, item, Wrong(result, "deadlock", {"since": 1})).evidence
    assert evidence["svg"].startswith("<svg") and "never returned" in evidence["svg_alt"]
    for rank in result.ranks:
        rank.records["operation"] = 2**16 - 1
        rank.records["waiter"] = 2**30
        rank.records["got_peer"] = np.iinfo(np.int32).max
    evidence = failed(exercise, item, Wrong(result, "deadlock")).evidence
    assert "reproduce" in evidence
