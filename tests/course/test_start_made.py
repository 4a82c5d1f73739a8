"""The page that students open first is generated from the labs' own text, and is up to date."""

import re

import nbformat
import papermill
import pytest

from mpilab.course.handout import front, handout, write_help, write_start
from mpilab.grading.release import release
from mpilab.util.kit import ROOT

SOURCES = sorted((ROOT / "labs" / "source").glob("*.py"))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    labs = tmp_path_factory.mktemp("kit") / "labs"
    write_start(SOURCES, labs, ROOT)
    return labs


def test_what_is_committed_is_what_release_makes(made):
    fresh = sorted(path.relative_to(made) for path in made.rglob("*") if path.is_file())
    assert len(fresh) == 2
    for name in fresh:
        same = (ROOT / "labs" / name).read_bytes() == (made / name).read_bytes()
        assert same, f"labs/{name}: run 'make refresh'"


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_each_lab_says_how_long_it_takes_what_it_needs_and_what_one_learns(source):
    lab = front(source)
    assert re.match(r"About (\w+) (minutes|hours)", lab.time)
    assert lab.before and len(lab.learn) >= 4 and len(lab.exercises) >= 5
    assert all(each.title != each.id for each in lab.exercises)


def test_the_page_holds_each_labs_own_words_and_links_only_to_what_is_there(made):
    notebook = nbformat.read(made / "START.ipynb", as_version=4)
    nbformat.validate(notebook)
    text = "\n".join(cell.source for cell in notebook.cells)
    for source in SOURCES:
        lab = front(source)
        assert all(words in text for words in (lab.title, lab.time, lab.before, *lab.learn))
    links = set(re.findall(r"\]\(([^)#]+)", text))
    assert {f"{source.stem}.ipynb" for source in SOURCES} < links
    write_help(made, ROOT / "docs")
    there = [
        link for link in links for folder in (made, ROOT / "labs") if (folder / link).is_file()
    ]
    assert links == set(there)
    headings = {line.lstrip("# ").replace(" ", "-") for line in text.split("\n") if line[:1] == "#"}
    assert set(re.findall(r"\]\(#([^)]+)", text)) <= headings


def test_a_line_of_code_in_a_text_is_no_heading_of_an_exercise(tmp_path):
    cell = (
        '# %% nbgrader={"grade": true, "grade_id": "ring", "locked": false, "points": 1, '
        '"schema_version": 3, "solution": true, "task": false, "cell_type": "code"}'
    )
    text = f"""# %% [markdown]
# # A lab
# ## A ring
# ```c
# #include <mpi.h>
# ```

{cell}
### BEGIN SOLUTION
# STUB: pass
x = 1
### END SOLUTION
"""
    source = tmp_path / "labs" / "source" / "90-lab.py"
    source.parent.mkdir(parents=True)
    source.write_text(text, encoding="utf-8")
    assert [each.title for each in front(source).exercises] == ["A ring"]


def test_no_solution_is_in_the_list_of_blank_answers():
    listed = (ROOT / "labs" / "checks" / "answers.json").read_text(encoding="utf-8")
    blank = [release(source) for source in SOURCES]
    stubs = [cell.source for lab in blank for cell in lab.cells if "deletable" in cell.metadata]
    assert listed.count('"stub"') == len(stubs)
    assert "SOLUTION" not in listed


def test_a_handout_starts_with_a_page_for_its_lab_that_runs(tmp_path, monkeypatch):
    given = handout(tmp_path / "out", ["02-allgather"]).path
    labs = given / "labs"
    assert sorted(path.name for path in labs.glob("*.ipynb")) == [
        "02-allgather.ipynb",
        "START.ipynb",
    ]
    text = (labs / "START.ipynb").read_text(encoding="utf-8")
    assert "02-allgather.ipynb" in text and "00-first-contact.ipynb" not in text
    assert (labs / "help" / "failures.md").is_file()
    monkeypatch.setenv("PYTHONPATH", str(given))
    after = tmp_path / "after.ipynb"
    papermill.execute_notebook(labs / "START.ipynb", after, cwd=labs, progress_bar=False)
    (cell,) = (c for c in nbformat.read(after, as_version=4).cells if c.cell_type == "code")
    shown = cell.outputs[0].data["text/plain"]
    assert shown.startswith("02-allgather: 0 of 5 done")
    assert len(re.findall(r"^\S", shown, re.MULTILINE)) == 1
