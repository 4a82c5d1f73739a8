"""A recording shown step by step: the states of the buffers are those of the rounds, and are
drawn."""

import shutil

import numpy as np
import pytest
from timeline_recordings import START, exchange, rank_of, receive, send, wait

from mpilab.algorithms import holdings
from mpilab.algorithms.allgather import schedule
from mpilab.cases.case import Case
from mpilab.cases.data import GUARD_BYTES
from mpilab.errors import InputError
from mpilab.kernels.build import KERNELS
from mpilab.plots import style
from mpilab.plots.recording import buffer_states, recorded
from mpilab.runners.mpirun import run_cases
from mpilab.trace.recording import NONBLOCKING, Recording
from mpilab.trace.snapshots import AT_FINISH, AT_START, UNKNOWN, UNTOUCHED, Snapshots, held

KINDS = tuple(style.SLOT_COLORS)


def snapshots(case, rank, taken):
    """Snapshots of `rank`; `taken` lists (record, [whose block each slot holds])."""
    right = case.expected()[rank][GUARD_BYTES:-GUARD_BYTES].reshape(case.ranks, -1)
    before = case.regions(rank)[1][GUARD_BYTES:-GUARD_BYTES].reshape(case.ranks, -1)

    def memory(owners):
        fill = {UNTOUCHED: lambda slot: before[slot], UNKNOWN: lambda slot: right[slot] ^ 0xFF}
        return np.concatenate(
            [
                fill.get(owner, lambda _, owner=owner: right[owner])(slot)
                for slot, owner in enumerate(owners)
            ]
        )

    records = np.array([record for record, _ in taken], np.int64)
    return Snapshots(records, np.stack([memory(owners) for _, owners in taken]))


def rotation():
    """Three ranks: each gets the block of its left neighbor, then that of the next one, in one
    send-receive each, into slots from the first one on; then it reorders them."""
    case = Case("allgather", 3, 2)
    ranks, shots = [], []
    for rank in range(3):
        left, right, last = (rank + 2) % 3, (rank + 1) % 3, (rank + 1) % 3
        records = [
            *exchange(right, left, 0, 100),
            *exchange(right, left, 200, 300),
            *exchange(rank, rank, 400, 450),
        ]
        ranks.append(rank_of(rank, 3, records))
        none = UNTOUCHED
        taken = [
            (AT_START, [none, none, none]),
            (1, [rank, left, none]),
            (3, [rank, left, last]),
            (AT_FINISH, [0, 1, 2]),
        ]
        shots.append(snapshots(case, rank, taken))
    return Recording(ranks), case, shots


def test_the_buffers_are_told_after_each_round_and_at_the_end():
    states = buffer_states(*rotation())
    assert states.shape == (4, 3, 3)
    assert states[:, 1].tolist() == [[-1, -1, -1], [1, 0, -1], [1, 0, 2], [0, 1, 2]]


def test_without_changes_after_the_last_message_there_is_no_step_for_the_end():
    recording, case, shots = rotation()
    cut = [Snapshots(s.records[:3], s.memory[:3]) for s in shots]
    assert buffer_states(recording, case, cut).shape == (3, 3, 3)


def two(first, second, taken, **more):
    """Two ranks with these records; rank 1 has the snapshots `taken`, rank 0 nothing new."""
    case = Case("allgather", 2, 2, **more)
    recording = Recording([rank_of(0, 2, first), rank_of(1, 2, second)])
    nothing = snapshots(case, 0, [(AT_START, [UNTOUCHED, UNTOUCHED])])
    return buffer_states(recording, case, [nothing, snapshots(case, 1, taken)])[:, 1].tolist()


def test_what_a_rank_puts_in_order_before_its_next_send_belongs_to_the_round_before():
    """The message is in the buffer at its receive (record 0), the rank's own block before its send
    (1)."""
    states = two(
        [send(1, 0, 50), receive(1, 60, 400)],
        [receive(0, 0, 100), send(0, 200, 300)],
        [(AT_START, [-1, -1]), (0, [0, -1]), (1, [0, 1]), (AT_FINISH, [0, 1])],
    )
    assert states == [[-1, -1], [0, 1], [0, 1]]


def test_a_block_that_comes_early_by_a_receive_under_way_waits_for_its_round():
    """Rank 1 has posted a receive; the block is there before its own send is over."""
    posted = receive(0, 0, 10, name="MPI_Irecv", done=350, waiter=2)
    posted["flags"] |= NONBLOCKING
    states = two(
        [send(1, 0, 50), receive(1, 60, 400)],
        [posted, send(0, 100, 150), wait(300, 360)],
        [(AT_START, [-1, -1]), (0, [-1, 1]), (1, [0, 1]), (AT_FINISH, [0, 1])],
    )
    assert states == [[-1, 1], [0, 1]]


def test_a_message_that_a_wait_completes_is_there_when_the_wait_has_returned():
    posted = receive(0, 0, 10, name="MPI_Irecv", done=350, waiter=1)
    posted["flags"] |= NONBLOCKING
    states = two(
        [send(1, 0, 50)],
        [posted, wait(300, 360)],
        [(AT_START, [-1, -1]), (1, [0, -1])],
    )
    assert states == [[-1, -1], [0, -1]]


def test_repetitions_of_a_poll_are_not_taken_for_its_answer():
    """Two snapshots after one record: the poll that saw half of it, and the one that saw it all."""
    states = two(
        [send(1, 0, 50)],
        [receive(0, 0, 400)],
        [(AT_START, [-1, -1]), (0, [UNKNOWN, -1]), (0, [0, -1])],
    )
    assert states == [[UNKNOWN, -1], [0, -1]]


def test_something_that_is_nobodys_block_is_told_as_such():
    states = two([send(1, 0, 50)], [receive(0, 0, 100)], [(AT_START, [-1, -1]), (0, [-2, -1])])
    assert states[1] == [UNKNOWN, UNTOUCHED]


@pytest.mark.parametrize("name", ["ring", "pairwise", "neighbor_exchange", "nonblocking_all"])
def test_the_recorded_buffers_of_the_kits_kernels_are_those_of_their_schedules(name):
    case = Case("allgather", 6, 3, snapshots=True)
    (result,) = run_cases(KERNELS, f"allgather_{name}", [case])
    states = buffer_states(result.recording, case, result.snapshots)
    expected = np.where(holdings(schedule(name, 6)), np.arange(6), UNTOUCHED)
    assert states.tolist() == expected.tolist()


def test_bruck_puts_the_blocks_in_order_after_its_last_message():
    case = Case("allgather", 5, 3, snapshots=True)
    (result,) = run_cases(KERNELS, "allgather_bruck", [case])
    states = buffer_states(result.recording, case, result.snapshots)
    assert len(states) == 3 + 2
    assert (states[-1] == np.arange(5)).all() and not (states[-2] == states[-1]).all()


def stepped(function, ranks=5, **more):
    """(states round by round, text of the figure) of one run of a kernel of the kit."""
    case = Case(function.partition("_")[0], ranks, snapshots=True, **more)
    (result,) = run_cases(KERNELS, function, [case])
    states = buffer_states(result.recording, case, result.snapshots)
    return states, style.alt(recorded(result.recording, states, case=case))


def test_a_segment_of_a_bcast_is_shown_in_the_round_of_its_message():
    """Rank 2 has posted the receives of both segments: both may be there when it looks."""
    states, text = stepped("bcast_pipeline", count=4, segment=8, root=1)
    none, half, whole = [UNTOUCHED] * 4, [0, 1, UNTOUCHED, UNTOUCHED], [0, 1, 2, 3]
    assert states[:, 1].tolist() == [whole] * 6
    for place, rank in enumerate([2, 3, 4, 0]):
        early, late = [none] * (place + 1), [whole] * (4 - place)
        assert states[:, rank].tolist() == [*early, half, *late]
    assert "Round 2: 1 sends 8 B to 2; 2 sends 8 B to 3. Then" in text
    assert "rank 3 holds 0–1; rank 4 holds nothing" in text


def test_a_long_bcast_is_shown_in_as_many_parts_as_there_are_segments_or_ranks():
    assert stepped("bcast_pipeline", count=100, segment=80)[0].shape == (1 + 8, 5, 5)
    states, _ = stepped("bcast_scatter_allgather", ranks=4, count=50)
    assert states.shape[2] == 4
    assert (states >= UNTOUCHED).all()  # each part comes whole
    assert (states[-1] == np.arange(4)).all()


def test_of_a_gather_only_the_root_has_slots():
    case = Case("gather", 4, 2, root=1, snapshots=True)
    (result,) = run_cases(KERNELS, "gather_binomial", [case])
    states = buffer_states(result.recording, case, result.snapshots)
    assert states[:, 1].tolist() == [[-1, 1, -1, -1], [-1, 1, 2, -1], [0, 1, 2, 3]]
    assert (states[:, [0, 2, 3]] == UNTOUCHED).all()
    figure = recorded(result.recording, states, case=case)
    cells = figure.frames[2].data[2].z
    assert np.isnan(cells[[0, 2, 3]]).all() and not np.isnan(cells[1]).any()
    assert style.alt(figure).endswith("Round 2: 3 sends 16 B to 1. Then rank 1 holds all.")


def test_of_a_scatter_each_rank_has_one_slot_and_block():
    states, text = stepped("scatter_linear", ranks=3, count=2, root=1)
    assert states[-1].tolist() == [[0], [1], [2]]
    assert text.endswith("rank 0 holds 0; rank 1 holds 1; rank 2 holds 2.")
    in_place, text = stepped("scatter_linear", ranks=3, count=2, root=1, in_place=True)
    assert in_place[-1].tolist() == [[0], [UNTOUCHED], [2]]
    assert "rank 1 holds nothing" in text


@pytest.mark.parametrize(
    ("function", "count", "words"),
    [
        ("reduce_linear", 2, "partial results of a reduction cannot be told apart"),
        ("allreduce_ring", 2, "partial results of a reduction cannot be told apart"),
        ("barrier_tree", 0, "moves no data"),
    ],
)
def test_what_cannot_be_told_apart_is_refused_with_the_views_that_there_are(function, count, words):
    with pytest.raises(InputError, match=f"{words}.*'timeline' or 'matrix'"):
        stepped(function, ranks=2, count=count)


def test_a_block_for_another_rank_is_in_another_place():
    case = Case("scatter", 3, 2)
    memory = case.expected()[2][GUARD_BYTES:-GUARD_BYTES]
    assert held(case, memory, 1).tolist() == [2]
    assert held(case, memory ^ 1, 1).tolist() == [UNKNOWN]
    recording = Recording([rank_of(rank, 3, []) for rank in range(3)])
    figure = recorded(recording, np.array([[[0], [2], [2]]]), case=case)
    kinds = [KINDS[int(kind)] for kind in figure.data[2].z[:, 0]]
    assert kinds == ["in its place", "in another place", "in its place"]


# --- The figure


def played(name, ranks):
    """A made-up recording of a schedule, and the states that it leads to."""
    plan = schedule(name, ranks)
    records = [[] for _ in range(ranks)]
    for number, transfers in enumerate(plan.rounds):
        for transfer in transfers:
            nbytes = 8 * len(transfer.blocks)
            begin = 1000 * number
            records[transfer.source].append(send(transfer.dest, begin, begin + 100, nbytes=nbytes))
        for transfer in transfers:
            nbytes = 8 * len(transfer.blocks)
            records[transfer.dest].append(
                receive(transfer.source, begin + 100, begin + 900, nbytes=nbytes)
            )
    recording = Recording([rank_of(rank, ranks, made) for rank, made in enumerate(records)])
    return recording, np.where(holdings(plan), np.arange(ranks), UNTOUCHED)


@pytest.mark.parametrize("name", ["ring", "bruck", "nonblocking_all"])
@pytest.mark.parametrize("ranks", [2, 5, 16])
def test_each_step_draws_the_messages_of_its_round(name, ranks):
    recording, states = played(name, ranks)
    figure = recorded(recording, states)
    names = [str(number) for number in range(len(states))]
    assert [frame.name for frame in figure.frames] == names
    for frame, transfers in zip(figure.frames[1:], schedule(name, ranks).rounds, strict=True):
        ends = list(frame.data[0].y)
        assert sorted(zip(ends[0::3], ends[1::3], strict=True)) == sorted(
            (transfer.source, transfer.dest) for transfer in transfers
        )


def test_cells_say_whose_block_they_hold_and_what_is_new():
    figure = recorded(*played("ring", 3))
    first = figure.frames[1].data[2]
    assert [list(row) for row in first.text] == [["0", "", "2•"], ["0•", "1", ""], ["", "1•", "2"]]
    new, kept = KINDS.index("new in this round"), KINDS.index("in its place")
    assert first.z.tolist() == [[kept, 0, new], [new, kept, 0], [0, new, kept]]
    assert first.customdata[0][1] == "untouched"


def test_blocks_in_another_place_and_something_else_are_told_apart():
    recording, case, shots = rotation()
    states = buffer_states(recording, case, shots)
    states[2, 0, 0] = UNKNOWN
    figure = recorded(recording, states, title="Rotation")
    second = figure.frames[2].data[2].z
    assert second[0][0] == KINDS.index("something else")
    assert second[1].tolist() == [
        KINDS.index(name) for name in ("in another place", "in another place", "new in this round")
    ]
    assert [step.label for step in figure.layout.sliders[0].steps] == ["start", "1", "2", "end"]
    assert figure.frames[3].layout.title.text == "Rotation: end, after each rank's local work"
    shown = {trace.name for trace in figure.data if trace.showlegend is not False}
    assert set(KINDS) <= shown
    assert "rank 0 holds 2 in slot 1, 1 in slot 2, something else in slot 0" in style.alt(figure)


def test_the_text_alternative_tells_who_sends_to_whom_and_who_holds_what():
    text = style.alt(recorded(*played("bruck", 3), title="allgather_bruck"))
    assert text.splitlines() == [
        "allgather_bruck: 3 ranks, 2 rounds, 6 messages, and the receive buffers after each round.",
        "At the start rank 0 holds 0; rank 1 holds 1; rank 2 holds 2.",
        "Round 1: 0 sends 8 B to 2; 1 sends 8 B to 0; 2 sends 8 B to 1. "
        "Then rank 0 holds 0–1; rank 1 holds 1–2; rank 2 holds 0, 2.",
        "Round 2: 0 sends 8 B to 1; 1 sends 8 B to 2; 2 sends 8 B to 0. "
        "Then rank 0 holds all; rank 1 holds all; rank 2 holds all.",
    ]


def test_senders_tell_how_much_they_send():
    recording, states = played("nonblocking_gather_bcast", 4)
    first, second = (frame.data[1] for frame in recorded(recording, states).frames[1:])
    assert dict(zip(first.y, first.text, strict=True)) == {1: "8 B", 2: "8 B", 3: "8 B"}
    assert dict(zip(second.y, second.text, strict=True)) == {0: "3 × 32 B"}


def test_arrows_have_the_color_of_the_algorithm_where_it_is_known():
    recording, states = played("ring", 3)
    assert recorded(recording, states, algorithm="ring").data[0].line.color == style.color("ring")
    assert recorded(recording, states).data[0].line.color == style.MESSAGE_COLOR


def test_64_ranks_are_drawn_without_text_and_stay_loadable():
    figure = recorded(*played("ring", 64))
    assert len(figure.frames) == 64
    assert figure.data[2].texttemplate is None
    assert len(figure.to_json()) < 3_000_000
    assert ("Then 128 of 4096 slots hold a block, 0 ranks hold all of them in place.") in style.alt(
        figure
    )


def test_more_ranks_than_that_are_refused():
    recording, states = played("bruck", 65)
    with pytest.raises(InputError, match="65 ranks, 7 rounds: too many"):
        recorded(recording, states)


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3), (3, 2, 3), (5, 3, 3), (3, 3, 0)])
def test_states_of_another_run_are_refused(shape):
    recording, _ = played("ring", 3)
    with pytest.raises(InputError, match="states: shape"):
        recorded(recording, np.zeros(shape, int))


def test_a_run_without_messages_has_its_start_and_nothing_else():
    recording = Recording([rank_of(0, 1, [], closed_ns=START)])
    figure = recorded(recording, np.array([[[0]]]))
    assert [frame.name for frame in figure.frames] == ["0"]
    assert "0 rounds, 0 messages" in style.alt(figure)


@pytest.mark.browser
@pytest.mark.skipif(not shutil.which("chromium"), reason="needs Debian's chromium")
def test_its_slider_steps_through_the_rounds_in_a_browser_without_network():
    from playwright.sync_api import sync_playwright

    html = style.fragment(recorded(*played("bruck", 5), title="Bruck"), plotlyjs=True)
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
        assert page.locator(".gtitle").text_content() == "Bruck: start"
        page.locator(".slider-label", has_text="2").click(force=True)
        page.wait_for_function(
            "document.querySelector('.gtitle').textContent.includes('round 2 of 3')"
        )
        browser.close()
    assert errors == []
