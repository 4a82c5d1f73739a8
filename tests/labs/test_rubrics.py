"""What is right gets every point, what is blank none, and each seeded bug of each lab loses what it
must and no more (docs/rubrics.md). All of it goes through the sandbox, real and simulated."""

import re
from collections import defaultdict

import pytest
from lab_notebook import ROOT

from mpilab import exercises
from mpilab.grading.proving import BUG, prove
from mpilab.grading.seeded import KINDS, bugs_of

LABS = sorted(path.parent.name for path in (ROOT / "grading").glob("*/bugs.toml"))
FEWEST_BUGS = 12
# Two runs of every lab are 'mpilab rubric test LAB'; here, of one that costs little.
TWICE = "00-first-contact"
# Of the sandbox: no two tests that may run at the same time share one.
FIRST_SLOT = 20


def bugs(lab):
    """The seeded bugs of a lab."""
    return bugs_of(lab, exercises.load(ROOT / "grading" / lab / "rubric.toml"))


def test_every_lab_has_seeded_bugs():
    assert LABS == sorted(path.parent.name for path in (ROOT / "grading").glob("*/rubric.toml"))


@pytest.mark.parametrize("lab", LABS)
def test_a_lab_has_a_dozen_of_them(lab):
    assert len(bugs(lab)) >= FEWEST_BUGS


def test_the_page_on_rubrics_names_a_bug_of_every_kind():
    found = defaultdict(set)
    for lab in LABS:
        for bug in bugs(lab):
            found[bug.kind].add(f"{lab[:2]}/{bug.name}")
    page = (ROOT / "docs" / "rubrics.md").read_text(encoding="utf-8")
    table = page.partition("| kind | for example |")[2]
    rows = re.findall(r"^\| ([a-z][^|]+) \| (.+) \|$", table, re.MULTILINE)
    assert [kind for kind, _ in rows] == list(KINDS)
    for kind, text in rows:
        named = re.findall(r"`([^`]+)`", text)
        assert named and set(named) <= found[kind], kind


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("lab", LABS)
def test_each_answer_gets_the_points_that_it_should(lab):
    proof = prove(lab, jobs=2, runs=2 if lab == TWICE else 1, first_slot=FIRST_SLOT, progress=False)
    assert proof.deviations == []
    assert proof.count(BUG) >= FEWEST_BUGS
