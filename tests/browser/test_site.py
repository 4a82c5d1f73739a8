"""The site: made by its command, it is read without a network, on any screen, by anybody.

It is made with one lab. After `make site`, which takes minutes, MPILAB_SITE=out/site tries that of
all labs in its place.
"""

import os
import subprocess
import sys

import build_site
import pytest
from axe_playwright_python.sync_playwright import Axe
from browsing import ROOT, SCREENSHOTS

LAB = "00-first-contact"
PAGES = {"first": "index.html", "docs": "docs/failures.html", "lab": f"labs/{LAB}.html"}
# Sphinx's own: nothing of the kit is on them.
NOT_OURS = ("genindex.html", "search.html", "py-modindex.html")
SCREENS = {
    "desktop": (1280, 900, "light"),
    "dark": (1280, 900, "dark"),
    "phone": (390, 844, "light"),
}
SERIOUS = ("serious", "critical")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of a site with all docs and one lab, or of the one that MPILAB_SITE names."""
    if made := os.environ.get("MPILAB_SITE"):
        return ROOT / made
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, ROOT / "tools" / "build_site.py", LAB]
    command += ["--out", folder / "out", "--work", folder / "work"]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    return folder / "out"


@pytest.fixture(params=SCREENS)
def reader(browser, request):
    """A page of a browser without a network; its attribute `trouble` lists what goes wrong."""
    width, height, scheme = SCREENS[request.param]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, offline=True
    )
    page = context.new_page()
    page.trouble = []
    page.on("pageerror", lambda error: page.trouble.append(str(error)))
    page.on("console", lambda said: said.type == "error" and page.trouble.append(said.text))
    page.on("request", lambda each: each.url.startswith("http") and page.trouble.append(each.url))
    page.screen = request.param
    return page


@pytest.mark.browser
@pytest.mark.timeout(1800)
def test_every_page_is_accessible_and_fits_the_screen(site, reader):
    found = {}
    paths = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    paths = [path for path in paths if path not in NOT_OURS and not path.startswith("_")]
    assert set(PAGES.values()) <= set(paths) and len(paths) > 25
    kinds = set(PAGES.values())  # one page of each; all have the same colors
    for path in paths:
        reader.goto((site / path).as_uri())
        if not reader.evaluate("document.documentElement.scrollWidth <= innerWidth"):
            found[path] = "is wider than the screen"
        elif reader.screen == "desktop" or (reader.screen == "dark" and path in kinds):
            grave = grave_on(reader, contrast=path in kinds)
            if grave:
                found[path] = grave
    assert found == {}
    assert reader.trouble == []


def grave_on(page, contrast):
    """(rule, element) of each serious finding of axe-core; its rule on contrast takes minutes."""
    rules = {"color-contrast": {"enabled": contrast}}
    found = Axe().run(page, options={"preload": False, "rules": rules}).response["violations"]
    return [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in SERIOUS]


@pytest.mark.browser
@pytest.mark.timeout(600)
def test_every_kind_of_page_is_complete_without_a_network(site, reader):
    from playwright.sync_api import expect

    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for name, path in PAGES.items():
        reader.goto((site / path).as_uri())
        plots = reader.locator(".mpilab-plot")
        if name != "docs":
            plots.first.scroll_into_view_if_needed()
            expect(plots.first.locator(".main-svg").first).to_be_visible(timeout=30_000)
        if name == "lab":
            expect(reader.locator("mjx-container").first).to_be_attached()
        reader.evaluate("scrollTo(0, 0)")
        reader.screenshot(path=SCREENSHOTS / f"site-{name}-{reader.screen}.png")
    assert reader.trouble == []


@pytest.mark.browser
@pytest.mark.timeout(600)
def test_the_first_page_shows_a_deadlock_and_a_crossover_and_how_to_start(site, browser):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((site / "index.html").as_uri())
    # All of it is on the first screen, and not only its beginning.
    within = "e => e.getBoundingClientRect().bottom < innerHeight"
    panel, plot = page.locator(".mpilab-panel"), page.locator(".mpilab-plot")
    for shown in (page.get_by_text("make demo"), panel, plot):
        assert shown.evaluate(within)
    assert panel.get_attribute("data-kind") == "deadlock"
    assert "0 → 3 → 2 → 1 → 0" in panel.inner_text()


@pytest.mark.browser
@pytest.mark.timeout(600)
def test_search_finds_a_page_and_figures_follow_the_theme(site, reader):
    from playwright.sync_api import expect

    reader.goto((site / PAGES["first"]).as_uri())
    title = reader.locator(".mpilab-plot .xtitle")
    title.scroll_into_view_if_needed()
    before = title.evaluate("e => getComputedStyle(e).fill")
    toggle = reader.locator(".theme-toggle:visible").first
    ground = "() => getComputedStyle(document.body).backgroundColor"
    grounds = {reader.evaluate(ground)}
    for _ in range(2):  # of light, dark and the system's, one looks as before
        toggle.click()
        grounds.add(reader.evaluate(ground))
        if len(grounds) == 2:
            break
    assert len(grounds) == 2
    expect(title).not_to_have_css("fill", before)

    reader.goto((site / "search.html").as_uri() + "?q=deadlock")
    found = reader.locator("#search-results li a")
    expect(found.filter(has_text="When a kernel fails").first).to_be_visible()
    assert reader.trouble == []


def test_no_page_holds_an_answer_or_a_path_of_this_machine(site):
    from mpilab.grading.release import solution_lines

    text = (site / PAGES["lab"]).read_text(encoding="utf-8")
    assert "Not solved yet" in text and 'class="mpilab-plot"' in text
    assert [
        line for line in solution_lines(ROOT / "labs/source" / f"{LAB}.py") if line in text
    ] == []
    assert str(ROOT) not in text and "/site/work" not in text


def test_dead_links_and_resources_from_the_network_are_named(tmp_path):
    (tmp_path / "a.html").write_text(
        '<h1 id="here">A</h1><a href="#here"></a><a href="b.html#gone"></a><a href="c.html"></a>'
        '<a href="https://example.org"></a><script src="https://example.org/x.js"></script>'
    )
    (tmp_path / "b.html").write_text('<img src="missing.png"><a href="a.html#here"></a>')
    assert build_site.broken(tmp_path) == [
        "a.html: b.html#gone: no such heading",
        "a.html: c.html: no such file",
        "a.html: loads https://example.org/x.js",
        "b.html: missing.png: no such file",
    ]
