import time

import pytest

from mpilab import formula
from mpilab.counting import ceil_log2, floor_log2
from mpilab.errors import InputError
from mpilab.formula import cost_of, evaluate
from mpilab.harness import Case
from mpilab.schedules.allgather import ALGORITHMS
from mpilab.schedules.allgather import costs as schedule_costs


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("P - 1", 6),
        ("P * (P - 1) * m", 7 * 6 * 40),
        ("ceil_log2(P)", 3),
        ("floor_log2(P)", 2),
        ("0 if P == 1 else 2", 2),
        ("P // 2 if P % 2 == 0 else P - 1", 6),
        ("2 ** floor_log2(P)", 4),
        ("min(P, m, 3) + max(1, 2)", 5),
        ("-P", -7),
        ("P < m", 1),
        ("P >= m", 0),
        (" 3 ", 3),
    ],
)
def test_a_formula_has_the_value_of_its_arithmetic(text, value):
    assert evaluate(text, P=7, m=40) == value
    assert type(evaluate(text, P=7, m=40)) is int


@pytest.mark.parametrize("number", range(1, 70))
def test_the_logarithms_are_exact(number):
    assert 2 ** floor_log2(number) <= number < 2 ** (floor_log2(number) + 1)
    assert 2 ** ceil_log2(number) >= number
    assert number == 1 or 2 ** (ceil_log2(number) - 1) < number


@pytest.mark.parametrize(
    "text",
    [
        "Q", "P.real", "P.__class__", "__import__('os')", "print(P)", "eval('1')", "[P]", "P[0]",
        "'text'", "1.5", "P / 2", "P & 1", "lambda: P", "P and m", "(P := 3)", "[x for x in P]",
        "1 < P < 9", "min(*P)", "max(P, key=m)", "f'{P}'", "None", "", "P +", "P; m", "min",
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_the_formula(text):
    with pytest.raises(InputError) as refused:
        evaluate(text, P=7, m=40)
    assert f"formula {text!r}" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("9 ** 9 ** 9", "too large"), ("P ** 100000", "too large"), ("2 ** -1", "no integer"),
        ("P // 0", "zero"), ("P % 0", "zero"), ("ceil_log2(0)", "logarithm of 0"),
        ("floor_log2(-1)", "logarithm of -1"), ("ceil_log2(P, m)", "argument"), ("min()", "min"),
        ("1" * 5000, "digits"), ("P\0", "null"),
    ],
)  # fmt: skip
def test_a_formula_without_a_value_is_refused_at_once(text, words):
    begin = time.monotonic()
    with pytest.raises(InputError, match=words):
        evaluate(text, P=7, m=40)
    assert time.monotonic() - begin < 1


def test_a_formula_of_great_depth_is_refused():
    with pytest.raises(InputError):
        evaluate("(" * 5000 + "P" + ")" * 5000, P=1)
    with pytest.raises(InputError):
        evaluate("-" * 20000 + "P", P=1)


def test_a_number_instead_of_a_formula_is_refused_with_the_remedy():
    with pytest.raises(InputError, match="formula 3: not a text; write it in quotes"):
        evaluate(3, P=1)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 64])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_headers_say_what_the_schedules_count(name, ranks):
    rounds, messages, total = cost_of(f"allgather_{name}").at(Case("allgather", ranks, 10))
    schedule = formula_free_counts(name, ranks)
    assert (rounds, messages, total) == schedule
    assert rounds == schedule_costs(name, ranks, 40)[0]


def formula_free_counts(name, ranks):
    from mpilab.schedules import counts
    from mpilab.schedules.allgather import schedule

    counted = counts(schedule(name, ranks), 40)
    return counted.rounds, counted.messages, counted.total_bytes


def test_a_kernel_that_we_do_not_have_is_named():
    with pytest.raises(InputError, match="kernel 'allgather_magic': no file .*magic.c"):
        cost_of("allgather_magic")
    with pytest.raises(InputError, match="'../../etc/passwd'|'ring'"):
        cost_of("ring")


def test_a_header_without_a_line_names_the_line(monkeypatch, tmp_path):
    monkeypatch.setattr(formula, "SOURCES", tmp_path)
    (tmp_path / "allgather").mkdir()
    file = tmp_path / "allgather" / "half.c"
    file.write_text("/* Half.\n *\n * Rounds:   1\n * Bytes:    m\n */\n * Messages: 1\n")
    with pytest.raises(InputError, match="half.c: no line 'Messages:' in its header"):
        cost_of("allgather_half")
    file.write_text("/* Whole.\n *\n * Rounds:   1\n * Messages: 1\n * Bytes:    m // 0\n */\n")
    with pytest.raises(InputError, match="m // 0"):
        cost_of("allgather_half").at(Case("allgather", 4, 2))
