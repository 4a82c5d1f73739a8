"""Cells that begin with %%kernel are C in JupyterLab, by the kit's extension and Jupyter kernel."""

import nbformat
import pytest
from accessibility import grave_findings
from browsing import (
    DARK,
    LIGHT,
    SCREENSHOTS,
    activate,
    jupyterlab,
    middle_of,
    opened,
    replace_active_cell,
)

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


# Three mistakes: in lines 4, 9 and 11, after letters that take two and four bytes.
WRONG = """%%kernel bcast_linear
#include "mpilab.h"

unsigend rounds; // α + mβ, or 𝛼 + m𝛽
int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_sise(comm, &size);
    for (int dest = 0; dest < size; dest++)
        MPI_Send(buffer, count, MPI_BITE, dest, TAG, comm);
    return MPI_SUCCESS;
}"""
PATIENT = {"timeout": 60_000}  # for what the Jupyter kernel or the compiler must answer

# What JupyterLab would complete in the active cell.
TOKEN = """() => {
    const { activeCell } = jupyterapp.shell.currentWidget.content;
    return activeCell.editor.getTokenAtCursor().value;
}"""

# CodeMirror takes back after a moment what it lets a screen reader say.
KEEP_ANNOUNCEMENTS = """cell => {
    const said = window.announced = [];
    new MutationObserver(changes => {
        for (const { addedNodes } of changes)
            for (const node of addedNodes) if (node.textContent.trim()) said.push(node.textContent);
    }).observe(cell.querySelector('.cm-announced'), { childList: true });
}"""


def colors(cell, *texts):
    return [cell.evaluate(COLOR, text) for text in texts]


def saved(folder, *sources):
    """The path of a notebook in a new folder, with code cells of these sources."""
    folder.mkdir()
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in sources],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    nbformat.write(notebook, folder / "c.ipynb")
    return folder / "c.ipynb"


def compiled(page, panel):
    """Load the kit and compile the cell of WRONG: (that cell, its three messages)."""
    from playwright.sync_api import expect

    activate(page, panel, 0)
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Control+Enter")
    cell = panel.locator(".jp-CodeCell").nth(1)
    said = cell.locator(".mpilab-mark-message")
    expect(said).to_have_count(3, **PATIENT)
    return cell, said


def test_a_kernel_cell_is_shown_as_c_for_as_long_as_it_begins_with_the_magic(page, tmp_path):
    from playwright.sync_api import expect

    notebook = saved(tmp_path / "labs", C, PYTHON)
    with jupyterlab(tmp_path, notebook) as address:
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


def test_by_keyboard_errors_are_marked_in_the_cell_and_mpi_calls_completed_and_explained(
    page, tmp_path
):
    from playwright.sync_api import expect

    notebook = saved(tmp_path / "labs", "%load_ext mpilab", WRONG)
    with jupyterlab(tmp_path, notebook) as address:
        panel = opened(page, address, 2)
        cell, said = compiled(page, panel)
        texts = said.all_inner_texts()
        assert all(text.startswith("✗ ") for text in texts) and "MPI_Comm_sise" in texts[1]
        marked = cell.locator(".mpilab-mark")
        expect(marked).to_have_text(["unsigend", "MPI_Comm_sise", "MPI_BITE"])
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / "c-cells-marks.png")

        # They are saved with the notebook.
        with page.expect_response(lambda response: response.request.method == "PUT"):
            page.keyboard.press("Control+S")
        panel = opened(page, address, 2)
        cell = panel.locator(".jp-CodeCell").nth(1)
        marked, said = cell.locator(".mpilab-mark"), cell.locator(".mpilab-mark-message")
        expect(said).to_have_count(3, **PATIENT)

        # F8 leads from one to the next; the first change of the cell takes them away.
        activate(page, panel, 1)
        page.keyboard.press("Enter")
        page.keyboard.press("Control+Home")
        cell.evaluate(KEEP_ANNOUNCEMENTS)
        page.keyboard.press("F8")
        page.keyboard.press("F8")
        page.wait_for_function("window.announced.length === 2")
        first, second = page.evaluate("window.announced")
        assert first.startswith("Line 4: ")
        assert second == f"Line 9: {texts[1].removeprefix('✗ ')}"
        page.keyboard.press("Control+Delete")
        expect(said).to_have_count(0)

        # What the exercise allows is completed, from the kit's kernel; Shift+Tab explains it.
        page.keyboard.type("MPI_Comm_s")
        page.keyboard.press("Tab")
        names = page.locator(".jp-Completer-match")
        expect(names).to_have_text(["MPI_Comm_set_attr", "MPI_Comm_size"], **PATIENT)
        page.keyboard.press("ArrowDown")
        page.screenshot(path=SCREENSHOTS / "c-cells-completion.png")
        page.keyboard.press("Enter")
        expect(cell.get_by_text("MPI_Comm_size(comm, &size);")).to_be_visible()
        page.keyboard.press("Shift+Tab")
        shown = page.locator(".jp-Tooltip")
        expect(shown).to_contain_text("int MPI_Comm_size(MPI_Comm comm, int *size)", **PATIENT)
        expect(shown).to_contain_text("number of processes in the group of comm")
        page.screenshot(path=SCREENSHOTS / "c-cells-inspection.png")
        page.keyboard.press("Escape")
        expect(shown).to_have_count(0)

        # So does a pointer that rests on a name.
        x, y = middle_of(cell, "MPI_Send")
        page.mouse.move(x - 2, y)
        page.mouse.move(x, y)
        expect(page.locator(".mpilab-hover")).to_contain_text("rank of destination", **PATIENT)
        page.screenshot(path=SCREENSHOTS / "c-cells-hover.png")

        # Compiling again marks what is left, and nothing once it compiles.
        page.keyboard.press("Escape")
        page.keyboard.press("Control+Enter")
        expect(marked).to_have_text(["unsigend", "MPI_BITE"], **PATIENT)
        replace_active_cell(page, C)
        page.keyboard.press("Control+Enter")
        expect(cell.get_by_text("bcast_flat is compiled.")).to_be_visible(**PATIENT)
        expect(said).to_have_count(0)

        # JupyterLab completes the word before the cursor, not all words, where no token ends there:
        # the grammar of C has none for the beginning of a statement that is not complete.
        replace_active_cell(page, C)
        page.keyboard.press("Enter")
        page.keyboard.press("Control+Home")
        for _ in range(9):
            page.keyboard.press("ArrowDown")
        page.keyboard.press("End")
        page.keyboard.press("Enter")
        page.keyboard.type("MPI_Comm_s")
        assert page.evaluate(TOKEN) == "MPI_Comm_s"


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_marks_and_what_rests_on_a_name_can_be_read_in_both_themes(page, tmp_path, theme):
    from playwright.sync_api import expect

    notebook = saved(tmp_path / "labs", "%load_ext mpilab", WRONG)
    with jupyterlab(tmp_path, notebook, theme) as address:
        panel = opened(page, address, 2)
        cell, _ = compiled(page, panel)
        light = {LIGHT: "true", DARK: "false"}
        expect(page.locator("body")).to_have_attribute("data-jp-theme-light", light[theme])
        x, y = middle_of(cell, "MPI_Send")
        page.mouse.move(x - 2, y)
        page.mouse.move(x, y)
        expect(page.locator(".mpilab-hover")).to_be_visible(**PATIENT)
        page.screenshot(path=SCREENSHOTS / f"c-cells-marks-{theme.split()[-1].lower()}.png")
        for shown in (".mpilab-mark-message", ".mpilab-mark", ".mpilab-hover"):
            assert grave_findings(page, within=shown) == []
