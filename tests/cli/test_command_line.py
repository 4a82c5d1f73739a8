"""The command line, as a person types it."""

import json
import os
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from mpilab import bench
from mpilab.cli import main
from mpilab.errors import InputError
from mpilab.measure.dataset import machine

ROOT = Path(__file__).resolve().parents[2]


def mpilab(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "mpilab", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        **options,
    )


def test_run_shows_result_messages_and_rounds():
    said = mpilab("run", "allgather_ring", "--ranks", 3)
    assert said.returncode == 0, said.stderr
    assert "right on every rank" in said.stdout
    assert "6 in 2 rounds" in said.stdout


def test_run_takes_root_operation_and_tunables_and_says_them_again():
    said = mpilab(
        "run",
        "reduce_chain",
        "--ranks",
        5,
        "--root",
        2,
        "--op",
        "sum",
        "--count",
        "1K",
        "--segment",
        "1K",
        "--fanout",
        2,
    )
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith(
        "reduce_chain with 5 ranks, count 1024, datatype int, root 2, segments of 1024 bytes, "
        "fan-out 2\n"
    )
    assert "right on every rank" in said.stdout
    assert "16 in 5 rounds, 16384 bytes in all" in said.stdout


def test_run_lets_processes_behave_as_other_ranks():
    said = mpilab("run", "allgather_ring_remapped", "--places", "2x1x2 rr", "--remap", "rr-to-seq")
    assert said.returncode == 0, said.stderr
    assert "remapped from RR to SEQ, on 2 nodes in 2 groups\n" in said.stdout
    assert "crossing: 6 messages, 96 bytes between nodes" in said.stdout


def test_run_of_a_barrier_needs_no_count():
    said = mpilab("run", "barrier_tree", "--ranks", 5)
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith("barrier_tree with 5 ranks\n")
    assert "8 in 5 rounds" in said.stdout
    assert "busiest:  rank 0 sends 3 messages\n" in said.stdout


def test_a_size_that_is_none_and_a_root_that_is_not_there_are_named(capsys):
    with pytest.raises(SystemExit) as end:
        main(["run", "bcast_pipeline", "--segment", "4X"])
    assert end.value.code == 2
    assert "--segment: '4X' is not a size; write bytes, e.g. 512, 8K" in capsys.readouterr().err
    assert main(["run", "bcast_chain", "--ranks", "3", "--root", "3"]) == 1
    assert "root=3 with 3 ranks: must be below 3" in capsys.readouterr().err
    assert main(["run", "barrier_tree", "--count", "4"]) == 1
    assert "barrier moves no data" in capsys.readouterr().err


def test_run_tells_a_file_that_defines_another_kernel(tmp_path):
    source = tmp_path / "mine.c"
    source.write_text(
        '#include "mpilab.h"\n'
        "MPILAB_ALLGATHER(pairwize) { (void)sendbuf, (void)sendcount, (void)sendtype; "
        "(void)recvbuf, (void)recvcount, (void)recvtype, (void)comm; return MPI_SUCCESS; }\n"
    )
    said = mpilab("run", "allgather_pairwise", "--source", source, "--ranks", 2)
    assert said.returncode == 1
    words = " ".join(said.stdout.split())
    assert "does not define allgather_pairwise: it defines allgather_pairwize." in words


def test_run_takes_a_file_and_fails_where_the_kernel_is_wrong(tmp_path):
    source = tmp_path / "mine.c"
    source.write_text(
        '#include "mpilab.h"\n'
        "MPILAB_ALLGATHER(mine) { (void)sendbuf, (void)sendcount, (void)sendtype, (void)recvbuf; "
        "(void)recvcount, (void)recvtype, (void)comm; return MPI_SUCCESS; }\n"
    )
    said = mpilab("run", "allgather_mine", "--source", source, "--ranks", 2)
    assert said.returncode == 1
    assert "Wrong result" in said.stdout
    assert "ranks 0 and 1" in said.stdout
    assert "It looks like: blocks never written." in said.stdout


def test_run_names_the_line_of_a_compile_error(tmp_path):
    source = tmp_path / "mine.c"
    source.write_text("int x = ;\n")
    said = mpilab("run", "allgather_mine", "--source", source)
    assert said.returncode == 1
    assert "It does not compile" in said.stdout
    assert "1 │ int x = ;" in said.stdout
    assert "Traceback" not in said.stderr


def test_an_unknown_kernel_is_an_error_with_its_name():
    said = mpilab("run", "allgather_fastest")
    assert said.returncode == 1
    assert "allgather_fastest" in said.stdout + said.stderr
    assert "Traceback" not in said.stderr


def test_a_datatype_that_a_read_does_not_have_is_refused(capsys):
    assert main(["run", "read_view", "--datatype", "int"]) == 1
    assert "datatype='int': a read reads a matrix of doubles" in capsys.readouterr().err


def test_an_unknown_collective_and_datatype_are_named(capsys):
    assert main(["run", "gossip_ring"]) == 1
    assert "'gossip' is unknown" in capsys.readouterr().err
    assert main(["run", "allgather_ring", "--datatype", "float"]) == 1
    assert "'float' is unknown; write one of" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["", "grade", "release", "run", "bench"])
def test_help_is_there_for_every_command(command, capsys):
    with pytest.raises(SystemExit) as end:
        main([*command.split(), "--help"])
    assert end.value.code == 0
    assert "usage: mpilab" in capsys.readouterr().out


def test_grade_without_a_lab_of_that_name_says_so(tmp_path, capsys):
    assert main(["grade", str(tmp_path), "--lab", "07-none", "--out", str(tmp_path / "o")]) == 1
    assert "07-none" in capsys.readouterr().err


def test_grade_of_a_folder_that_does_not_exist_says_so(tmp_path, capsys):
    missing = tmp_path / "missing"
    assert main(["grade", str(missing), "--lab", "02-allgather", "--out", str(tmp_path)]) == 1
    assert str(missing) in capsys.readouterr().err


def test_a_full_disk_is_told_with_the_remedy(monkeypatch, capsys, tmp_path):
    def full(*arguments, **options):
        raise OSError(28, "No space left on device", "/full/file")

    monkeypatch.setattr("mpilab.grading.grade.grade", full)
    assert main(["grade", str(tmp_path), "--lab", "x", "--out", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "/full/file: no space left" in said and "finished work is kept" in said


class TestBench:
    @pytest.fixture
    def figures(self, monkeypatch):
        monkeypatch.setattr("mpilab.bench.figures.FIGURES", {})
        bench.figure("s", "≤ 2", "nothing")(_three_values)

    def test_writes_the_list_of_figures(self, figures, tmp_path):
        out = tmp_path / "out" / "bench.json"
        bench.run_figures("all", out)
        (entry,) = json.loads(out.read_text(encoding="utf-8"))
        assert entry == {
            "name": "_three_values",
            "value": 2.0,
            "unit": "s",
            "aim": "≤ 2",
            "against": "nothing",
            "spread": 0.5,
            "n": 3,
            "measured": str(date.today()),
            "machine": machine(),
        }

    def test_keeps_the_figures_that_were_measured_before(self, figures, tmp_path):
        out = tmp_path / "bench.json"
        older = {
            "name": "older",
            "value": 1,
            "unit": "",
            "aim": "",
            "against": "",
            "spread": 0,
            "n": 1,
            "measured": "2001-02-03",
            "machine": "a machine of then",
        }
        out.write_text(json.dumps([older]))
        entries = bench.run_figures("_three_values", out)
        assert json.loads(out.read_text(encoding="utf-8")) == entries
        assert [entry["name"] for entry in entries] == ["older", "_three_values"]
        page = tmp_path / "page.md"
        page.write_text("<!-- bench: begin --><!-- bench: end -->")
        bench.write_docs(entries, page)
        then, _, now = (
            page.read_text(encoding="utf-8")
            .partition("Measured 20")[2]
            .partition(f"Measured {date.today()} on {machine()}.")
        )
        assert then.startswith("01-02-03 on a machine of then.") and "| `older` |" in then
        assert "| `_three_values` |" in now and "older" not in now

    def test_a_pattern_measures_all_figures_that_it_matches(self, figures, tmp_path):
        for name in ("bcast_ratio", "bcast_lost", "reduce_ratio"):
            bench.figures.FIGURES[name] = (_three_values, "", "", "")
        entries = bench.run_figures("bcast_*", tmp_path / "bench.json")
        assert [entry["name"] for entry in entries] == ["bcast_ratio", "bcast_lost"]

    def test_refuses_an_unknown_figure_and_a_broken_file(self, figures, tmp_path):
        with pytest.raises(InputError, match="speed.*_three_values"):
            bench.run_figures("speed", tmp_path / "bench.json")
        (tmp_path / "bench.json").write_text("[")
        with pytest.raises(InputError, match="remove it"):
            bench.run_figures("all", tmp_path / "bench.json")

    def test_puts_the_table_into_the_page_and_nothing_else(self, figures, tmp_path):
        page = tmp_path / "page.md"
        page.write_text("before\n<!-- bench: begin -->\nold\n<!-- bench: end -->\nafter\n")
        bench.write_docs(bench.run_figures("all", tmp_path / "bench.json"), page)
        text = page.read_text(encoding="utf-8")
        assert text.startswith("before\n") and text.endswith("\nafter\n")
        assert "| `_three_values` | 2 s | ± 0.5 | 3 | ≤ 2 | nothing |" in text
        assert "old" not in text

    def test_keeps_what_the_page_has_of_other_figures_that_are_still_measured(
        self, figures, tmp_path
    ):
        kept, gone = "| `import_ratio` | 2 | ± 0 | 1 |  |  |", "| `gone` | 1 | ± 0 | 1 |  |  |"
        again = "| `_three_values` | 9 s | ± 0 | 1 |  |  |"
        page = tmp_path / "page.md"
        page.write_text(
            "<!-- bench: begin -->\nMeasured 2001-02-03 on a machine.\n\n"
            f"{kept}\n{gone}\n{again}\n<!-- bench: end -->\n"
        )
        bench.figures.FIGURES["import_ratio"] = (_three_values, "", "", "")
        bench.write_docs(bench.run_figures("_three_values", tmp_path / "bench.json"), page)
        then, _, now = page.read_text(encoding="utf-8").partition(f"Measured {date.today()} on ")
        assert "Measured 2001-02-03 on a machine.\n\n| figure" in then
        assert kept in then and "gone" not in then and "`_three_values`" not in then
        assert "| `_three_values` | 2 s |" in now


def _three_values():
    return [1, 2, 3]


def test_performance_page_shows_every_figure_that_bench_knows():
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| `(\w+)` \| [\d.]", page, re.MULTILINE)
    assert set(bench.FIGURES) <= set(shown)
    assert len(shown) == len(set(shown)) > 50


def test_a_handout_is_a_kit_that_builds_and_checks_but_knows_no_answers(tmp_path):
    said = mpilab("release", "02-allgather", "--handout", tmp_path / "kit")
    assert said.returncode == 0, said.stderr
    kit = tmp_path / "kit"
    assert not (kit / "grading").exists() and not (kit / "labs" / "source").exists()
    for answer in ("nonblocking_all", "pairwise"):
        assert not (kit / "src_c" / "allgather" / f"{answer}.c").exists()
    mpicc = Path(sys.executable).parent / "mpicc"
    subprocess.run(["make", "-s", "-C", kit / "src_c", "all", f"MPICC={mpicc}"], check=True)
    script = (
        "import mpilab, mpilab.notebook.session\n"
        f"assert mpilab.__file__.startswith({str(kit)!r}), mpilab.__file__\n"
        "print(mpilab.Lab('02-allgather').check('pairwise'))\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=kit,
        env={**os.environ, "PYTHONPATH": str(kit)},
    )
    assert "no %%kernel cell has defined allgather_pairwise yet" in said.stdout, said.stderr


def test_a_misspelt_kernel_or_lab_is_told_with_those_there_are(capsys):
    assert main(["run", "bcast_pipline"]) == 1
    assert "the kit has no such kernel; it has bcast_binary, " in capsys.readouterr().err
    assert main(["run", "bcats_ring"]) == 1
    assert "collective 'bcats' is unknown" in capsys.readouterr().err
    assert main(["release", "01-collective"]) == 1
    assert "write one of 00-first-contact, 01-collective-algorithms," in capsys.readouterr().err
