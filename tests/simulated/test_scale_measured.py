"""The measured cost of simulations, and the page that shows it."""

import subprocess
import sys

import numpy as np
import pytest

from mpilab.errors import InputError
from mpilab.measure import scale
from mpilab.measure.scale import KERNELS, RANKS, ROW, as_text, growth, main, read
from mpilab.notebook.simulated import scaling
from mpilab.runners.simgrid import Memory
from mpilab.util.kit import ROOT
from mpilab.util.text import filled, put

TWO = ("bcast_binomial", "alltoallv_leaders")


def made_up(ranks, seconds=1.0, mib=100, why="", kernel="bcast_binomial"):
    return (
        "2026-11-21",
        "a machine",
        kernel,
        "fat-tree",
        ranks,
        65536,
        ranks - 1,
        1000 * ranks,
        mib << 20,
        why,
        seconds,
        seconds,
    )


def test_rows_come_into_the_file_one_by_one_and_others_stay(tmp_path, capsys):
    file = tmp_path / "scale.csv"
    main([str(file), "--ranks", "16", "--kernels", "barrier_dissemination"])
    main([str(file), "--ranks", "16,32", "--kernels", ",".join(TWO)])
    rows = read(file)
    assert rows[["kernel", "ranks"]].tolist() == [
        ("barrier_dissemination", 16),
        ("bcast_binomial", 16),
        ("bcast_binomial", 32),
        ("alltoallv_leaders", 16),
        ("alltoallv_leaders", 32),
    ]
    assert not any(rows["why"])
    assert (rows["wall_s"] > 0).all()
    # Times and messages are those of 'mpilab simulate', which counts them in a recording.
    for row in rows[rows["ranks"] == 16]:
        (found,) = scaling(row["kernel"], [KERNELS[row["kernel"]]], row["platform"])
        assert row["simulated_ns"] == round(found.seconds * 1e9)
        assert row["messages"] == found.messages
    assert as_text(rows) in capsys.readouterr().out


def test_a_simulation_that_takes_too_much_memory_or_time_is_ended_and_its_row_says_so():
    (hungry,) = scale.measure([256], ["allreduce_ring"], memory=1 << 20)
    assert hungry["why"].startswith("ended at ")
    assert hungry["why"].endswith("of memory; 1 MiB were available")
    (slow,) = scale.measure([256], ["allreduce_ring"], limit=0.01)
    assert slow["why"] == "ended after 0.01 s"
    assert (slow["simulated_ns"], slow["peak_bytes"]) == (-1, -1)
    assert np.isnan(slow["wall_s"])


def test_memory_is_that_of_a_process_and_all_below_it():
    hoarder = "b = bytearray(60 << 20); print(flush=True); input()"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hoarder!r}])"
    process = subprocess.Popen(
        [sys.executable, "-c", outer],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    process.stdout.readline()
    with Memory(process.pid, 1 << 30) as used:
        process.communicate(b"\n")
    assert used.peak > 60 << 20
    assert not used.exceeded
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("before", "ranks", "why"),
    [
        ([made_up(16, 1.0), made_up(64, 20.0)], 256, "about 400 s expected, 60 s"),
        (
            [made_up(16, 1e-3, 100), made_up(64, 2e-3, 400)],
            256,
            r"about 1.562 GiB expected, 1 GiB allowed",
        ),
        ([made_up(16), made_up(64, why="ended after 60 s")], 256, "already too much on 64 ranks"),
    ],
)
def test_what_would_take_too_much_by_its_growth_is_not_begun(before, ranks, why):
    (row,) = scale.measure([ranks], ["bcast_binomial"], memory=1 << 30, before=before)
    assert why in row["why"]
    assert row["messages"] == ranks - 1


def test_growth_is_the_power_of_the_ranks_and_unknown_beside_a_gap():
    rows = np.array(
        [made_up(16, 1.0), made_up(64, 8.0), made_up(256, why="ended"), made_up(1024, 9.0)], ROW
    )
    assert growth(rows, "wall_s") == pytest.approx([1.5, np.nan, np.nan], nan_ok=True)
    text = as_text(rows)
    assert "| `bcast_binomial` | 65,536 | 1 s | 8 s (P^1.5) | - | 9 s |" in text
    assert "| `bcast_binomial` | 65,536 | 1 s | 8 s | - | 9 s |" in text
    assert "| `bcast_binomial` | 65,536 | 15 | 63 (P^1.0) | 255 (P^1.0) | 1,023 (P^1.0) |" in text
    assert "- `bcast_binomial` on 256 ranks: ended" in text


def test_overall_growth_is_from_256_ranks_to_the_most_that_were_measured():
    some = [made_up(64, 1.0), made_up(256, 2.0), made_up(1024, 4.0)]
    text = as_text(np.array([*some, made_up(4096, why="too much")], ROW))
    assert "| `bcast_binomial` | 1,024 | P^0.50 | " in text
    assert "Growth from P = 256" in text
    text = as_text(np.array(some[:2], ROW))
    assert "| `bcast_binomial` | 256 | P^" not in text


@pytest.mark.parametrize(
    ("ranks", "names", "told"),
    [
        ([16], ["bcast_magic"], "kernel 'bcast_magic': use some of barrier_dissemination"),
        ([12], ["bcast_binomial"], "ranks=12: hosts have 8 ranks"),
        ([8192], ["bcast_binomial"], "ranks=8192: .* at most 4096"),
    ],
)
def test_what_is_not_measured_is_told(ranks, names, told):
    with pytest.raises(InputError, match=told):
        scale.measure(ranks, names)


def test_our_figures_have_a_row_or_a_reason_for_each_kernel_and_number_of_ranks():
    rows = read()
    assert set(rows[["kernel", "ranks"]].tolist()) == {(k, p) for k in KERNELS for p in RANKS}
    measured = rows["why"] == ""
    assert (measured == (rows["simulated_ns"] > 0)).all()
    assert measured[rows["ranks"] <= 256].all()


def test_the_page_shows_the_files_of_data():
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    assert filled(page, scale.tables()) == page, "run 'make refresh'"


def test_a_page_without_marks_is_told():
    with pytest.raises(InputError, match="the markers <!-- scale: begin --> and .* add them to"):
        put("no marks", "scale", "a table")
