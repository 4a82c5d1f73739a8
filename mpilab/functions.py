"""Python answers: hold what they returned (mpilab/calls.py) against a trusted function."""

import importlib
import json
import math

from mpilab.errors import InputError
from mpilab.verdict import FAIL, PASS, UNGRADABLE, ExerciseVerdict, ItemVerdict


def calls(exercise):
    """All argument tuples that an exercise's items call the function with, each once."""
    return list(dict.fromkeys(arguments for item in exercise.items for arguments in item.arguments))


def trusted(name):
    """The function that `module:function` names; InputError where there is none."""
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"expected = {name!r}: {error}; write 'module:function'") from None


def judge_function(exercise, returned):
    """ExerciseVerdict from {arguments: what `call` gave}; a missing entry is ungradable."""
    items = tuple(_judge_item(exercise, item, returned) for item in exercise.items)
    return ExerciseVerdict(exercise.id, exercise.title, items)


def _judge_item(exercise, item, returned):
    judge = trusted(item.complaint or item.expected)
    if not item.arguments:
        return _verdict(item, UNGRADABLE, "the rubric calls it with nothing")
    for arguments in item.arguments:
        shown = f"{exercise.function}({', '.join(map(repr, arguments))})"
        came = returned.get(arguments)
        if came is None:
            return _verdict(item, UNGRADABLE, f"{shown} was not called")
        if not isinstance(came, dict) or not came.keys() & {"error", "value"}:
            # The answer's process wrote it, and an answer can write there, too.
            return _verdict(item, UNGRADABLE, f"what came of {shown} is not what a call leaves")
        if "error" in came:
            return _verdict(item, FAIL, f"{shown} raised {came['error']}", reproduce=shown)
        value = came["value"]
        if item.complaint:
            wrong = _complaint(judge, value, arguments)
        elif same(value, json.loads(json.dumps(judge(*arguments)))):
            wrong = ""
        else:
            wrong = f"{shown} returned {_short(value)}, which is not right."
        if wrong:
            return _verdict(
                item, FAIL, wrong, call=shown, got=_short(value), reproduce=shown)  # fmt: skip
    return _verdict(item, PASS, "")


def _complaint(judge, value, arguments):
    """What is wrong with a value, in the words of a trusted function; "" if nothing is."""
    try:
        return judge(value, *arguments)
    except InputError as error:
        return str(error)


def _verdict(item, outcome, reason, **evidence):
    return ItemVerdict(item.id, item.title, item.points, outcome, reason, evidence)


def same(value, expected):
    """Equal numbers (to a relative 1e-9), or sequences of such, of the same length."""
    if isinstance(expected, list):
        return (
            isinstance(value, list)
            and len(value) == len(expected)
            and all(map(same, value, expected))
        )
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isclose(value, expected, rel_tol=1e-9)
    except OverflowError:  # an integer beyond all floating-point numbers
        return value == expected


def _short(value):
    text = json.dumps(value)
    return text if len(text) <= 200 else text[:200] + " …"
