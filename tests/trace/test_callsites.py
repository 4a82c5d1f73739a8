"""Call sites become lines, and lines become text, wherever the source is."""

import pytest
from c_kernels import build, line_of, source_of

from mpilab.cases.case import Case
from mpilab.kernels import simgrid
from mpilab.kernels.build import KERNELS, need
from mpilab.runners.mpirun import run_cases
from mpilab.runners.simgrid import simulate
from mpilab.trace.callsites import calls_within, lines_of, source_line

SOURCE = (
    source_of({"one": "    MPI_Barrier(comm); /* here */"})
    + """
static int depth(int n)
{
    if (n < 0)
        return 0;
    return 1 + depth(n - 1); /* again */
}

int outside(void);
int outside(void)
{
    return depth(3); /* not within */
}
"""
)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build(SOURCE, tmp_path_factory.mktemp("sites")).library


def test_a_line_of_a_kernel_is_found_beside_its_library(library):
    line = line_of(SOURCE, "/* here */")
    assert source_line(library, "cell", line) == "    MPI_Barrier(comm); /* here */"
    assert source_line(library, "cell", 1) == '#include "mpilab.h"'


@pytest.mark.parametrize(
    ("file", "line"), [("cell", 0), ("cell", 10**6), ("other.c", 1), ("", 1), ("../cell", 10**9)]
)
def test_a_line_that_is_not_there_is_empty(library, file, line):
    assert source_line(library, file, line) == ""
    assert source_line("/nowhere/kernel.so", "cell", 1) == ""


def test_a_source_that_was_given_on_the_command_line_keeps_its_name(tmp_path):
    built = build(SOURCE, tmp_path, name="mine.c")
    assert source_line(built.library, "mine.c", 1) == '#include "mpilab.h"'
    assert source_line(built.library, "cell", 1) == ""


def test_a_line_of_the_kits_own_kernels_is_found_in_their_folder():
    assert source_line(need(KERNELS), "allgather/ring.c", 1).startswith("/* Ring allgather")
    for file in ("allgather/nothing.c", "ring.c", "../src_c/allgather/ring.c", "allgather"):
        assert source_line(need(KERNELS), file, 1) == ""


@pytest.mark.parametrize("simulated", [False, True], ids=["mpirun", "simgrid"])
def test_kernels_whose_files_have_the_same_name_show_their_own_lines(simulated, require_tool):
    if simulated:
        require_tool("smpicc")
        require_tool("smpirun")
    cases = [Case(each, 3, 4, function=f"{each}_linear") for each in ("bcast", "gather", "scatter")]
    library = simgrid.kernels() if simulated else need(KERNELS)
    shown = {}
    for result in (simulate if simulated else run_cases)(library, "", cases):
        ((_, file, line),) = lines_of(result.library, (int(result.ranks[1].records["site"][0]),))
        shown[file] = source_line(result.library, file, line).strip()
    assert list(shown) == ["bcast/linear.c", "gather/linear.c", "scatter/linear.c"]
    assert [text.partition("(")[0] for text in shown.values()] == [
        "return MPI_Recv",
        "return MPI_Send",
        "return MPI_Recv",
    ]


def test_calls_are_looked_for_up_to_the_end_of_the_function(library):
    begin = line_of(SOURCE, "static int depth")
    (found,) = calls_within(library, "cell", "depth", begin + 1)
    assert found == (line_of(SOURCE, "/* again */"), "    return 1 + depth(n - 1); /* again */")
    assert calls_within(library, "cell", "", 1) == []


@pytest.mark.parametrize("library", ["/nowhere/kernel.so", "a\0b", __file__])
def test_sites_of_what_is_no_library_are_unknown(library):
    assert lines_of(library, (1, 2**64 - 1)) == (("", "", 0),) * 2


def test_more_sites_than_a_program_takes_are_no_error(library):
    assert len(lines_of(library, tuple(range(5000)))) == 5000
