"""A correct answer gets every point, a blank one none, and each seeded bug of each lab loses
exactly what it must (docs/rubrics.md). All answers go through the sandbox, real and simulated."""

import re
from collections import Counter, defaultdict

import pytest
from lab_notebook import ROOT

from mpilab.grading.grade import Assignment
from mpilab.grading.proving import (
    BUG,
    KINDS,
    VARIANT,
    bugs_of,
    mutate,
    prove,
    references_of,
    variants_of,
)
from mpilab.grading.referee import Referee
from mpilab.grading.sandbox import open_sandbox
from mpilab.judging import rubric
from mpilab.judging.mutation import KILLED, mutants_of, survivors
from mpilab.judging.rubric import KERNEL
from mpilab.kernels.build import function_of

LABS = sorted(path.parent.name for path in (ROOT / "grading").glob("*/bugs.toml"))
FEWEST_BUGS = 12
# 'mpilab rubric test LAB' judges every answer twice, by all witnesses, and requires the same text
# both times. Here, that is done with one exercise of each kind, and with one that reads files;
# the bugs of the others are judged by simulation alone, where that is enough. Of each exercise, up
# to BUGS seeded bugs are judged.
BUGS = 3
WORD_FOR_WORD = {
    "00-first-contact": ("placement", "barrier_double_ring", "by_distance"),
    "05-parallel-io": ("sieving",),
}
# Slots of the sandbox, JOBS for each lab: no two tests that may run at the same time share one.
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
    first_slot = FIRST_SLOT + JOBS * LABS.index(lab)
    exercises = rubric.load(ROOT / "grading" / lab / "rubric.toml").exercises
    every = Counter(bug.exercise for bug in bugs(lab))
    assert {exercise.id for exercise in exercises} >= {*every, *WORD_FOR_WORD.get(lab, ())}
    for exercise in exercises:
        twice = exercise.id in WORD_FOR_WORD.get(lab, ())
        proof = prove(
            lab,
            exercise=exercise.id,
            jobs=JOBS,
            runs=2 if twice else 1,
            first_slot=first_slot,
            progress=False,
            sample=BUGS,
            quick=not twice,
        )
        assert proof.proved and proof.deviations == []
        assert proof.count(BUG) == min(every[exercise.id], BUGS)


# The number of honest variants of each C answer that are judged, with a few cases of each item, and
# that must exist. 'mpilab rubric variants LAB' judges all, with all cases.
VARIANTS, FEWEST_VARIANTS = 1, 15


@pytest.mark.parametrize("lab", LABS)
def test_every_c_answer_has_many_honest_variants(lab):
    asked = rubric.load(ROOT / "grading" / lab / "rubric.toml")
    found = Counter(function_of(each.source) for each in variants_of(lab, asked))
    functions = {name for each in asked.exercises if each.kind == KERNEL for name in each.functions}
    assert functions == set(found)
    assert min(found.values()) >= FEWEST_VARIANTS


@pytest.mark.slow
@pytest.mark.parametrize("lab", LABS)
def test_honest_variants_of_the_references_get_every_point(lab):
    slot = FIRST_SLOT + JOBS * LABS.index(lab)
    options = {"jobs": JOBS, "runs": 1, "first_slot": slot, "progress": False}
    proof = prove(lab, variants=True, sample=VARIANTS, quick=True, **options)
    assert proof.count(VARIANT) % VARIANTS == 0 and proof.proved
    assert proof.deviations == []


# The number of mutants of each reference that are judged; docs/rubrics.md defines mutants.
# 'mpilab rubric mutate LAB' judges all.
MUTANTS = 1


def most_survivors(references):
    """How many mutants of a lab may survive: one of every second reference, and at least one, as a
    reference that is changed gets other mutants. docs/rubrics.md has scores of larger samples."""
    return max(1, references // 2)


@pytest.mark.slow
@pytest.mark.parametrize("lab", LABS)
def test_the_rubric_notices_small_mistakes_in_its_references(lab):
    slot = FIRST_SLOT + JOBS * LABS.index(lab)
    scores = mutate(lab, sample=MUTANTS, jobs=JOBS, first_slot=slot, progress=False)
    assert scores and [len(score.judged) for score in scores] == [MUTANTS] * len(scores)
    not_killed = [each for score in scores for each in score.judged if each.outcome != KILLED]
    assert len(not_killed) <= most_survivors(len(scores)), survivors(scores)


@pytest.mark.parametrize(
    ("lab", "exercise", "change", "items"),
    [
        # Only if the root is another rank.
        ("00-first-contact", "bcast_linear", "(rank != root) → (rank != 0)", ["any-root"]),
        # The result is correct; the other requirements are not met.
        ("02-allgather", "pairwise", "MPI_Type_free(&outgoing); → (deleted)", ["clean"]),
        # Every case hangs: no rank receives what is sent.
        ("02-allgather", "pairwise", "TAG → TAG + 1", None),
    ],
)
def test_a_mistake_loses_the_item_that_asks_for_it(lab, exercise, change, items):
    assignment = Assignment.load(lab)
    asked = assignment.rubric.exercise(exercise)
    (source,) = [
        source for _, where, source in references_of(lab, assignment.rubric) if where == exercise
    ]
    mutant = next(each for each in mutants_of(exercise, source) if each.change == change)
    sandbox = open_sandbox(slot=FIRST_SLOT + JOBS * LABS.index(lab))
    verdict = Referee(sandbox).judge_simulated(asked, mutant.source)
    lost = [item.item for item in verdict.items if item.outcome == "fail"]
    assert lost == (items or [item.id for item in asked.items])
    few = Referee(sandbox).judge_simulated(asked, mutant.source, quick=True)
    found_by_few = {item.item for item in few.items if item.outcome == "fail"}
    assert found_by_few and found_by_few <= set(lost)
    right = Referee(sandbox).judge_simulated(asked, source, quick=True)
    assert {item.outcome for item in right.items} == {"pass"}
