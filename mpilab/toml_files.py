"""TOML files whose mistakes are told with their line, which tomllib does only for what is no TOML.

    table = loads(text, "hosts.toml")
    with located(text, "hosts.toml"):
        title = text_of(table, "title", ())     # 'hosts.toml:3: title = 7 is no text; ...'

Things are found by paths such as ("group", 0, "hosts", 2): the third host of the first [[group]].
"""

import re
import tomllib
from contextlib import contextmanager

from mpilab.errors import InputError

# What ends a value that goes on below; a line that ends a statement needs nothing.
_CLOSINGS = ("", "\n]", '\n"""', "\n'''")


class Misplaced(Exception):
    """What is wrong with the value at a path; `located` adds the line."""

    def __init__(self, path, message):
        super().__init__(message)
        self.path = path


def loads(text, name):
    """The table of a TOML text; InputError 'NAME:LINE: not TOML: ...' where it is none."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said, _, place = str(error).partition(" (at ")
        told = re.match(r"line (\d+)", place)
        line = int(told[1]) if told else text.rstrip("\n").count("\n") + 1
        raise InputError(
            f"{name}:{line}: not TOML: {said}; texts stand in quotes, lists in [ ]"
        ) from None


@contextmanager
def located(text, name):
    """What is Misplaced inside leaves as InputError 'NAME:LINE: ...'; `text` is the whole file."""
    try:
        yield
    except Misplaced as error:
        line = lines_of(text)[error.path]
        raise InputError(f"{name}:{line}: {error}") from None


def lines_of(text):
    """The line, from 1, of every key, table and item of a list in a TOML text: {path: line}.

    A table that several lines write to has the first of them; what stands in a list within a list,
    the line that ends it. The path of the whole file is ().

    Takes a parse for each line: meant for small files, and for when something is wrong with one.
    """
    lines, found = text.replace("\r\n", "\n").split("\n"), {(): 1}
    for number in range(1, len(lines) + 1):
        above = "\n".join(lines[:number])
        for closing in _CLOSINGS:
            try:
                table = tomllib.loads(above + closing)
            except tomllib.TOMLDecodeError:
                continue
            for path in _paths(table, ()):
                found.setdefault(path, number)
            break
    return found


def _paths(value, path):
    yield path
    if isinstance(value, dict):
        entries = value.items()
    else:
        entries = enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield from _paths(inner, (*path, key))


def table_of(parent, key, path):
    """The table parent[key], {} where there is none; `path` is that of `parent`."""
    table = parent.get(key, {})
    if not isinstance(table, dict):
        header = ".".join((*path, key))
        raise Misplaced((*path, key), f"{key} = {table!r} is no table; write [{header}]")
    return table


def text_of(table, key, path, default=None):
    """The text table[key], `default` where there is none and a default is given."""
    if key not in table and default is None:
        raise Misplaced(path, f'the key {key!r} is missing; write {key} = "..."')
    text = table.get(key, default)
    if not isinstance(text, str):
        raise Misplaced((*path, key), f"{key} = {text!r} is no text; write it in quotes")
    return text


def refuse_unknown(table, known, path):
    """Misplaced for the first key that is not among the `known` ones."""
    for key in table:
        if key not in known:
            words = f"unknown key {key!r}; known are {', '.join(sorted(known))}"
            raise Misplaced((*path, key), words)


def quoted(text):
    """A text as TOML writes it, in quotation marks."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\u{ord(found[0]):04x}", escaped) + '"'
