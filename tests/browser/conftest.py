"""A page of Debian's Chromium for every browser test."""

import pytest
from browsing import CHROMIUM


@pytest.fixture
def page(require_tool):
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = require_tool("chromium", "chromium-browser", "google-chrome")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM)
        yield browser.new_page(viewport={"width": 1280, "height": 900})
        browser.close()
