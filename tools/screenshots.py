"""Make the pictures in docs/images, of the kit in JupyterLab: `make screenshots [ONLY=start]`.

They show real runs in headless Chromium, with the functions of tests/browser/browsing.py, and are
compressed without loss. tests/test_page_links.py compares them with the pages that show them.
"""

import argparse
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import nbformat
from playwright.sync_api import expect, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "browser"))

from browsing import (  # noqa: E402
    CHROMIUM,
    activate,
    jupyter,
    jupyterlab,
    middle_of,
    opened,
    wait_for_kernel,
)

IMAGES = ROOT / "docs" / "images"
LAB_02 = ROOT / "labs" / "02-allgather.ipynb"
VIEWPORT = {"width": 1180, "height": 860}
MARGIN = 6  # pixels around what is shown
MOST_BYTES = 150_000
PATIENT = {"timeout": 120_000}  # for what a kernel or the compiler must answer

FLAT = """%%kernel bcast_flat
#include "mpilab.h"

/* The root sends to every other rank; the others receive from it. */
int bcast_flat(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_sise(comm, &size);
    if (rank != root)
        return MPI_Recv(buffer, count, datatype, root, TAG, comm, MPI_STATUS_IGNORE);
    for (int dest = 0; dest < size && err == MPI_SUCCESS; dest++)
        if (dest != root) // the root already has it
            err = MPI_Send(buffer, count, datatype, dest, TAG, comm);
    return err;
}"""
START_RANKS = "%load_ext mpilab\nimport mpilab\n\ncluster = mpilab.Cluster(4).start()"
RUN = 'mpilab.run("allgather_mine", ranks=4, count=4)'
STUDENT = "dan"  # of the sample class


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("only", nargs="*", metavar="NAME", help=f"of {', '.join(PICTURES)}")
    options = parser.parse_args()
    names = ("chromium", "chromium-browser", "google-chrome")
    chromium = next(filter(None, map(shutil.which, names)), None)
    if chromium is None:
        sys.exit("screenshots: no Chromium on PATH\n  remedy: sudo apt-get install chromium")
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM)
        for name in options.only or PICTURES:
            home = Path(folder, name)
            home.mkdir()
            page = browser.new_page(viewport=VIEWPORT)
            PICTURES[name](page, home)
            page.close()
        browser.close()


# What is pictured. Each function gets a new page, and an empty folder for its own use.


def c_cells(page, home):
    """A cell with C: colors, the compiler's mark, completion, and what a call does."""
    with jupyterlab(home, saved(home, "%load_ext mpilab", FLAT)) as address:
        panel = opened(page, address, 2)
        activate(page, panel, 0)
        page.keyboard.press("Shift+Enter")
        page.keyboard.press("Control+Enter")
        cell = panel.locator(".jp-CodeCell").nth(1)
        expect(cell.locator(".mpilab-mark-message")).to_have_count(1, **PATIENT)
        shown = cell.locator(".jp-InputArea")
        take(page, "c-cell", shown)
        x, y = middle_of(cell, "MPI_Send")
        page.mouse.move(x - 2, y)
        page.mouse.move(x, y)
        hover = page.locator(".mpilab-hover")
        expect(hover).to_contain_text("rank of destination", **PATIENT)
        take(page, "c-hover", shown, hover)

        page.mouse.move(1, 1)
        expect(hover).to_have_count(0)
        page.keyboard.press("Enter")
        page.keyboard.press("Control+Home")
        for _ in range(8):
            page.keyboard.press("ArrowDown")
        page.keyboard.press("End")
        page.keyboard.press("Shift+Home")
        page.keyboard.type("MPI_Comm_s")
        page.keyboard.press("Tab")
        completer = page.locator(".jp-Completer")
        expect(completer.get_by_text("MPI_Comm_size", exact=True)).to_be_visible(**PATIENT)
        page.keyboard.press("ArrowDown")
        take(page, "c-completion", shown, completer)


def predictions(page, home):
    """The first prediction of lab 02, before it is answered and after."""
    folder = home / "labs"
    folder.mkdir()
    shutil.copy(LAB_02, folder)
    notebook = nbformat.read(LAB_02, as_version=4)
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    with jupyterlab(home, folder / LAB_02.name) as address:
        panel = opened(page, address, len(code))
        number = next(i for i, source in enumerate(code) if source.startswith("busiest = "))
        cell = panel.locator(".jp-CodeCell").nth(number)
        question = panel.locator(".jp-MarkdownCell").filter(has_text="which rank sends the most")
        question.scroll_into_view_if_needed()
        cell.scroll_into_view_if_needed()
        take(page, "prediction-before", question, cell)
        form = cell.get_by_role("group", name="Your prediction")
        form.get_by_label("rank 0, 7 blocks").click()
        form.get_by_role("button").click()
        expect(form.get_by_role("status")).to_contain_text("Not right")
        page.mouse.move(1, 1)
        take(page, "prediction-after", question, cell)


def start(page, home):
    """START, after its cell has shown how far a student is."""
    kit = home / "kit"
    for name in ("labs", "tools", "docs"):
        shutil.copytree(ROOT / name, kit / name)
    (kit / "mpilab").symlink_to(ROOT / "mpilab")
    with jupyter([sys.executable, str(kit / "tools" / "lab.py")], home) as (address, token):
        page.goto(f"{address}/?token={token}")
        panel = page.locator(".jp-NotebookPanel:visible")
        expect(panel.get_by_role("heading", level=1)).to_contain_text("Start", **PATIENT)
        wait_for_kernel(page, "START.ipynb")
        cell = panel.locator(".jp-CodeCell").first
        cell.locator(".cm-content").click()
        page.keyboard.press("Shift+Enter")
        expect(cell.get_by_role("table")).to_be_visible(**PATIENT)
        page.set_viewport_size({"width": 1060, "height": 730})
        panel.get_by_role("heading", level=1).evaluate("heading => heading.scrollIntoView()")
        take(page, "start")


def deadlock(page, home):
    """The panel of a ring in which every rank receives first."""
    source = (ROOT / "site" / "deadlock.c").read_text(encoding="utf-8")
    kernel = "%%kernel allgather_mine\n" + source.partition("*/\n")[2]
    with jupyterlab(home, saved(home, START_RANKS, kernel, RUN)) as address:
        panel = opened(page, address, 3)
        activate(page, panel, 0)
        for _ in range(3):
            page.keyboard.press("Shift+Enter")
        alert = panel.get_by_role("alert", name="Deadlock")
        expect(alert).to_be_visible(**PATIENT)
        panel_of_it = alert.locator(
            "xpath=ancestor::*[contains(@class, 'jp-OutputArea-output')][1]"
        )
        panel_of_it.scroll_into_view_if_needed()
        take(page, "deadlock", panel_of_it)


def feedback(page, home):
    """A student's page, as `mpilab grade` wrote it."""
    shutil.copytree(ROOT / "grading" / "sample-class" / STUDENT, home / "class" / STUDENT)
    grade = [sys.executable, "-m", "mpilab", "grade", home / "class", "--lab", "02-allgather"]
    subprocess.run([*grade, "--out", home / "out"], check=True, cwd=ROOT)
    page.goto((home / "out" / "feedback" / f"{STUDENT}.html").as_uri())
    exercise = page.locator("section").filter(has=page.get_by_role("heading", name="Pairwise"))
    exercise.scroll_into_view_if_needed()
    page.set_viewport_size({"width": 900, "height": 900})
    exercise.evaluate("section => section.scrollIntoView()")
    take(page, "feedback")


PICTURES = {
    "c-cells": c_cells,
    "predictions": predictions,
    "start": start,
    "deadlock": deadlock,
    "feedback": feedback,
}


def saved(home, *sources):
    """The path of a notebook in a new folder, with code cells of these sources."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in sources],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    (home / "labs").mkdir()
    nbformat.write(notebook, home / "labs" / "c.ipynb")
    return home / "labs" / "c.ipynb"


# Files.


def take(page, name, *shown):
    """Write docs/images/NAME.png: the part of the window with `shown`, or all of it."""
    clip = None
    if shown:
        boxes = [each.bounding_box() for each in shown]
        left, top = (min(box[side] for box in boxes) - MARGIN for side in ("x", "y"))
        right = max(box["x"] + box["width"] for box in boxes) + MARGIN
        bottom = max(box["y"] + box["height"] for box in boxes) + MARGIN
        left, top = max(left, 0), max(top, 0)
        clip = {"x": left, "y": top, "width": right - left, "height": bottom - top}
    path = IMAGES / f"{name}.png"
    path.write_bytes(smaller(page.screenshot(clip=clip)))
    size = path.stat().st_size
    print(f"{path.relative_to(ROOT)}: {size:,} bytes")
    if size > MOST_BYTES:
        sys.exit(f"{path}: {size:,} bytes\n  remedy: show less, at most {MOST_BYTES:,} bytes")


def smaller(png):
    """A PNG with the same pixels, compressed as far as zlib can, and without other chunks."""
    chunks, at = [], 8
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        chunks.append((png[at + 4 : at + 8], png[at + 8 : at + 8 + length]))
        at += length + 12
    data = zlib.compress(zlib.decompress(b"".join(c for kind, c in chunks if kind == b"IDAT")), 9)
    kept = [(kind, content) for kind, content in chunks if kind in (b"IHDR", b"PLTE", b"tRNS")]
    return png[:8] + b"".join(
        struct.pack(">I4s", len(content), kind)
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in [*kept, (b"IDAT", data), (b"IEND", b"")]
    )


if __name__ == "__main__":
    main()
