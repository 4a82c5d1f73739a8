"""Python answers: called safely, compared with a trusted function."""

import json
import math
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from mpilab.errors import InputError
from mpilab.judging import calls as calls_program
from mpilab.judging.calls import call, call_answer
from mpilab.judging.judge import calls, judge_function, same, trusted
from mpilab.judging.rubric import Exercise, Item
from mpilab.judging.verdict import FAIL, PASS, UNGRADABLE

ITEM = Item("a", "A", 3, arguments=((1, 2), (3, 4)), expected="operator:add")
ADD = Exercise("add", "Add", "python", (ITEM,), function="add")


def verdict(function, exercise=ADD):
    returned = {arguments: call(function, arguments) for arguments in calls(exercise)}
    (item,) = judge_function(exercise, returned).items
    return item


IMPORTS = {
    "from mpilab.hosts import mapping": "mpilab.hosts",
    "def add(a, b):\n    import mpilab.hosts.orders\n    return a + b": "mpilab.hosts",
    "import mpilab": "mpilab",
    # What Python itself says of it would not help.
    "try:\n    from mpilab.hosts import mapping\n"
    "except ImportError as error:\n    raise ValueError(error)": "mpilab.hosts",
    "try:\n    import mpilab\nexcept ImportError as error:\n    raise ValueError(error)": "mpilab",
}


@pytest.mark.parametrize(("source", "module"), IMPORTS.items())
def test_an_answer_that_imports_mpilab_is_told_which_module_and_what_it_can_import(
    source, module, tmp_path
):
    """As a program, as the referee runs it."""
    job = {"function": "add", "source": source, "calls": [[1, 2]]}
    (tmp_path / "job.json").write_text(json.dumps(job))
    subprocess.run([sys.executable, calls_program.__file__], cwd=tmp_path, check=True)
    assert json.loads((tmp_path / "called.json").read_text()) == [
        {
            "error": f"ImportError: it imports {module}, but a graded Python answer can use the "
            "standard library and numpy, not mpilab"
        }
    ]


def test_an_answer_that_imports_what_is_not_installed_is_told_what_it_can_import():
    (came,) = call_answer("import no_such_module", "add", [(1, 2)])
    assert came == {
        "error": "ModuleNotFoundError: No module named 'no_such_module'; a graded Python answer "
        "can use the standard library and numpy"
    }


def test_each_list_of_arguments_is_called_once():
    twice = Exercise("x", "X", "python", (ITEM, ITEM), function="add")
    assert calls(twice) == [(1, 2), (3, 4)]


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: a + b,
        lambda a, b: float(a + b),
        lambda a, b: np.int64(a + b),
        lambda a, b: a + b + 1e-12,
        lambda a, b: Fraction(a) + b,
        lambda a, b: Decimal(a) + b,
    ],
)
def test_the_right_number_passes_in_any_form(function):
    assert verdict(function).outcome == PASS


def throw(error):
    raise error


class Unspeakable(BaseException):
    def __str__(self):
        raise self


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda a, b: sys.exit(0), "add(1, 2) raised SystemExit: 0"),
        (lambda a, b: throw(Unspeakable()), "add(1, 2) raised Unspeakable: (no message"),
        (lambda a, b: a * b, "add(1, 2) returned 2, which is wrong."),
        (lambda a, b: None, "add(1, 2) returned null, which is wrong."),
        (lambda a, b: a / 0, "add(1, 2) raised ZeroDivisionError: division by zero"),
        (lambda a: a, "add(1, 2) raised TypeError"),
        (lambda a, b: {1, 2}, "add(1, 2) raised TypeError: a set is not a list; return a list"),
        (lambda a, b: sys, "add(1, 2) raised TypeError: a module is not a number"),
        (lambda a, b: math.nan, "add(1, 2) returned NaN"),
        (lambda a, b: True, "add(1, 2) returned true"),
        (lambda a, b: 10**400, "add(1, 2) returned 1000"),
        (lambda a, b: [a + b], "add(1, 2) returned [3]"),
        (lambda a, b: str(a + b), 'add(1, 2) returned "3"'),
    ],
)
def test_anything_else_fails_with_the_call_and_what_came(function, words):
    item = verdict(function)
    assert item.outcome == FAIL
    assert words in item.reason
    assert item.evidence["reproduce"] == "add(1, 2)"


def test_an_error_as_long_as_a_forged_record_likes_is_cut():
    (item,) = judge_function(
        ADD, {arguments: {"error": "A" * 600_000} for arguments in calls(ADD)}
    ).items
    assert item.outcome == FAIL and item.reason.startswith("add(1, 2) raised AAA")
    assert len(item.reason) < 1100


def test_an_interrupt_is_not_the_functions():
    with pytest.raises(KeyboardInterrupt):
        call(lambda: throw(KeyboardInterrupt()), ())


def no_vowels(text, most):
    """A complaint for the tests below: the value must be a text, without vowels, of limited
    length."""
    if not isinstance(text, str):
        raise InputError(f"a {type(text).__name__} is not text")
    found = [letter for letter in text if letter in "aeiou"]
    return f"{found[0]} is a vowel" if found else "too long" if len(text) > most else ""


COMPLAINED = Exercise(
    "name",
    "Name",
    "python",
    (Item("a", "A", 3, arguments=((3,), (4,)), complaint=f"{__name__}:no_vowels"),),
    function="name",
)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda most: "xyz", ""),
        (lambda most: "xe", "e is a vowel"),
        (lambda most: "xyz" if most > 3 else "xyzx", "too long"),
        (lambda most: None, "a NoneType is not text"),
        (lambda most: 1 / 0, "name(3) raised ZeroDivisionError: division by zero"),
    ],
)
def test_a_trusted_function_may_say_what_is_wrong_with_a_value(function, reason):
    item = verdict(function, COMPLAINED)
    assert item.reason == reason
    assert item.outcome == (FAIL if reason else PASS)
    assert not reason or item.evidence["reproduce"] == "name(3)"


def test_a_call_that_did_not_come_back_is_ungradable():
    (item,) = judge_function(ADD, {(1, 2): {"value": 3}}).items
    assert (item.outcome, item.reason) == (UNGRADABLE, "add(3, 4) was not called")


def test_an_item_that_calls_nothing_is_never_a_pass():
    empty = Exercise("x", "X", "python", (Item("a", "A", 3, expected="operator:add"),))
    assert judge_function(empty, {}).items[0].outcome == UNGRADABLE


def test_a_long_answer_is_cut_short():
    assert len(verdict(lambda a, b: list(range(10_000))).reason) < 400

    def complain():
        raise ValueError("x" * 9999)

    assert len(call(complain, ())["error"]) == 500


@pytest.mark.parametrize(
    ("value", "expected", "equal"),
    [
        (3, 3, True),
        (3.0, 3, True),
        (3 + 1e-6, 3, False),
        (0, 0, True),
        (1e-300, 0, False),
        ([1, 2], [1, 2], True),
        ([1, 2, 3], [1, 2], False),
        ([[1], 2], [[1], 2], True),
        (3, [3], False),
        ([3], 3, False),
        (10**400, 10**400, True),
        (10**400, 1.0, False),
        (math.inf, 3, False),
        (False, 0, False),
    ],
)
def test_equality_is_of_numbers_and_sequences_of_numbers(value, expected, equal):
    assert same(value, expected) == equal


@pytest.mark.parametrize("name", ["operator:nothing", "no_such_module:f", "operator", ":f", ""])
def test_a_trusted_function_that_is_not_there_is_named(name):
    with pytest.raises(InputError, match="expected = "):
        trusted(name)


def test_an_answer_may_use_numpy_by_the_name_that_the_labs_give_it():
    source = "def half(n):\n    return int(np.floor(n / 2))\n"
    assert call_answer(source, "half", [(5,), (8,)]) == [{"value": 2}, {"value": 4}]
