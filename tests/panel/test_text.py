"""A diagnosis as text."""

import dataclasses

import pytest
from panel_samples import DEADLOCKED, NASTY, OF_EVERY_KIND

from mpilab.diagnosis import render
from mpilab.diagnosis.model import COMPILE_ERROR, CRASH, DEADLOCK, Diagnosis, Place, Table
from mpilab.diagnosis.render import text


def test_a_deadlock_reads_from_headline_to_hint_to_source_to_tables():
    assert text(DEADLOCKED).splitlines() == [
        "✗ Deadlock: Ranks 0 and 1 wait for each other in MPI_Recv.",
        "  It looks like: head-to-head receives.",
        "",
        "  What to try: Let one of them send first, or use MPI_Sendrecv.",
        "",
        "  ▶ 14 │ MPI_Recv(buffer, count, type, partner, TAG, comm, &status);",
        "       │ ^ ranks 0 and 1 wait here",
        "  ▶ 16 │ MPI_Send(buffer, count, type, partner, TAG, comm);",
        "       │ ↑ never reached",
        "",
        "  Cycle of waiting: 0 → 1 → 0 (rank 0 waits for rank 1, which waits for rank 0)",
        "",
        "  What each rank does",
        "  rank  call      bytes",
        "  ────  ────────  ─────",
        "     0  MPI_Recv     16",
        "     1  MPI_Recv   1024",
        "     2  finished",
        "",
        "  - With 2 ranks it hangs as well.",
    ]


@pytest.mark.parametrize("diagnosis", OF_EVERY_KIND, ids=lambda d: d.kind)
def test_every_kind_begins_with_a_symbol_and_its_name(diagnosis):
    symbol, name = render.title_of(diagnosis.kind)
    assert text(diagnosis).startswith(f"{symbol} {name}: ")
    assert symbol in "✗⏱⚠" and name[0].isupper()


@pytest.mark.parametrize(
    ("headline", "shown"),
    [
        ("deadlock: rank 0 waits for rank 1", "✗ Deadlock: Rank 0 waits for rank 1"),
        ("Deadlock: MPI_Recv waits", "✗ Deadlock: MPI_Recv waits"),
        ("my_size is 0", "✗ Deadlock: my_size is 0"),
    ],
)
def test_a_headline_that_repeats_the_kind_says_it_once(headline, shown):
    assert text(Diagnosis(DEADLOCK, headline)) == shown


def test_no_line_is_wider_than_100_columns_and_no_control_character_comes_through():
    shown = text(NASTY)
    assert max(map(len, shown.splitlines())) <= 100
    assert not [c for c in shown if c != "\n" and not c.isprintable()]
    assert "red" in shown and "[31m" not in shown


def test_long_tables_and_long_prints_are_cut_and_say_so():
    shown = text(NASTY)
    assert "… and 36 more rows" in shown
    assert "Printed by rank 1 (the last 60 of 1000 lines):" in shown
    assert "│ line 999" in shown and "│ line 939" not in shown
    assert "Not shown: what" in shown
    assert len(shown) < 60_000


@pytest.mark.parametrize(("indent", "column"), [("    ", 5), ("\t", 2), ("\t\t  ", 5)])
def test_the_caret_stands_under_the_column_whatever_the_indentation(indent, column):
    line = f"{indent}x = recvcnt;"
    place = Place(7, line, "undeclared", column + 4)
    code, pointer = text(Diagnosis(COMPILE_ERROR, "h", places=(place,))).splitlines()[2:]
    assert code.index("recvcnt") == pointer.index("^")


def test_a_line_that_is_too_long_is_cut_around_its_column():
    line = "int f(" + "a, " * 100 + "wrong, " + "b, " * 100 + ")"
    place = Place(7, line, "here", line.index("wrong") + 1)
    code, pointer = text(Diagnosis(COMPILE_ERROR, "h", places=(place,))).splitlines()[2:]
    assert len(code) <= 100
    assert code.index("wrong") == pointer.index("^")
    assert code.count("…") == 2


def test_places_of_one_line_are_shown_once_with_all_their_labels():
    places = (Place(4, "f();", "rank 0 waits here"), Place(4, "f();", "rank 2 crashed here"))
    lines = text(Diagnosis(CRASH, "h", places=places)).splitlines()
    assert lines[2:] == ["  ▶ 4 │ f();", "      │ ↑ rank 0 waits here; rank 2 crashed here"]


def test_lines_of_another_file_stand_under_its_name():
    places = (Place(4, "f();"), Place(9, "g();", file="mpilab.h"), Place(5, "h();"))
    lines = text(Diagnosis(CRASH, "h", places=places)).splitlines()
    assert lines[2:] == [
        "  ▶ 4 │ f();",
        "  in mpilab.h:",
        "  ▶ 9 │ g();",
        "  in the cell:",
        "  ▶ 5 │ h();",
    ]


def test_a_cell_that_is_too_wide_goes_on_below_and_loses_nothing():
    sentence = " ".join(f"word{i}" for i in range(20))
    table = Table("t", ("rank", "what"), ((0, sentence), (1, "short")))
    lines = text(Diagnosis(CRASH, "h", tables=(table,))).splitlines()
    assert max(map(len, lines)) <= 100
    assert " ".join(" ".join(lines).split()).count(sentence) == 1


def test_a_long_cycle_leaves_its_middle_out():
    shown = text(dataclasses.replace(DEADLOCKED, cycle=tuple(range(64))))
    assert "Cycle of waiting: 0 → 1 → 2 → 3 → 4 → 5 → 6 → 7 → 8 → 9 → … → 61 → 62 → 63 → 0" in shown
