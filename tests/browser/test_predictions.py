"""Predictions are shown as forms in JupyterLab, by the kit's extension; no kernel is needed."""

import ast
import re

import nbformat
import papermill
import pytest
from accessibility import grave_findings
from browsing import DARK, LIGHT, ROOT, SCREENSHOTS, enter_notebook, jupyterlab

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(300)]

CELLS = [
    "import mpilab",
    'five = mpilab.predict(\n    "", choices=["runs 4", "runs 5", "refuses"]\n)\nprint("five")',
    '# Folded\nfive.answer("There are 4 slots only.", right="refuses")',
    'arrows = mpilab.predict("", between=(0, 60), unit="arrows")',
    'arrows.answer("Each of 6 ranks sends " "to 5 others.", right=30)',
    'why = mpilab.predict("")',
    'why.answer(f"It takes {2 + 3} rounds.")',
    'print("no prediction")',
]
FIVE, ARROWS, WHY = 1, 3, 5
RIGHT = "Each of 6 ranks sends to 5 others."


def saved(folder, sources):
    """The path of a notebook in a new folder, with code cells of these sources and no kernel."""
    folder.mkdir()
    notebook = nbformat.v4.new_notebook(
        cells=list(map(nbformat.v4.new_code_cell, sources)),
        metadata={"kernelspec": {"name": "not-here", "display_name": "Not here"}},
    )
    path = folder / "predictions.ipynb"
    nbformat.write(notebook, path)
    return path


def opened_without_kernel(page, address, code_cells):
    """The notebook's panel with all its cells, after its reader has declined to start a kernel."""
    from playwright.sync_api import expect

    page.goto(address)
    page.locator(".jp-Dialog").get_by_text("No Kernel", exact=True).last.click(timeout=60_000)
    panel = page.locator(".jp-NotebookPanel")
    expect(panel.locator(".jp-CodeCell")).to_have_count(code_cells, timeout=180_000)
    return panel


def form_of(panel, cell):
    """The form of the code cell with this number."""
    return panel.locator(".jp-CodeCell").nth(cell).get_by_role("group", name="Your prediction")


def save(page, notebook):
    """Save by Ctrl+S: the sources of the file's cells."""
    with page.expect_response(lambda response: response.request.method == "PUT"):
        page.keyboard.press("Control+S")
    return [cell.source for cell in nbformat.read(notebook, as_version=4).cells]


def predicted(cell, text):
    """CELLS' source with this prediction in it."""
    return CELLS[cell].replace('""', f'"{text}"', 1)


def kinds(source):
    """What the forms of a cell's predictions are made of, by Python's own reading of the source."""
    for call in ast.walk(ast.parse(source)):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "mpilab.predict":
            given = {each.arg: ast.literal_eval(each.value) for each in call.keywords}
            if "choices" in given:
                yield "radio", given["choices"]
            elif "between" in given:
                yield "range", [str(bound) for bound in given["between"]]
            else:
                yield "text", []


def test_a_prediction_is_chosen_dragged_or_typed_by_mouse_and_papermill_shows_it_beside_the_answer(
    page, tmp_path
):
    from playwright.sync_api import expect

    notebook = saved(tmp_path / "labs", CELLS)
    with jupyterlab(tmp_path, notebook) as address:
        panel = opened_without_kernel(page, address, len(CELLS))
        expect(panel.get_by_role("group", name="Your prediction")).to_have_count(3)
        form = form_of(panel, FIVE)
        told, show = form.get_by_role("status"), form.get_by_role("button")
        expect(form.get_by_role("radio", checked=True)).to_have_count(0)
        expect(show).to_be_hidden()  # there is nothing to compare yet
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / "prediction-before.png")
        form.get_by_text("runs 5").click()
        show.click()
        expect(told).to_have_text("✗ Not right. There are 4 slots only.")
        form.get_by_label("refuses").click()
        expect(told).to_have_text("")
        show.click()
        expect(told).to_have_text("✓ Right. There are 4 slots only.")

        form = form_of(panel, ARROWS)
        slider = form.get_by_role("slider")
        expect(slider).to_have_attribute("aria-valuetext", "not answered")
        box = slider.bounding_box()
        middle = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + box["width"] / 2, middle)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] - 1, middle, steps=5)
        page.mouse.up()
        expect(form.get_by_role("spinbutton")).to_have_value("60")
        expect(slider).to_have_attribute("aria-valuetext", "60 arrows")
        form.get_by_role("spinbutton").fill("30")
        expect(slider).to_have_value("30")
        form.get_by_role("button").click()
        expect(form.get_by_role("status")).to_have_text(f"✓ Right. {RIGHT}")

        form = form_of(panel, WHY)
        form.get_by_role("textbox").fill('as "P - 1" \\ 5')
        # What the answer says comes from a run: the form cannot tell.
        expect(form.get_by_role("button")).to_be_hidden()
        expect(form.get_by_text("To see what happens, run this cell")).to_be_visible()
        page.screenshot(path=SCREENSHOTS / "prediction-after.png")
        assert save(page, notebook) == [
            *CELLS[:FIVE],
            predicted(FIVE, "refuses"),
            CELLS[FIVE + 1],
            predicted(ARROWS, "30"),
            CELLS[ARROWS + 1],
            predicted(WHY, r"as \"P - 1\" \\ 5"),
            *CELLS[WHY + 1 :],
        ]
    after = tmp_path / "after.ipynb"
    papermill.execute_notebook(notebook, after, kernel_name="python3", progress_bar=False)
    done = nbformat.read(after, as_version=4).cells
    assert [done[cell + 1].outputs[0].data["text/plain"] for cell in (FIVE, ARROWS, WHY)] == [
        "You predicted: ✓ refuses\nWhat happens:  There are 4 slots only.",
        f"You predicted: ✓ 30 arrows\nWhat happens:  {RIGHT}",
        'You predicted: as "P - 1" \\ 5\nWhat happens:  It takes 5 rounds.',
    ]


def test_a_prediction_is_made_and_changed_by_keyboard_alone(page, tmp_path):
    from playwright.sync_api import expect

    notebook = saved(tmp_path / "labs", CELLS)
    with jupyterlab(tmp_path, notebook) as address:
        panel = opened_without_kernel(page, address, len(CELLS))
        press = page.keyboard.press
        active = panel.locator(".jp-CodeCell.jp-mod-active")
        enter_notebook(page)
        press("ArrowDown")
        form = form_of(panel, FIVE)
        press("Tab")
        expect(form.get_by_role("radio").first).to_be_focused()
        press("ArrowDown")
        press("ArrowDown")
        expect(form.get_by_label("refuses")).to_be_checked()
        press("Tab")
        expect(form.get_by_role("button")).to_be_focused()
        press("Enter")
        expect(form.get_by_role("status")).to_have_text("✓ Right. There are 4 slots only.")
        # The keys of command mode are not taken for commands, and Escape leads back to the cell.
        press("b")
        press("x")
        expect(panel.locator(".jp-CodeCell")).to_have_count(len(CELLS))
        press("Escape")
        press("ArrowDown")
        press("ArrowDown")
        expect(active).to_contain_text("arrows = mpilab.predict")
        press("Tab")
        slider = form_of(panel, ARROWS).get_by_role("slider")
        expect(slider).to_be_focused()
        for _ in range(2):
            press("ArrowRight")
        press("ArrowLeft")
        expect(slider).to_have_attribute("aria-valuetext", "31 arrows")
        # Shift+Enter runs the cell, as from the editor, and so asks for a kernel now.
        press("Shift+Enter")
        expect(active).to_contain_text("arrows.answer")
        expect(page.locator(".jp-Dialog")).to_contain_text("Select Kernel")
        press("Escape")
        expect(page.locator(".jp-Dialog")).to_have_count(0)
        enter_notebook(page)
        press("ArrowDown")
        press("Tab")
        field = form_of(panel, WHY).get_by_role("textbox")
        expect(field).to_be_focused()
        page.keyboard.type("abba, dd: 30 rounds")
        expect(field).to_have_value("abba, dd: 30 rounds")
        assert [save(page, notebook)[cell] for cell in (FIVE, ARROWS, WHY)] == [
            predicted(FIVE, "refuses"),
            predicted(ARROWS, "31"),
            predicted(WHY, "abba, dd: 30 rounds"),
        ]

        # It works the other way round, too: the form shows what is written into the source.
        press("Escape")
        press("Enter")
        press("Control+A")
        page.keyboard.insert_text(predicted(FIVE, "RUNS 4"))
        expect(active.get_by_label("runs 4")).to_be_checked()
        press("Control+A")
        page.keyboard.insert_text("five = 5")
        expect(active.get_by_role("group")).to_have_count(0)


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_the_forms_can_be_read_in_both_themes(page, tmp_path, theme):
    from playwright.sync_api import expect

    notebook = saved(tmp_path / "labs", CELLS)
    with jupyterlab(tmp_path, notebook, theme) as address:
        panel = opened_without_kernel(page, address, len(CELLS))
        light = {LIGHT: "true", DARK: "false"}
        expect(page.locator("body")).to_have_attribute("data-jp-theme-light", light[theme])
        form = form_of(panel, FIVE)
        assert grave_findings(page, within=".mpilab-predictions") == []
        form.get_by_label("runs 5").click()
        form.get_by_role("button").click()
        expect(form.get_by_role("status")).to_contain_text("Not right")
        form_of(panel, WHY).get_by_role("textbox").fill("a text")
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"prediction-form-{theme.split()[-1].lower()}.png")
        assert grave_findings(page, within=".mpilab-predictions") == []


def test_every_prediction_of_the_labs_has_the_form_that_its_source_asks_for(page, tmp_path):
    from playwright.sync_api import expect

    sources = [
        cell.source
        for path in sorted((ROOT / "labs").glob("0*.ipynb"))
        for cell in nbformat.read(path, as_version=4).cells
        if cell.cell_type == "code" and re.search(r"mpilab\.predict\(", cell.source)
    ]
    wanted = [kind for source in sources for kind in kinds(source)]
    assert len(wanted) > 100
    notebook = saved(tmp_path / "labs", sources)
    with jupyterlab(tmp_path, notebook) as address:
        panel = opened_without_kernel(page, address, len(sources))
        forms = panel.get_by_role("group", name="Your prediction")
        expect(forms).to_have_count(len(wanted), timeout=60_000)
        shown = forms.evaluate_all(
            """forms => forms.map(form => {
                const inputs = [...form.querySelectorAll('input')];
                const [{ type, min, max }] = inputs;
                const listed = { radio: inputs.map(one => one.value), range: [min, max], text: [] };
                return [type, listed[type]];
            })"""
        )
    assert [tuple(each) for each in shown] == wanted
