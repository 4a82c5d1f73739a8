"""A separate JupyterLab for the test, and functions to navigate it."""

import contextlib
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path, PurePosixPath

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
    # Every cell stays in the page, so that cells out of view can be examined, too.
    "notebook-extension/tracker": {"windowingMode": "none"},
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}
THEMES = "apputils-extension/themes"
MIDDLE = """(cell, text) => {
    const content = cell.querySelector('.cm-content');
    const nodes = document.createTreeWalker(content, NodeFilter.SHOW_TEXT);
    for (let node; (node = nodes.nextNode()); ) {
        const at = node.textContent.indexOf(text);
        if (at < 0) continue;
        const range = document.createRange();
        range.setStart(node, at);
        range.setEnd(node, at + text.length);
        const box = range.getBoundingClientRect();
        return [box.x + box.width / 2, box.y + box.height / 2];
    }
}"""
LIGHT, DARK = "JupyterLab Light", "JupyterLab Dark"


@contextlib.contextmanager
def jupyterlab(home, notebook, theme=LIGHT):
    """A JupyterLab on the folder of `notebook`, with separate settings in `home`; its address."""
    for name, content in {**SETTINGS, THEMES: {"theme": theme}}.items():
        path = home / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    command = [sys.executable, "-m", "jupyterlab", "--allow-root", "--ServerApp.port_retries=0"]
    command += [f"--notebook-dir={notebook.parent}", f"--LabApp.user_settings_dir={home}/settings"]
    command += [f"--LabApp.workspaces_dir={home}/workspaces"]
    command.append("--expose-app-in-browser")  # as `jupyterapp`, for what no element shows
    with jupyter(command, home) as (address, token):
        yield f"{address}/lab/tree/{notebook.name}?token={token}"


@contextlib.contextmanager
def jupyter(command, home, environment=os.environ):
    """A Jupyter that `command` starts, with HOME=`home`: its address without a path, its token."""
    token = secrets.token_hex(16)
    (port,) = free_ports(1)
    options = ["--no-browser", f"--port={port}", "--ip=127.0.0.1"]
    options.append(f"--ServerApp.token={token}")
    address = f"http://127.0.0.1:{port}"
    environment = {**environment, "HOME": str(home), "PYTHONPATH": str(ROOT)}
    with served([*command, *options], f"{address}/api?token={token}", home, environment):
        yield address, token


@contextlib.contextmanager
def served(command, address, folder, environment, ends_s=120):
    """Run the server that `command` starts in `folder`, from when it answers at `address`.

    It is killed `ends_s` seconds after being asked to end.
    """
    with open(folder / "server.log", "wb") as log:
        server = subprocess.Popen(
            command,
            env=environment,
            cwd=folder,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        _wait_until_it_answers(address, server, log.name)
        yield
    finally:
        # The whole group: the program that starts a server in separate namespaces passes on no
        # signals.
        os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(ends_s)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def free_ports(count):
    """Ports of this machine on which no process listens."""
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def _wait_until_it_answers(address, server, log):
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)  # there is no event for a server that is not up yet
    pytest.fail(f"the server did not come up:\n{Path(log).read_text()[-2000:]}")


def opened(page, address, code_cells):
    """The notebook's panel, open, all its cells in the page and its kernel idle."""
    from playwright.sync_api import expect

    page.goto(address)
    notebook = page.locator(".jp-NotebookPanel")
    expect(notebook.locator(".jp-CodeCell")).to_have_count(code_cells, timeout=180_000)
    wait_for_kernel(page, PurePosixPath(urllib.parse.urlsplit(address).path).name)
    return notebook


def wait_for_kernel(page, notebook_name):
    """Wait until the notebook in view is connected to its kernel, and the kernel is idle.

    Only the status bar tells: the indicator in the notebook's toolbar is "idle" before there is a
    kernel, too. JupyterLab either ignores a command that runs cells before, or asks for a kernel
    while it starts one itself. It then keeps one of the two; if that is the one it asked for,
    controls show "Loading widget..." forever (github.com/jupyter-widgets/ipywidgets/issues/3970).
    """
    from playwright.sync_api import expect

    kernel = page.get_by_title(f"Change kernel for {notebook_name}", exact=True)
    expect(kernel).to_have_text(re.compile(r" \| Idle$"), timeout=180_000)


def run_all(page, address, code_cells):
    """Open the notebook, choose Run > Run All Cells, and wait for the last code cell's number."""
    notebook = opened(page, address, code_cells)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    wait_for_last(notebook)
    return notebook


def wait_for_last(notebook):
    """Wait until the last code cell has its number; fails with what the cells' errors say."""
    from playwright.sync_api import expect

    # Queried again each time: JupyterLab replaces the element when the number changes.
    last = notebook.locator(".jp-CodeCell").last.locator(".jp-InputPrompt")
    try:
        expect(last).to_have_text(re.compile(r"\[\d+\]"), timeout=180_000)
    except AssertionError:
        prompts = notebook.locator(".jp-CodeCell .jp-InputPrompt").all_inner_texts()
        errors = notebook.locator('.jp-OutputArea-output[data-mime-type*="error"]')
        pytest.fail(f"the last cell has not run: {prompts}\n{errors.all_inner_texts()}")


def enter_notebook(page):
    """Bring the keyboard's focus into the notebook, by Tab alone, and into command mode."""
    inside = "document.activeElement.closest('.jp-Notebook') !== null"
    for _ in range(60):
        if page.evaluate(inside):
            page.keyboard.press("Escape")
            return
        page.keyboard.press("Tab")
    pytest.fail("60 times Tab did not lead into the notebook")


def run_all_by_keyboard(page, notebook):
    """Select all cells and run them."""
    from playwright.sync_api import expect

    cells = notebook.locator(".jp-Notebook .jp-Cell")
    selected = notebook.locator(".jp-Notebook .jp-Cell.jp-mod-selected")
    activate(page, notebook, 0)
    page.keyboard.press("Control+A")
    expect(selected).to_have_count(cells.count())
    page.keyboard.press("Control+Enter")
    wait_for_last(notebook)


def activate(page, notebook, index):
    """Go to the cell number `index` (of all cells, from 0) by the arrow keys of command mode."""
    where = "cells => cells.findIndex(cell => cell.classList.contains('jp-mod-active'))"
    cells = notebook.locator(".jp-Notebook .jp-Cell")
    page.keyboard.press("Escape")
    for _ in range(200):
        now = cells.evaluate_all(where)
        if now == index:
            return
        page.keyboard.press("ArrowDown" if now < index else "ArrowUp")
    pytest.fail(f"200 times an arrow key did not lead to cell {index}")


def middle_of(cell, text):
    """(x, y) in the window of the middle of a text of the cell."""
    return cell.evaluate(MIDDLE, text)


def replace_active_cell(page, code):
    """Write `code` in the place of the active cell's, in one go, as if pasted."""
    page.keyboard.press("Enter")
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(code)
    page.keyboard.press("Escape")
