"""The table of what headers declare and recordings show, as `mpilab costs` prints it."""

import pytest

from mpilab import cli
from mpilab.errors import InputError
from mpilab.models import declared
from mpilab.models.declared import CostCheck, as_text, check_costs, kernels_of


def test_every_kernel_of_a_collective_has_a_row_for_each_number_of_ranks():
    rows = check_costs("barrier", ranks=(1, 3))
    assert [(row.kernel, row.ranks) for row in rows] == [
        (kernel, ranks) for ranks in (1, 3) for kernel in kernels_of("barrier")
    ]
    assert all(row.agrees for row in rows)
    linear = next(row for row in rows if (row.kernel, row.ranks) == ("barrier_linear", 3))
    assert linear.recorded == (2, 4, 0)


def test_the_command_takes_segments_and_a_root_from_the_end(capsys):
    said = ["costs", "bcast", "--ranks", "3", "--count", "64", "--segment", "64", "--root", "-1"]
    assert cli.main(said) == 0
    out = capsys.readouterr().out
    pipeline = next(line.split() for line in out.splitlines() if "bcast_pipeline" in line)
    assert pipeline == ["bcast_pipeline", "3", "5", "5", "8", "8", "512", "512", "="]
    number = len(kernels_of("bcast"))
    assert f"{number} of {number} match their header" in out


def test_a_kernel_whose_cost_is_not_the_declared_one_is_marked_and_fails(monkeypatch, capsys):
    monkeypatch.setattr(
        declared, "check_costs", lambda *_, **__: [CostCheck("bcast_x", 4, (1, 3, 12), (2, 3, 12))]
    )
    assert cli.main(["costs", "bcast"]) == 1
    out = capsys.readouterr().out
    assert "DIFFERENT" in out and "0 of 1 match their header" in out


def test_an_unknown_collective_is_named():
    with pytest.raises(InputError, match="'bcats' is unknown; write one of allgather"):
        check_costs("bcats")


def test_columns_stand_below_one_another():
    lines = as_text([CostCheck("bcast_x", 4, (1, 3, 12), (1, 3, 12))]).splitlines()
    assert lines[1].index("header") == lines[2].index("1") - 5
