"""`mpilab bench osu_...`, as a person types it."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

import pytest

from mpilab.cli import main
from mpilab.cli import measure as command
from mpilab.measure import osu
from mpilab.measure.osu import parse
from mpilab.util.kit import ROOT


def test_the_table_is_printed_and_nothing_else(capfd):
    assert main("bench osu_bcast --ranks 2 -i 2 -x 0 -m 2 -f -c --own".split()) == 0
    said = capfd.readouterr()
    lines = said.out.splitlines()
    assert lines[0].startswith("# program: mpilab's osu_bcast")
    assert lines[2] == "# OSU MPI Broadcast Latency Test v7.3"
    assert [line.split()[0] for line in lines[5:]] == ["1", "2"]
    assert all(line.endswith("Pass") for line in lines[5:])
    assert said.err == ""


def test_how_far_it_is_shows_on_a_terminal_and_leaves_the_table_alone():
    ours, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
    said = subprocess.run(
        [sys.executable, "-m", "mpilab", *"bench osu_bcast --ranks 2 -i 2 -m 4 --own".split()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=terminal,
        text=True,
        cwd=ROOT,
        timeout=300,
    )
    os.close(terminal)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert said.returncode == 0
    assert "osu_bcast:   0%" in shown and "0/3" in shown
    assert [line.split()[0] for line in said.stdout.splitlines()[5:]] == ["1", "2", "4"]
    assert "%" not in said.stdout


def test_a_wrong_result_is_exit_status_1(monkeypatch, capsys):
    table = parse("# Size  Avg Latency(us)  Validation\n1  2.0  Fail\n")
    monkeypatch.setattr(osu, "run", lambda *words, **more: table)
    assert main(["bench", "osu_bcast", "-c"]) == 1
    assert "a result was wrong; see the column Validation" in capsys.readouterr().err


def test_options_go_to_the_run(monkeypatch):
    asked = {}

    def run(name, **more):
        asked.update(more, name=name)
        return type("Table", (), {"all_valid": None})

    monkeypatch.setattr(osu, "run", run)
    assert (
        main(
            "bench osu_bw -i 5 -x 1 -m 4:8 -u 0 -W 8 --cpu-list 0,1 --mca btl self,sm "
            "--mca pml ob1 --own".split()
        )
        == 0
    )
    del asked["on_line"]
    assert asked == {
        "name": "osu_bw",
        "ranks": None,
        "iterations": 5,
        "warmup": 1,
        "sizes": "4:8",
        "full": False,
        "validate": False,
        "before_each": 0,
        "window": 8,
        "memory": None,
        "mca": [["btl", "self,sm"], ["pml", "ob1"]],
        "cpu_list": "0,1",
        "map_by": None,
        "own": True,
        "oversubscribe": False,
        "hosts": None,
    }


@pytest.mark.parametrize(
    "words, message",
    [
        ("bench osu_bcast --ranks 1", "mpilab: --ranks 1: osu_bcast needs 2 ranks or more"),
        ("bench osu_bcast -m 0", "mpilab: -m 0: not message sizes"),
        ("bench osu_barrier -c", "mpilab: osu_barrier does not have -c"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(capsys, words, message):
    assert main(words.split()) == 1
    said = capsys.readouterr()
    assert said.err.startswith(message) and said.err.count("\n") == 1
    assert said.out == ""


@pytest.mark.parametrize(
    "words, message",
    [
        ("bench osu_nix", "there is no benchmark 'osu_nix'; use one of osu_latency, osu_bw"),
        ("bench osu_bcast -i many", "argument -i/--iterations: invalid int value: 'many'"),
        ("bench osu_bcast --mca btl", "argument --mca: expected 2 arguments"),
    ],
)
def test_bad_usage_is_exit_status_2(capsys, words, message):
    with pytest.raises(SystemExit) as caught:
        main(words.split())
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_the_help_is_the_benchmarks_own(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["bench", "osu_latency", "--help"])
    assert caught.value.code == 0
    said = capsys.readouterr().out
    assert "usage: mpilab bench osu_latency" in said and "--cpu-list" in said


def test_figures_stay_with_the_other_bench():
    assert command.options(["bench", "recorder_overhead_ns"]) is None
    assert command.options(["bench"]) is None
    assert command.options(["run", "osu_bcast"]) is None
