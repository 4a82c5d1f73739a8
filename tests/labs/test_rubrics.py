"""What is right gets every point, what is blank none, and each seeded bug of each lab loses what it
must and no more (docs/rubrics.md). All of it goes through the sandbox, real and simulated."""

import re
from collections import defaultdict

import pytest
from lab_notebook import ROOT

from mpilab.grading.proving import BUG, KINDS, bugs_of, compare, prove
from mpilab.judging import rubric

LABS = sorted(path.parent.name for path in (ROOT / "grading").glob("*/bugs.toml"))
FEWEST_BUGS = 12
# 'mpilab rubric test LAB' judges every answer twice, and wants the same words both times. Here that
# is asked of one lab, and of one exercise of each other.
WORD_FOR_WORD = {
    "00-first-contact": ("placement", "bcast_linear", "barrier_double_ring", "fit", "by_distance"),
    "01-collective-algorithms": ("pipeline",),
    "02-allgather": ("pairwise",),
    "03-rank-mapping": ("remap",),
    "04-topology": ("reordered",),
    "05-parallel-io": ("sieving",),
    "06-tune-and-scale": ("rules_file",),
}
# Of the sandbox, JOBS for each lab: no two tests that may run at the same time share one.
FIRST_SLOT, JOBS = 20, 2


def bugs(lab):
    """The seeded bugs of a lab."""
    return bugs_of(lab, rubric.load(ROOT / "grading" / lab / "rubric.toml"))


def test_every_lab_has_seeded_bugs():
    assert sorted(path.parent.name for path in (ROOT / "grading").glob("*/rubric.toml")) == LABS


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
def test_each_answer_gets_the_points_that_it_should_and_the_same_words_again(lab):
    options = {
        "jobs": JOBS,
        "runs": 1,
        "first_slot": FIRST_SLOT + JOBS * LABS.index(lab),
        "progress": False,
    }
    first = prove(lab, **options)
    assert first.count(BUG) >= FEWEST_BUGS
    assert [each.deviations for each in first.proved] == [()] * len(first.proved)
    verdicts = {(each.answer.exercise, each.answer.name): each.verdicts for each in first.proved}
    again = [
        each for name in WORD_FOR_WORD[lab] for each in prove(lab, exercise=name, **options).proved
    ]
    assert len(again) > 2
    for each in again:
        before = verdicts[each.answer.exercise, each.answer.name]
        assert compare(each.answer, before + each.verdicts).deviations == ()
