"""What an exercise of a rubric asks, as text: two that ask the same have the same text."""

import json
from dataclasses import MISSING, fields, is_dataclass

from mpilab.harness import Case
from mpilab.places import as_text


def essence(exercise):
    """An Exercise as text, without the hidden seeds of its cases: those change with any word of the
    rubric, also of another exercise.

    What is as usual is left out, so that a field added to rubrics changes no text.
    """
    return json.dumps(_plain(exercise), sort_keys=True)


def _plain(value):
    if is_dataclass(value):
        every = ((each, getattr(value, each.name)) for each in fields(value))
        said = {each.name: own for each, own in every
                if each.default is MISSING or own != each.default}  # fmt: skip
        if isinstance(value, Case):
            said.pop("seed", None)
            if value.places or value.platform:
                # The places that a name stands for: the description of a cluster may change.
                said["places"] = as_text(value.levels.places)
        return {name: _plain(each) for name, each in said.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    return value if isinstance(value, (str, int, float, bool)) or value is None else repr(value)
