"""The file that Cannon's algorithm writes appears complete or not at all, and nothing else
changes."""

import os
import subprocess
import sys

import numpy as np
import pytest

from mpilab.errors import InputError, MpilabError
from mpilab.kernels import build, openmpi
from mpilab.measure.dataset import DATA
from mpilab.mpiio import cannon, files
from mpilab.mpiio.files import elements
from mpilab.util import kit

A, B, C = (DATA / "matrices" / f"{name}-16x16.bin" for name in "abc")
WHOLE = A.read_bytes()


def test_a_link_is_followed_and_the_file_keeps_its_mode(tmp_path):
    (tmp_path / "place").mkdir()
    target, link = tmp_path / "place" / "kept", tmp_path / "c"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to("place/kept")
    cannon.run(3, 4, A, B, link)
    assert link.is_symlink() and target.read_bytes() == C.read_bytes()
    assert target.stat().st_mode & 0o777 == 0o640
    cannon.run(1, 1, A, B, tmp_path / "new")
    (tmp_path / "usual").touch()
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode
    (tmp_path / "dead").symlink_to("nowhere")
    with pytest.raises(InputError, match="dead: is a link that leads nowhere: No such file or dir"):
        cannon.run(2, 1, A, B, tmp_path / "dead")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [
        "c",
        "dead",
        "new",
        "place",
        "usual",
    ]
    assert [entry.name for entry in (tmp_path / "place").iterdir()] == ["kept"]


@pytest.mark.parametrize("stage", cannon.STAGES)
def test_a_matrix_whose_name_is_like_that_of_an_unfinished_file_is_left_alone(tmp_path, stage):
    mine = tmp_path / "c.part"
    mine.write_bytes(WHOLE)
    cannon.run(stage, 4, mine, B, tmp_path / "c")
    assert mine.read_bytes() == WHOLE
    assert (tmp_path / "c").read_bytes() == C.read_bytes()


# Rank 1 fails in the middle of a run, as if MPI had found something wrong.
FAILING = """
#include <mpi.h>
int PMPI_Sendrecv_replace(void *buffer, int count, MPI_Datatype type, int dest, int sendtag,
                          int source, int recvtag, MPI_Comm comm, MPI_Status *status)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1) {
        MPI_Comm_call_errhandler(comm, MPI_ERR_TRUNCATE);
        return MPI_ERR_TRUNCATE;
    }
    return PMPI_Recv(buffer, count, type, source, recvtag, comm, status);
}
"""


@pytest.mark.parametrize("is_recorded", [False, True])
def test_an_error_of_mpi_on_one_rank_ends_all_and_leaves_nothing(tmp_path, is_recorded):
    source, library, out = tmp_path / "failing.c", tmp_path / "failing.so", tmp_path / "out"
    source.write_text(FAILING)
    command = [openmpi.tool("mpicc"), "-shared", "-fPIC", "-o", str(library), str(source)]
    subprocess.run(command, check=True)
    report = tmp_path / "report"
    out.mkdir()
    report.mkdir()
    said = subprocess.run(
        [
            openmpi.tool("mpirun"),
            "--timeout",
            "25",
            "-n",
            "4",
            "-x",
            f"LD_PRELOAD={library}",
            str(build.CANNON_PROGRAM),
            "3",
            str(A),
            str(B),
            str(out / "c"),
            *([str(report)] if is_recorded else []),
        ],
        env=openmpi.environment(4),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert said.returncode == 2, said.stderr
    assert "mpilab-cannon: rank 1: a call of MPI failed: MPI_ERR_TRUNCATE" in said.stderr
    assert list(out.iterdir()) == []


@pytest.mark.privileged
@pytest.mark.parametrize("stage", [1, 3])
def test_a_disk_without_room_is_found_before_anything_is_computed(tmp_path, stage, namespaces):
    """Open MPI 5.0.11 counts what did not fit as written: C would look complete without being
    so."""
    script = 'mount -t tmpfs -o size=64k none "$0" && "$@"; echo "status $?"; ls -A "$0"'
    files.write(tmp_path / "tall", elements(0, 200, 1).reshape(200, 1))
    files.write(tmp_path / "wide", elements(0, 200, 2).reshape(1, 200))
    (tmp_path / "disk").mkdir()
    command = [sys.executable, "-m", "mpilab", "cannon", str(stage), "tall", "wide", "-o", "disk/c"]
    said = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, "disk", *command],
        cwd=tmp_path,
        text=True,
        env=os.environ | {"PYTHONPATH": str(kit.ROOT)},
        capture_output=True,
        timeout=300,
    )
    assert "disk/c: no room for 320008 bytes: No space left on device; free some" in said.stderr
    assert said.stdout == "status 1\n"


def test_a_run_that_takes_too_long_is_ended(tmp_path):
    for name in "ab":
        files.write(tmp_path / name, np.ones((1500, 1500)))
    with pytest.raises(
        MpilabError, match=("not finished within its time limit.* its limit was 0.3 s: use")
    ):
        cannon.run(1, 1, tmp_path / "a", tmp_path / "b", tmp_path / "c", limit=0.3)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a", "b"]
