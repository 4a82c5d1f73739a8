"""Readers side by side: their accounts are correct, and measurements are recorded."""

from dataclasses import replace

import numpy as np
import pytest

from mpilab import bench
from mpilab.bench import figures
from mpilab.cases.distribution import distribution
from mpilab.cli import main
from mpilab.cli.matrices import as_text
from mpilab.errors import InputError, MpilabError
from mpilab.kernels.build import build
from mpilab.models.file_access import STORAGE
from mpilab.mpiio import readers
from mpilab.mpiio.readers import READERS, Reader, chosen, speed_ups

MATRIX, RANKS, BUFFER = "256x256", 4, 16384
WHOLE = distribution(MATRIX, RANKS).bytes
# Reads of other files of a rank in a call (pipes and sockets of MPI's own threads); usually none.
OTHERS = 16


@pytest.fixture(scope="module")
def accounts():
    found = readers.count(MATRIX, RANKS, buffer=BUFFER, aggregators=2)
    return {account.reader.name: account for account in found}


def test_each_reader_asks_for_as_much_as_its_formula_says(accounts):
    assert list(accounts) == [reader.name for reader in READERS]
    assert {
        name: (one.requests, one.bytes, one.largest, one.asking)
        for name, one in accounts.items()
        if "view" not in name
    } == {
        "scatter": (WHOLE // BUFFER, WHOLE, BUFFER, 1),
        # A row of each rank's part at a time.
        "strided": (4 * 128, WHOLE, 128 * 8, 4),
        # Of all rows of its part, all but the half of one that is another rank's.
        "sieving": (4 * 16, 2 * WHOLE - 4 * 1024, BUFFER, 4),
        "two_phase": (WHOLE // BUFFER, WHOLE, BUFFER, 2),
        "two_phase_alltoallv": (WHOLE // BUFFER, WHOLE, BUFFER, 2),
    }
    for one in accounts.values():
        assert one.bytes >= WHOLE and one.most_requests * one.asking >= one.requests
        assert set(one.modeled) == set(STORAGE) and min(one.modeled.values()) > 0
        # The system's own count, which includes pipes and sockets.
        assert 0 <= one.read_calls - one.requests <= OTHERS * RANKS
    for mpi_io in ("OMPIO", "ROMIO"):
        collective = accounts[f"view_all ({mpi_io})"]
        assert (collective.requests, collective.asking) == (WHOLE // BUFFER, 2)


def test_without_a_wish_the_collective_read_of_romio_has_one_rank_read_for_all():
    (one,) = readers.count(MATRIX, RANKS, [Reader("view_all", "romio")], buffer=BUFFER)
    assert (one.requests, one.asking) == (WHOLE // BUFFER, 1)


def test_read_calls_that_the_system_does_not_tell_are_unknown(accounts):
    untold = replace(accounts["strided"], read_calls=None)
    cells = [word.strip() for word in as_text([untold]).splitlines()[-1].split("|")]
    header = [word.strip() for word in as_text([untold]).splitlines()[0].split("|")]
    assert cells[header.index("read calls")] == "unknown"


def test_what_is_measured_is_written_and_read_again(tmp_path):
    rows = readers.measure(("64x64",), (4,), repetitions=2)
    every = {*READERS, *readers.RIVALS}
    assert len(rows) == len(every) * 2 * 2 and (rows["seconds"] > 0).all()
    assert (rows["resident"][rows["cold"] == 0] == 1).all()
    assert (rows["bytes"] >= 64 * 64 * 8).all() and set(rows["repetition"]) == {1, 2}
    readers.write(rows, tmp_path / "reads.csv")
    again = readers.read(tmp_path / "reads.csv")
    for cold in (0, 1):
        seconds = readers.seconds_of(again[again["cold"] == cold])
        assert set(seconds) == every
        before = readers.seconds_of(rows[rows["cold"] == cold])
        assert speed_ups(seconds) == pytest.approx(speed_ups(before), rel=1e-2)


def test_a_two_phase_read_is_held_against_the_better_collective_read_of_its_own_run():
    seconds = {
        Reader("two_phase", "ompio"): (1.0, 2.0),
        Reader("view_all", "ompio"): (3.0, 2.0),
        Reader("two_phase", "romio"): (1.0, 1.0),
        Reader("view_all", "romio"): (2.0, 4.0),
    }
    assert speed_ups(seconds) == [2.0, 1.0]


def test_the_figure_compares_what_is_right(monkeypatch):
    monkeypatch.setattr(figures, "MATRIX", "64x64")
    measure, *_ = bench.FIGURES["two_phase_vs_read_all"]
    ratios = measure(repetitions=2)
    assert len(ratios) == 2 and (np.array(ratios) > 0).all()


def test_a_reader_that_reads_something_else_is_not_counted(monkeypatch, tmp_path):
    lazy = """#include <mpilab.h>
MPILAB_READ(strided)
{
    (void)file, (void)matrix, (void)part, (void)comm;
    return MPI_SUCCESS;
}
"""
    library = build(lazy, tmp_path).library
    monkeypatch.setattr(readers, "need", lambda _: library)
    with pytest.raises(MpilabError, match="strided of 8x8: rank 0: block 0 is wrong"):
        readers.count("8x8", 2, [Reader("strided")])


def test_readers_are_chosen_by_name():
    assert chosen("all") == list(READERS)
    assert [one.name for one in chosen("two_phase, view_all")] == [
        "view_all (OMPIO)",
        "view_all (ROMIO)",
        "two_phase",
    ]
    with pytest.raises(InputError, match="reader 'mmap': unknown; write 'all' or some of scatter"):
        chosen("mmap")


@pytest.mark.parametrize(
    "words, said",
    [
        (
            "--matrix 2000000000x2000000000",
            "rank 0 would have 1000000000000000000 elements, but MPI ",
        ),
        (
            "--matrix 65536x32768 --ranks 1",
            "rank 0 would have 2147483648 elements, but MPI counts up",
        ),
        ("--matrix 8x8 --ranks 0", "ranks=0: must be 1 or more"),
        ("--matrix 8x8 --buffer 2G", "buffer=2147483648: MPI-IO accepts only buffers below 2 GiB"),
        (
            "--matrix 8x8 --repetitions -2",
            "--repetitions -2: must be 1 or more, or 0 to count only",
        ),
        ("--matrix 8x8 --repetitions 0 --cold", "--repetitions 0: must be 1 or more with --cold"),
    ],
)
def test_what_cannot_be_read_or_timed_is_refused(words, said, capsys):
    assert main(["reads", *words.split()]) == 1
    assert said in capsys.readouterr().err


def test_no_repetition_is_no_timing(capsys):
    with pytest.raises(InputError, match="repetitions=0: must be 1 or more"):
        readers.time("8x8", 1, repetitions=0)
    assert main(["reads", "--matrix", "8x8", "--readers", "strided", "--repetitions", "0"]) == 0
    title, *_, row = capsys.readouterr().out.splitlines()
    assert title == "8x8 doubles on 4 ranks; not timed" and "| not timed |" in row


def test_the_command_shows_a_row_for_each_reader(capsys):
    assert (
        main(
            [
                "reads",
                "--matrix",
                "48x40",
                "--readers",
                "strided,two_phase",
                "--buffer",
                "4K",
                "--aggregators",
                "3",
                "--repetitions",
                "1",
                "--no-progress",
            ]
        )
        == 0
    )
    title, _, header, _, strided, two_phase = capsys.readouterr().out.splitlines()
    assert title == "48x40 doubles on 4 ranks; the file was in the page cache"
    assert header.startswith("| reader | requests | most of a rank | ranks that ask | bytes |")
    assert strided.startswith("| strided | 96 | 24 | 4 | 15 KiB | 160 B | ")
    # 640 elements of each aggregator, 512 of them in a buffer.
    assert two_phase.startswith("| two_phase | 6 | 2 | 3 | 15 KiB | 4 KiB | ")
