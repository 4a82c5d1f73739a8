"""Lab 02 as a student sees it first: JupyterLab in headless Chromium, blank, "Run All Cells"."""

import json
import re

import pytest
from browsing import LAB, SCREENSHOTS, jupyterlab, run_all

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]


def test_the_blank_lab_runs_to_its_end_in_jupyterlab_and_draws_its_figures(page, tmp_path):
    folder = tmp_path / "labs"
    folder.mkdir()
    notebook_file = folder / LAB.name
    blank, predicted = 'arrows = mpilab.predict(\\"\\"', 'arrows = mpilab.predict(\\"30\\"'
    notebook_file.write_text(LAB.read_text().replace(blank, predicted))
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
        # A folded cell has no input area.
        prompts = notebook.locator(".jp-CodeCell .jp-InputArea .jp-InputPrompt").all_inner_texts()
        assert all(re.search(r"\[\d+\]", text) for text in prompts), prompts
        assert "not yet" in notebook.inner_text()
        # A student predicted one of the numbers; the cells with the answers are folded.
        answers = notebook.get_by_role("table").filter(has_text="You predicted")
        assert answers.count() == sum(".answer(" in source for source in sources) > 10
        predicted = notebook.get_by_role("row", name="You predicted ✓ 30 arrows")
        assert predicted.count() == 1
        assert "Your prediction beside what happens" in notebook.inner_text()
        assert "arrows.answer(" not in notebook.inner_text()
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        predicted.scroll_into_view_if_needed()
        page.screenshot(path=SCREENSHOTS / "prediction.png")
        drawn.nth(1).scroll_into_view_if_needed()
        page.screenshot(path=SCREENSHOTS / "lab-02.png")
    assert figures > 8
    assert (SCREENSHOTS / "lab-02.png").stat().st_size > 20_000
