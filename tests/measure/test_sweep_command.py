"""`mpilab sweep`, as a person types it."""

import re

import pytest

from mpilab.cli import main
from mpilab.measure.sweep_table import read


def run(capsys, *arguments):
    """(status, printed, said on stderr)."""
    status = main(["sweep", *map(str, arguments)])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_a_sweep_prints_medians_and_keeps_the_rows(tmp_path, capsys):
    out = tmp_path / "g.csv"
    asked = [
        "gather",
        "--ranks",
        "2",
        "--sizes",
        "64,1K",
        "--algorithms",
        "ours:linear,openmpi",
        "--repetitions",
        8,
        "--warmup",
        1,
        "--segment",
        "64",
        "-o",
        out,
        "--no-progress",
    ]
    status, printed, said = run(capsys, *asked)
    assert status == 0, said
    assert "openmpi:linear_sync (3)" in printed
    assert "openmpi:default with 2 ranks, 64 and 1024 bytes ran like" in said
    assert f"80 rows: {out}" in said
    assert len(read(out)) == 80
    lines = printed.splitlines()
    assert len(lines) == 1 + 10
    assert lines[1].split()[0] == "ours:linear" and lines[1].split()[-1] == "8"
    # Nothing remains to be done, and the file gives the same table.
    assert run(capsys, *asked)[1] == printed
    assert run(capsys, "--summary", out)[1] == printed
    assert run(capsys, "--summary", out, "--measure", "mean_s")[1] != printed
    status, printed, said = run(capsys, *asked, "--root", "1")
    assert status == 1 and "made with root 0, not 1" in said and printed == ""


def test_what_was_refused_is_told_and_nothing_else_is_lost(tmp_path, capsys):
    asked = [
        "allgather",
        "--oversubscribe",
        "--ranks",
        "3",
        "--sizes",
        "8",
        "--algorithms",
        "ours:ring,openmpi:3",
        "--repetitions",
        6,
        "--warmup",
        0,
        "-o",
        tmp_path / "a.csv",
        "--no-progress",
    ]
    status, printed, said = run(capsys, *asked)
    assert status == 0
    assert "ours:ring" in printed and "recursive_doubling" not in printed
    assert "asked for recursive_doubling (3), ran like bruck (2)" in said
    asked[asked.index("ours:ring,openmpi:3")] = "openmpi:3"
    asked[asked.index(tmp_path / "a.csv")] = tmp_path / "b.csv"
    status, printed, said = run(capsys, *asked)
    assert status == 1 and "nothing was measured" in printed


def test_a_pipeline_that_does_not_pipeline_is_remarked_on(tmp_path, capsys):
    asked = [
        "bcast",
        "--ranks",
        "2",
        "--sizes",
        "64",
        "--algorithms",
        "openmpi:pipeline",
        "--repetitions",
        6,
        "-o",
        tmp_path / "p.csv",
        "--no-progress",
    ]
    assert "nothing is pipelined" in run(capsys, *asked)[2]
    asked[asked.index(tmp_path / "p.csv")] = tmp_path / "q.csv"
    assert "nothing is pipelined" not in run(capsys, *asked, "--segment", "16")[2]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no collective given; name one"),
        (["gossip", "-o", "x.csv"], "'gossip' is unknown"),
        (["bcast", "--ranks", "0", "-o", "x.csv"], "ranks 0: write numbers of 1 or more"),
        (["bcast", "--sizes", "big", "-o", "x.csv"], "'big' is not a size"),
        (["bcast", "--segment", "8Q", "-o", "x.csv"], "'8Q' is not a size"),
        (["bcast", "--algorithms", "openmpi:99", "-o", "x.csv"], "binomial \\(6\\)"),
        (
            ["barrier", "--ranks", "4", "--algorithms", "openmpi:two_proc", "-o", "x.csv"],
            "two_proc: Open MPI aborts unless there are 2 ranks",
        ),
        (["--summary", "missing.csv"], "missing.csv: no such file"),
    ],
)
def test_bad_usage_is_told_with_the_remedy_and_leaves_no_file(
    tmp_path, monkeypatch, capsys, arguments, words
):
    monkeypatch.chdir(tmp_path)
    status, _, said = run(capsys, *arguments)
    assert status == 1
    assert re.search(words, said), said
    assert list(tmp_path.iterdir()) == []
