"""Real reports of the sanitizers (tests/diagnosis/reports) are read and explained in plain
words."""

from pathlib import Path

import pytest

from mpilab.diagnosis.crash import diagnose_report
from mpilab.diagnosis.model import SANITIZER, Diagnosis
from mpilab.trace.callsites import ADDRESS, UNDEFINED, parse, separate

REPORTS = Path(__file__).parent / "reports"


def text_of(name):
    return (REPORTS / f"{name}.txt").read_text(encoding="utf-8")


def diagnose(name, rank=1):
    return diagnose_report(rank, parse(text_of(name)), lambda file, line: f"{file} {line};")


@pytest.mark.parametrize(
    ("name", "kind", "pattern", "lines", "headline"),
    [
        (
            "gcc_receive_buffer",
            "use-after-poison",
            "out of bounds",
            (10,),
            "rank 1 wrote outside the receive buffer (32 bytes) in line 10",
        ),
        (
            "clang_receive_buffer",
            "use-after-poison",
            "out of bounds",
            (21,),
            "rank 1 wrote outside the receive buffer (32 bytes) in line 21",
        ),
        (
            "gcc_mpi_recv",
            "use-after-poison",
            "out of bounds",
            (13,),
            "MPI_Recv on rank 1 wrote outside the receive buffer (32 bytes) in line 13",
        ),
        (
            "clang_mpi_recv",
            "use-after-poison",
            "out of bounds",
            (13,),
            "MPI_Recv on rank 1 wrote outside the receive buffer (32 bytes) in line 13",
        ),
        (
            "gcc_use_after_free",
            "heap-use-after-free",
            "use after free",
            (119, 118, 117),
            "rank 1 wrote memory that was no longer valid in line 119: 16 bytes from malloc()",
        ),
        (
            "clang_use_after_free",
            "heap-use-after-free",
            "use after free",
            (119, 118, 117),
            "rank 1 wrote memory that was no longer valid in line 119: 16 bytes from malloc()",
        ),
        (
            "gcc_double_free",
            "double-free",
            "use after free",
            (133, 132, 131),
            "rank 1 freed the same memory twice in line 133",
        ),
        (
            "gcc_stack_variable",
            "stack-buffer-overflow",
            "out of bounds",
            (350,),
            "MPI_Wait on rank 1 wrote outside 'a' (8 bytes) in line 350",
        ),
        (
            "clang_stack_variable",
            "stack-buffer-overflow",
            "out of bounds",
            (350,),
            "MPI_Wait on rank 1 wrote outside 'a' (8 bytes) in line 350",
        ),
        (
            "gcc_global_variable",
            "global-buffer-overflow",
            "out of bounds",
            (374,),
            "rank 1 wrote outside 'table' (40 bytes) in line 374",
        ),
        (
            "clang_global_variable",
            "global-buffer-overflow",
            "out of bounds",
            (374,),
            "rank 1 wrote outside 'table' (40 bytes) in line 374",
        ),
        (
            "gcc_recursion",
            "stack-overflow",
            "stack exhausted",
            (11,),
            "rank 1 ran out of stack in line 11",
        ),
        (
            "gcc_wild_pointer",
            "SEGV",
            "memory that is not yours",
            (214,),
            "rank 1 wrote memory that is not its own in line 214",
        ),
    ],
)
def test_a_report_of_the_address_sanitizer_is_told(name, kind, pattern, lines, headline):
    report = parse(text_of(name))
    assert (report.tool, report.kind, report.pattern) == (ADDRESS, kind, pattern)
    found = diagnose(name)
    assert found.headline == headline
    assert (found.kind, found.pattern, found.ranks, found.lines) == (
        SANITIZER,
        pattern,
        (1,),
        lines,
    )
    assert found.places[0].text == f"cell {lines[0]};"
    assert found.hint
    assert found.log.startswith("==")
    assert Diagnosis.from_json(found.to_json()) == found


@pytest.mark.parametrize(
    ("name", "pattern", "line", "column", "headline"),
    [
        (
            "gcc_index",
            "out of bounds",
            147,
            10,
            "rank 1 left the bounds of an array in line 147: index 4 out of bounds for type 'int "
            "[4]'",
        ),
        (
            "clang_index",
            "out of bounds",
            147,
            9,
            "rank 1 left the bounds of an array in line 147: index 4 out of bounds for type "
            "'int[4]'",
        ),
        (
            "gcc_signed_overflow",
            "undefined behavior",
            161,
            10,
            "rank 1 did something that C leaves undefined in line 161: signed integer overflow: "
            "2 + 2147483647 cannot be represented in type 'int'",
        ),
    ],
)
def test_a_report_of_undefined_behavior_is_told(name, pattern, line, column, headline):
    report = parse(text_of(name))
    assert (report.tool, report.kind, report.pattern) == (UNDEFINED, "runtime error", pattern)
    found = diagnose(name)
    assert found.headline == headline
    assert (found.kind, found.pattern) == (SANITIZER, pattern)
    assert (found.places[0].line, found.places[0].column) == (line, column)


def test_where_it_lies_is_told_to_the_byte():
    note = diagnose("gcc_receive_buffer").notes[0]
    assert note == ("4 bytes were written; the first byte out of bounds is just past its end.")
    assert parse(text_of("gcc_stack_variable")).region == "just past its end"
    moved = text_of("gcc_receive_buffer").replace(
        "on address 0x60e000011de0", "on address 0x60e000011dbc"
    )
    assert parse(moved).region == "4 bytes before it"


def test_the_places_of_memory_name_who_freed_and_who_allocated_it():
    labels = [place.label for place in diagnose("gcc_use_after_free", rank=0).places]
    assert labels == ["rank 0 writes here", "freed here", "allocated here"]


def test_the_call_of_mpi_is_named_with_the_kernels_line():
    report = parse(text_of("gcc_mpi_recv"))
    assert report.call == "MPI_Recv"
    assert report.frames == (("allgather_recv", "cell", 13),)
    assert diagnose("gcc_mpi_recv").places[0].label == "rank 1 is in MPI_Recv here"


@pytest.mark.parametrize(
    ("older", "newer"),
    [("0 bytes to the right of", "0 bytes after"), ("is located 0 bytes", "is located 0 bytes")],
)
def test_the_wording_of_newer_compilers_is_known(older, newer):
    text = text_of("gcc_global_variable")
    assert older in text
    assert parse(text.replace(older, newer)).object == "'table' (40 bytes)"
    assert parse(text.replace(older, newer)).region == "just past its end"


def test_other_words_are_no_report():
    assert parse("") is None
    assert parse("rank 0: ERROR: AddressSanitizer is nice\ncell: runtime error\n") is None
    assert separate("hello\nworld") == ("hello\nworld", "")


def test_what_a_kernel_printed_is_separated_from_the_report():
    report = text_of("gcc_index")
    assert separate(f"got here\n{report}") == ("got here\n", report)
    assert separate("x\nAddressSanitizer:DEADLYSIGNAL\n") == ("x\n", "")


def test_a_line_that_the_kernel_left_open_does_not_hide_the_report():
    report = text_of("gcc_index")
    printed, found = separate(f"got here{report}")
    assert parse(found).frames[0][2] == 147
    assert printed == "got here"


def test_a_printed_line_that_only_begins_like_a_report_is_read_without_a_kind():
    report = parse("==1==ERROR: AddressSanitizer: (what the kernel printed)\n")
    assert (report.tool, report.kind, report.frames) == (ADDRESS, "unknown", ())
    assert diagnose_report(0, report, lambda file, line: "").headline
