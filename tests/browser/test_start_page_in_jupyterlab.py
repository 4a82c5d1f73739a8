"""What a student sees after `make lab`: START.ipynb in JupyterLab, and the targets of its links."""

import shutil
import sys

import pytest
from browsing import ROOT, SCREENSHOTS, jupyter, wait_for_kernel

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(600)]
LABS = sorted(path.stem for path in (ROOT / "labs" / "source").glob("*.py"))


@pytest.fixture
def kit(tmp_path):
    """A kit whose labs may be changed: the files that `make lab` needs, solutions among them."""
    folder = tmp_path / "kit"
    for name in ("labs", "tools", "docs"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / "mpilab").symlink_to(ROOT / "mpilab")
    return folder


def test_make_lab_opens_a_page_whose_links_lead_to_each_lab_and_to_help(page, kit, tmp_path):
    sync_api = pytest.importorskip("playwright.sync_api")
    expect = sync_api.expect
    with jupyter([sys.executable, str(kit / "tools" / "lab.py")], tmp_path) as (address, token):
        page.goto(f"{address}/?token={token}")
        start = page.locator(".jp-NotebookPanel:visible")
        expect(start.get_by_role("heading", level=1)).to_contain_text("Start", timeout=180_000)
        table = start.get_by_role("table").first
        for lab in LABS:
            expect(table.locator(f'td:first-child a[href*="{lab}.ipynb"]')).to_be_visible()
        # Its sources, with solutions, and its checks are in that folder, too.
        listed = page.locator(".jp-DirListing-itemName").all_inner_texts()
        assert sorted(listed) == sorted(["help", "START.ipynb", *(f"{lab}.ipynb" for lab in LABS)])

        wait_for_kernel(page, "START.ipynb")
        cell = start.locator(".jp-CodeCell").first
        cell.locator(".cm-content").click()
        page.keyboard.press("Shift+Enter")
        progress = cell.get_by_role("table")
        expect(progress.get_by_role("row")).to_have_count(1 + len(LABS), timeout=180_000)
        # By now, JupyterLab would have asked whether it may fetch news.
        assert page.locator(".Toastify__toast").count() == 0
        assert page.get_by_role("dialog").count() == 0
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / "start.png")

        progress.get_by_role("link", name=LABS[0]).click()
        opened = page.locator(".jp-NotebookPanel:visible")
        expect(opened.get_by_role("heading", level=1)).to_contain_text("First contact")
        page.get_by_role("tab", name="START.ipynb").click()
        start.get_by_role("link", name="what each panel means").first.click()
        shown = page.locator(".jp-MarkdownViewer:visible")
        expect(shown.get_by_role("heading", level=1)).to_contain_text("When a kernel fails")
        page.screenshot(path=SCREENSHOTS / "start-help.png")
    own = tmp_path / ".jupyter" / "lab" / "user-settings"
    assert not list(own.rglob("*.jupyterlab-settings"))
