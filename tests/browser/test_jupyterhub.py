"""Two students on one JupyterHub: a shared, read-only kit, and a folder of labs for each."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from browsing import SCREENSHOTS, wait_for_kernel
from conftest import VIEWPORT
from jupyterhub_venv import jupyterhub_python
from real_hub import ROOT, hub, users, writable

pytestmark = [
    pytest.mark.browser,
    pytest.mark.privileged,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
]
# The cells of lab 00 that a first kernel needs, each identified by a text that only it contains, in
# the order of the lab.
CELLS = (
    "%load_ext mpilab",
    "RANKS = 4",
    "mpilab.Cluster(RANKS)",
    "%%kernel bcast_pass_on",
    'mpilab.run("bcast_pass_on"',
)
WAIT_MS = 300_000


@pytest.fixture
def hub_python(require_tool):
    """The Python of an environment with JupyterHub and the kit's Jupyter kernel."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED: only root can make users and start servers as them")
    for tool in ("npm", "node", "useradd", "unshare", "setpriv"):
        require_tool(tool)
    python = jupyterhub_python()
    kernel = [Path(sys.executable).with_name("mpilab"), "kernelspec", "install"]
    subprocess.run([*kernel, "--prefix", python.parents[1]], check=True, capture_output=True)
    return python


@pytest.fixture
def expect(browser):
    """Playwright's assertions, which wait."""
    return pytest.importorskip("playwright.sync_api").expect


def test_two_users_run_a_kernel_at_the_same_time_on_a_kit_that_they_cannot_write_to(
    browser, expect, namespaces, hub_python
):
    names = [f"mpilab{os.getpid()}{letter}" for letter in "ab"]
    with users(*names) as folder:
        assert [writable(name, [ROOT], folder) for name in names] == ["", ""]
        with hub(hub_python, folder / "hub") as address:
            pages = [logged_in(browser, address, name) for name in names]
            for page in pages:
                open_lab_00(page, expect)
            for text in CELLS:
                for page in pages:
                    run_cell(page, text, expect)
            for page in pages:
                shown = cell_with(page, CELLS[-1]).locator(".jp-Cell-outputArea")
                expect(shown).to_contain_text("bcast_pass_on with 4 ranks", timeout=WAIT_MS)
                expect(shown).to_contain_text("right on every rank")
                expect(shown).to_contain_text("messages: 3 in 3 rounds")
            SCREENSHOTS.mkdir(parents=True, exist_ok=True)
            pages[0].screenshot(path=SCREENSHOTS / "hub.png")
        for name in names:
            labs = folder / name / "mpilab" / "labs"
            assert (labs / "02-allgather.ipynb").owner() == name
            assert not (labs / "source").exists() and not (labs / "checks").exists()
        assert [writable(name, [ROOT], folder) for name in names] == ["", ""]


def logged_in(browser, address, name):
    """A page of the user `name`, who has just logged in."""
    page = browser.new_context(viewport=VIEWPORT).new_page()
    page.goto(address)
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill("any")
    page.get_by_role("button", name="Sign in").click()
    return page


def open_lab_00(page, expect):
    """Follow the link on the page that the hub opens, until the lab's kernel is idle."""
    first = page.get_by_role("link", name="First contact").first
    first.click(timeout=WAIT_MS)
    lab = page.locator(".jp-NotebookPanel:visible")
    expect(lab.get_by_role("heading", level=1)).to_contain_text("First contact", timeout=WAIT_MS)
    wait_for_kernel(page, "00-first-contact.ipynb")
    # JupyterLab did not ask which kernel to use.
    expect(page.get_by_role("contentinfo")).to_contain_text("mpilab (Python)", timeout=WAIT_MS)


def cell_with(page, text):
    """The code cell of the lab in view that holds `text`."""
    return page.locator(".jp-NotebookPanel:visible .jp-CodeCell", has_text=text).first


def run_cell(page, text, expect):
    """Run a cell with Shift+Enter, until it has begun."""
    cell = cell_with(page, text)
    cell.locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    expect(cell.locator(".jp-InputPrompt")).to_have_text(re.compile(r"\[[\d*]+\]"))
