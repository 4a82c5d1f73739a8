"""Text for display: tables in docs/ pages, and program output without control characters; and
Python text as a tree."""

import ast
import re
import threading
import unicodedata
from collections.abc import Container, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from mpilab.errors import InputError
from mpilab.util.files import atomic_write

# A comment in C, also one that does not end.
C_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)

# Held while Python text becomes a tree.
_parsing = threading.RLock()


def syntax_tree(source: str, mode: str = "exec") -> Any:
    """ast.parse(source, mode=mode) for threads; raises SyntaxError and ValueError as it does.

    Some versions of Python, 3.11 among them, count the depth of all threads' trees together. If
    another thread runs meanwhile, as it can during a garbage collection, they raise SystemError
    (python/cpython#106905 has one case of it).
    """
    with _parsing:
        return ast.parse(source, mode=mode)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The question "Did you mean 'ring'?" with the closest known word; "" if none is close."""
    near = get_close_matches(word, list(known), n=1)
    return f"Did you mean {near[0]!r}?" if near else ""


def suggestion(word: str, known: Iterable[str]) -> str:
    """What to append to a list of known words: ". Did you mean 'ring'?", or ""."""
    meant = did_you_mean(word, known)
    return f". {meant}" if meant else ""


def composed(name: str) -> str:
    """A name in Unicode's composed form (NFC): two names that read the same become equal.

    For example, macOS writes the 'ë' of a file name as an 'e' and a mark.
    """
    return unicodedata.normalize("NFC", name)


# Tables in pages of docs/, between the marks <!-- NAME: begin --> and <!-- NAME: end -->.


def put(text: str, name: str, table: str) -> str:
    """`text` with `table` between the marks `name`; InputError if they are missing."""
    begin, end = (f"<!-- {name}: {what} -->" for what in ("begin", "end"))
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise InputError(f"the markers {begin} and {end} are missing; add them to the page")
    return f"{before}{begin}\n{table}\n{end}{after}"


def filled(text: str, tables: Mapping[str, str]) -> str:
    """The page `text` with `tables`, {name: Markdown}; InputError as for `put`."""
    for name, table in tables.items():
        text = put(text, name, table)
    return text


def update(path: str | Path, tables: Mapping[str, str]) -> None:
    """Put all of `tables`, {name: Markdown}, or none into the page at `path`; InputError, with the
    path, if that fails."""
    path = Path(path)
    try:
        atomic_write(path, filled(path.read_text(encoding="utf-8"), tables))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read and written: {error.strerror}; name a page of docs/"
        ) from None


def ranges(numbers: Iterable[int], separator: str = ",") -> str:
    """Ascending numbers in short: '0-3,8' for 0, 1, 2, 3, 8."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return separator.join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def aligned(rows: Sequence[Sequence[str]], left: Container[int] = (0,)) -> str:
    """Rows of words as lines with aligned columns; the columns with the numbers `left` are flush
    left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            word.ljust(width) if place in left else word.rjust(width)
            for place, (word, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


# Control sequences (colors), operating system commands (links), strings, two-letter escapes.
_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?"
    r"|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])"
)
# The last group changes the writing direction, so that code reads differently than it runs.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff"
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def plain(text: object) -> str:
    """`text` without colors and overwritten progress bars; control characters become �.

    Lines end with \\n.
    """
    text = _ANSI.sub("", str(text)).replace("\r\n", "\n")
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return _CONTROL.sub("\ufffd", "\n".join(lines))
