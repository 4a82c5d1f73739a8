"""Lab 02 as a student sees it first: JupyterLab in headless Chromium, blank, "Run All Cells"."""

import json
import re
import shutil
from pathlib import Path

import pytest
from browsing import LAB, SCREENSHOTS, jupyterlab, run_all

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]


def test_the_blank_lab_runs_to_its_end_in_jupyterlab_and_draws_its_figures(page, tmp_path):
    folder = tmp_path / "labs"
    folder.mkdir()
    notebook_file = Path(shutil.copy(LAB, folder))
    sources = [
        "".join(cell["source"])
        for cell in json.loads(LAB.read_text())["cells"]
        if cell["cell_type"] == "code"
    ]
    figures = sum(source.count("show(") for source in sources)
    # The lab lets a program that relies on buffering hang: with large blocks, and in strict mode.
    deadlocks = 2
    with jupyterlab(tmp_path, notebook_file) as address:
        notebook = run_all(page, address, len(sources))
        drawn = notebook.locator(".js-plotly-plot")
        sync_api = pytest.importorskip("playwright.sync_api")
        sync_api.expect(drawn.filter(has=page.locator("svg.main-svg"))).to_have_count(
            figures + deadlocks, timeout=180_000
        )
        assert notebook.get_by_role("alert", name="Deadlock").count() == deadlocks
        errors = notebook.locator('.jp-OutputArea-output[data-mime-type*="error"]')
        assert errors.all_inner_texts() == []
        prompts = notebook.locator(".jp-CodeCell .jp-InputPrompt").all_inner_texts()
        assert all(re.search(r"\[\d+\]", text) for text in prompts), prompts
        assert "not yet" in notebook.inner_text()
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        drawn.nth(1).scroll_into_view_if_needed()
        page.screenshot(path=SCREENSHOTS / "lab-02.png")
    assert figures > 8
    assert (SCREENSHOTS / "lab-02.png").stat().st_size > 20_000
