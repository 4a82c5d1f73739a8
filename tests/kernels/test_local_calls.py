"""Calls of MPI that concern one rank only give the same answers wherever a kernel runs."""

import pytest

from mpilab.cases.case import Case
from mpilab.kernels import build, jail, simgrid
from mpilab.kernels.symbols import forbidden
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE
from mpilab.runners.simgrid import simulate

SOURCE = """\
#include "mpilab.h"
MPILAB_BARRIER(answer);
MPILAB_BARRIER(answer)
{
    int yes = 0, no = 1, inter = 1, version = 0, subversion = -1, dims[2] = {0, 0};
    MPI_Count size = 0, low = 1, extent = 0, true_low = 1, true_extent = 0;
    MPI_Datatype pair;
    MPI_Initialized(&yes);
    MPI_Finalized(&no);
    MPI_Get_version(&version, &subversion);
    MPI_Comm_test_inter(comm, &inter);
    MPI_Dims_create(12, 2, dims);
    MPI_Type_vector(2, 1, 3, MPI_INT, &pair);
    MPI_Type_size_x(pair, &size);
    MPI_Type_get_extent_x(pair, &low, &extent);
    MPI_Type_get_true_extent_x(pair, &true_low, &true_extent);
    MPI_Type_free(&pair);
    const int right = yes && !no && !inter && version == MPI_VERSION && subversion >= 0 &&
                      dims[0] == 4 && dims[1] == 3 && size == 8 && low == 0 && extent == 16 &&
                      true_low == 0 && true_extent == 16;
    return right ? MPI_SUCCESS : MPI_ERR_OTHER;
}
"""


def test_an_exercise_allows_them(tmp_path):
    build.compile_object(SOURCE, tmp_path / "answer.o")
    assert forbidden(tmp_path / "answer.o", "barrier_answer", []) == []


@pytest.mark.parametrize("where", ["native", "jailed", "simulated", "simulated in the jail"])
def test_they_say_the_same(where, tmp_path, require_tool):
    source = tmp_path / "answer.c"
    source.write_text(SOURCE)
    in_jail = "jail" in where
    for tool in (*(jail.TOOLS if in_jail else ()), *(["smpicc"] if "simulated" in where else [])):
        require_tool(tool)
    if in_jail:
        library = jail.build_kernel(
            [source],
            "barrier_answer",
            "barrier",
            tmp_path / "jailed.so",
            allowed=[],
            simulated="simulated" in where,
        )
    else:
        builder = simgrid if where == "simulated" else build
        library = builder.build(SOURCE, tmp_path).library
    if "simulated" in where:
        case = Case("barrier", 16, 0, platform="flat-4x4")
        (result,) = simulate(library, "barrier_answer", [case])
    else:
        (result,) = run_cases(library, "barrier_answer", [Case("barrier", 4, 0)])
    assert result.outcome == DONE, result.log
    assert {output.returned for output in result.outputs} == {0}
    assert len(result.recording.messages) == 0
