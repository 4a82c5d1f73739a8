"""What the harness does if it cannot continue: all ranks end, and the reason is reported."""

import subprocess

import pytest

from mpilab.cases.case import Case
from mpilab.kernels import openmpi
from mpilab.kernels.build import HARNESS_PROGRAM, KERNELS, build, need
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE

LIMIT_S = 60  # a run takes one second; the ranks of a run that hangs must be ended, too
READ = Case("read", 4, 1, datatype="double", matrix="8x8", requests=True, repetitions=2)
SOURCE = """
#include "mpilab.h"
MPILAB_READ(fails_on_one)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    (void)file, (void)matrix, (void)part;
    return rank == 1 ? MPI_ERR_IO : MPI_SUCCESS;
}
MPILAB_READ(closes)
{
    (void)matrix, (void)part, (void)comm;
    return MPI_File_close(&file);
}
"""


@pytest.fixture
def run_line(tmp_path):
    """A function: the harness's message for the line of a case, which must end in a failure."""

    def run(line, ranks=4, directory=tmp_path):
        (tmp_path / "cases").write_text(line + "\n", encoding="ascii")
        command = [
            openmpi.tool("mpirun"),
            "-n",
            ranks,
            need(HARNESS_PROGRAM),
            need(KERNELS),
            "read_sieving",
            tmp_path / "cases",
            directory,
        ]
        ended = subprocess.run(
            [str(word) for word in command],
            env=openmpi.environment(ranks),
            text=True,
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert ended.returncode != 0
        return ended.stderr

    return run


@pytest.mark.parametrize("kind", ["rec", "io", "txt", "out"])
def test_a_rank_that_fails_alone_ends_the_run_with_its_reason(kind, run_line, tmp_path):
    (tmp_path / f"0.1.{kind}").mkdir()
    assert f"0.1.{kind}: Is a directory" in run_line(READ.line(0))
    assert not (tmp_path / "0.matrix").exists()


def test_a_file_that_cannot_be_written_is_told(run_line, tmp_path):
    (tmp_path / "0.matrix").mkdir()
    (tmp_path / "0.matrix" / "in_the_way").touch()
    assert "0.matrix: cannot be written: Is a directory" in run_line(READ.line(0))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("root=4294967296", "root=4294967296: too large a number"),
        ("count=9223372036854775808", "count=9223372036854775808: too large a number"),
        ("seed=18446744073709551616", "seed=18446744073709551616: not a number from 0 to"),
        (f"function=read_{'x' * 123}", "longer than 127 characters"),
        (
            "collective=read datatype=double count=1 grid_rows=1 grid_columns=1 rows=2147483647 "
            "columns=2147483647 block_rows=2147483647 block_columns=2147483647",
            "rank 0: more bytes in a buffer than 64 bits can count; take fewer elements",
        ),
    ],
)
def test_what_does_not_fit_into_a_case_is_refused_and_not_cut(words, told, run_line):
    assert told in run_line(f"id=0 {words}", ranks=1)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build(SOURCE, tmp_path_factory.mktemp("failures")).library


def results_of(library, name, **more):
    cases = [Case("read", 4, 1, datatype="double", matrix="8x8", **more)]
    (result,) = run_cases(library, f"read_{name}", cases, limit=60.0)
    assert result.outcome == DONE, result.detail
    return result


def test_an_error_on_one_rank_ends_the_calls_of_all(library):
    result = results_of(library, "fails_on_one", warmup=1, repetitions=3, requests=True, cold=True)
    assert [bool(output.returned) for output in result.outputs] == [False, True, False, False]


@pytest.mark.parametrize("record", [True, False])
def test_a_kernel_that_closes_the_file_is_told_to_leave_that(record, library):
    result = results_of(library, "closes", repetitions=2, record=record)
    assert all(output.returned for output in result.outputs)
    assert result.printed == dict.fromkeys(
        range(4),
        "mpilab: the kernel has closed the file that it was given; leave that to its caller\n",
    )
