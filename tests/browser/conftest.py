"""Debian's Chromium, and a page of it, for every browser test."""

import pytest
from browsing import CHROMIUM

VIEWPORT = {"width": 1280, "height": 900}
# A busy machine takes longer than Playwright's 5 s to show a page that is there.
PATIENCE_MS = 60_000


@pytest.fixture
def browser(require_tool):
    """A running browser; each of its contexts is like a separate user at a separate machine."""
    sync_api = pytest.importorskip("playwright.sync_api")
    sync_api.expect.set_options(timeout=PATIENCE_MS)
    chromium = require_tool("chromium", "chromium-browser", "google-chrome")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture
def page(browser):
    """A page of the browser."""
    return browser.new_page(viewport=VIEWPORT)
