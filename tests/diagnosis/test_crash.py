"""A crash is reported with its signal, its line, the meaning of its address, and the last calls."""

import pytest
from made_up import call, over, recv, run_of, send, sites_are_lines, wait  # noqa: F401

from mpilab.cases.case import Case
from mpilab.diagnosis import diagnose

pytestmark = pytest.mark.usefixtures("sites_are_lines")
SEGV, ABRT, FPE = 11, 6, 8
WILD = 0x5631_A351_20B0


def crashed(signal, who=(1, "SIGSEGV"), records=(), **more):
    headers = {
        1: {
            "signal": signal,
            "crash_site": 14,
            "crash_address": more.pop("address", WILD),
            **more.pop("header", {}),
        }
    }
    return diagnose(
        run_of([], list(records), outcome="crash", crashed=who, headers=headers, **more)
    )


def test_the_headline_names_rank_signal_and_line():
    found = crashed(SEGV)
    assert found.headline == (
        "rank 1 crashed with SIGSEGV in line 14: it touched memory that is not its own"
    )
    assert (found.kind, found.pattern, found.ranks) == ("crash", "memory that is not yours", (1,))
    assert [(p.line, p.text, p.label) for p in found.places] == [
        (14, "text 14", "rank 1 ended here")
    ]
    assert f"The address was {WILD:#x}." in found.notes


@pytest.mark.parametrize(
    ("signal", "what", "address", "text", "pattern"),
    [
        (SEGV, "SIGSEGV", 0, "", "a null pointer"),
        (SEGV, "SIGSEGV", 0x48, "", "a null pointer"),
        (SEGV, "SIGSEGV", 2**64 - 1, "", "memory that is not yours"),
        (SEGV, "SIGSEGV", 0x7FFC_09ED_8FF8, "", "stack exhausted"),
        (SEGV, "SIGSEGV", 0x7F12_09ED_8FF8, "", "memory that is not yours"),
        (ABRT, "SIGABRT", 0, "free(): double free detected in tcache 2\n", "heap corrupted"),
        (ABRT, "SIGABRT", 0, "malloc(): corrupted top size\n", "heap corrupted"),
        (ABRT, "SIGABRT", 0, "k: cell:3: f: Assertion `a < b' failed.\n", "an assertion failed"),
        (ABRT, "SIGABRT", 0, "I give up\n", ""),
        (FPE, "SIGFPE", 0, "", "division by zero"),
    ],
)
def test_the_pattern_follows_from_signal_address_and_last_words(
    signal, what, address, text, pattern
):
    found = crashed(signal, (1, what), address=address, printed={1: text})
    assert found.pattern == pattern
    assert what in found.headline and found.hint


def test_what_another_rank_printed_is_no_clue():
    assert crashed(ABRT, (1, "SIGABRT"), printed={0: "free(): x", 1: "bye"}).pattern == ""


def test_an_abort_is_told_as_that_of_the_kernel_only_if_its_line_calls_it(monkeypatch):
    found = crashed(ABRT, (1, "SIGABRT"), records=[recv(0, line=14)])
    assert found.headline.endswith("in line 14: MPI itself gave up in this call")
    own = crashed(ABRT, (1, "SIGABRT"), records=[over(recv(0, line=8))])
    assert own.headline.endswith("something that this line calls ended the program with abort()")
    monkeypatch.setattr("mpilab.diagnosis.evidence.source_line", lambda *_: "if (bad) abort();")
    own = crashed(ABRT, (1, "SIGABRT"), records=[over(recv(0, line=8))])
    assert own.headline.endswith("in line 14: abort() was called")


def test_the_rank_is_taken_from_its_recording_where_nobody_said():
    assert crashed(SEGV, (None, "exit status 139")).ranks == (1,)


def test_leaving_with_exit_is_told_with_its_status():
    found = crashed(0, (1, "exit status 3"), header={"exited": 1, "exit_status": 3})
    assert found.pattern == "exit() was called"
    assert found.headline == "rank 1 called exit(3) in line 14"


def test_mpi_abort_is_told_with_its_line():
    found = crashed(0, (1, "MPI_Abort(3)"), [call("Abort", 19, count=3)], header={"crash_site": 0})
    assert found.pattern == "MPI_Abort was called"
    assert found.headline == "rank 1 ended all ranks with MPI_Abort in line 19"
    assert found.lines == (19,)


def test_mpi_in_place_as_an_address_is_known():
    found = crashed(SEGV, address=1, case=Case("allgather", 2, 4, in_place=True))
    assert "it used MPI_IN_PLACE as an address" in found.headline
    assert "sendbuf == MPI_IN_PLACE" in found.hint


def test_mpi_in_place_has_a_pattern_of_its_own():
    found = crashed(SEGV, address=1, case=Case("allgather", 2, 4, in_place=True))
    assert found.pattern == "MPI_IN_PLACE used as an address"
    assert "IN_PLACE" not in crashed(SEGV, address=1).hint


@pytest.mark.parametrize("address", [0x48, WILD, 2**64 - 1])
def test_a_wait_for_requests_that_nobody_started_is_told_by_their_number(address):
    started = [over(send(0, line=5, name="Isend"), waiter=2) for _ in range(2)]
    found = crashed(
        SEGV, records=[*started, wait(line=7, name="Waitall", count=4)], address=address
    )
    assert "MPI_Waitall got 4 requests, but only 2 of them were ever started" in found.headline
    assert found.pattern == "a request that was never started"


def test_a_wait_whose_requests_were_all_started_is_told_by_the_address():
    started = over(send(0, line=5, name="Isend"), waiter=1)
    found = crashed(SEGV, records=[started, wait(line=7)])
    assert found.pattern == "memory that is not yours"


def test_without_a_site_the_last_call_tells_where():
    found = crashed(SEGV, records=[over(send(0, line=5))], header={"crash_site": 0})
    assert "rank 1 crashed with SIGSEGV after MPI_Send (line 5)" in found.headline
    assert found.lines == (5,)


def test_the_last_ten_calls_are_listed():
    sends = [over(send(0, tag=number, line=number)) for number in range(1, 15)]
    (table,) = crashed(SEGV, records=[*sends, recv(0, tag=3, line=20)]).tables
    assert table.title == "The last calls of rank 1"
    assert len(table.rows) == 10
    assert table.rows[-1] == ("MPI_Recv", "from 0", 3, 4, 20, "not returned")
    assert table.rows[-2][:5] == ("MPI_Send", "to 0", 14, 4, 14)


def test_a_function_that_calls_itself_is_shown_where_it_does(monkeypatch):
    def calls_within(library, file, function, begin):
        return [(begin + 3, f"{function}();")]

    monkeypatch.setattr("mpilab.diagnosis.crash.calls_within", calls_within)
    found = crashed(SEGV, address=0x7FFC_09ED_8FF8)
    assert found.lines == (14, 17)
    assert found.places[1].text == "kernel();"


def test_other_ranks_that_crashed_are_named():
    found = diagnose(
        run_of(
            [],
            [],
            [],
            outcome="crash",
            crashed=(1, "SIGSEGV"),
            headers={1: {"signal": SEGV}, 2: {"signal": SEGV}},
        )
    )
    assert found.ranks == (1, 2)
    assert "Rank 2 crashed, too." in found.notes


def test_an_error_that_ended_the_run_is_told_as_an_error():
    found = diagnose(
        run_of([], [recv(0, line=8)], outcome="crash", crashed=(1, "MPI_ERR_TRUNCATE"))
    )
    assert (found.kind, found.pattern, found.lines) == ("mpi-error", "message truncated", (8,))


def test_a_crash_of_nobody_knows_whom_says_so():
    found = diagnose(run_of([], [], outcome="crash", crashed=(None, "exit status 7")))
    assert "which one is unknown" in found.headline
