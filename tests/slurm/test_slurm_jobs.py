"""The scripts of slurm/, on a real Slurm of two nodes."""

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import class_run
import nbformat
import pytest
from real_slurm import LOOK_S, traces

from mpilab.hosts.slurm import FENCE
from mpilab.kernels.build import KERNELS, need
from mpilab.measure.sweep_table import read as read_sweep

pytestmark = [pytest.mark.slow, pytest.mark.privileged]

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "slurm"
LAB = "02-allgather"
CLASS = ROOT / "grading" / "sample-class"
STUDENTS = ("ada", "ben", "eva", "hugo", "kim", "lena")  # of it, graded as a job array
# Half a minute on an idle machine.
GRADING_S = 900.0


def await_that(condition, what, seconds=60.0):
    """Wait for an unannounced action of another program."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds:g} s"
        time.sleep(LOOK_S)


def ends_well(slurm, job, folder):
    """Wait for a job, which must end with 0; return what it printed."""
    states = slurm.wait(job)
    said = "\n".join(path.read_text() for path in sorted(folder.glob(f"*{job}.out")))
    assert set(states.values()) == {"COMPLETED"}, f"{states}\n{said}"
    return said


@pytest.mark.parametrize("launcher", ["mpirun", "srun"])
def test_a_kernel_runs_on_both_nodes_and_knows_their_switches(slurm, tmp_path, launcher):
    """The hosts that it names are those in the ranks' recordings."""
    job = slurm.submit(
        SCRIPTS / "kernel.sbatch",
        "bcast_node_group",
        "--count",
        "1K",
        cwd=tmp_path,
        env={"MPILAB_LAUNCHER": launcher},
    )
    said = ends_well(slurm, job, tmp_path)
    assert "hosts:    s0.s1: n1 (0 1); s0.s2: n2 (2 3)\n" in said
    assert "right on every rank" in said
    assert "1 message, 4096 bytes between nodes; 1 message, 4096 bytes between groups" in said
    assert [path.name for path in tmp_path.iterdir()] == [f"mpilab-kernel-{job}.out"]


# What a kernel learns in C, from Slurm alone: "rank node group".
PLACES = """
import ctypes, sys
from mpi4py import MPI
class Place(ctypes.Structure):
    _fields_ = [("node", ctypes.c_char * 256), ("group", ctypes.c_char * 256)]
library = ctypes.CDLL(sys.argv[1])
library.mpilab_place.restype = ctypes.POINTER(Place)
place = library.mpilab_place().contents
print(MPI.COMM_WORLD.rank, place.node.decode(), place.group.decode())
"""


def test_under_srun_mpilab_place_has_its_group_from_slurm_s_topology(slurm, tmp_path):
    (tmp_path / "places.py").write_text(PLACES)
    command = f"srun --mpi=pmix {sys.executable} places.py {need(KERNELS)}"
    settings = FENCE | {
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_btl": "self,sm,tcp",
        "OMPI_MCA_osc": "^ucx",
    }
    job = slurm.submit(
        "-N2",
        "--ntasks-per-node=2",
        "-o",
        "%j.out",
        "--wrap",
        command,
        cwd=tmp_path,
        env=settings,
    )
    said = sorted(ends_well(slurm, job, tmp_path).splitlines())
    assert said == ["0 n1 s0.s1", "1 n1 s0.s1", "2 n2 s0.s2", "3 n2 s0.s2"]


def test_a_sweep_that_runs_out_of_time_is_requeued_and_goes_on_where_it_was(slurm, tmp_path):
    """The signal is the one that Slurm sends a minute before the time limit."""
    table = tmp_path / "bcast.csv"
    job = slurm.submit(
        SCRIPTS / "sweep.sbatch",
        "bcast",
        "--sizes",
        "1,64,4K,64K",
        "--algorithms",
        "ours:chain,ours:binomial,openmpi:binomial",
        "--repetitions",
        "800",
        "-o",
        table.name,
        cwd=tmp_path,
    )
    await_that(lambda: table.exists() and len(table.read_bytes().splitlines()) > 2, "a first row")
    slurm.command("scancel", "--batch", "--signal=USR1", job)
    log = tmp_path / f"mpilab-sweep-{job}.out"
    await_that(lambda: "the rest goes into the queue" in log.read_text(), "the script's word")
    await_that(lambda: slurm.states(job) == {job: "PENDING"}, "the job in the queue again")
    first = table.read_bytes()
    # A requeued job waits for minutes, so that a broken node does not take it again. A node rejects
    # it in the second in which its first run was ended: credentials are compared in whole seconds.
    slurm.command("scontrol", "update", f"JobId={job}", "StartTime=now+2")
    said = ends_well(slurm, job, tmp_path)
    assert said.count(f"job {job}: 2 nodes (n[1-2])") == 2
    rows = read_sweep(table)
    assert table.read_bytes().startswith(first.rpartition(b"\n")[0])
    points = {(row["library"], row["algorithm"], row["bytes"]) for row in rows}
    assert len(points) == 12
    assert len(rows) == 12 * 800
    assert 0 < len(first.splitlines()) < len(table.read_bytes().splitlines())


CELLS = [
    "import mpilab, socket\n%load_ext mpilab\ncluster = mpilab.Cluster(4, progress=False).start()",
    "print(cluster.names, cluster.levels.groups, set(cluster.apply(socket.gethostname)))",
    """%%kernel bcast_mine
#include "mpilab.h"
int bcast_mine(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (rank != root)
        return MPI_Recv(buffer, count, datatype, root, 1, comm, MPI_STATUS_IGNORE);
    for (int other = 0; other < size; other++)
        if (other != root)
            MPI_Send(buffer, count, datatype, other, 1, comm);
    return MPI_SUCCESS;
}""",
    "print(mpilab.run('bcast_mine'))",
    "from mpilab.errors import EngineDied\n"
    "def die(rank):\n"
    "    import os, signal\n"
    "    from mpi4py import MPI\n"
    "    if MPI.COMM_WORLD.rank == rank:\n"
    "        os.kill(os.getpid(), signal.SIGSEGV)\n"
    "    MPI.COMM_WORLD.barrier()\n"
    "try:\n"
    "    cluster.apply(die, 3)\n"
    "except EngineDied as error:\n"
    "    print(error)\n",
    "cluster.restart()\nprint(mpilab.run('allgather_ring'))\ncluster.stop()",
]


def test_a_notebook_has_its_engines_on_both_nodes_also_after_a_crash(slurm, tmp_path):
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "", "language": "python"}
    nbformat.write(notebook, tmp_path / "in.ipynb")
    job = slurm.submit(SCRIPTS / "notebook.sbatch", "in.ipynb", "out.ipynb", cwd=tmp_path)
    ends_well(slurm, job, tmp_path)
    executed = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    said = ["".join(out.get("text", "") for out in cell.outputs) for cell in executed.cells]
    assert said[1].startswith("('n1', 'n1', 'n2', 'n2') 2 ")
    assert "'n1'" in said[1].partition("{")[2] and "'n2'" in said[1].partition("{")[2]
    assert "s0.s1: n1 (0 1); s0.s2: n2 (2 3)" in said[3] and "right on every rank" in said[3]
    assert "2 messages, 32 bytes between nodes" in said[3]
    assert said[4].startswith("rank 3 died of SIGSEGV")
    assert "right on every rank" in said[5]
    assert {path.name for path in tmp_path.iterdir()} == {
        "in.ipynb",
        "out.ipynb",
        f"mpilab-notebook-{job}.out",
    }


@pytest.mark.timeout(2 * GRADING_S + 60)
def test_a_class_graded_as_a_job_array_has_the_marks_of_one_graded_here(slurm, tmp_path):
    """Share 2 fails at first: its students are listed as ungradable. Submitted again, the array
    grades them alone, and the marks are those of the sample class, to the byte."""
    out, half = tmp_path / "out", tmp_path / "half of the class"
    for student in STUDENTS:
        shutil.copytree(CLASS / student, half / student)

    def submit():
        said = slurm.command(
            SCRIPTS / "submit-class.sh", half, LAB, out, 3, "--jobs", 2, cwd=tmp_path
        )
        return re.findall(r"job (\d+)", said)

    array, merge = submit()
    failing = f"{array}_2"
    await_that(lambda: slurm.states(array).get(failing) == "RUNNING", "share 2 at work")
    slurm.command("scancel", failing)
    states = slurm.wait(array, merge, seconds=GRADING_S)
    assert states == {
        f"{array}_1": "COMPLETED",
        failing: "CANCELLED",
        f"{array}_3": "COMPLETED",
        merge: "FAILED",
    }
    graded = {path.stem for path in (out / "shares" / "2" / "feedback").glob("*.html")}
    lost = set(STUDENTS[1::3]) - graded
    first = (out / "grades.csv").read_text().splitlines()
    assert {line.partition(",")[0] for line in first[1:]} == set(STUDENTS)
    listed = {line.partition(",")[0] for line in first if line.endswith(",ungradable")}
    assert lost and listed >= lost and listed - lost <= {"lena"}
    assert f"NOT GRADED: {', '.join(sorted(lost))}" in (out / "logs" / "merge.out").read_text()

    array, merge = submit()
    assert set(slurm.wait(array, merge, seconds=GRADING_S).values()) == {"COMPLETED"}, slurm.logs()
    head, *rows = (CLASS / "expected.csv").read_bytes().splitlines(keepends=True)
    rows = [row for row in rows if row.partition(b",")[0].decode() in STUDENTS]
    assert (out / "grades.csv").read_bytes() == head + b"".join(rows)
    assert {path.stem for path in (out / "feedback").iterdir()} == set(STUDENTS)
    again = (out / "logs" / "share-1.out").read_text()
    assert "0 of 2 submissions graded" in again and "sandbox: bubblewrap" in again


def test_the_class_run_grades_on_slurm_and_samples_the_memory_of_its_jobs(
    slurm, tmp_path, monkeypatch
):
    shutil.copytree(CLASS / "kim", tmp_path / "class" / "kim")
    for name, value in slurm.environment.items():
        monkeypatch.setenv(name, value)
    step = class_run.run_on_slurm(2, tmp_path)
    assert "\nkim,02-allgather," in (tmp_path / "out" / "grades.csv").read_text()
    assert step.processor is None and step.largest > 20 * class_run.MIB
    row = class_run.table(1, [step]).splitlines()[2]
    assert row.startswith("| `slurm/submit-class.sh class 02-allgather out 2` |") and " - |" in row


def test_a_command_can_be_run_in_a_slurm_of_four_nodes(slurm):
    command = [sys.executable, Path(__file__).with_name("real_slurm.py"), "--nodes", "4"]
    asked = [*command, "sinfo", "-h", "-o", "%D %N"]
    done = subprocess.run(asked, capture_output=True, text=True)
    assert done.stdout.strip() == "4 n[1-4]", done.stderr


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from real_slurm import RealSlurm
with RealSlurm() as slurm:
    print(slurm.folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_slurm_whose_owner_was_killed_leaves_no_process_and_no_mount(slurm):
    here = str(Path(__file__).parent)
    end = subprocess.run([sys.executable, "-c", KILLED, here], capture_output=True, text=True)
    folder = Path(end.stdout.strip())
    assert folder.is_dir(), end.stderr
    await_that(lambda: traces(folder) == [str(folder)], "the end of its daemons", seconds=20)
    shutil.rmtree(folder)
