"""The referee in the real sandbox: single answers, and its own failures."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mpilab.cases.case import Case
from mpilab.errors import Ungradable
from mpilab.grading.referee import Referee, _result, _whole, read_json
from mpilab.grading.release import solutions
from mpilab.grading.sandbox import Outcome, open_sandbox
from mpilab.judging.rubric import load

ROOT = Path(__file__).resolve().parents[2]
RUBRIC = ROOT / "grading" / "02-allgather" / "rubric.toml"


@pytest.fixture(scope="module")
def rubric():
    return load(RUBRIC, seed=2026)


@pytest.fixture(scope="module")
def reference():
    return solutions(ROOT / "labs" / "source" / "02-allgather.py")


@pytest.fixture(scope="module")
def referee():
    return Referee(open_sandbox(slot=9))


def small(exercise, *items):
    """The exercise with these items only: a quick run."""
    return replace(exercise, items=tuple(i for i in exercise.items if i.id in items))


def test_a_right_kernel_gets_its_points(referee, rubric, reference):
    exercise = small(rubric.exercise("pairwise"), "strict", "algorithm")
    verdict = referee.judge(exercise, reference["pairwise"], blank=False)
    assert verdict.awarded == exercise.points


def test_a_hidden_seed_makes_no_difference_to_the_verdict(referee, reference):
    for seed in (1, 987654321):
        exercise = small(load(RUBRIC, seed).exercise("nonblocking_all"), "strict")
        assert referee.judge(exercise, reference["nonblocking_all"], blank=False).awarded == 4


def test_a_right_function_gets_its_points(referee, rubric, reference):
    exercise = rubric.exercise("cost_model")
    assert referee.judge(exercise, reference["cost_model"], blank=False).awarded == 20


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            "def cost(algorithm, P, m):\n    return 1, 2, 3",
            "returned [1, 2, 3], which is wrong",
        ),
        ("def cost(algorithm, P, m):\n    return P / 0", "ZeroDivisionError"),
        ("price = 3", "does not define cost"),
        ("def cost(", "SyntaxError"),
        (
            "from mpilab.algorithms.allgather import schedule as cost",
            "but a graded Python answer can use the standard library and numpy, not mpilab",
        ),
        (
            "import sys\ndel sys.modules['mpilab']\n"
            "from mpilab.algorithms.allgather import schedule as cost",
            "but a graded Python answer can use the standard library and numpy, not mpilab",
        ),
        ("import sys\nsys.exit(0)", "SystemExit"),
        ("while True: pass", "did not finish"),
        ("def cost(algorithm, P, m):\n    return float('nan')", "which is wrong"),
    ],
)
def test_a_wrong_function_is_told_what_it_did(referee, rubric, source, words):
    verdict = referee.judge(rubric.exercise("cost_model"), source, blank=False)
    assert verdict.awarded == 0
    assert words in verdict.items[0].reason


def test_a_compile_error_names_the_line_of_the_cell(referee, rubric):
    source = '%%kernel allgather_pairwise\n#include "mpilab.h"\n\nint allgather_pairwise(\n'
    verdict = referee.judge(rubric.exercise("pairwise"), source, blank=False)
    assert verdict.awarded == 0
    assert "does not compile: line 4: " in verdict.items[0].reason
    (diagnosis,) = verdict.items[0].diagnoses
    assert diagnosis.lines[0] == 4 and "error:" in diagnosis.log


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('extern void *dlsym(void *, const char *); return dlsym(0, "x") != 0;', "uses dlsym"),
        ('extern int system(const char *); return system("id");', "uses system"),
        ("return PMPI_Barrier(MPI_COMM_WORLD);", "calls PMPI_Barrier"),
    ],
)
def test_an_answer_that_reaches_for_more_is_not_run(referee, rubric, body, words):
    head = (
        '#include "mpilab.h"\nint allgather_pairwise(const void *s, int n, MPI_Datatype t, '
        "void *r, int m, MPI_Datatype u, MPI_Comm c) { (void)s,(void)n,(void)t,(void)r,(void)m;"
        "(void)u,(void)c; "
    )
    verdict = referee.judge(rubric.exercise("pairwise"), head + body + "}", blank=False)
    assert verdict.awarded == 0
    assert words in verdict.items[0].reason


def test_a_reference_answer_cannot_be_included(referee, rubric):
    for name in ("src_c/allgather/pairwise.c", "grading/02-allgather/rubric.toml"):
        source = f'#include "{ROOT / name}"\n'
        verdict = referee.judge(rubric.exercise("pairwise"), source, blank=False)
        assert "there is no file" in verdict.items[0].reason


CHOICE = """
lab = "99-test"
[[exercise]]
id = "tree"
title = "A tree of your choice"
kind = "kernel"
collective = "bcast"
allowed = ["point-to-point"]
[[exercise.variant]]
function = "bcast_linear"
reference = "bcast/linear.c"
[[exercise.variant.item]]
id = "flat"
title = "One round from any root"
points = 3
ranks = [1, 3]
counts = [5]
roots = [0, -1]
rounds = "1 if P > 1 else 0"
busiest_messages = "P - 1"
[[exercise.variant]]
function = "bcast_chain"
reference = "bcast/chain.c"
[[exercise.variant.item]]
id = "any"
title = "Right"
points = 1
ranks = [3]
counts = [5]
[[exercise.variant.item]]
id = "line"
title = "Nobody sends twice"
points = 2
ranks = [3]
counts = [5]
most_busiest_messages = "1"
"""


@pytest.fixture(scope="module")
def choice(tmp_path_factory):
    path = tmp_path_factory.mktemp("choice") / "rubric.toml"
    path.write_text(CHOICE, encoding="utf-8")
    return load(path).exercise("tree")


def flat(function):
    """The answer cell with the kit's own linear bcast under the name `function`."""
    source = (ROOT / "src_c" / "bcast" / "linear.c").read_text(encoding="utf-8")
    name = function.removeprefix("bcast_")
    return f"%%kernel {function}\n" + source.replace(
        "MPILAB_BCAST(linear)", f"MPILAB_BCAST({name})"
    )


def test_a_choice_is_judged_by_the_variant_that_the_cell_names(referee, choice):
    verdict = referee.judge(choice, flat("bcast_linear"), blank=False)
    assert (verdict.awarded, verdict.points) == (3, 3)
    assert verdict.title == "A tree of your choice: bcast_linear"
    verdict = referee.judge(choice, flat("bcast_chain"), blank=False)
    assert [item.awarded for item in verdict.items] == [1, 0]
    assert "2 messages from one rank where the algorithm has at most 1" in verdict.items[1].reason


@pytest.mark.parametrize("source", [flat("bcast_mine"), flat("bcast_linear").split("\n", 1)[1]])
def test_a_choice_of_something_else_fails_with_the_names_that_there_are(referee, choice, source):
    verdict = referee.judge(choice, source, blank=False)
    assert (verdict.awarded, verdict.points) == (0, 3)
    assert "%%kernel and one of bcast_linear, bcast_chain" in verdict.items[0].reason


def test_a_choice_that_was_left_blank_is_worth_nothing(referee, choice):
    verdict = referee.judge(choice, flat("bcast_linear"), blank=True)
    assert (verdict.awarded, verdict.points) == (0, 3)


class Broken:
    """A sandbox that fails as told."""

    description = "broken"

    def __init__(self, outcome):
        self.outcome = outcome

    def run(self, *arguments, **options):
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


@pytest.mark.parametrize(
    "outcome",
    [
        Ungradable("the sandbox did not start"),
        Outcome(0, "", b"", b"", {}),
        Outcome(137, "host memory", b"", b"", {}),
        Outcome(0, "", b"", b"", {"compiled.json": b"{", "called.json": b"[1]"}),
        Outcome(
            0,
            "",
            b"",
            b"",
            {
                "compiled.json": b'{"error": "", "warning": null, "forbidden": []}',
                "called.json": b"3",
            },
        ),
        Outcome(
            0,
            "",
            b"",
            b"",
            {"compiled.json": b'{"error": "x", "diagnosis": [3]}', "called.json": b"3"},
        ),
    ],
)
@pytest.mark.parametrize("exercise", ["pairwise", "cost_model"])
def test_what_cannot_be_judged_is_ungradable_and_never_gets_points(
    rubric, reference, outcome, exercise
):
    verdict = Referee(Broken(outcome)).judge(
        rubric.exercise(exercise), reference[exercise], blank=False
    )
    assert verdict.awarded is None
    assert verdict.outcomes() == {"ungradable"}


@pytest.mark.parametrize("lost", ["outcome", "states", "diagnosis", "detail", "crashed"])
def test_a_result_that_lacks_a_part_is_ungradable_not_a_fault_of_the_grader(lost):
    whole = {"outcome": "error", "states": [], "diagnosis": None, "detail": "", "crashed": None}
    case = Case("allgather", 2, 1, record=False)
    assert _result({"0.json": json.dumps(whole).encode()}, 0, case).outcome == "error"
    del whole[lost]
    with pytest.raises(Ungradable, match="came out of the sandbox incomplete"):
        _result({"0.json": json.dumps(whole).encode()}, 0, case)


def test_a_torn_file_or_the_end_of_the_run_touches_no_other_case():
    case = Case("allgather", 2, 1, record=False)
    whole = {"outcome": "skipped", "states": [], "diagnosis": None, "detail": "", "crashed": None}
    left = {"0.json": json.dumps(whole).encode(), "1.json": b"{"}
    assert _whole(left, 0, case, "the run ended").outcome == "skipped"
    torn, missing = _whole(left, 1, case, ""), _whole(left, 2, case, "the run ended: output")
    assert (torn.outcome, missing.outcome) == ("error", "error")
    assert "came out of the sandbox incomplete" in torn.detail
    assert missing.detail == "the run ended: output"


@pytest.mark.parametrize(
    "fat",
    [
        b"[" + b"[]," * 300_000 + b"[]]",
        b"[" + b"0," * 300_000 + b"0]",
        b'"' + b"x" * (9 << 20) + b'"',
        b"[" * 100_000,
    ],
)
def test_json_that_would_need_much_memory_is_not_parsed(fat):
    outcome = Outcome(0, "", b"", b"", {"called.json": fat})
    with pytest.raises(Ungradable, match="no answer from the sandbox while calling"):
        read_json(outcome, "called.json", "calling")
    result = _whole({"0.json": fat}, 0, Case("bcast", ranks=1, count=1), "")
    assert (result.outcome, result.detail) == (
        "error",
        "a result came out of the sandbox incomplete",
    )
