"""The figure that steps through a schedule shows each round's messages and the blocks of each
rank."""

import shutil

import pytest

from mpilab.algorithms import Transfer
from mpilab.algorithms.allgather import ALGORITHMS, schedule
from mpilab.plots import schedule as plot
from mpilab.plots import style

EVERY = [(name, ranks) for name in ALGORITHMS for ranks in (1, 2, 5, 8, 16)]


@pytest.mark.parametrize("name, ranks", EVERY)
def test_there_is_a_step_for_the_start_and_for_each_round(name, ranks):
    plan = schedule(name, ranks)
    figure = plot.rounds(plan)
    names = [str(number) for number in range(len(plan.rounds) + 1)]
    assert [frame.name for frame in figure.frames] == names
    assert [step.args[0][0] for step in figure.layout.sliders[0].steps] == names


@pytest.mark.parametrize("name, ranks", EVERY)
def test_each_step_draws_exactly_the_messages_of_its_round(name, ranks):
    plan = schedule(name, ranks)
    for frame, transfers in zip(plot.rounds(plan).frames[1:], plan.rounds, strict=True):
        ends = list(frame.data[0].y)
        drawn = list(zip(ends[0::3], ends[1::3], strict=True))
        assert drawn == [(transfer.source, transfer.dest) for transfer in transfers]
        assert set(frame.data[1].y) == {transfer.source for transfer in transfers}


def test_the_grid_tells_held_from_new_from_missing():
    figure = plot.rounds(schedule("ring", 3))
    start, first = figure.frames[0].data[2].z, figure.frames[1].data[2].z
    assert start.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert first.tolist() == [[1, 0, 2], [2, 1, 0], [0, 2, 1]]


def test_new_blocks_are_marked_by_more_than_color():
    first = plot.rounds(schedule("ring", 3)).frames[1].data[2]
    assert [list(row) for row in first.text] == [["", "", "●"], ["●", "", ""], ["", "●", ""]]


def test_axes_say_what_they_are_and_both_panels_share_the_ranks_lines():
    figure = plot.rounds(schedule("ring", 4))
    assert figure.layout.yaxis.title.text == "rank"
    assert figure.layout.xaxis2.title.text == "block (rank that owned it)"
    assert figure.layout.yaxis.range == (3.5, -0.5)
    assert figure.layout.yaxis2.matches == "y"


def test_the_arrows_have_the_color_of_the_algorithm():
    figure = plot.rounds(schedule("bruck", 4))
    assert figure.data[0].line.color == style.color("bruck")


def test_the_text_alternative_lists_every_round():
    text = style.alt(plot.rounds(schedule("nonblocking_gather_bcast", 4)))
    assert text.splitlines() == [
        "Schedule of allgather nonblocking_gather_bcast on 4 ranks: 2 rounds, 6 messages, "
        "15 blocks sent in all.",
        "At the start each rank holds its own block.",
        "Round 1: rank 1 sends 1 to rank 0; rank 2 sends 2 to rank 0; rank 3 sends 3 to rank 0. "
        "Then 1 of 4 ranks hold every block.",
        "Round 2: rank 0 sends all to ranks 1–3. Then 4 of 4 ranks hold every block.",
    ]


def test_blocks_in_the_order_sent_are_written_as_runs():
    sent = [Transfer(0, 1, blocks).blocks for blocks in [(3, 2, 1), (6, 7, 0), (0, 1, 4, 5), (2,)]]
    assert [style.block_runs(blocks, 8) for blocks in sent] == ["3–1", "6–7, 0", "0–1, 4–5", "2"]


@pytest.mark.browser
@pytest.mark.skipif(not shutil.which("chromium"), reason="needs Debian's chromium")
def test_the_slider_steps_through_the_rounds_in_a_browser_without_network():
    from playwright.sync_api import sync_playwright

    html = style.fragment(plot.rounds(schedule("bruck", 5)), plotlyjs=True)
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        page = browser.new_page()
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.route("**/*", lambda route: route.abort())
        page.set_content(html)
        assert page.locator(".gtitle").text_content() == "bruck, P = 5: start"
        page.locator(".slider-label", has_text="2").click(force=True)
        page.wait_for_function(
            "document.querySelector('.gtitle').textContent.includes('round 2 of 3')"
        )
        assert page.locator("details").count() == 1
        browser.close()
    assert errors == []
