"""The names in formulas of read kernels, and the costs in their headers, on matrices small enough
to count on paper. tests/src_c/test_read_kernels.py compares recordings.
"""

import pytest

from mpilab import cli
from mpilab.algorithms import formula
from mpilab.algorithms.formula import most_pieces, pieces, read_cost_of, total
from mpilab.algorithms.requests import names, whole_elements
from mpilab.cases.case import Case
from mpilab.cases.distribution import distribution
from mpilab.errors import InputError


def case(matrix, ranks, **more):
    return Case("read", ranks, 1, datatype="double", matrix=matrix, **more)


def test_names_of_a_cyclic_distribution():
    """5 x 6 by 2 x 2 on 1 x 2: rank 0 has columns 0, 1, 4, 5, rank 1 has columns 2, 3."""
    found = names(distribution("5x6 by 2x2 on 1x2", 2), 0)
    assert (found["N"], found["A"], found["owners"]) == (240, 2, 2)
    assert (found["part_rows"], found["part_columns"]) == (5, 4)
    assert found["spans"] == (8 * 30, 8 * (24 + 2))
    assert found["shares"] == (120, 120)


def test_domains_are_as_even_as_can_be_and_there_are_no_more_than_ranks():
    about = distribution("7x1", 3)
    assert names(about, 0)["shares"] == (24, 16, 16)
    assert names(about, 2)["shares"] == (32, 24)
    assert names(about, 9)["A"] == 3
    assert names(distribution("1x2", 3), 0)["shares"] == (8, 8, 0)


def test_a_rank_without_elements_has_no_span():
    about = distribution("1x2 on 3x1", 3)
    assert names(about, 0)["spans"] == (16, 0, 0)
    assert names(about, 0)["owners"] == 1


def test_a_buffer_holds_whole_elements_and_at_least_one():
    assert [whole_elements(bytes) for bytes in (1, 8, 15, 16, 4096)] == [8, 8, 8, 16, 4096]


def test_stretches_are_counted_in_pieces():
    assert (pieces((24, 0, 17), 8), most_pieces((24, 0, 17), 8), total((24, 0, 17))) == (6, 3, 41)
    assert (pieces((), 8), most_pieces((), 8)) == (0, 0)


@pytest.mark.parametrize(
    ("reader", "options", "expected"),
    [
        # 6 x 6 in blocks of 3 x 3 on 2 x 2: 288 bytes, 9 elements a rank, in rows of 3
        ("scatter", {}, (1, 1, 288)),
        ("scatter", {"buffer": 100}, (3, 3, 288)),
        ("strided", {}, (12, 3, 288)),
        ("view", {}, (4, 1, 288)),
        ("view_all", {"aggregators": 2}, (4, 1, 288)),
        ("sieving", {}, (4, 1, 4 * 15 * 8)),
        ("sieving", {"buffer": 64}, (8, 2, 4 * 15 * 8)),
        ("two_phase", {}, (4, 1, 288)),
        ("two_phase", {"buffer": 96, "aggregators": 2}, (4, 2, 288)),
    ],
)
def test_what_headers_say_of_a_matrix_of_6_by_6_on_4_ranks(reader, options, expected):
    assert read_cost_of(f"read_{reader}").at(case("6x6", 4, **options)) == expected


def test_defaults_of_buffers_come_from_the_header():
    found = {name: read_cost_of(f"read_{name}").buffer for name in ("two_phase", "sieving", "view")}
    assert found == {"two_phase": 512 << 10, "sieving": 4 << 20, "view": 0}


def test_rubrics_know_the_same_names():
    values = formula.names_of(case("2048x2048", 4, buffer=1 << 20))
    assert formula.evaluate("ceil_div(N, A * F)", **values) == 8
    assert "F" not in formula.names_of(case("8x8", 4))


def test_a_header_without_a_line_and_a_kernel_that_is_not_there_are_named(tmp_path, monkeypatch):
    (tmp_path / "read").mkdir()
    (tmp_path / "read" / "half.c").write_text("/* Half.\n *\n * Requests: P\n * Read:     N\n */\n")
    monkeypatch.setattr(formula, "SOURCES", tmp_path)
    with pytest.raises(InputError, match="half.c: no line 'Busiest:' in its header"):
        read_cost_of("read_half")
    with pytest.raises(InputError, match="'read_magic': no file"):
        read_cost_of("read_magic")


def test_the_command_prints_requests_of_headers_and_recordings(capsys):
    said = ["costs", "read", "--ranks", "4", "--matrix", "64x64", "--buffer", "4K"]
    assert cli.main([*said, "--aggregators", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["requests", "busiest", "bytes", "read"]
    two_phase = next(line.split() for line in lines if "read_two_phase" in line)
    assert two_phase == ["read_two_phase", "4", "8", "8", "4", "4", "32768", "32768", "="]
