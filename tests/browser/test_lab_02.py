"""Lab 02 as a student sees it first: JupyterLab in headless Chromium, blank, "Run All Cells"."""

import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAB = ROOT / "labs" / "02-allgather.ipynb"
SCREENSHOTS = ROOT / "out" / "screenshots"
CHROMIUM = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SETTINGS = {
    # Every cell stays in the page, so that what is not in view can be looked at too.
    "notebook-extension/tracker": {"windowingMode": "none"},
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(280)]


@contextlib.contextmanager
def jupyterlab(home, notebook):
    """A JupyterLab on the folder of `notebook`, with settings of its own in `home`; its address."""
    for name, content in SETTINGS.items():
        path = home / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(content))
    token = secrets.token_hex(16)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += [f"--ServerApp.token={token}", f"--port={port}", "--ServerApp.port_retries=0"]
    command += [f"--notebook-dir={notebook.parent}", f"--LabApp.user_settings_dir={home}/settings"]
    command += [f"--LabApp.workspaces_dir={home}/workspaces", "--ip=127.0.0.1"]
    environment = {**os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT)}
    with open(home / "jupyter.log", "wb") as log:
        server = subprocess.Popen(command, env=environment, cwd=home, stdout=log, stderr=log,
                                  stdin=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
    try:
        _wait_until_it_answers(f"http://127.0.0.1:{port}/api?token={token}", server, log.name)
        yield f"http://127.0.0.1:{port}/lab/tree/{notebook.name}?token={token}"
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(15)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait_until_it_answers(address, server, log):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)  # a server that is not up has no event to wait for
    pytest.fail(f"JupyterLab did not come up:\n{Path(log).read_text()[-2000:]}")


def run_all(page, address, code_cells):
    """Open the notebook, choose Run > Run All Cells, and wait for the last code cell's number."""
    from playwright.sync_api import expect

    page.goto(address)
    notebook = page.locator(".jp-NotebookPanel")
    expect(notebook.locator(".jp-CodeCell")).to_have_count(code_cells, timeout=60_000)
    kernel = notebook.locator(".jp-Notebook-ExecutionIndicator")
    expect(kernel).to_have_attribute("data-status", "idle", timeout=60_000)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    # Asked for anew each time: JupyterLab replaces the element when the number changes.
    last = notebook.locator(".jp-CodeCell").last.locator(".jp-InputPrompt")
    expect(last).to_have_text(re.compile(r"\[\d+\]"), timeout=180_000)
    return notebook


@pytest.fixture
def page(require_tool):
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = require_tool("chromium", "chromium-browser", "google-chrome")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM)
        yield browser.new_page(viewport={"width": 1280, "height": 900})
        browser.close()


def test_the_blank_lab_runs_to_its_end_in_jupyterlab_and_draws_its_figures(page, tmp_path):
    folder = tmp_path / "labs"
    folder.mkdir()
    notebook_file = Path(shutil.copy(LAB, folder))
    sources = ["".join(cell["source"]) for cell in json.loads(LAB.read_text())["cells"]
               if cell["cell_type"] == "code"]  # fmt: skip
    figures = sum(source.count("show(") for source in sources)
    with jupyterlab(tmp_path, notebook_file) as address:
        notebook = run_all(page, address, len(sources))
        drawn = notebook.locator(".js-plotly-plot")
        sync_api = pytest.importorskip("playwright.sync_api")
        sync_api.expect(drawn.filter(has=page.locator("svg.main-svg"))).to_have_count(
            figures, timeout=60_000)  # fmt: skip
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
