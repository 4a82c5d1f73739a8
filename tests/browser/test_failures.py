"""Failures in JupyterLab: what a student sees, does next, and can read, using only the keyboard."""

import json
import re
import sys
from pathlib import Path

import jupytext
import nbformat
import pytest
from browsing import (
    DARK,
    LAB,
    LIGHT,
    ROOT,
    SCREENSHOTS,
    activate,
    enter_notebook,
    jupyterlab,
    opened,
    replace_active_cell,
    run_all,
    run_all_by_keyboard,
)

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]

HEAD = """%%kernel allgather_pairwise
#include "mpilab.h"

int allgather_pairwise(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                       void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

"""
RECEIVE = (
    "MPI_Recv(block(recvbuf, from, recvcount, recvtype), recvcount, recvtype, from, TAG, "
    "comm, MPI_STATUS_IGNORE);"
)
SEND = "MPI_Send(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, to, TAG, comm);"
LOOP = """    for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
        const int to = (rank + step) % size, from = (rank - step + size) % size;
"""
DEADLOCK = f"{HEAD}{LOOP}        {RECEIVE}\n        {SEND}\n    }}\n    return err;\n}}"
CRASH = (
    f"{HEAD}    int *none = NULL;\n    if (rank == 1)\n        *none = size;\n    return err;\n}}"
)
MISSPELT = f"{HEAD}    err = MPI_Barrier(com);\n    return err;\n}}"
# The measurements of lab 02 are irrelevant here.
REDUCED = (
    "RANKS = 4\nSIZES = [32, 4096]\nPROCESSES = [2, 4]\nREPETITIONS = 3\nSIMULATED = 16\nSEED = 1"
)

# Contrast (WCAG 2) of every piece of text in the panels with its background, worst first.
CONTRASTS = """panels => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const paint = color => { canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); };
  const light = () => {
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map(v => v / 255)
      .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [];
  for (const panel of panels) {
    const walker = document.createTreeWalker(panel, NodeFilter.SHOW_TEXT);
    for (let node; (node = walker.nextNode()); ) {
      const holder = node.parentElement;
      if (!node.textContent.trim() || holder.tagName === 'STYLE') continue;
      const above = [];
      for (let e = holder; e; e = e.parentElement) above.unshift(getComputedStyle(e));
      canvas.clearRect(0, 0, 1, 1); paint('white');
      for (const style of above) paint(style.backgroundColor);
      const ground = light();
      paint(getComputedStyle(holder).color);
      const ink = light();
      const ratio = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
      const opacity = above.reduce((product, style) => product * style.opacity, 1);
      found.push([opacity < 1 ? 0 : ratio, node.textContent.trim().slice(0, 40)]);
    }
  }
  return found.sort((a, b) => a[0] - b[0]);
}"""


def line_with(code, words):
    """The number of the line of a cell that holds `words`."""
    return next(n for n, line in enumerate(code.split("\n"), 1) if words in line)


def solution():
    """The right answer, from the lab's source, where C cells are comments."""
    source = jupytext.read(ROOT / "labs" / "source" / LAB.with_suffix(".py").name, fmt="py:percent")
    cell = next(c for c in source.cells if c.source.startswith("%%kernel allgather_pairwise"))
    first, *body = cell.source.split("\n")
    return "\n".join([first, *(line.removeprefix("# ") for line in body)])


@pytest.fixture
def lab(tmp_path):
    """A copy of lab 02 that measures little; its path and its cells' sources."""
    notebook = nbformat.read(LAB, as_version=4)
    next(c for c in notebook.cells if c.cell_type == "code").source = REDUCED
    folder = tmp_path / "labs"
    folder.mkdir()
    nbformat.write(notebook, folder / LAB.name)
    return folder / LAB.name, [cell.source for cell in notebook.cells]


class Keyboard:
    """The lab in a page, operated only by keyboard."""

    def __init__(self, page, notebook, sources):
        self.page, self.notebook, self.sources = page, notebook, sources
        self.cells = notebook.locator(".jp-Cell")

    def index(self, beginning):
        return next(n for n, source in enumerate(self.sources) if source.startswith(beginning))

    def run(self, beginning, code=None):
        """Go to a cell, replace its code with `code`, and run it; return the cell when it is
        done."""
        from playwright.sync_api import expect

        index = self.index(beginning)
        cell = self.cells.nth(index)
        activate(self.page, self.notebook, index)
        if code is not None:
            replace_active_cell(self.page, code)
        before = cell.locator(".jp-InputPrompt").inner_text()
        self.page.keyboard.press("Shift+Enter")
        prompt = cell.locator(".jp-InputPrompt")
        expect(prompt).not_to_have_text(before, timeout=180_000)
        expect(prompt).to_have_text(re.compile(r"\[\d+\]"), timeout=180_000)
        return cell

    def answer(self, code):
        """Write the answer and check it; the two cells."""
        return (self.run("%%kernel allgather_pairwise", code), self.run('lab.check("pairwise")'))

    def the_cluster_works(self):
        shown = self.run('ring = mpilab.run("allgather_ring"')
        return "right on every rank" in shown.locator(".jp-OutputArea-output").last.inner_text()


def panel_of(cell, title):
    """The panel of a cell with that title, once it is there."""
    from playwright.sync_api import expect

    head = cell.get_by_role("alert", name=re.compile(f"^{title}"))
    expect(head).to_have_count(1, timeout=180_000)
    return cell.get_by_role("region", name=re.compile(f"^{title}"))


def marked_lines(panel):
    """Line numbers that the panel's excerpt marks."""
    return [int(n) for n in re.findall(r"▶ *(\d+) │", panel.locator("pre").first.inner_text())]


def test_after_a_deadlock_a_crash_and_a_compile_error_the_lab_goes_on_by_keyboard_only(
    page, tmp_path, lab
):
    from playwright.sync_api import expect

    notebook_file, sources = lab
    code_cells = sum(
        c["cell_type"] == "code" for c in json.loads(notebook_file.read_text())["cells"]
    )
    with jupyterlab(tmp_path, notebook_file) as address:
        notebook = opened(page, address, code_cells)
        enter_notebook(page)
        run_all_by_keyboard(page, notebook)
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        keys = Keyboard(page, notebook, sources)
        # The lab's last cell has stopped the cluster.
        keys.run("import numpy as np")

        _, check = keys.answer(DEADLOCK)
        panel = panel_of(check, "Deadlock")
        assert line_with(DEADLOCK, "MPI_Recv(") in marked_lines(panel)
        assert panel.get_by_role("table").first.get_by_role("rowheader", name="0").count() == 1
        panel.screenshot(path=SCREENSHOTS / "failure-deadlock.png")
        assert keys.the_cluster_works()

        _, check = keys.answer(CRASH)
        panel = panel_of(check, "Crash")
        assert marked_lines(panel)[0] == line_with(CRASH, "*none = size")
        assert "SIGSEGV" in panel.inner_text() and "rank 1" in panel.inner_text().lower()
        panel.screenshot(path=SCREENSHOTS / "failure-crash.png")
        assert keys.the_cluster_works()

        cell, _ = keys.answer(MISSPELT)
        panel = panel_of(cell, "It does not compile")
        assert marked_lines(panel) == [line_with(MISSPELT, "MPI_Barrier(com)")]
        panel.screenshot(path=SCREENSHOTS / "failure-compile-error.png")
        assert keys.the_cluster_works()

        cell, check = keys.answer(solution())
        expect(check.get_by_role("status")).to_contain_text("all public checks pass")
        assert cell.get_by_role("alert").count() == check.get_by_role("alert").count() == 0
        assert keys.the_cluster_works()


@pytest.fixture
def shown_samples(tmp_path):
    """A notebook whose cells show a diagnosis of every kind; its path and the number of cells."""
    samples = ROOT / "tests" / "panel"
    first = (
        f"import sys; sys.path.insert(0, {str(samples)!r})\n"
        "from dataclasses import replace\n"
        "from panel_samples import OF_EVERY_KIND, NASTY\n"
        "from mpilab.notebook.panel import show\n"
        "said = dict(printed=((0, 'hello'),), log='noise\\n' * 100)"
    )
    sys.path.insert(0, str(samples))
    from panel_samples import OF_EVERY_KIND

    cells = [first] + [
        f"show(replace(OF_EVERY_KIND[{n}], **said), title='allgather_ring with 4 ranks')"
        for n in range(len(OF_EVERY_KIND))
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    notebook.metadata.kernelspec = dict(name="python3", display_name="Python 3", language="python")
    folder = tmp_path / "samples"
    folder.mkdir()
    path = Path(folder / "samples.ipynb")
    nbformat.write(notebook, path)
    return path, len(cells), OF_EVERY_KIND


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_every_panel_is_legible_and_names_its_parts_to_a_screen_reader(
    page, tmp_path, shown_samples, theme
):
    from mpilab.diagnosis import render

    path, cells, diagnoses = shown_samples
    with jupyterlab(tmp_path, path, theme=theme) as address:
        notebook = run_all(page, address, cells)
        panels = notebook.locator(".mpilab-panel")
        assert panels.count() == len(diagnoses)
        for number, diagnosis in enumerate(diagnoses):
            name = render.title_of(diagnosis.kind)[1]
            panel = notebook.locator(".jp-CodeCell").nth(number + 1).locator(".mpilab-panel")
            role = "alert" if render.urgent(diagnosis.kind) else "status"
            assert panel.get_by_role(role, name=re.compile(f"^{name} ")).count() == 1, name
            table = panel.get_by_role("table", name="What each rank does")
            assert table.get_by_role("columnheader").count() == 3
            assert table.get_by_role("rowheader").count() == 3
            assert panel.get_by_role("region", name="Lines of the source").count() == 1
        panels.evaluate_all(
            "all => all.forEach(p => p.querySelectorAll('details')"
            ".forEach(fold => fold.open = true))"
        )
        found = panels.evaluate_all(CONTRASTS)
        panels.first.scroll_into_view_if_needed()
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        name = "dark" if theme == DARK else "light"
        panels.first.screenshot(path=SCREENSHOTS / f"panel-{name}.png")
        is_light = page.evaluate("document.body.dataset.jpThemeLight")
    assert is_light == str(theme == LIGHT).lower()
    assert len(found) > 30 * len(diagnoses)
    assert found[0][0] >= 4.5, found[:5]


def test_the_folds_of_a_panel_open_by_keyboard(page, tmp_path, shown_samples):
    path, cells, _ = shown_samples
    with jupyterlab(tmp_path, path) as address:
        notebook = run_all(page, address, cells)
        enter_notebook(page)
        activate(page, notebook, 1)
        fold = notebook.locator(".jp-CodeCell").nth(1).locator("details").first
        summary = fold.locator("summary")
        for _ in range(20):
            if summary.evaluate("element => element === document.activeElement"):
                break
            page.keyboard.press("Tab")
        else:
            pytest.fail("20 times Tab did not lead to the fold")
        assert fold.get_attribute("open") is None
        page.keyboard.press("Space")
        assert fold.get_attribute("open") is not None
        assert "hello" in fold.inner_text()
