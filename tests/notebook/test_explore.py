"""The explorer of trees: consistent controls, and a figure that follows them."""

import importlib.util
import json
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from mpilab.algorithms import COLLECTIVES, algorithms, schedule_in_segments
from mpilab.errors import InputError
from mpilab.notebook import explore
from mpilab.plots import style

PLOTLY = "application/vnd.plotly.v1+json"
WIDGET = "application/vnd.jupyter.widget-view+json"
BROWSING = Path(__file__).parents[1] / "browser" / "browsing.py"


@pytest.fixture
def shown(monkeypatch):
    """What is displayed and updated, as (display id, content), in order."""
    found = []

    def note(content, raw=False, display_id=None):
        found.append((display_id, content))

    monkeypatch.setattr(explore, "display", note)
    monkeypatch.setattr(explore, "update_display", note)
    return found


def title(explorer):
    return explorer.figure.layout.title.text


def test_the_figure_is_that_of_the_schedule_that_is_chosen():
    explorer = explore.trees("bcast", "knomial", 9)
    explorer.children.value, explorer.segments.value, explorer.root.value = 3, 2, 4
    assert explorer.schedule == schedule_in_segments("bcast", "knomial", 9, 2, root=4, radix=3)
    assert title(explorer) == "bcast knomial, P = 9, root 4: arrows numbered by round"
    explorer.view.value = "who sends when"
    assert title(explorer) == "bcast knomial, P = 9, root 4: who sends when"


def test_every_algorithm_can_be_chosen_and_drawn():
    explorer = explore.trees(ranks=3)
    for collective in COLLECTIVES:
        explorer.collective.value = collective
        assert explorer.algorithm.options == algorithms(collective)
        for algorithm in algorithms(collective):
            explorer.algorithm.value = algorithm
            assert explorer.schedule.algorithm == algorithm
            assert algorithm in title(explorer)


def test_what_an_algorithm_does_not_know_is_disabled():
    explorer = explore.trees("bcast", "chain")
    controls = (explorer.root, explorer.children, explorer.segments)
    assert [control.disabled for control in controls] == [False, False, False]
    explorer.collective.value = "barrier"
    assert [control.disabled for control in controls] == [True, True, True]
    explorer.collective.value = "bcast"
    explorer.algorithm.value = "knomial"
    assert (explorer.children.description, explorer.children.min) == ("radix", 2)
    assert explorer.children.value == 4


def test_the_fan_out_begins_at_the_kernels_default():
    explorer = explore.trees("bcast", "chain")
    assert (explorer.children.description, explorer.children.value) == ("fan-out", 4)
    explorer.algorithm.value = "binary"
    assert explorer.children.value == 2


def test_the_root_stays_below_the_number_of_ranks():
    explorer = explore.trees("bcast", "linear", 8)
    explorer.root.value = 7
    explorer.ranks.value = 3
    assert (explorer.root.value, explorer.root.max) == (2, 2)
    assert "P = 3, root 2" in title(explorer)


def test_slider_and_field_of_a_number_go_together():
    explorer = explore.trees("bcast", "linear", 8)
    field, slider = explorer.controls.children[1].children[0].children
    slider.value = 5
    assert (field.value, explorer.schedule.ranks) == (5, 5)
    explorer.ranks.value = 11
    assert slider.value == 11
    assert explorer.controls.children[1].children[1].children[1].max == 10


def test_every_control_has_a_label():
    explorer = explore.trees()
    for line in explorer.controls.children:
        for control in line.children:
            assert (getattr(control, "children", None) or [control])[0].description


def test_one_choice_draws_one_new_figure_although_others_change_with_it(shown):
    explorer = explore.trees("bcast", "chain", 6)
    explorer._ipython_display_()
    shown.clear()
    explorer.collective.value = "reduce"
    drawn = [content for _, content in shown if isinstance(content, dict)]
    assert len(drawn) == 1
    assert "reduce linear" in drawn[0][PLOTLY]["layout"]["title"]["text"]


def test_without_a_kernel_there_is_a_figure_and_a_sentence_in_the_place_of_the_controls(shown):
    explorer = explore.trees()
    explorer._ipython_display_()
    (_, controls), (figure_id, figure), (note_id, note) = shown
    assert set(controls) == {WIDGET, "text/plain"}
    assert "need a running kernel" in controls["text/plain"]
    assert figure == style.bundle(explorer.figure)
    assert "Figure as text" in note.data
    shown.clear()
    explorer.ranks.value = 4
    # Other content in between: plotly's renderer in JupyterLab never redraws its output.
    assert [one for one, _ in shown] == [figure_id, figure_id, note_id]
    assert "<div" in shown[0][1].data
    assert shown[1][1] == style.bundle(explorer.figure)


def test_names_and_numbers_that_do_not_exist_are_refused():
    with pytest.raises(InputError, match="'broadcast' is unknown"):
        explore.trees("broadcast")
    with pytest.raises(InputError, match="'ring' is not an algorithm of bcast"):
        explore.trees("bcast", "ring")
    with pytest.raises(InputError, match="ranks=17 cannot be drawn; give 1 to 16"):
        explore.trees(ranks=17)


def notebook(tmp_path):
    """A notebook that shows an explorer, as a file."""
    made = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell("import mpilab\nmpilab.explore.trees()")],
        metadata={
            "kernelspec": {
                "name": "python3",
                "display_name": "Python 3 (ipykernel)",
                "language": "python",
            }
        },
    )
    path = tmp_path / "work" / "trees.ipynb"
    path.parent.mkdir()
    nbformat.write(made, path)
    return path


@pytest.mark.slow
def test_a_notebook_run_without_anybody_before_it_keeps_the_figure(tmp_path):
    made = nbformat.read(notebook(tmp_path), as_version=4)
    NotebookClient(made, timeout=120).execute()
    kinds = [set(output["data"]) for output in made.cells[0]["outputs"]]
    assert [sorted(kinds[0] & {WIDGET, "text/plain"}), PLOTLY in kinds[1]] == [
        [WIDGET, "text/plain"],
        True,
    ]
    figure = made.cells[0]["outputs"][1]["data"][PLOTLY]
    assert len(json.loads(json.dumps(figure))["frames"]) == 5


def _slow_down(page, megabytes_per_s):
    """Slow down the page's network, like that of a distant JupyterHub."""
    limits = {"offline": False, "latency": 100}  # milliseconds
    for direction in ("downloadThroughput", "uploadThroughput"):
        limits[direction] = megabytes_per_s * 1e6
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    network.send("Network.emulateNetworkConditions", limits)


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("megabytes_per_s", [None, 3], ids=["fast network", "slow network"])
def test_in_jupyterlab_the_figure_follows_the_controls_by_keyboard(
    tmp_path, require_tool, megabytes_per_s
):
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = require_tool("chromium", "chromium-browser", "google-chrome")
    specification = importlib.util.spec_from_file_location("browsing", BROWSING)
    browsing = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(browsing)
    path = notebook(tmp_path)
    with (
        browsing.jupyterlab(tmp_path, path) as address,
        sync_api.sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=browsing.CHROMIUM)
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        if megabytes_per_s:
            _slow_down(page, megabytes_per_s)
        collective = page.get_by_label("collective", exact=True)
        browsing.run_all(page, address, 1)

        def says(words):
            drawn = page.locator(".gtitle").filter(has_text=re.compile(re.escape(words)))
            sync_api.expect(drawn).to_have_count(1, timeout=180_000)

        says("bcast binomial, P = 8, root 0")
        collective.select_option("reduce")
        says("reduce linear, P = 8")
        page.get_by_label("algorithm", exact=True).select_option("binary")
        says("reduce binary, P = 8")
        page.get_by_label("ranks P", exact=True).fill("5")
        page.keyboard.press("Enter")
        says("P = 5")
        page.locator(".noUi-handle").first.focus()
        page.keyboard.press("ArrowRight")
        says("P = 6")
        page.get_by_label("view", exact=True).select_option("who sends when")
        says("reduce binary, P = 6, root 0: who sends when")
        browser.close()
