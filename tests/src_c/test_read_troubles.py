"""The read kernels, monitored: the memory that they take, the view that they leave, and what they
return if a file ends too early, a rank has no memory or a part is too large.
"""

import shutil

import pytest

from mpilab.cases.case import MOST_BUFFER, Case
from mpilab.cases.distribution import distribution
from mpilab.kernels.build import compile_object, link
from mpilab.kernels.openmpi import MPI_IO
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE
from mpilab.util.kit import ROOT
from tests.src_c.counted_memory import build_counted
from tests.src_c.test_read_kernels import BUFFERED, READERS, check_parts

# What the kernels below return instead of errors of class MPI_ERR_IO, _NO_MEM and _COUNT.
SHORT, POOR, VAST = 77, 78, 79
ERR_TYPE = 3  # MPI_ERR_TYPE of Open MPI
MORE_ROWS = 5
BUFFERS = {
    "scatter": 2,
    "strided": 0,
    "view": 0,
    "sieving": 1,
    "two_phase": 3,
    "two_phase_alltoallv": 2,
    "view_all": 0,
}
WATCHED = """
#include "matrix.h"

enum { TABLES = 1 << 14, SHORT = 77, POOR, VAST };

static int named(int err)
{
    int class = MPI_SUCCESS;
    if (err != MPI_SUCCESS)
        MPI_Error_class(err, &class);
    return class == MPI_ERR_IO       ? SHORT
           : class == MPI_ERR_NO_MEM ? POOR
           : class == MPI_ERR_COUNT  ? VAST
                                     : err;
}

static int is_default_view(MPI_File file)
{
    MPI_Offset begin;
    MPI_Datatype element, all;
    char name[MPI_MAX_DATAREP_STRING];
    MPI_File_get_view(file, &begin, &element, &all, name);
    return begin == 0 && element == MPI_BYTE && all == MPI_BYTE;
}

static int verdict(MPI_File file, int err, long bound)
{
    if (held != 0 || most > (size_t)bound + TABLES)
        return MPI_ERR_NO_MEM;
    if (!is_default_view(file))
        return MPI_ERR_FILE;
    return named(err);
}
"""
READ_WATCHED = """
MPILAB_READ(watched_%(name)s)
{
    most = 0;
    const int err = read_%(name)s(file, matrix, part, comm);
    return verdict(file, err, %(buffers)d * mpilab_tuning.buffer_bytes);
}

/* The same, with no more memory than for all of the matrix in each buffer. */
MPILAB_READ(sparing_%(name)s)
{
    most = 0;
    const int err = read_%(name)s(file, matrix, part, comm);
    return verdict(file, err, %(buffers)d * 8L * matrix->rows * matrix->columns);
}

/* The same, of a matrix with more rows than there are in the file. */
MPILAB_READ(beyond_%(name)s)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    struct mpilab_matrix taller = *matrix;
    taller.rows += %(more)d;
    const struct mpilab_part mine = part_of(&taller, rank);
    double *room = malloc((size_t)mine.rows * (size_t)mine.columns * sizeof *room + 1);
    (void)part;
    most = 0;
    const int err = read_%(name)s(file, &taller, room, comm);
    free(room);
    return verdict(file, err, %(buffers)d * mpilab_tuning.buffer_bytes);
}

/* With no memory for rank 1, or for rank 0 where that alone takes any. */
MPILAB_READ(poor_%(name)s)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    limit = rank == (read_%(name)s == read_scatter ? 0 : 1) ? 0 : SIZE_MAX;
    const int err = read_%(name)s(file, matrix, part, comm);
    limit = SIZE_MAX;
    return held == 0 ? named(err) : MPI_ERR_OTHER;
}

/* Of a matrix whose parts have more elements than an int counts. */
MPILAB_READ(vast_%(name)s)
{
    struct mpilab_matrix vast = *matrix;
    vast.rows = vast.columns = vast.block_columns = 1 << 17;
    vast.block_rows = 1 << 15;
    const int err = read_%(name)s(file, &vast, part, comm);
    return is_default_view(file) ? named(err) : MPI_ERR_FILE;
}
"""


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """The shared object with read_watched_NAME and read_beyond_NAME of every reader."""
    about = [{"name": name, "buffers": BUFFERS[name], "more": MORE_ROWS} for name in READERS]
    return build_counted(
        tmp_path_factory.mktemp("watched"),
        WATCHED + "".join(READ_WATCHED % one for one in about),
        watched=[
            *(f"read/{name}.c" for name in READERS),
            "common/matrix/stretches.c",
            "common/matrix/views.c",
        ],
        shared=["common/tree/blocks.c"],
    )


@pytest.mark.parametrize("words", ["256x256", "250x200 by 4x7"])
def test_memory_is_bounded_by_the_buffer_and_the_view_is_left_as_it_was(words, watched):
    wanted = [
        Case(
            "read",
            4,
            1,
            datatype="double",
            matrix=words,
            buffer=1 << 15,
            function=f"read_watched_{name}",
        )
        for name in READERS
    ]
    for result in run_cases(watched, "", wanted, limit=60.0):
        check_parts(result)


def test_a_buffer_takes_no_more_memory_than_there_is_to_read(watched):
    wanted = [
        Case(
            "read",
            4,
            1,
            datatype="double",
            matrix="12x10",
            buffer=MOST_BUFFER,
            aggregators=1,
            function=f"read_sparing_{name}",
        )
        for name in BUFFERED
    ]
    for result in run_cases(watched, "", wanted, limit=60.0):
        check_parts(result)


def _cut_off(words, ranks):
    """The ranks that would request more than the file has if the matrix had MORE_ROWS more rows."""
    about = distribution(words, ranks)
    taller = distribution(words.replace(f"{about.rows}x", f"{about.rows + MORE_ROWS}x", 1), ranks)
    ends = (taller.indices_of(rank).max(initial=-1) for rank in range(ranks))
    return [end >= about.rows * about.columns for end in ends]


@pytest.mark.parametrize("io", MPI_IO)
def test_a_file_that_ends_too_early_is_an_error_and_nobody_waits_for_what_is_not_there(io, watched):
    words = "9x10 by 5x2 on 3x2"
    wanted = [
        Case(
            "read",
            6,
            1,
            datatype="double",
            matrix=words,
            buffer=buffer,
            function=f"read_beyond_{name}",
            dump=False,
        )
        for name in READERS
        for buffer in (64, 1 << 12)
    ]
    missing = _cut_off(words, 6)
    assert missing == [False, False, True, True, True, True]
    for result in run_cases(watched, "", wanted, limit=60.0, settings=MPI_IO[io]):
        case, name = result.case.describe(), result.case.function.removeprefix("read_beyond_")
        assert result.outcome == DONE, f"{name}, {case}: {result.hang or result.detail}"
        returned = [output.returned for output in result.outputs]
        assert set(returned) <= {0, SHORT}, (name, case)
        told = [code == SHORT for code in returned]
        assert all(t for t, out in zip(told, missing, strict=True) if out), (name, case, returned)
        if name in ("strided", "view", "sieving"):  # each rank reads only for itself
            assert told == missing, (name, case)
        assert [len(rank.leaked) for rank in result.recording.ranks] == [0] * 6, (name, case)


def _returned(watched, prefix, readers, words):
    """{reader: what its kernel of this prefix returned on each of 4 ranks}."""
    wanted = [
        Case("read", 4, 1, datatype="double", matrix=words, function=f"{prefix}_{name}", dump=False)
        for name in readers
    ]
    results = run_cases(watched, "", wanted, limit=60.0)
    for name, result in zip(readers, results, strict=True):
        assert result.outcome == DONE, f"{prefix}_{name}: {result.hang or result.detail}"
    return {
        name: [output.returned for output in result.outputs]
        for name, result in zip(readers, results, strict=True)
    }


def test_where_one_rank_has_no_memory_all_that_depend_on_it_are_told(watched):
    returned = _returned(watched, "read_poor", BUFFERED, "12x10")
    assert returned["two_phase"] == returned["two_phase_alltoallv"] == [POOR] * 4
    assert returned["sieving"] == [0, POOR, 0, 0]
    assert returned["scatter"] == [POOR, *[SHORT] * 3]


def test_parts_that_one_call_cannot_read_are_refused(watched):
    readers = ("view", "view_all", "two_phase_alltoallv")
    returned = _returned(watched, "read_vast", readers, "12x10 on 4x1")
    assert returned == dict.fromkeys(readers, [VAST] * 4)


def test_without_the_type_of_block_cyclic_parts_a_view_refuses_them_on_every_rank(tmp_path):
    """As in a handout: the ranks that have one block do not wait for those that have several."""
    for folder in ("common", "read"):
        shutil.copytree(ROOT / "src_c" / folder, tmp_path / folder)
    (tmp_path / "common" / "matrix" / "cyclic_view.h").unlink()
    files = ["read/view_all.c", "common/tree/blocks.c"]
    files += ["common/matrix/views.c", "common/matrix/stretches.c"]
    objects = [tmp_path / f"{number}.o" for number in range(len(files))]
    for file, path in zip(files, objects, strict=True):
        compile_object(f'#include "{tmp_path / file}"\n', path)
    link(objects, tmp_path / "kernel.so")
    plain = ["7x5", "4x2 on 4x1", "4x4 by 2x2 on 2x2"]
    cyclic = ["9x2 by 2x2 on 4x1", "12x10 by 2x3 on 2x2"]
    cases = [Case("read", 4, 1, datatype="double", matrix=matrix) for matrix in plain + cyclic]
    results = run_cases(tmp_path / "kernel.so", "read_view_all", cases)
    for result in results[: len(plain)]:
        check_parts(result)
    for result in results[len(plain) :]:
        assert result.outcome == DONE
        assert [output.returned for output in result.outputs] == [ERR_TYPE] * 4
