"""TOML files with line numbers in error messages; tomllib gives them only for syntax errors.

    table = loads(text, "hosts.toml")
    with located(text, "hosts.toml"):
        title = text_of(table, "title", ())     # 'hosts.toml:3: title = 7 is not text; ...'

A path such as ("group", 0, "hosts", 2) identifies a value: the third host of the first [[group]].
"""

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mpilab.errors import InputError

# Keys and places in lists, from the outermost table inwards.
TomlPath = tuple[str | int, ...]

# What closes a value that continues on the next line; a line that ends a statement needs nothing.
_CLOSINGS = ("", "\n]", '\n"""', "\n'''")


class Misplaced(Exception):
    """An error in the value at a path; `located` adds the line number."""

    def __init__(self, path: TomlPath, message: str) -> None:
        super().__init__(message)
        self.path = path


def loads(text: str, name: str) -> dict[str, Any]:
    """The table of a TOML text; InputError 'NAME:LINE: not TOML: ...' if it is not valid TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said, _, place = str(error).partition(" (at ")
        told = re.match(r"line (\d+)", place)
        line = int(told[1]) if told else text.rstrip("\n").count("\n") + 1
        raise InputError(
            f"{name}:{line}: not TOML: {said}; put strings in quotes and lists in [ ]"
        ) from None


@contextmanager
def located(text: str, name: str) -> Iterator[None]:
    """Turn a Misplaced error into InputError 'NAME:LINE: ...'; `text` is the whole file."""
    try:
        yield
    except Misplaced as error:
        line = lines_of(text)[error.path]
        raise InputError(f"{name}:{line}: {error}") from None


def lines_of(text: str) -> dict[TomlPath, int]:
    """The line number, from 1, of every key, table and list item in a TOML text: {path: line}.

    A table to which several lines write gets the first of them; an item of a nested list gets the
    line where that list ends. The path of the whole file is ().

    Parses the text once per line: meant for small files that contain an error.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    found: dict[TomlPath, int] = {(): 1}
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


def _paths(value: Any, path: TomlPath) -> Iterator[TomlPath]:
    yield path
    entries: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        entries = value.items()
    elif isinstance(value, list):
        entries = enumerate(value)
    for key, inner in entries:
        yield from _paths(inner, (*path, key))


def table_of(parent: Mapping[str, Any], key: str, path: TomlPath) -> dict[str, Any]:
    """The table parent[key], {} if it is missing; `path` is that of `parent`."""
    table = parent.get(key, {})
    if not isinstance(table, dict):
        header = ".".join(map(str, (*path, key)))
        raise Misplaced((*path, key), f"{key} = {table!r} is not a table; write [{header}]")
    return table


def text_of(table: Mapping[str, Any], key: str, path: TomlPath, default: str | None = None) -> str:
    """The text table[key]; if it is missing, `default`, which must then be given."""
    if key not in table and default is None:
        raise Misplaced(path, f'the key {key!r} is missing; write {key} = "..."')
    text = table.get(key, default)
    if not isinstance(text, str):
        raise Misplaced((*path, key), f"{key} = {text!r} is not text; write it in quotes")
    return text


def refuse_unknown(table: Mapping[str, Any], known: Collection[str], path: TomlPath) -> None:
    """Raise Misplaced for the first key that is not in `known`."""
    for key in table:
        if key not in known:
            words = f"unknown key {key!r}; known are {', '.join(sorted(known))}"
            raise Misplaced((*path, key), words)


def quoted(text: str) -> str:
    """A text as a quoted TOML string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\u{ord(found[0]):04x}", escaped) + '"'
