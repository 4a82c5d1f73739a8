"""The worked example of the instructors' guide is graded exactly as printed there."""

import re

import pytest

from mpilab.grading.answers import answer_cells
from mpilab.grading.proving import prove
from mpilab.grading.release import write_release
from mpilab.util.kit import ROOT

GUIDE = (ROOT / "docs" / "instructors.md").read_text(encoding="utf-8")
FIRST_SLOT = 40


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A folder with the files of the guide, in the same places as in the kit."""
    root = tmp_path_factory.mktemp("course")
    for paragraph in re.split(r"^(?=\*\*)", GUIDE, flags=re.MULTILINE)[1:]:
        name = re.match(r"\*\*.*?\*\*, `(.+?)`", paragraph)[1]
        text = re.search(r"^```\w+\n(.*?)^```", paragraph, re.DOTALL | re.MULTILINE)[1]
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def test_the_files_of_the_guide_are_all_that_a_lab_needs(course):
    assert sorted(str(p.relative_to(course)) for p in course.rglob("*") if p.is_file()) == [
        "grading/90-example/bugs.toml",
        "grading/90-example/rubric.toml",
        "labs/source/90-example.py",
    ]


def test_its_notebook_is_released_without_solutions(course, tmp_path):
    text = write_release(course / "labs" / "source" / "90-example.py", tmp_path / "lab.ipynb")
    assert "bit_length" not in text.read_text(encoding="utf-8")


@pytest.mark.slow
def test_its_rubric_gives_and_takes_the_points_that_it_should(course):
    proof = prove("90-example", jobs=2, runs=1, first_slot=FIRST_SLOT, progress=False, root=course)
    assert proof.deviations == []


def test_the_commands_of_the_guide_are_those_of_the_kit():
    from mpilab.cli import _parser

    known = _parser().format_help()
    for command in re.findall(r"`mpilab (\w+)", GUIDE):
        assert re.search(rf"^    {command}\b", known, re.MULTILINE), command


def test_an_answer_cell_is_found_for_every_exercise(course):
    from mpilab.grading.grade import Assignment

    assignment = Assignment.load("90-example", course)
    assert list(answer_cells(assignment.notebook)) == ["scatter", "rounds", "tree"]
    assert sum(assignment.points.values()) == 100
