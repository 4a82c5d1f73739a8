"""Each lab says how long it takes, by one rule, and leads on to the next; a page lists all."""

import re

import lengths
import nbformat
import pytest

from mpilab.grading.release import answer_id, release
from mpilab.util.kit import ROOT
from mpilab.util.text import filled

PAGE = (ROOT / "docs" / "instructors.md").read_text(encoding="utf-8")
SOURCES = sorted((ROOT / "labs" / "source").glob("*.py"))
LABS = {path.stem[:2]: path.stem for path in SOURCES}

each_lab = pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)


def prose(source):
    return "\n".join(line.removeprefix("# ") for line in source.read_text().split("\n"))


def test_the_table_of_lengths_is_what_the_labs_have():
    assert filled(PAGE, {"lengths": lengths.table()}) == PAGE, "run 'make refresh'"


@each_lab
def test_no_lab_takes_more_than_three_hours(source):
    assert lengths.length_of(source).minutes <= lengths.SITTING


@each_lab
def test_a_lab_says_the_minutes_that_the_rule_gives_it(source):
    assert f"- {lengths.length_of(source).said}." in prose(source)


@each_lab
def test_all_that_is_marked_is_named_before_it_is_handed_in(source):
    length = lengths.length_of(source)
    assert length.named == length.marked > 10


@each_lab
def test_a_lab_names_what_it_needs_sums_up_and_leads_on(source):
    text, number = prose(source), source.stem[:2]
    need = text.partition("## What you need")[2].partition("\n- ")[2].partition("\n- ")[0]
    linked = re.findall(r"\[[Ll]ab (\d\d)\]\(([\w-]+)\.ipynb\)", need)
    assert all(name == LABS[lab] and lab < number for lab, name in linked)
    needed = {lab for lab, _ in linked}
    assert needed == set(re.findall(r"\b\d\d\b", re.sub(r"\(.*?\)|About \d+", "", need)))
    assert bool(needed) == (number != "00")
    end = text.partition("## Summary")[2]
    assert len(re.findall(r"^- ", end.partition("**Next:**")[0], re.MULTILINE)) > 3
    following = f"{int(number) + 1:02d}"
    link = f" [lab {following}]({LABS[following]}.ipynb)" if following in LABS else ""
    assert f"**Next:**{link}" in end


def test_an_optional_section_does_not_count_and_ends_at_the_next_heading_of_its_level():
    text, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell
    cells = [
        text("## First\n\nOne.\n\n## Aside (optional)\n\nTwo."),
        code("aside = 1"),
        text("### Of the aside\n\nThree."),
        text("Four.\n\n## Second (optional for most)\n\nFive."),
        code("second = 2"),
    ]
    kept = lengths.required(nbformat.v4.new_notebook(cells=cells))
    assert [cell.source for cell in kept] == [
        "## First\n\nOne.",
        "## Second (optional for most)\n\nFive.",
        "second = 2",
    ]


@each_lab
def test_optional_sections_are_few_explained_and_without_exercises(source):
    notebook = release(source)
    every, kept = (
        [answer_id(cell) for cell in cells if answer_id(cell)]
        for cells in (notebook.cells, lengths.required(notebook))
    )
    assert kept == every
    marked = lengths.OPTIONAL.findall(prose(source))
    assert len(marked) <= 5
    assert ("*(optional)*" in prose(source)) == bool(marked)


def test_the_first_c_is_within_the_first_15_cells():
    (first,) = [source for source in SOURCES if source.stem.startswith("00")]
    cells = [cell.source for cell in release(first).cells]
    assert next(i for i, text in enumerate(cells, 1) if text.startswith("%%kernel")) <= 15
