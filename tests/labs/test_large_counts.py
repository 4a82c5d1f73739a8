"""Reference solutions with more bytes or elements than an int can count."""

import pytest
from c_kernels import PREAMBLE, build, run, source_of
from lab_notebook import ROOT, LabNotebook

from mpilab.grading.release import solutions
from mpilab.kernels.build import split
from mpilab.runners.result import DONE

# Each returns MPI_SUCCESS if the reference worked correctly.
BODIES = {
    # Two blocks of 1 GiB to send, and two to receive: 2^31 bytes, with one int in memory.
    "by_leaders": """
    const int counts[] = {1, 1}, places[] = {0, 0};
    int element = 0;
    MPI_Datatype wide;
    MPI_Type_create_hvector(1 << 28, 1, 0, MPI_INT, &wide);
    MPI_Type_commit(&wide);
    const int err = alltoallv_by_leaders(&element, counts, places, wide, &element, counts, places,
                                         wide, comm);
    MPI_Type_free(&wide);
    return err == MPI_ERR_COUNT ? MPI_SUCCESS : MPI_ERR_OTHER;
""",
    # A segment of 2^32 bytes.
    "pipeline": """
    char data[5] = "mpil";
    if (rank > 0)
        memset(data, 0, sizeof data);
    mpilab_tuning.segment_bytes = 1L << 32;
    const int err = bcast_pipeline(data, 5, MPI_CHAR, 0, comm);
    mpilab_tuning.segment_bytes = 0;
    return err != MPI_SUCCESS ? err : strcmp(data, "mpil") == 0 ? MPI_SUCCESS : MPI_ERR_OTHER;
""",
    # Ranks 2 and 3 together have 2^31 elements, without a byte.
    "gather_binomial": """
    MPI_Datatype empty;
    char data = 0;
    MPI_Type_contiguous(0, MPI_CHAR, &empty);
    MPI_Type_commit(&empty);
    const int err = gather_binomial(&data, 1 << 30, empty, &data, 1 << 30, empty, 0, comm);
    MPI_Type_free(&empty);
    return err;
""",
    "scatter_binomial": """
    MPI_Datatype empty;
    char data = 0;
    MPI_Type_contiguous(0, MPI_CHAR, &empty);
    MPI_Type_commit(&empty);
    const int err = scatter_binomial(&data, 1 << 30, empty, &data, 1 << 30, empty, 0, comm);
    MPI_Type_free(&empty);
    return err;
""",
}


def reference(name):
    """The C text of a reference solution, without its first line."""
    by_exercise = {"by_leaders": "04-topology", "pipeline": "01-collective-algorithms"}
    if name in by_exercise:
        cell = solutions(LabNotebook(by_exercise[name]).source)[name]
    else:
        folder = ROOT / "grading" / "01-collective-algorithms" / "reference"
        cell = (folder / f"{name}.c").read_text(encoding="utf-8")
    return split(cell)[1]


@pytest.mark.parametrize(
    ("name", "ranks"),
    [("by_leaders", 2), ("pipeline", 2), ("gather_binomial", 4), ("scatter_binomial", 4)],
)
def test_a_reference_solution_counts_beyond_an_int(tmp_path, name, ranks):
    text = source_of({name: BODIES[name]}, PREAMBLE + reference(name))
    result = run(build(text, tmp_path).library, name, ranks=ranks)
    assert result.outcome == DONE, result.detail
    assert [output.returned for output in result.outputs] == [0] * ranks
