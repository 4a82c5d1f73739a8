"""The HTML page that nbconvert makes of an executed lab, whose figures need no network."""

import os
import subprocess
import sys

import nbformat
import pytest
from browsing import SCREENSHOTS

from mpilab.plots import schedule, style

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(300)]


def executed(figures):
    """A notebook whose only cell has displayed the figures."""
    outputs = [
        nbformat.v4.new_output("display_data", data)
        for figure in figures
        for data in (style.bundle(figure), {"text/html": style.note(figure)})
    ]
    cell = nbformat.v4.new_code_cell("# figures", outputs=outputs, execution_count=1)
    return nbformat.v4.new_notebook(
        cells=[cell], metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    )


def exported(notebook, folder):
    """The page that a plain 'jupyter nbconvert --to html' makes of the notebook, in a new home."""
    nbformat.write(notebook, folder / "lab.ipynb")
    done = subprocess.run(
        [sys.executable, "-m", "jupyter", "nbconvert", "--to", "html", "lab.ipynb"],
        cwd=folder,
        env={**os.environ, "HOME": str(folder)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder / "lab.html"


def test_figures_of_an_exported_lab_are_drawn_offline_and_have_names(browser, tmp_path):
    from playwright.sync_api import expect

    figures = [schedule.tree("bcast", name, 8) for name in ("binomial", "chain")]
    page_file = exported(executed(figures), tmp_path)
    # plotly.js once, not for each figure.
    assert 4e6 < page_file.stat().st_size < 8e6
    context = browser.new_context(offline=True, viewport={"width": 1000, "height": 900})
    page = context.new_page()
    failures = []
    page.on("pageerror", lambda error: failures.append(str(error)))
    page.goto(page_file.as_uri(), wait_until="domcontentloaded")
    for figure in figures:
        name = style.alt(figure).splitlines()[0]
        drawing = page.get_by_role("group", name=name, exact=True)
        expect(drawing.locator("svg.main-svg").first).to_be_visible()
        assert drawing.locator("svg.main-svg path").count() > 10
        expect(page.get_by_text("Figure as text")).to_have_count(len(figures))
    page.get_by_text("Figure as text").first.click()
    expect(page.get_by_text(style.alt(figures[0]).splitlines()[1])).to_be_visible()
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / "exported-lab.png", full_page=True)
    assert failures == []


def test_a_notebook_without_figures_carries_no_plotly(tmp_path):
    assert exported(executed([]), tmp_path).stat().st_size < 1e6
