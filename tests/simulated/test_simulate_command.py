"""`mpilab simulate`: the table, a user's own file, errors."""

import csv
from pathlib import Path

from mpilab.cli import main

BROKEN = Path(__file__).with_name("broken.c")


def test_a_table_of_sizes_with_times_rounds_and_messages(capsys, tmp_path):
    file = tmp_path / "rows.csv"
    assert (
        main(
            [
                "simulate",
                "bcast_binomial",
                "--platform",
                "fat-tree-4x4",
                "--sizes",
                "1K,64K",
                "--order",
                "rr",
                "--root",
                "3",
                "--csv",
                str(file),
            ]
        )
        == 0
    )
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert head == "bcast_binomial on fat-tree-4x4, 16 ranks, rr"
    assert [row.split()[0] for row in rows[:2]] == ["1024", "65536"]
    with open(file, newline="") as written:
        first, second = csv.DictReader(written)
    assert (first["rounds"], first["messages"], first["moved"]) == ("4", "15", str(15 * 1024))
    assert 0 < float(first["seconds"]) < float(second["seconds"])


def test_more_ranks_than_slots_are_spread_over_the_hosts_and_the_head_says_so(capsys):
    assert (
        main(
            [
                "simulate",
                "bcast_binomial",
                "--platform",
                "fat-tree-4x2",
                "--ranks",
                "12",
                "--sizes",
                "1K",
                "--order",
                "shuffled",
                "--seed",
                "3",
            ]
        )
        == 0
    )
    head, _, row, *_ = capsys.readouterr().out.splitlines()
    assert head == (
        "bcast_binomial on fat-tree-4x2, 12 ranks (3 on each of 4 hosts, which have 8 slots in "
        "all), shuffled with seed 3"
    )
    assert row.split()[3] == "11"


def test_1024_ranks_on_a_fat_tree_of_16_hosts(capsys):
    assert (
        main(
            [
                "simulate",
                "bcast_binomial",
                "--platform",
                "fat-tree-16x8",
                "--ranks",
                "1024",
                "--sizes",
                "1K",
            ]
        )
        == 0
    )
    head, _, row, *_ = capsys.readouterr().out.splitlines()
    assert "1024 ranks (64 on each of 16 hosts" in head
    assert row.split()[2:4] == ["10", "1023"]


def test_ranks_that_the_hosts_cannot_share_equally_are_refused_with_what_fits(capsys):
    assert main(["simulate", "bcast_binomial", "--platform", "fat-tree-4x2", "--ranks", "10"]) == 1
    assert "use 1 to 8, or a multiple of 4, e.g. 12" in capsys.readouterr().err


def test_a_kernel_of_ones_own_that_hangs_is_explained(capsys):
    assert (
        main(
            [
                "simulate",
                "bcast_head_to_head",
                "--platform",
                "flat-1x4",
                "--sizes",
                "16",
                "--file",
                str(BROKEN),
            ]
        )
        == 1
    )
    assert "Deadlock: Rank 0 waits for rank 1" in capsys.readouterr().out


def test_a_kernel_that_the_kit_does_not_have_is_told(capsys):
    assert main(["simulate", "bcast_by_magic"]) == 1
    assert "the kit has no such kernel; it has bcast_" in capsys.readouterr().err


def test_without_simgrid_the_command_says_what_brings_it(capsys, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert main(["simulate", "bcast_binomial", "--platform", "flat-1x4"]) == 1
    told = capsys.readouterr().err
    assert "smpirun: not on PATH, so nothing can be simulated. It is part of SimGrid: " in told
    assert "libsimgrid-dev" in told or "simgrid" in told.rpartition("part of SimGrid")[2]
