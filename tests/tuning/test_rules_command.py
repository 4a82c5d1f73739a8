"""`mpilab rules` writes and shows; test_rules_proof.py tests what it runs."""

import pytest
from rules_made_up import made_up

from mpilab.cli import main
from mpilab.measure.sweep_table import HEADER, text_of
from mpilab.tuning import read


@pytest.fixture
def swept(tmp_path):
    """CSV files of sweeps of bcast and gather."""
    paths = []
    for name, algorithms in (
        ("bcast", ("binomial", "scatter_allgather")),
        ("gather", ("basic_linear", "binomial")),
    ):
        path = tmp_path / f"{name}.csv"
        path.write_text(HEADER + text_of(made_up(name, algorithms, ranks=(2, 4))))
        paths.append(str(path))
    return paths


def test_rules_are_written_from_sweeps_and_read_again(swept, tmp_path, capsys):
    out = tmp_path / "my.rules"
    assert main(["rules", "write", *swept, "--model-ranks", "64", "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert "bcast: 2 and 4 ranks measured, 64 ranks by models, 1 to 4194304 bytes" in said
    assert "expected regret at 36 points: median" in said
    rules = read(out)
    assert set(rules.collectives) == {"bcast", "gather"}
    assert max(rules.collectives["bcast"]) == 64
    assert not [remark for remark in rules.remarks if remark.kind != "note"]


def test_rules_are_written_from_a_model_alone(capsys):
    options = "--collectives bcast,barrier --model-ranks 64 --alpha 20us --beta 1ns --sizes 8,1M"
    assert main(["rules", "write", *options.split()]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "    0 6 0 0           # bcast, from 64 ranks on, below 2 KiB: binomial (6)" in lines


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "no sweeps and no model given"),
        (["none.csv"], "none.csv: no such file"),
        (["BCAST", "--collectives", "gather"], "gather: in none of the sweeps"),
        (["BCAST", "--collectives", "ibcast"], "'ibcast': no such collective"),
        (["BCAST", "--alpha", "1us"], "--alpha and --beta go together"),
        (["BCAST", "--alpha", "1us", "--beta", "1ns"], "need numbers of ranks"),
        (["BCAST", "--slack", "-1"], "slack=-1.0"),
        (["BCAST", "-o", "/nowhere/my.rules"], "no file can be created there"),
    ],
)
def test_what_cannot_be_written_is_told(options, words, swept, capsys):
    options = [swept[0] if word == "BCAST" else word for word in options]
    assert main(["rules", "write", *options]) == 1
    assert words in capsys.readouterr().err


def test_show_explains_a_file_and_ends_with_1_where_it_is_misread(tmp_path, capsys):
    path = tmp_path / "my.rules"
    path.write_text("1\n7 1\n8 1\n0 6 0 0\n")
    assert main(["rules", "show", str(path)]) == 0
    out, err = capsys.readouterr()
    assert "bcast\n  any number of ranks\n    any size: binomial (6)" in out
    assert f"export OMPI_MCA_coll_tuned_dynamic_rules_filename={path}" in out
    assert f"{path}:4: the rules of bcast from 8 ranks also apply to fewer" in err
    path.write_text("1\n7 1\n8 1\n0 99 0 0\n")
    assert main(["rules", "show", str(path)]) == 1
    path.write_text("1\n7 1\n8 1\n")
    assert main(["rules", "show", str(path)]) == 1
    assert f"{path}:3: the file ends where" in capsys.readouterr().err
