"""Lab 00: each seeded bug loses what it should, and no more; and where it differs from other labs
(test_every_lab.py)."""

import pytest
from lab_notebook import ROOT, LabNotebook, shown

from mpilab import build, exercises, functions, judge, kernelcell
from mpilab.calls import call_answer
from mpilab.grading.release import solutions
from mpilab.launch import run_cases
from mpilab.symbols import forbidden
from mpilab.verdict import PASS

LAB = LabNotebook("00-first-contact")
BUGS = LAB.rubric.parent / "bugs"

# What is left to each seeded bug: the items that it must not lose.
KEEPS = {
    "placement-never-full.py": {"by-slot", "by-node"},
    "placement-as-many-each.py": {"by-node"},
    "bcast_linear-root-is-always-zero.c": {
        "powers-of-two", "any-size", "datatypes", "strict", "algorithm"},
    "bcast_linear-passes-it-on.c": {
        "powers-of-two", "any-size", "any-root", "datatypes", "strict"},
    "bcast_linear-assumes-int.c": {
        "powers-of-two", "any-size", "any-root", "strict", "algorithm"},
    # 512 integers are more than Open MPI puts aside of a message to oneself.
    "bcast_linear-root-sends-to-itself.c": {
        "any-size", "any-root", "datatypes", "algorithm"},
    "bcast_linear-calls-bcast.c": set(),
    "bcast_linear-forgets-the-last.c": set(),
    "barrier_double_ring-once-round.c": set(),
    "barrier_double_ring-all-receive-first.c": set(),
    "barrier_double_ring-only-powers-of-two.c": {"powers-of-two", "strict", "algorithm"},
    "barrier_double_ring-all-send-first.c": {"powers-of-two", "any-size"},
    "barrier_double_ring-through-rank-0.c": {"powers-of-two", "any-size", "strict"},
    "barrier_double_ring-does-nothing.c": set(),
    "fit-least-squares.py": {"exact"},
    "fit-microseconds.py": set(),
}  # fmt: skip


def awarded(exercise, answer, folder):
    """The items of `exercise` that the text of an answer passes, judged as the referee does."""
    if exercise.kind == exercises.PYTHON:
        calls = functions.calls(exercise)
        returned = call_answer(answer, exercise.function, [list(each) for each in calls])
        verdict = functions.judge_function(exercise, dict(zip(calls, returned, strict=True)))
    else:
        built = build.build(kernelcell.split(answer)[1], folder, stem="answer")
        if forbidden(built.object, exercise.function, exercise.allowed):
            return set()
        cases, groups = judge.plan(exercise)
        results = run_cases(built.library, exercise.function, cases, groups=groups, work=3.0,
                            standstill=0.5)  # fmt: skip
        verdict = judge.judge_exercise(exercise, results)
    return {item.item for item in verdict.items if item.outcome == PASS}


@pytest.mark.parametrize("name", ["placement", "fit"])
def test_the_solutions_in_python_get_full_marks(name, tmp_path):
    exercise = LAB.exercises[name]
    assert awarded(exercise, solutions(LAB.source)[name], tmp_path) == {
        i.id for i in exercise.items
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bcast_linear", "barrier_double_ring"])
def test_the_solutions_in_c_get_full_marks(name, tmp_path):
    exercise = LAB.exercises[name]
    assert awarded(exercise, solutions(LAB.source)[name], tmp_path) == {
        i.id for i in exercise.items
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bcast_linear", "barrier_double_ring"])
def test_our_own_kernels_of_the_same_names_do_what_is_asked(name, tmp_path):
    exercise = LAB.exercises[name]
    answer = (ROOT / "src_c" / exercise.reference).read_text(encoding="utf-8")
    assert awarded(exercise, answer, tmp_path) == {item.id for item in exercise.items}


def test_every_seeded_bug_is_held_to_what_it_loses():
    assert {path.name for path in BUGS.iterdir()} == set(KEEPS)


@pytest.mark.parametrize("name", [name for name in KEEPS if name.endswith(".py")])
def test_a_seeded_bug_in_python_loses_what_it_should_and_no_more(name, tmp_path):
    exercise = LAB.exercises[name.partition("-")[0]]
    assert awarded(exercise, (BUGS / name).read_text(encoding="utf-8"), tmp_path) == KEEPS[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in KEEPS if name.endswith(".c")])
def test_a_seeded_bug_in_c_loses_what_it_should_and_no_more(name, tmp_path):
    exercise = LAB.exercises[name.partition("-")[0]]
    assert awarded(exercise, (BUGS / name).read_text(encoding="utf-8"), tmp_path) == KEEPS[name]


@pytest.mark.slow
def test_the_lab_says_where_ranks_run(solved_run):
    cells = {cell.source: shown(cell) for cell in solved_run(LAB).cells if cell.cell_type == "code"}

    def of(words):
        return next(text for source, text in cells.items() if words in source)

    assert "rank 3 of 4: host " in of("-n 4 --hostfile localhost.txt")
    assert "not enough slots" in of("-n 5 --hostfile localhost.txt")
    assert "--map-by node: n1 n2 n3 n4 n1 n2 n3 n4" in of("mapped(")
    assert "my-hosts.txt:3: 'slots=four' is not a number" in of("hosts.parse(")
    assert "deadlock" in of('mpilab.run("barrier_head_to_head"').lower()
    assert "α = " in of("fit_hockney(")
