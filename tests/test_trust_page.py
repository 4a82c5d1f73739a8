"""The numbers on the page about trust are those of what is tested."""

import re

import pytest
import trust

from mpilab.util.kit import ROOT
from mpilab.util.text import filled

PAGE = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
TESTS = ROOT / "tests"


def number(before_words):
    return {int(found) for found in re.findall(rf"(\d+) {before_words}", PAGE)}


def test_labs_and_their_seeded_bugs():
    table = trust.table()
    assert filled(PAGE, {"labs": table}) == PAGE, "run 'make refresh'"
    rows = [row.split(" | ") for row in table.splitlines()[2:]]
    assert number("bugs") == {sum(int(row[3]) for row in rows)}
    assert number("labs") == {len(rows)}


def test_attacks():
    assert filled(PAGE, {"attacks": trust.attacks()}) == PAGE, "run 'make refresh'"
    listed = (TESTS / "hostile" / "README.md").read_text(encoding="utf-8")
    assert number("attacks") == {len(re.findall(r"^\| `\w+` \|", listed, re.MULTILINE))}


def test_kills():
    test = (TESTS / "grading" / "test_killed.py").read_text(encoding="utf-8")
    assert number("kills") == {int(re.search(r"^KILLS = (\d+)$", test, re.MULTILINE)[1])}


def test_seeded_bugs_of_each_exercise():
    test = (TESTS / "labs" / "test_rubrics.py").read_text(encoding="utf-8")
    assert number("of each exercise") == {int(re.search(r"^BUGS = (\d+)$", test, re.MULTILINE)[1])}


def test_submissions_of_the_sample_class():
    students = [path for path in (ROOT / "grading" / "sample-class").iterdir() if path.is_dir()]
    assert number("submissions") == {len(students)}


@pytest.mark.parametrize("page", ["trust", "threat-model"])
def test_every_test_that_a_page_names_is_there(page):
    named = re.findall(r"`(tests/[\w/.*]+)`", (ROOT / f"docs/{page}.md").read_text("utf-8"))
    assert named
    for name in named:
        assert any(ROOT.glob(name)), name
