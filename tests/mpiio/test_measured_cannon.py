"""Remeasuring the file of lab 05 with Cannon's timings."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mpilab.errors import InputError, MpilabError
from mpilab.hosts.emulated import EmulatedHosts
from mpilab.mpiio import cannon, files


@pytest.mark.parametrize("words", [[], ["mine.csv"], ["mine.csv", "2"]])
def test_the_file_and_the_repetitions_may_be_left_out(words, monkeypatch, tmp_path):
    monkeypatch.setattr(cannon, "TABLE", replace(cannon.TABLE, file=tmp_path / "usual.csv"))
    monkeypatch.setattr(cannon, "REPETITIONS", 1)
    measure = cannon.measure
    monkeypatch.setattr(
        cannon,
        "measure",
        lambda sizes, ranks, **more: measure((8,), (1,), ((3, "binary"),), **more),
    )
    monkeypatch.chdir(tmp_path)
    cannon.main(words)
    (written,) = tmp_path.iterdir()
    assert written.name == (words[0] if words else "usual.csv")
    rows = cannon.read(written)
    assert len(rows) == (2 if len(words) == 2 else 1) * len(cannon.PHASES)


def test_sizes_and_ranks_may_be_chosen(tmp_path, capsys):
    file = tmp_path / "large.csv"
    cannon.main([str(file), "1", "--sizes", "8,12", "--ranks", "1,4"])
    rows = cannon.read(file)
    found = np.unique(rows[["n", "ranks", "stage", "files"]]).tolist()
    assert found == sorted(
        (n, ranks, *way) for n in (8, 12) for ranks in (1, 4) for way in cannon.WAYS
    )
    for words in (["--sizes", "8,0"], ["--ranks", "4;9"]):
        with pytest.raises(SystemExit):
            cannon.main([str(file), *words])
        assert f"argument {words[0]}: " in capsys.readouterr().err


def test_a_run_whose_product_differs_from_another_ones_is_named(monkeypatch):
    """On 9 ranks, stage 2 writes a different C, but only for 12 x 12."""
    right = cannon.run

    def wrong(stage, ranks, a, b, **more):
        run = right(stage, ranks, a, b, **more)
        is_off = (stage, ranks, run.rows) == (2, 9, 12)
        return replace(run, digest="0123456789abcdef" * 4) if is_off else run

    monkeypatch.setattr(cannon, "run", wrong)
    words = (
        "Cannon, 12 x 12: C differs, by its SHA-256: stage 1 with text files on 4 ranks: [0-9a-f]+"
        "…; stage 2 with binary files on 9 ranks: 0123456789abcdef…"
    )
    with pytest.raises(MpilabError, match=words):
        cannon.measure((8, 12), (4, 9), repetitions=1)
    assert len(cannon.measure((8,), (4, 9), repetitions=1)) == 2 * 4 * 3


def test_ranks_are_spread_over_emulated_hosts_and_multiply_as_on_one(namespaces, tmp_path):
    with EmulatedHosts("two-hosts") as hosts:
        operands = [Path(hosts.directory) / name for name in "ab"]
        for seed, file in enumerate(operands, 1):
            files.make(file, 12, 12, seed=seed)
        here = cannon.run(3, 4, *operands)
        there = cannon.run(3, 4, *operands, hosts=hosts)
        assert [rank.header["host"] for rank in there.recording.ranks] == [
            b"n1",
            b"n1",
            b"n2",
            b"n2",
        ]
        assert there.digest == here.digest
        with pytest.raises(InputError, match="ranks=9 on 2 hosts: give a multiple of 2"):
            cannon.run(3, 9, *operands, hosts=hosts)
    file = tmp_path / "rows.csv"
    cannon.main([str(file), "1", "--sizes", "8", "--ranks", "4", "--hosts", "two-hosts"])
    assert len(cannon.read(file)) == len(cannon.WAYS) * len(cannon.PHASES)
