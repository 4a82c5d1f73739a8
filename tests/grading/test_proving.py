"""`mpilab rubric`: the proof of a rubric, and its reports of deviations."""

import json
import re
import shutil
from pathlib import Path

import pytest

from mpilab.cli import main
from mpilab.errors import InputError
from mpilab.grading.grade import Assignment
from mpilab.grading.proving import BUG, answers_of, bugs_of, compare, mutate, prove, variants_of
from mpilab.grading.referee import Referee
from mpilab.grading.release import solutions
from mpilab.judging.rubric import load
from mpilab.judging.verdict import ExerciseVerdict, ItemVerdict

ROOT = Path(__file__).resolve().parents[2]
LAB = "00-first-contact"
FIRST_SLOT = 71  # of sandboxes that no other test uses
SOLUTIONS = solutions(ROOT / "labs" / "source" / f"{LAB}.py")


@pytest.fixture
def copied(tmp_path):
    """A modifiable directory with what a proof reads."""
    shutil.copytree(ROOT / "grading" / LAB, tmp_path / "grading" / LAB)
    (tmp_path / "labs" / "source").mkdir(parents=True)
    shutil.copy(ROOT / "labs" / "source" / f"{LAB}.py", tmp_path / "labs" / "source")
    return tmp_path


def change(root, old, new):
    """Replace a text where it first occurs in the copied list of bugs."""
    path = root / "grading" / LAB / "bugs.toml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_an_exercise_is_proved_from_the_command_line(capsys):
    assert main(["rubric", "test", LAB, "--exercise", "fit", "--no-progress"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^fit +reference +- +- +20 of 20 +yes$", out, re.MULTILINE)
    assert re.search(r"^fit +blank +all +all +0 of 20 +yes$", out, re.MULTILINE)
    assert re.search(r"^fit +fit-least-squares\.py +relative +relative +8 of 20 +yes$", out, re.M)
    assert out.endswith(
        f"{LAB}: 1 references, 1 blanks, 3 seeded bugs, each judged 2 times: no deviations\n"
    )


def test_what_a_person_reads_is_left_to_a_person():
    (reference, blank) = prove(LAB, exercise="by_distance", progress=False).proved
    assert not reference.deviations and reference.verdicts[0].awarded is None
    assert not blank.deviations and blank.verdicts[0].awarded == 0


def test_a_bug_that_loses_another_item_than_it_should_is_told(copied):
    change(copied, 'loses = ["relative"]', 'loses = ["exact"]')
    said = prove(LAB, exercise="fit", runs=1, progress=False, root=copied).deviations
    assert len(said) == 2
    assert said[0] == "fit, fit-least-squares.py: exact is pass, but should be fail"
    assert said[1].startswith("fit, fit-least-squares.py: relative is fail, but should be pass: ")


def test_quickly_only_a_bug_that_its_simulation_does_not_prove_is_judged_by_all(
    copied, monkeypatch
):
    """One bug loses what it must; of the other, the list wants an item that it does not lose."""
    right, wrong = "once-round", "only-powers-of-two"
    listing = copied / "grading" / LAB / "bugs.toml"
    tables = re.split(r'(?m)^(?=\[+")', listing.read_text(encoding="utf-8"))
    named = [f'"barrier_double_ring-{name}.c"' for name in (right, wrong)]
    listing.write_text("".join(table for table in tables if table.strip("[").startswith((*named,))))
    shutil.rmtree(copied / "grading" / LAB / "bugs")
    change(copied, 'loses = ["any-size"]', 'loses = ["any-size", "clean"]')
    judged_by_all = []

    def judge(referee, exercise, source, *, blank):
        judged_by_all.append(source)
        return by_all(referee, exercise, source, blank=blank)

    by_all = Referee.judge
    monkeypatch.setattr(Referee, "judge", judge)
    proof = prove(
        LAB,
        exercise="barrier_double_ring",
        runs=1,
        first_slot=FIRST_SLOT,
        progress=False,
        quick=True,
        root=copied,
    )
    sources = {each.answer.name: each.answer.source for each in proof.proved}
    assert len(sources) == 4  # with the reference and the blank
    assert sources[f"barrier_double_ring-{right}.c"] not in judged_by_all
    assert sources[f"barrier_double_ring-{wrong}.c"] in judged_by_all
    assert proof.deviations == [
        f"barrier_double_ring, barrier_double_ring-{wrong}.c: clean is pass, but should be fail"
    ]


@pytest.mark.parametrize("most", [1, 3, None])
def test_a_sample_of_seeded_bugs_loses_different_items(most):
    every = [each for each in answers_of(Assignment.load(LAB)) if each.role == BUG]
    chosen = [each for each in answers_of(Assignment.load(LAB), sample=most) if each.role == BUG]
    assert [each for each in every if each in chosen] == chosen
    for exercise in {each.exercise for each in every}:
        of_all, of_sample = (
            [tuple(each.wanted.items()) for each in answers if each.exercise == exercise]
            for answers in (every, chosen)
        )
        assert len(of_sample) == min(len(of_all), most or len(of_all))
        assert len(set(of_sample)) == min(len(set(of_all)), len(of_sample))


def test_two_runs_that_differ_in_a_word_are_told():
    (answer,) = (
        each
        for each in answers_of(Assignment.load(LAB), "fit")
        if each.name == "fit-microseconds.py"
    )

    def verdict(rank, seconds=1):
        evidence = {"rank": rank, "table": [{"since": f"{seconds} s"}]}
        items = (ItemVerdict(item, "", 1, "fail", "wrong", evidence) for item in answer.wanted)
        return ExerciseVerdict("fit", "", tuple(items))

    assert compare(answer, [verdict(1, 5), verdict(1, 6)]).deviations == ()
    told = compare(answer, [verdict(1), verdict(1), verdict(2)]).deviations
    assert told[0] == "exact: its evidence differs in run 3: rank: 1, then 2"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('["fit-microseconds.py"]', '["fit-milliseconds.py"]', "fit-microseconds.py; add one"),
        ('loses = ["relative"]', 'loses = ["absolute"]', "'absolute': no such item; there are"),
        ('loses = ["relative"]', "loses = []", "loses nothing"),
        ('loses = ["relative"]', "", "give it fault, kind, loses"),
        ('kind = "wrong root"', 'kind = "rotten root"', "'rotten root' is unknown; write one of"),
    ],
)
def test_a_list_of_bugs_that_does_not_fit_is_refused(copied, old, new, words):
    change(copied, old, new)
    with pytest.raises(InputError, match=words):
        prove(LAB, progress=False, root=copied)


def bugs_with(root, text):
    """The seeded bugs of lab 00, with one more, of which `text` is the end."""
    path = root / "grading" / LAB / "bugs.toml"
    path.write_text(
        path.read_text(encoding="utf-8")
        + '["fit-new.py"]\nfault = "is new"\nkind = "other"\nloses = "all"\n'
        + text,
        encoding="utf-8",
    )
    return {
        bug.name: bug for bug in bugs_of(LAB, load(root / "grading" / LAB / "rubric.toml"), root)
    }


def test_a_bug_is_its_reference_with_edits_one_after_the_other(copied):
    found = bugs_with(
        copied,
        'edit = [{ replace = "def fit(", by = "def fitted(" }, '
        '{ replace = "def fitted(", by = "def fit (" }]\n',
    )
    assert found["fit-new.py"].source.startswith("def fit (")
    assert found["fit-new.py"].source.replace("fit (", "fit(") == SOLUTIONS["fit"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "'fit-new.py': there is no such file in .*; write it, or give the bug edits"),
        ("edit = []", "edit is not a list; write edit = "),
        ('edit = [{ replace = "def fit(" }]', "is not { replace = ..., by = ... }"),
        (
            'edit = [{ replace = "nowhere", by = "" }]',
            "'fit-new.py': the text 'nowhere' occurs 0 times in the reference",
        ),
        ('edit = [{ replace = "e", by = "" }]', r"'e' occurs \d+ times .*; quote more of it"),
        ('edit = [{ replace = "e", by = "" }]\nof = "fat"', "no reference that defines 'fat'"),
    ],
)
def test_edits_that_do_not_fit_the_reference_are_refused(copied, text, words):
    with pytest.raises(InputError, match=words):
        bugs_with(copied, text + "\n")


def test_a_bug_that_is_both_edits_and_a_file_is_refused(copied):
    (copied / "grading" / LAB / "bugs" / "fit-new.py").write_text(SOLUTIONS["fit"])
    with pytest.raises(InputError, match="it has edits, but is also the file .*; remove one"):
        bugs_with(copied, 'edit = [{ replace = "def fit(", by = "def fit (" }]\n')


def test_honest_variants_of_an_exercise_are_judged_from_the_command_line(capsys):
    asked = ["--exercise", "barrier_double_ring", "--sample", "1", "--no-progress"]
    assert main(["rubric", "variants", LAB, *asked]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^barrier_double_ring +barrier_double_ring +1 +1$", out, re.MULTILINE)
    assert out.endswith("1 honest variants, each judged once: no deviations\n")


def test_a_variant_that_loses_a_point_is_told(copied):
    # It is not honest: no rank sends with this tag.
    text = """
["bcast_linear-other-tag.c"]
what = "another tag"
edit = [{ replace = "datatype, root, TAG, comm, MPI_", by = "datatype, root, 3, comm, MPI_" }]
"""
    (copied / "grading" / LAB / "variants.toml").write_text(text)
    proof = prove(LAB, exercise="bcast_linear", variants=True, runs=1, progress=False, root=copied)
    assert [each.answer.name for each in proof.proved] == ["bcast_linear-other-tag.c"]
    assert any("powers-of-two is fail" in said for said in proof.deviations)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[x]\ncalls = {}\n", "give it what"),
        ('[x]\nwhat = "y"\nuses = "none"\n', "no such piece"),
        ('[x]\nwhat = "y"\nlayout = "narrow"\n', "layout 'narrow' is unknown"),
        ("[x\n", "not TOML"),
    ],
)
def test_a_list_of_variants_that_is_incomplete_is_refused(copied, text, words):
    (copied / "grading" / "variants.toml").write_text(text)
    with pytest.raises(InputError, match=words):
        variants_of(LAB, load(copied / "grading" / LAB / "rubric.toml"), copied)


def test_a_rubric_is_shown_with_its_cases(capsys):
    assert main(["rubric", "show", LAB]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^ +algorithm +4 +3 +6 +P-1 messages, all of them from the root$", out, re.M)
    assert re.search(r"^by_distance +15 +manual ", out, re.M)
    assert out.endswith("First contact: 100 points\n")


MUTATE = ["rubric", "mutate", LAB, "bcast_linear", "--sample", "2", "--no-progress"]


def test_mutants_of_an_exercise_are_judged_from_the_command_line(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main(MUTATE) == 0
    out = capsys.readouterr().out
    head, row = (line.split() for line in out.splitlines()[:2])
    numbers = dict(zip(head, row, strict=False))
    assert numbers["exercise"] == "bcast_linear"
    assert numbers["judged"] == numbers["killed"] == "2"
    assert out.endswith(f"{LAB}: score 100.0 %\n")

    # The second time, nothing is judged: the verdicts are in the cache.
    monkeypatch.setattr("mpilab.grading.proving.Referee", None)
    assert main([*MUTATE, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["exercises"]
    assert found["percent"] == 100 and len(found["judged"]) == 2
    for each in found["judged"]:
        assert each["outcome"] == "killed" and each["lost"] and each["diff"].count("\n-") == 1

    # A required score that is not reached determines the exit status.
    assert main([*MUTATE, "--at-least", "100.5"]) == 1


def test_a_mutant_that_is_listed_as_equivalent_and_is_not_is_told(copied, capsys, monkeypatch):
    (copied / "grading" / LAB / "equivalent.toml").write_text(
        '[[equivalent]]\nexercise = "bcast_linear"\noperator = "tag"\n'
        'line = "err = MPI_Send(buffer, count, datatype, dest, TAG, comm);"\nreason = "Why not?"\n',
        encoding="utf-8",
    )
    # Of the other exercise, none is listed.
    scores = mutate(LAB, listed=True, progress=False, root=copied)
    assert [len(score.judged) for score in scores] == [1, 0]
    monkeypatch.setattr("mpilab.grading.proving.mutate", lambda *_, **__: scores)
    assert main(["rubric", "mutate", LAB, "bcast_linear", "--listed"]) == 1
    said = capsys.readouterr().err
    assert "NOT EQUIVALENT: bcast_linear, line 15, tag: TAG → TAG + 1: loses powers-of-two" in said


def test_a_listed_mutant_that_is_no_more_is_refused(copied):
    (copied / "grading" / LAB / "equivalent.toml").write_text(
        '[[equivalent]]\nexercise = "bcast_linear"\noperator = "tag"\nline = "x = 1;"\n'
        'reason = "It was there once."\n',
        encoding="utf-8",
    )
    with pytest.raises(InputError, match="no mutant of 'bcast_linear' .* correct or remove"):
        mutate(LAB, progress=False, root=copied)


def test_only_answers_in_c_have_mutants():
    with pytest.raises(InputError, match="exercise 'fit': not in C; only kernels have mutants"):
        mutate(LAB, ["fit"])
