"""Recordings become traces that other tools open."""

import json
import subprocess
import sys
from collections import Counter

import pytest

from mpilab.cases.case import Case
from mpilab.cli import main
from mpilab.errors import InputError
from mpilab.kernels.build import KERNELS, need
from mpilab.runners.mpirun import run_cases
from mpilab.trace import export

RANKS, MESSAGES = 3, 6


@pytest.fixture(scope="module")
def recordings():
    """{kernel: Recording} of an allgather by non-blocking calls, and of one by send-receives."""
    library, case = need(KERNELS), Case("allgather", RANKS, 4)
    return {
        kernel: run_cases(library, kernel, [case])[0].recording
        for kernel in ("allgather_nonblocking_all", "allgather_ring")
    }


@pytest.mark.parametrize("kernel", ["allgather_nonblocking_all", "allgather_ring"])
def test_each_message_goes_from_one_call_to_another_and_calls_do_not_overlap(recordings, kernel):
    ranks = export.intervals(recordings[kernel])
    sent = {
        each[0]: (rank, *each[1:4]) for rank, calls in enumerate(ranks) for each in _sent(calls)
    }
    got = {
        each[0]: (each[1], rank, *each[2:4])
        for rank, calls in enumerate(ranks)
        for each in _got(calls)
    }
    assert sent == got and len(sent) == MESSAGES
    for calls in ranks:
        times = [time for call in calls for time in (call.begin, call.end)]
        assert times == sorted(times) and times[0] >= 0
        for call in calls:
            moments = [each[-1] for each in (*call.sent, *call.received)]
            assert all(call.begin <= moment <= call.end for moment in moments)


def _sent(calls):
    return [each for call in calls for each in call.sent]


def _got(calls):
    return [each for call in calls for each in call.received]


def test_mpilab_run_writes_chromes_trace_events(tmp_path, capsys):
    path = tmp_path / "ring.json"
    assert main(["run", "allgather_ring", "-n", str(RANKS), "--trace", str(path)]) == 0
    assert f"trace: {path}" in capsys.readouterr().out
    events = json.loads(path.read_text())["traceEvents"]
    assert Counter(event["ph"] for event in events) == {
        "M": 2 * RANKS,
        "X": sum(event["ph"] == "X" for event in events),
        "s": MESSAGES,
        "f": MESSAGES,
    }
    slices = [event for event in events if event["ph"] == "X"]
    assert {"MPI_Sendrecv"} <= {event["name"] for event in slices}
    assert all(event["ts"] >= 0 and event["dur"] >= 0 for event in slices)
    # A flow needs a slice of its process and thread around both of its ends, and one id for both.
    ends = {}
    for event in events:
        if event["ph"] in "sf":
            assert any(
                (one["pid"], one["tid"]) == (event["pid"], event["tid"])
                and one["ts"] <= event["ts"] <= one["ts"] + one["dur"] + 1e-3
                for one in slices
            )
            assert event["ph"] == "s" or event["bp"] == "e"
            ends.setdefault((event["cat"], event["name"], event["id"]), []).append(event["ph"])
    assert sorted(map(sorted, ends.values())) == [["f", "s"]] * MESSAGES


@pytest.fixture(scope="module")
def otf2(tmp_path_factory):
    """The Python package otf2: the one that is installed, or one for these tests."""
    folder = tmp_path_factory.mktemp("packages")
    command = [sys.executable, "-m", "pip", "install", "-q", "--target", str(folder), "otf2>=3.2"]
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        try:
            import otf2
        except ImportError:
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            except subprocess.TimeoutExpired:
                pytest.skip("NOT TESTED: otf2 could not be installed within a minute")
            if done.returncode != 0:
                pytest.skip("NOT TESTED: there is no package otf2 for this Python, or no network")
            import otf2
        yield otf2


@pytest.mark.parametrize("kernel", ["allgather_nonblocking_all", "allgather_ring"])
def test_an_archive_is_read_by_score_ps_own_reader(otf2, recordings, kernel, tmp_path):
    anchor = export.write(recordings[kernel], tmp_path / "run.otf2")
    ranks = export.intervals(recordings[kernel])
    with otf2.reader.open(str(anchor)) as trace:
        assert trace.timer_resolution == 1_000_000_000
        assert [group.name for group in trace.definitions.location_groups] == [
            f"rank {rank}" for rank in range(RANKS)
        ]
        entered, messages = {rank: [] for rank in range(RANKS)}, []
        for location, event in trace.events:
            rank = int(location.group.name.split()[1])
            if isinstance(event, otf2.events.Enter):
                entered[rank].append((event.region.name, event.time))
            elif isinstance(event, otf2.events.MpiSend):
                messages.append((rank, event.receiver, event.msg_length, "sent"))
            elif isinstance(event, otf2.events.MpiRecv):
                messages.append((event.sender, rank, event.msg_length, "received"))
    assert entered == {
        rank: [(call.name, call.begin) for call in calls] for rank, calls in enumerate(ranks)
    }
    pairs = Counter(message[:3] for message in messages)
    assert len(messages) == 2 * MESSAGES and all(count % 2 == 0 for count in pairs.values())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("run.svg", "run.svg: not a kind of trace; write a name that ends in .json or .otf2"),
        ("gone/run.json", "no folder .*gone; create it"),
        ("there.otf2", "there.otf2: exists already; remove it"),
    ],
)
def test_a_place_where_no_trace_can_be_written_is_refused_before_the_run(name, words, tmp_path):
    (tmp_path / "there.otf2").mkdir()
    with pytest.raises(InputError, match=words):
        export.check(tmp_path / name)


def test_without_the_package_an_archive_is_refused_with_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "otf2", None)
    with pytest.raises(InputError, match="the Python package otf2 is missing.*pip install otf2"):
        export.check(tmp_path / "run.otf2")
