"""Cells that begin with %%kernel look like C in JupyterLab, by the kit's extension."""

import nbformat
import pytest
from browsing import SCREENSHOTS, activate, jupyterlab, opened, replace_active_cell

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(300)]

C = """%%kernel bcast_flat
#include "mpilab.h"

/* The root sends to every other rank.
   The others receive from it. */
int bcast_flat(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (rank != root)
        return MPI_Recv(buffer, count, datatype, root, TAG, comm, MPI_STATUS_IGNORE);
    for (int dest = 0; dest < size && err == MPI_SUCCESS; dest++)
        if (dest != root) // the root already has it
            err = MPI_Send(buffer, count, datatype, dest, TAG, comm);
    return err;
}"""
PYTHON = """# a comment
def one():
    return 1"""
# The color of the first line's part that is `text`; "" if no element holds just that.
COLOR = """(cell, text) => {
    const parts = [...cell.querySelectorAll('.cm-line span')];
    const found = parts.find(part => part.textContent === text);
    return found ? getComputedStyle(found).color : '';
}"""


def colors(cell, *texts):
    return [cell.evaluate(COLOR, text) for text in texts]


def test_a_kernel_cell_is_shown_as_c_for_as_long_as_it_begins_with_the_magic(page, tmp_path):
    from playwright.sync_api import expect

    folder = tmp_path / "labs"
    folder.mkdir()
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(C), nbformat.v4.new_code_cell(PYTHON)],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    nbformat.write(notebook, folder / "c.ipynb")
    with jupyterlab(tmp_path, folder / "c.ipynb") as address:
        panel = opened(page, address, 2)
        c, python = panel.locator(".jp-CodeCell").all()
        comment, keyword = colors(python, "# a comment", "return")
        assert comment and keyword and comment != keyword
        # In Python, the line with #include would be a comment, and the comments would not.
        assert colors(c, "return", "if", "// the root already has it") == [
            keyword,
            keyword,
            comment,
        ]
        assert colors(c, "   The others receive from it. */") == [comment]
        (include,) = colors(c, "#include")
        assert include not in ("", comment)
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / "c-cells.png")

        activate(page, panel, 1)
        replace_active_cell(page, C)
        expect(python.get_by_text("// the root already has it", exact=True)).to_have_css(
            "color", comment
        )
        replace_active_cell(page, PYTHON)
        expect(python.get_by_text("# a comment", exact=True)).to_have_css("color", comment)
        assert colors(python, "return") == [keyword]
