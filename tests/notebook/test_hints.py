"""Hints come one by one and give no code; a solution says first what it costs, and not to all."""

import re
import shutil

import pytest

import mpilab
from mpilab.errors import InputError
from mpilab.grading.release import ITEMS, release, solutions
from mpilab.judging import rubric
from mpilab.notebook import lab as module
from mpilab.util.kit import ROOT

LABS = sorted(path.parent.name for path in (ROOT / "grading").glob("*/rubric.toml"))
LAB = "02-allgather"
CODE = re.compile(r";$|[{}`]|==|\+=|:=|->|\b(MPI_[A-Z]\w+\(|def |lambda )")


@pytest.mark.parametrize("lab", LABS)
def test_every_exercise_has_three_hints_that_hold_no_line_of_its_solution(lab):
    full = rubric.load(ROOT / "grading" / lab / "rubric.toml")
    public = rubric.load(ROOT / "labs" / "checks" / f"{lab}.toml")
    written = solutions(ROOT / "labs" / "source" / f"{lab}.py")
    for exercise in full.exercises:
        if exercise.kind == rubric.TEXT:
            assert exercise.hints == ()
            continue
        hints = public.exercise(exercise.id).hints
        assert hints == exercise.hints and len(set(hints)) == 3, exercise.id
        text = " ".join(hints)
        sources = [(ROOT / "src_c" / name).read_text() for name in exercise.references]
        lines = {
            line.strip(" ;{}")
            for each in (written[exercise.id], *sources)
            for line in each.split("\n")
        }
        code = [line for line in lines if len(line) > 12 and re.search(r"[=(]", line)]
        assert [line for line in code if line in text] == []
        assert not CODE.search(re.sub(r"`at`", "", text)), exercise.id


@pytest.mark.parametrize("lab", LABS)
def test_each_item_is_named_with_its_points_above_the_answer(lab):
    asked = rubric.load(ROOT / "grading" / lab / "rubric.toml")
    text = "\n".join(
        cell.source
        for cell in release(ROOT / "labs" / "source" / f"{lab}.py").cells
        if cell.cell_type == "markdown"
    )
    named = []
    for table in text.split(f"| points | {ITEMS}")[1:]:
        rows = table.partition("|--:|---|\n")[2].partition("\n\n")[0]
        named.append(
            [
                row.strip("| ").partition(" | ")[::2]
                for row in rows.splitlines()
                if row.startswith("| ")
            ]
        )
    exercises = [each for each in asked.exercises if each.kind != rubric.TEXT]
    assert len(named) == len(exercises)
    for exercise, rows in zip(exercises, named, strict=True):
        for part in exercise.variants or (exercise,):
            own = [
                (points, re.sub(r" \(only .*\)$", "", title).replace("\\", ""))
                for points, title in rows
                if "(only `" not in title or f"`{part.function}`" in title
            ]
            assert sorted(own) == sorted((f"{item.points:g}", item.title) for item in part.items)


def test_hints_come_one_by_one_and_say_how_many_are_left():
    lab = mpilab.Lab(LAB)
    first, second, third, again = (lab.hint("pairwise") for _ in range(4))
    assert [len(each.paragraphs) for each in (first, second, third, again)] == [1, 2, 3, 3]
    assert first.title.endswith("hint 1 of 3") and third.title.endswith("hint 3 of 3")
    assert '2 left: lab.hint("pairwise")' in first.after and third.after == "No more left."
    assert lab.hint("nonblocking_all").title.endswith("hint 1 of 3"), "each exercise by itself"
    assert third.paragraphs[2].removeprefix("3. ") in third._repr_html_().replace("&#x27;", "'")
    with pytest.raises(InputError, match="'crossover': not in lab"):
        lab.hint("crossover")
    assert "lab.hint(...)" in repr(lab) and "lab.solution(...)" in repr(lab)


def test_a_solution_says_what_it_costs_is_shown_when_confirmed_and_is_noted(tmp_path, monkeypatch):
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / f"{LAB}.ipynb"))
    lab = mpilab.Lab(LAB)
    asked = lab.solution("pairwise")
    assert "35 of 100 points" in repr(asked) and "3 hints left" in repr(asked)
    assert 'lab.solution("pairwise", confirm=True)' in asked.after and not asked.code
    assert module.checks_found(tmp_path, LAB) == {}
    module.note(LAB, "pairwise", "my answer", True)
    shown = lab.solution("pairwise", confirm=True)
    assert (
        shown.code.startswith("/* Pairwise exchange allgather")
        and "wrapped_run_type(" in shown.code
    )
    assert '<span class="' in shown._repr_html_(), "highlighted"
    assert module.checks_found(tmp_path, LAB)["pairwise"] == module.Found("my answer", True, True)
    module.note(LAB, "pairwise", "another", False)
    assert module.checks_found(tmp_path, LAB)["pairwise"] == module.Found("another", False, True)
    assert "def cost(" in lab.solution("cost_model", confirm=True).code
    assert len(lab.solution("published", confirm=True).paragraphs) > 1
    variants = mpilab.Lab("01-collective-algorithms").solution("second", confirm=True)
    assert variants.code.startswith("/* Binomial reduce.")
    (tmp_path / f"{LAB}.ipynb").write_bytes((ROOT / "labs" / f"{LAB}.ipynb").read_bytes())
    found = next(each for each in mpilab.progress(tmp_path).labs if each.lab == LAB)
    words = {each.id: each.words for each in found.answers}
    assert words["pairwise"].endswith("after you saw our solution")
    assert "solution" not in words["nonblocking_all"]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("solutions = false", "has switched off the solutions"),
        ("solutions = 2999-02-01", "from 2999-02-01 on"),
        (None, "your instructor has it"),
    ],
)
def test_an_instructor_can_keep_or_date_solutions_and_a_handout_has_none(
    tmp_path, monkeypatch, setting, said
):
    for name in ("labs", "grading"):
        (tmp_path / name).mkdir()
    (tmp_path / "labs" / "checks").symlink_to(ROOT / "labs" / "checks")
    if setting:
        (tmp_path / "labs" / "source").symlink_to(ROOT / "labs" / "source")
        text = (ROOT / "grading" / LAB / "rubric.toml").read_text()
        shutil.copytree(ROOT / "grading" / LAB, tmp_path / "grading" / LAB)
        (tmp_path / "grading" / LAB / "rubric.toml").write_text(f"{setting}\n{text}")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    shown = mpilab.Lab(LAB).solution("pairwise", confirm=True)
    assert said in repr(shown) and not shown.code


def test_a_setting_of_solutions_that_means_nothing_is_refused(tmp_path):
    path = tmp_path / "rubric.toml"
    shutil.copy(ROOT / "grading" / LAB / "answers.py", tmp_path)
    text = (ROOT / "grading" / LAB / "rubric.toml").read_text()
    path.write_text(f'solutions = "soon"\n{text}')
    with pytest.raises(InputError, match="solutions = 'soon': write true, false, or"):
        rubric.load(path)
