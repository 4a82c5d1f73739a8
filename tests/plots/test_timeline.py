"""The timeline shows every call, every message and what never ended; for very many calls, it shows
shares."""

import shutil

import numpy as np
import pytest
from test_style import DARK, LIGHT, contrast
from timeline_recordings import (
    START,
    barrier,
    call,
    exchange,
    many,
    rank_of,
    receive,
    send,
    wait,
)

from mpilab.errors import InputError
from mpilab.plots import style
from mpilab.plots import timeline as calls
from mpilab.plots.timeline import MOST_BESIDE, MOST_CALLS, busy, timeline, timelines
from mpilab.trace.recording import (
    ANY,
    CANCELLED,
    ERR_TRUNCATE,
    NONBLOCKING,
    NONE,
    POLLS,
    RECEIVES,
    SENDS,
    Recording,
    messages_of,
)


def named(figure, name):
    return next((trace for trace in figure.data if trace.name == name), None)


def one_message():
    """Rank 0 sends to rank 1, which waits for it in a receive."""
    return [
        rank_of(0, 2, [send(1, 0, 1000, tag=5)]),
        rank_of(1, 2, [receive(0, 500, 3000, tag=5)]),
    ]


def deadlock():
    """Both ranks send, then wait for a message that never arrives; rank 2 never started."""
    return [
        rank_of(0, 3, [send(1, 0, 1000), receive(1, 2000, tag=9)], closed_ns=0),
        rank_of(1, 3, [receive(0, 100, 1500), receive(0, 2500, tag=8)], closed_ns=0),
        None,
    ]


# --- In detail


def test_a_bar_lies_where_its_call_was_in_time_and_rank():
    figure = timeline(one_message())
    (sent, received) = named(figure, "send"), named(figure, "receive")
    assert (list(sent.base), list(sent.x), list(sent.y)) == ([0.0], [1.0], [0])
    assert (list(received.base), list(received.x), list(received.y)) == ([0.5], [2.5], [1])
    assert figure.layout.xaxis.title.text == "time since the first call (µs)"
    assert figure.layout.yaxis.range == (1.5, -0.5)


def test_the_pointer_tells_call_partner_tag_bytes_begin_and_duration():
    (text,) = named(timeline(one_message()), "receive").hovertext
    assert text == "rank 1: MPI_Recv from rank 0, tag 5, 8 B<br>at 0.500 µs, took 2.5 µs"


def test_the_pointer_tells_the_line_where_the_library_is_known(monkeypatch):
    monkeypatch.setattr(
        calls, "lines_of", lambda library, sites: [("f", "cell", site) for site in sites]
    )
    ranks = [rank_of(0, 1, [barrier(0, 10)], object=b"kernel.so")]
    ranks[0].records["site"] = 12
    (text,) = named(timeline(ranks), "collective").hovertext
    assert "MPI_Barrier, line 12" in text


def test_an_arrow_goes_from_the_send_to_when_the_receive_was_known_complete():
    arrow = named(timeline(one_message()), "message")
    assert list(arrow.x)[:2] == [0.0, 3.0]
    assert [round(place) for place in list(arrow.y)[:2]] == [0, 1]
    assert arrow.hovertext[1] == (
        "rank 0 → rank 1, tag 5, 8 B<br>sent at 0.000 µs, arrived after 3 µs"
    )


def test_a_send_receive_is_one_bar_and_two_messages():
    ranks = [rank_of(r, 2, exchange(1 - r, 1 - r, 100 * r, 900)) for r in (0, 1)]
    figure = timeline(ranks)
    assert len(named(figure, "send-receive").x) == 2
    assert (
        "to rank 1, tag 1, 8 B, from rank 1, tag 1, 8 B"
        in (named(figure, "send-receive").hovertext[0])
    )
    assert np.isfinite(named(figure, "message").x).sum() == 4


@pytest.mark.parametrize(
    "record, kind",
    [
        (call("MPI_Send", 1), "send"),
        (call("MPI_Isend", 1), "send"),
        (call("MPI_Recv", 2), "receive"),
        (call("MPI_Mrecv", 2), "receive"),
        (call("MPI_Sendrecv_replace", 1), "send-receive"),
        (call("MPI_Testsome", POLLS), "wait/test/probe"),
        (call("MPI_Probe"), "wait/test/probe"),
        (call("MPI_Ialltoallw", 8), "collective"),
        (call("MPI_Comm_split", 8), "communicator/datatype"),
        (call("MPI_Type_commit"), "communicator/datatype"),
        (call("MPI_Request_free"), "communicator/datatype"),
        (call("MPI_File_set_view", 8), "file"),
        (call("MPI_Start", 2 | NONBLOCKING), "receive"),
        (call("MPI_Startall", 1 | NONBLOCKING), "send"),
    ],
)
def test_every_call_has_a_class(record, kind):
    record["end_ns"] = record["begin_ns"] + 10
    (found,) = calls.calls_of([rank_of(0, 1, [record])])
    assert calls.KINDS[found["kind"]] == kind
    record["end_ns"] = 0
    (found,) = calls.calls_of([rank_of(0, 1, [record], closed_ns=0)])
    assert calls.KINDS[found["kind"]] == style.NEVER_RETURNED


def test_a_call_that_this_version_does_not_know_is_drawn_all_the_same():
    record = barrier(0, 10)
    record["operation"] = 5000
    figure = timeline([rank_of(0, 1, [record])])
    assert "an unknown call" in named(figure, "communicator/datatype").hovertext[0]


def test_wildcards_tell_what_came():
    record = receive(ANY, 0, 10, got_peer=0, got_tag=4, tag=ANY)
    (text,) = named(timeline([None, rank_of(1, 2, [record])]), "receive").hovertext
    assert "from any rank (it was rank 0), any tag (it was 4), 8 B" in text


# --- What went wrong


def test_a_call_that_never_returned_reaches_the_right_edge_and_says_so():
    figure = timeline(deadlock())
    bars = named(figure, style.NEVER_RETURNED)
    right = figure.layout.xaxis.range[1]
    ends = np.array(bars.base) + np.array(bars.x)
    assert np.ptp(ends) == 0 and 2.5 < ends[0] < right
    assert list(bars.text) == ["✗ Recv from 1", "✗ Recv from 0"]
    assert bars.marker.pattern.shape == "x"


def test_a_rank_that_left_no_recording_keeps_its_row():
    figure = timeline(deadlock())
    assert figure.layout.yaxis.ticktext == ("0", "1", "2 (never started)")
    assert "Rank 2 never started." in style.alt(figure)


def test_the_text_alternative_tells_who_is_stuck_where():
    text = style.alt(timeline(deadlock(), title="Stuck"))
    assert text.startswith("Stuck: 3 ranks, 2.5 µs, 4 calls, 1 message.\n")
    assert (
        "Since 2.000 µs in MPI_Recv from rank 1, tag 9, room for 8 B, which never returned." in text
    )


def test_a_message_without_a_receive_is_dashed_and_named():
    ranks = [rank_of(0, 2, [send(1, 0, 100, tag=3)]), rank_of(1, 2, [barrier(0, 50)])]
    figure = timeline(ranks)
    lost = named(figure, "message without a receive")
    assert lost.line.dash == "dash" and lost.marker.symbol == "x"
    assert named(figure, "message") is None
    assert "Messages without a recorded receive: rank 0 → rank 1, tag 3, 8 B." in style.alt(figure)


def test_a_rank_that_was_ended_by_a_signal_is_marked():
    ranks = [rank_of(0, 1, [barrier(0, 50)], closed_ns=0, signal=11)]
    figure = timeline(ranks)
    assert [note.text for note in figure.layout.annotations] == ["✗ SIGSEGV"]
    assert "did not finish. Ended by SIGSEGV." in style.alt(figure)


def test_calls_that_did_not_fit_are_told():
    ranks = [rank_of(0, 1, [barrier(0, 50)], dropped=1234)]
    assert "1,234 more calls did not fit into the recording." in style.alt(timeline(ranks))


@pytest.mark.parametrize("ranks", [[], [None], [rank_of(0, 1, [])]])
def test_a_recording_without_calls_is_drawn_too(ranks):
    assert "No MPI call was recorded." in style.alt(timeline(ranks))


# --- Messages


def test_messages_are_matched_as_the_recording_matches_them():
    random = np.random.default_rng(3)
    records = [[] for _ in range(4)]
    for step in range(300):
        source, dest = random.choice(4, 2, replace=False)
        tag = int(random.integers(3))
        records[source].append(send(dest, 10 * step, 10 * step + 5, tag, communicator=step % 2))
        if step % 7:
            records[dest].append(
                receive(source, 10 * step, 10 * step + 8, tag, communicator=step % 2)
            )
    cancelled = receive(1, 6000, 6001, tag=1, communicator=0)
    cancelled["flags"] |= CANCELLED
    records[0].append(cancelled)
    ranks = [rank_of(number, 4, made) for number, made in enumerate(records)]
    waiting = {}
    for dest, rank in enumerate(ranks):
        for index, got in enumerate(rank.records):
            if got["flags"] & (RECEIVES | CANCELLED) == RECEIVES:
                key = (got["communicator"], got["got_peer"], dest, got["got_tag"])
                waiting.setdefault(key, []).append(index)
    expected = []
    for source, rank in enumerate(ranks):
        for index, sent in enumerate(rank.records):
            if sent["flags"] & SENDS:
                receivers = waiting.get((sent["communicator"], source, sent["peer"], sent["tag"]))
                received = receivers.pop(0) if receivers else NONE
                expected.append((source, sent["peer"], sent["tag"], index, received))
    found = messages_of(ranks)
    names = ["source", "dest", "tag", "send_record", "receive_record"]
    assert found[names].tolist() == expected
    assert (found["receive_record"] == NONE).sum() > 20
    was_received = found["receive_record"] != NONE
    assert ((found["received_ns"] != NONE) == was_received).all()


def test_a_truncated_message_is_drawn_as_received_and_a_refused_send_is_not_drawn():
    sender = [send(1, 0, 5, tag=1), send(1, 10, 15, tag=2, error=6), send(1, 20, 25, tag=1)]
    receiver = [receive(0, 1, 9, tag=1, error=ERR_TRUNCATE), receive(0, 21, 29, tag=1)]
    ranks = [rank_of(0, 2, sender), rank_of(1, 2, receiver)]
    messages = messages_of(ranks)
    assert list(messages["send_record"]) == [0, 2]
    assert list(messages["received_ns"]) == [START + 9, START + 29]
    assert (messages["receive_record"] == Recording(ranks).messages["receive_record"]).all()
    figure = timeline(ranks)
    assert named(figure, "message without a receive") is None


def test_messages_are_found_where_a_rank_is_missing():
    ranks = [rank_of(0, 3, [send(2, 0, 5)]), None, rank_of(2, 3, [receive(0, 1, 9)])]
    (message,) = messages_of(ranks)
    assert (message["source"], message["dest"], message["received_ns"]) == (0, 2, START + 9)


# --- A part of it


def test_a_window_shows_what_overlaps_it():
    ranks = [rank_of(0, 1, [barrier(1000 * i, 1000 * i + 400) for i in range(10)])]
    figure = timeline(ranks, window=(2.3e-6, 4.2e-6))
    assert list(named(figure, "collective").base) == [2.0, 3.0, 4.0]
    assert figure.layout.xaxis.range[0] == pytest.approx(2.3, abs=0.05)
    # 0.1 + 0.4 + 0.2 of 1.9 µs.
    assert "collective 37%, outside MPI 63%" in style.alt(figure)


@pytest.mark.parametrize("window", [(2, 1), (1, 1), ("a", 2), (1, 2, 3), 5])
def test_a_window_that_is_none_is_refused(window):
    with pytest.raises(InputError, match="window"):
        timeline(one_message(), window=window)


# --- Very many calls


def test_the_time_of_calls_is_shared_out_among_the_steps():
    found = calls.calls_of(
        [rank_of(0, 1, [barrier(0, 150), wait(150, 200), barrier(350, 400, sequence=1)])]
    )
    edges = START + np.array([0, 100, 200, 300, 400])
    spent = busy(found, found["end_ns"], 1, edges)
    kinds = calls.KINDS
    assert list(spent[0, kinds.index("collective")]) == [100, 50, 0, 50]
    assert list(spent[0, kinds.index("wait/test/probe")]) == [0, 50, 0, 0]
    assert spent.sum() == 250


def test_polls_at_two_places_that_interleave_do_not_count_twice():
    polls = [call("MPI_Test", POLLS, begin, end, count=5) for begin, end in ((0, 90), (5, 100))]
    found = calls.calls_of([rank_of(0, 1, polls)])
    assert busy(found, found["end_ns"], 1, [START, START + 200]).sum() == 100


def test_64_ranks_with_20000_records_each_stay_a_small_figure():
    figure = timeline(many(64, 20000))
    assert len(figure.to_json()) < 2_000_000
    assert sum(np.size(trace.z) for trace in figure.data if trace.type == "heatmap") < 200_000
    assert not [trace for trace in figure.data if trace.name == "message"]
    text = style.alt(figure)
    assert "1,279,872 calls and 426,624 messages are too many to draw individually" in text
    assert len(text.splitlines()) == 66
    # Check more than the drawing: the messages above the rows add up to all of them.
    assert named(figure, "messages sent").y.sum() == 426_624


def test_a_window_of_very_many_calls_shows_single_ones():
    ranks = many(8, 3000)
    assert len(calls.calls_of(ranks)) > MOST_CALLS
    figure = timeline(ranks, window=(1e-3, 1.05e-3))
    assert 10 < len(named(figure, "send").x) < 200
    assert named(figure, "message") is not None
    assert len(figure.to_json()) < 200_000


def test_the_largest_figure_of_single_calls_is_small_enough_too():
    figure = timeline(many(64, MOST_CALLS // 64))
    assert named(figure, "send") is not None
    assert len(figure.to_json()) < 2_000_000


def test_summed_up_rows_are_filled_in_proportion():
    """One rank in a collective for the first quarter of each step, then on its own."""
    records = [barrier(1000 * i, 1000 * i + 250, sequence=i) for i in range(6000)]
    figure = timeline([rank_of(0, 1, records, closed_ns=START + 6_000_000)])
    rows = next(trace for trace in figure.data if trace.type == "heatmap").z
    collective = calls.KINDS.index("collective") + 1
    assert set(np.unique(rows)) == {0, collective}
    levels = len(rows) - 1
    assert (rows == collective).mean(axis=1).tolist() == pytest.approx(
        [0.0] * (1 + levels - levels // 4) + [1.0] * (levels // 4), abs=0.02
    )


# --- Style


@pytest.mark.parametrize(
    "color", [*style.CALL_COLORS.values(), style.MESSAGE_COLOR, style.LOST_MESSAGE_COLOR]
)
def test_every_class_keeps_a_contrast_of_three_on_light_and_dark(color):
    assert contrast(color, LIGHT) >= 3
    assert contrast(color, DARK) >= 3


def test_every_class_has_a_color_of_its_own():
    assert len(set(style.CALL_COLORS.values())) == len(style.CALL_COLORS)


# --- Beside each other


def test_timelines_beside_each_other_have_one_scale_and_one_legend():
    slow = [rank_of(0, 2, [send(1, 0, 8000)]), rank_of(1, 2, [receive(0, 500, 9000)])]
    figure = timelines({"slow": slow, "fast": one_message()}, title="Two")
    assert figure.layout.xaxis.range == figure.layout.xaxis2.range
    assert figure.layout.xaxis2.matches == "x"
    assert [note.text for note in figure.layout.annotations] == ["slow", "fast"]
    sent = [trace for trace in figure.data if trace.name == "send"]
    assert [(trace.xaxis, list(trace.x)) for trace in sent] == [("x", [8.0]), ("x2", [1.0])]
    assert [trace.showlegend for trace in sent] == [True, False]
    lines = style.alt(figure).splitlines()
    assert lines[0] == "Two, on the same time scale."
    told = [line for line in lines if "2 ranks" in line]
    assert told == [
        "slow: 2 ranks, 9.3 µs, 2 calls, 1 message.",
        "fast: 2 ranks, 3.3 µs, 2 calls, 1 message.",
    ]


def test_of_timelines_beside_each_other_one_may_have_more_ranks_and_one_too_many_calls():
    figure = timelines({"stuck": deadlock(), "crowded": many(2, MOST_CALLS)})
    assert figure.layout.yaxis.range == (2.5, -0.5) == figure.layout.yaxis2.range
    assert {trace.type for trace in figure.data if trace.xaxis == "x2"} == {"heatmap", "scatter"}
    assert "<sub>crowded: " in figure.layout.title.text
    assert "Rank 2 never started." in style.alt(figure)


def test_a_signal_is_marked_in_the_timeline_of_its_rank():
    ended = [rank_of(0, 1, [barrier(0, 50)], closed_ns=0, signal=11)]
    figure = timelines({"well": one_message(), "ended": ended})
    (note,) = (note for note in figure.layout.annotations if note.text == "✗ SIGSEGV")
    assert (note.xref, note.yref) == ("x2", "y2")


@pytest.mark.parametrize("count", [0, MOST_BESIDE + 1])
def test_no_timelines_and_too_many_are_refused(count):
    with pytest.raises(InputError, match=f"{count} recordings: 1 to {MOST_BESIDE} timelines"):
        timelines({str(number): one_message() for number in range(count)})


@pytest.mark.browser
@pytest.mark.skipif(not shutil.which("chromium"), reason="needs Debian's chromium")
@pytest.mark.parametrize("ranks", [deadlock(), many(16, 3000)], ids=["single", "summed up"])
def test_it_is_drawn_and_zoomed_in_a_browser_without_network(ranks):
    from playwright.sync_api import sync_playwright

    html = style.fragment(timeline(ranks, title="Drawn"), plotlyjs=True)
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
        assert page.locator(".gtitle").text_content().startswith("Drawn")
        zoomed = page.evaluate(
            """async () => {
                const figure = document.querySelector(".js-plotly-plot");
                await Plotly.relayout(figure, {"xaxis.range": [0, 1]});
                return figure._fullLayout.xaxis.range;
            }"""
        )
        assert zoomed == [0, 1]
        assert page.locator(".barlayer .point path, .heatmaplayer image").count() > 0
        browser.close()
    assert errors == []
