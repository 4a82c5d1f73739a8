"""`mpilab matrix` and `mpilab cannon`, as a user types them."""

import json
import resource

import numpy as np
import pytest

from mpilab.cli import main
from mpilab.measure.dataset import DATA
from mpilab.mpiio import files

A, B, C = (DATA / "matrices" / f"{name}-16x16.bin" for name in "abc")


def test_a_matrix_is_made_converted_checked_and_shown(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["matrix", "make", "3x2", "m.bin", "--integers", "--seed", "4"]) == 0
    assert main(["matrix", "to-text", "m.bin", "m.txt"]) == 0
    assert main(["matrix", "to-binary", "m.txt", "again.bin"]) == 0
    assert main(["matrix", "make", "3x2", "direct.txt", "--integers", "--seed", "4", "--text"]) == 0
    assert (tmp_path / "m.bin").read_bytes() == (tmp_path / "again.bin").read_bytes()
    assert (tmp_path / "m.txt").read_bytes() == (tmp_path / "direct.txt").read_bytes()
    capsys.readouterr()
    assert main(["matrix", "check", "m.bin", "m.txt"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("m.bin: binary, 3 x 2, 56 bytes, integers from ")
    assert second.startswith("m.txt: text, 3 x 2, ")
    assert main(["matrix", "show", "m.txt"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "m.txt: 3 x 2"
    np.testing.assert_array_equal(
        [[float(word) for word in line.split()] for line in shown[1:]], files.read("m.bin")
    )


def test_a_wrong_file_among_others_is_named_and_the_others_are_checked(tmp_path, capsys):
    (tmp_path / "wrong").write_bytes(A.read_bytes()[:-1])
    assert main(["matrix", "check", str(A), str(tmp_path / "wrong"), str(B)]) == 1
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 2
    assert said.err == (
        f"mpilab: {tmp_path}/wrong: truncated: its header says 16 x 16, that is 2056 bytes, but it "
        "has 2055. Create it again, or, if it is text, start it with a line such as '16 16'\n"
    )


def test_the_product_is_numpys(tmp_path, capsys):
    assert main(["matrix", "product", str(A), str(B), str(tmp_path / "c")]) == 0
    assert (tmp_path / "c").read_bytes() == C.read_bytes()
    files.write(tmp_path / "flat", [[1.0, 2.0]])
    assert main(["matrix", "product", str(A), str(tmp_path / "flat"), str(tmp_path / "d")]) == 1
    assert "the first needs as many columns as the second has rows (16 and 1)" in (
        capsys.readouterr().err
    )
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("size", ["3", "3x", "x3", "-3x2", "3x2x1", "axb"])
def test_a_size_that_is_none_is_a_usage_error(size, capsys, tmp_path):
    with pytest.raises(SystemExit) as ended:
        main(["matrix", "make", "--", size, str(tmp_path / "m")])
    assert ended.value.code == 2
    assert "rows x columns, e.g. 512x512" in capsys.readouterr().err


def test_a_size_of_zero_is_refused(tmp_path, capsys):
    assert main(["matrix", "make", "0x5", str(tmp_path / "m")]) == 1
    assert "0 rows and 5 columns; both must be from 1" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["1000x1000"], ["1000x1000", "--text"], ["115x115"]])
def test_a_disk_that_is_full_is_told_and_leaves_nothing(words, tmp_path, capsys):
    """The last one is detected when the file is closed."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100 << 10, usual[1]))
    try:
        status = main(["matrix", "make", *words, str(tmp_path / "m")])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert status == 1 and list(tmp_path.iterdir()) == []
    assert f"{tmp_path}/m: cannot be written: File too large; free some space" in (
        capsys.readouterr().err
    )


def test_cannon_says_where_time_and_memory_went(tmp_path, capsys):
    out = tmp_path / "c"
    assert main(["cannon", "3", "-n", "4", str(A), str(B), "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert "Cannon, stage 3 (MPI-IO): 16 x 16 times 16 x 16 on 4 ranks" in said
    assert [line.split()[0] for line in said.splitlines()[2:5]] == ["read", "compute", "write"]
    assert "of all MPI time" in said and "most memory: rank 0 " in said
    assert out.read_bytes() == C.read_bytes()


def test_cannon_writes_a_trace_of_every_rank_with_its_messages(tmp_path, capsys):
    trace = tmp_path / "run.json"
    assert main(["cannon", "1", "-n", "4", str(A), str(B), "--trace", str(trace)]) == 0
    assert capsys.readouterr().out.endswith(f"trace: {trace}\n")
    events = json.loads(trace.read_text())["traceEvents"]
    called = {
        rank: [e["name"] for e in events if e["ph"] == "X" and e["pid"] == rank]
        for rank in range(4)
    }
    assert called[0].count("MPI_Send") == 9  # the sizes and two blocks to each other rank
    assert all(called[rank].count("MPI_Recv") == 3 for rank in (1, 2, 3))


def test_cannon_does_not_run_if_its_trace_cannot_be_written(tmp_path, capsys):
    out = tmp_path / "c"
    words = ["cannon", "1", str(A), str(B), "-o", str(out), "--trace", str(tmp_path / "run.txt")]
    assert main(words) == 1
    assert "run.txt: not a kind of trace" in capsys.readouterr().err
    assert not out.exists()


def test_cannon_refuses_what_cannot_be_in_words(tmp_path, capsys):
    assert main(["cannon", "1", "-n", "3", str(A), str(B)]) == 1
    assert capsys.readouterr().err == (
        "mpilab: 3 ranks form no square grid, as Cannon's algorithm needs it; take 1 or 4\n"
    )
    assert main(["cannon", "1", "-n", "0", str(A), str(B)]) == 1
    assert "ranks=0: must be 1 or more, and a square number" in capsys.readouterr().err
    for limit in ("nan", "inf", "0", "-3"):
        assert main(["cannon", "1", str(A), str(B), "--timeout", limit]) == 1
        assert capsys.readouterr().err == (
            f"mpilab: limit={limit}: must be above 0 seconds, and at most 1,000,000\n"
        )


def test_cannon_says_why_the_product_cannot_be_written(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for out, words in (
        (A / "c", "c: cannot be written: Not a directory; name an existing folder"),
        (".", ".: is a directory; give the name of a file for C"),
    ):
        assert main(["cannon", "3", str(A), str(B), "-o", str(out)]) == 1
        assert words in capsys.readouterr().err
