"""What crosses between nodes and groups, by `mpilab costs --places` and in docs/topology.md."""

import re

import pytest

from mpilab import cli
from mpilab.errors import InputError
from mpilab.measure import inter_node
from mpilab.measure.inter_node import PAGE, Traffic, as_text, held_table, traffic, traffic_table


def shown(name):
    """The table between the marks of that name in docs/topology.md."""
    return re.search(
        f"<!-- {name}: begin -->\n(.*)\n<!-- {name}: end -->",
        PAGE.read_text(encoding="utf-8"),
        re.DOTALL,
    )[1]


def test_the_command_shows_what_crosses_by_header_and_by_recording(capsys):
    said = ["costs", "bcast", "--places", "2x2x2 rr", "--count", "100", "--root", "-1"]
    assert cli.main(said) == 0
    out = capsys.readouterr().out
    by_level = next(line.split() for line in out.splitlines() if "bcast_node_group" in line)
    assert by_level == ["bcast_node_group", "3", "1200", "1200", "1", "400", "400", "="]
    flat = next(line.split() for line in out.splitlines() if "bcast_linear" in line)
    assert flat == ["bcast_linear", "6", "-", "2400", "4", "-", "1600"]
    assert re.search(r"(\d+) of \1 match their header", out)


def test_a_kernel_that_lets_more_cross_than_its_header_says_is_marked_and_fails(
    monkeypatch, capsys
):
    wrong = Traffic("bcast_x", (1200, 400), (6, 2400, 1, 400))
    monkeypatch.setattr(inter_node, "traffic", lambda *_, **__: [wrong])
    assert cli.main(["costs", "bcast", "--places", "2x2x2 rr"]) == 1
    out = capsys.readouterr().out
    assert "DIFFERENT" in out and "0 of 1 match their header" in out


def test_columns_stand_below_one_another():
    rows = [Traffic("bcast_x", (12, 4), (6, 12, 1, 4)), Traffic("y" * 40, (1, 1), (1, 1, 1, 1))]
    lines = as_text(rows).splitlines()
    assert len({line.index(last) for line, last in zip(lines[2:], "==", strict=True)}) == 1
    assert lines[1].index("messages") + 7 == lines[2].index(" 6") + 1


def test_what_does_not_go_together_is_told(capsys):
    assert cli.main(["costs", "bcast", "--places", "2x2x2 rr", "--ranks", "4"]) == 1
    assert "remove --ranks" in capsys.readouterr().err
    for collective in ("barrier", "read"):
        with pytest.raises(InputError, match=f"{collective}: sends no bytes between nodes"):
            traffic(collective, "2x2x2 rr")


def test_the_page_s_table_is_what_crosses():
    assert shown("traffic") == traffic_table()
    assert "DIFFERENT" not in shown("traffic")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_page_s_memory_is_what_leaders_hold_at_2_mb_a_pair():
    assert shown("held") == held_table()
