"""%%kernel, in a real IPython shell."""

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from mpilab.cases.case import Case
from mpilab.diagnosis.model import SANITIZER
from mpilab.notebook import session
from mpilab.notebook.session import KernelRun
from mpilab.runners import mpirun

RIGHT = """%%kernel allgather_mine
#include "mpilab.h"

MPILAB_ALLGATHER(mine)
{
    (void)sendbuf, (void)sendcount, (void)sendtype, (void)recvbuf, (void)recvcount;
    (void)recvtype, (void)comm;
    return MPI_SUCCESS;
}
"""


@pytest.fixture
def shell():
    session.kernels.clear()
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "mpilab")
    yield shell
    session.kernels.clear()
    InteractiveShell.clear_instance()


def shown(shell, cell):
    """[(text, HTML)] of what the cell displays."""
    with capture_output() as captured:
        result = shell.run_cell(cell)
    result.raise_error()
    return [(output.data["text/plain"], output.data["text/html"]) for output in captured.outputs]


def test_a_kernel_that_compiles_can_be_found_by_its_name(shell):
    ((text, fragment),) = shown(shell, RIGHT)
    assert text == "allgather_mine is compiled."
    assert 'role="status"' in fragment
    assert session.library_of("allgather_mine").exists()


def test_an_error_is_shown_with_the_line_that_jupyterlab_numbers(shell):
    ((text, fragment),) = shown(shell, RIGHT.replace("return MPI_SUCCESS;", "return MPI_SUCCES;"))
    line = 1 + RIGHT.splitlines().index("    return MPI_SUCCESS;")
    assert "It does not compile" in text
    assert f"▶ {line} │ return MPI_SUCCES;" in text
    assert "MPI_SUCCESS" in text  # the name that was meant
    assert 'role="alert"' in fragment


def marked(shell, cell):
    """The metadata of the outputs of the cell, those that have any."""
    with capture_output() as captured:
        shell.run_cell(cell).raise_error()
    return [output.metadata["mpilab"] for output in captured.outputs if output.metadata]


def test_an_error_says_in_its_metadata_where_the_editor_is_to_mark_it(shell):
    wrong = RIGHT.replace("return MPI_SUCCESS;", "return MPI_SUCCES;")
    line = 1 + RIGHT.splitlines().index("    return MPI_SUCCESS;")
    (metadata,) = marked(shell, wrong)
    assert metadata["marks"] == [
        {"line": line, "column": 12, "text": "'MPI_SUCCES' is not declared"}
    ]
    # Another text has another fingerprint; what is at the end of it does not count.
    assert marked(shell, wrong + "\n \t\n") == [metadata]
    assert marked(shell, wrong.replace("(void)comm", "(void) comm"))[0]["of"] != metadata["of"]
    assert marked(shell, RIGHT) == []


def test_a_warning_is_shown_and_the_kernel_is_there(shell):
    compiled, warned = shown(shell, RIGHT.replace("    return", "    int unused;\n    return"))
    assert compiled[0] == "allgather_mine is compiled."
    assert "Compiler warning" in warned[0]
    assert "▶ 8 │ int unused;" in warned[0]
    assert "costs no points" in warned[0]
    assert 'role="alert"' not in warned[1]
    assert "allgather_mine" in session.kernels


def test_a_kernel_that_no_longer_compiles_is_not_run_in_its_old_form(shell):
    shown(shell, RIGHT)
    shown(shell, RIGHT.replace("{", "", 1))
    assert "allgather_mine" not in session.kernels


def test_markup_in_the_source_does_not_become_markup(shell):
    ((_, fragment),) = shown(shell, RIGHT.replace("return", "<script>return"))
    assert "<script>" not in fragment
    assert "&lt;script&gt;" in fragment


def test_the_function_must_be_in_the_cell(shell):
    cell = RIGHT.replace("%%kernel allgather_mine", "%%kernel allgather_other")
    ((text, _),) = shown(shell, cell)
    assert "does not define allgather_other" in text
    assert "allgather_other" not in session.kernels


def test_a_function_of_nearly_the_same_name_is_named(shell):
    cell = RIGHT.replace("%%kernel allgather_mine", "%%kernel allgather_mines")
    ((text, _),) = shown(shell, cell)
    assert "it defines allgather_mine." in " ".join(text.split())


def test_mpi_comm_world_in_place_of_comm_is_a_warning_at_its_line(shell):
    body = "    /* not MPI_COMM_WORLD */\n    MPI_Barrier(MPI_COMM_WORLD);\n    return"
    cell = RIGHT.replace("    return", body)
    compiled, warned = shown(shell, cell)
    assert compiled[0] == "allgather_mine is compiled."
    line = 1 + cell.splitlines().index("    MPI_Barrier(MPI_COMM_WORLD);")
    assert f"uses MPI_COMM_WORLD in line {line} instead of comm" in " ".join(warned[0].split())


def test_a_sanitized_kernel_reports_an_access_one_element_too_far(shell):
    body = "    ((int *)recvbuf)[recvcount] = 1; /* one block, one rank */\n    return"
    shown(shell, RIGHT.replace("kernel", "kernel --sanitize").replace("    return", body))
    assert session.is_sanitized("allgather_mine")
    (result,) = session.run_cases("allgather_mine", [Case("allgather", 1, 4)])
    found = KernelRun("allgather_mine", result).diagnosis
    assert found.kind == SANITIZER
    assert found.pattern == "out of bounds"
    assert found.lines[0] == 8


def test_the_magic_wants_a_name(shell):
    with capture_output():
        result = shell.run_cell(RIGHT.replace(" allgather_mine", "", 1))
    with pytest.raises(ValueError, match="name the function"):
        result.raise_error()


ALLTOALLV = """%%kernel alltoallv_mine
#include "mpilab.h"

MPILAB_ALLTOALLV(mine)
{
    int size;
    MPI_Comm_size(comm, &size);
    for (int root = 0; root < size; root++)
        MPI_Scatterv(sendbuf, sendcounts, sdispls, sendtype,
                     block(recvbuf, rdispls[root], 1, recvtype), recvcounts[root], recvtype, root,
                     comm);
    return MPI_SUCCESS;
}
"""


def test_an_alltoallv_is_a_kernel_like_any_other(shell):
    ((text, _),) = shown(shell, ALLTOALLV)
    assert text == "alltoallv_mine is compiled."
    cases = [Case("alltoallv", 3, 4, pattern=pattern) for pattern in ("even", "ragged", "sparse")]
    for result in mpirun.run_cases(session.library_of("alltoallv_mine"), "alltoallv_mine", cases):
        assert KernelRun("alltoallv_mine", result).right, result.case.describe()
