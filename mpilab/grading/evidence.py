"""Evidence of a verdict as JSON text, and back: tuples, bytes and odd keys survive the journey."""

import base64
import json


def dumps(evidence):
    """`evidence`, any nesting of what verdicts hold, as JSON text."""
    return json.dumps(_plain(evidence))


def loads(text):
    """What `dumps` made its text of; numpy's values and paths come back as plain ones."""
    return _rich(json.loads(text))


def _plain(value):
    """Evidence as JSON can hold it; `_rich` is the inverse."""
    if isinstance(value, dict):
        if all(isinstance(name, str) and not name.startswith("$") for name in value):
            return {name: _plain(each) for name, each in value.items()}
        return {"$dict": [[_plain(name), _plain(each)] for name, each in value.items()]}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, tuple):
        return {"$tuple": [_plain(each) for each in value]}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if value is None or isinstance(value, (str, int, float)):
        return value
    # numpy's scalars and arrays have tolist(); anything else is evidence as text at least.
    return _plain(value.tolist()) if hasattr(value, "tolist") else str(value)


def _rich(value):
    if isinstance(value, list):
        return [_rich(each) for each in value]
    if isinstance(value, dict):
        if "$dict" in value:
            return {_rich(name): _rich(each) for name, each in value["$dict"]}
        if "$tuple" in value:
            return tuple(_rich(each) for each in value["$tuple"])
        if "$bytes" in value:
            return base64.b64decode(value["$bytes"])
        return {name: _rich(each) for name, each in value.items()}
    return value
