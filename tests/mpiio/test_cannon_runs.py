"""What a run of Cannon's algorithm reports: calls, phases, time in MPI, memory."""

import re
from types import SimpleNamespace

import numpy as np

from mpilab.measure.dataset import DATA
from mpilab.mpiio import cannon, files
from mpilab.plots.timeline import timeline
from mpilab.trace.recording import RECORD, operations

A, B = (DATA / "matrices" / f"{name}-16x16.bin" for name in "ab")


def calls(run, rank, *names):
    """Records of these calls of a rank."""
    records = run.recording.ranks[rank].records
    return records[[operations()[int(number)] in names for number in records["operation"]]]


def test_stage_1_sends_sizes_and_blocks_from_rank_0_one_by_one():
    run = cannon.run(1, 4, A, B)
    assert run.recording.complete
    sent = calls(run, 0, "MPI_Send")
    assert sent["peer"].tolist() == [1, 2, 3, 3, 2, 1, 3, 2, 1]
    assert sent["bytes"].tolist() == [12] * 3 + [8 * 8 * 8] * 6
    assert [len(calls(run, rank, "MPI_Recv")) for rank in range(4)] == [3, 3, 3, 3]
    # One skew and one shift of A and B each; on 2 x 2, row 0 and column 0 stay where they are.
    shifts = [len(calls(run, rank, "MPI_Sendrecv_replace")) // 2 for rank in range(4)]
    assert shifts == [2, 3, 3, 4]
    # The timeline shows the lines of the program.
    assert re.search(
        "MPI_Send to rank 3, tag 12, 512 B, stage_1.c, line [0-9]+",
        timeline(run.recording).to_json(),
    )


def test_stage_2_broadcasts_the_sizes_scatters_twice_and_gathers_once():
    run = cannon.run(2, 4, A, B)
    for rank in range(4):
        names = ("MPI_Bcast", "MPI_Scatter", "MPI_Gather", "MPI_Send", "MPI_Recv")
        found = [operations()[int(call["operation"])] for call in calls(run, rank, *names)]
        assert found == ["MPI_Bcast", "MPI_Scatter", "MPI_Scatter", "MPI_Gather"]


def test_stage_3_reads_and_writes_every_byte_once():
    run = cannon.run(3, 9, A, B)
    for name, total in (("MPI_File_read_all", 2 * 2048), ("MPI_File_write_all", 2048)):
        asked = [calls(run, rank, name)["bytes"].sum() for rank in range(9)]
        assert sum(asked) == total
        assert asked[0] == total // 2048 * 6 * 6 * 8 and asked[8] == total // 2048 * 4 * 4 * 8


def test_a_run_tells_its_phases_and_what_of_them_was_in_mpi():
    run = cannon.run(2, 4, A, B)
    begins_and_ends = run.phases_ns.reshape(4, 6)
    assert (np.diff(begins_and_ends, axis=1) >= 0).all()
    lasted = (run.phases_ns[:, :, 1] - run.phases_ns[:, :, 0]) / 1e9
    assert (run.mpi_seconds > 0).all() and (run.mpi_seconds <= lasted).all()
    assert 0 < run.io_share < 1
    assert cannon.run(1, 1, A, B).io_share == 0


def test_calls_within_others_and_across_phases_count_once():
    records = np.zeros(4, RECORD)
    records["begin_ns"] = [100, 120, 400, 900]
    records["end_ns"] = [300, 200, 700, 0]  # one lies within another, one never returned
    recording = SimpleNamespace(ranks=[SimpleNamespace(records=records)])
    phases = np.array([[[0, 250], [250, 500], [500, 1000]]])
    np.testing.assert_allclose(
        cannon.mpi_seconds(recording, phases) * 1e9, [[150, 50 + 100, 200]], rtol=1e-12
    )


def test_without_a_rank_that_holds_it_all_no_rank_needs_much_memory(tmp_path):
    """A has 16 MiB, B 8 MiB, C next to nothing."""
    files.write(tmp_path / "a", np.ones((64, 32768)))
    files.write(tmp_path / "b", np.ones((32768, 32)))
    used = {}
    for stage in (1, 3):
        run = cannon.run(stage, 4, tmp_path / "a", tmp_path / "b")
        used[stage] = run.peak_bytes - run.base_bytes
    assert used[1][0] > 24 << 20
    assert used[3].max() < 24 << 20 > used[1][1:].max()


def test_what_the_worksheet_reports_is_there():
    assert cannon.published().tolist() == [(1, 4096, 96.0), (3, 4096, 38.0)]
