"""Tables of a notebook: rows of values in; out comes a table with units, in JupyterLab, on a page
and in a terminal.

    Table(
        [("ring", 32, 5.2e-6), ("bruck", 32, 3.1e-6)],
        "algorithm; bytes: size; median: time",
        measured=sweep,
    )

    algorithm  bytes  median
    ring        32 B  5.2 µs
    bruck       32 B  3.1 µs

    Times measured on AMD EPYC, 2 cores, 4 ranks.
    4 ranks: oversubscribed, more ranks than cores.
"""

import re
import string
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilab.errors import InputError
from mpilab.measure.origin import sentences, shared_ranks
from mpilab.measure.osu import OsuTable
from mpilab.measure.sweep_table import OVERSUBSCRIBED
from mpilab.util.text import aligned
from mpilab.util.units import byte_size, duration

# Where the times of a table come from: rows with machine and ranks, or a table of a benchmark.
Measured = NDArray[Any] | OsuTable | None
MISSING = "–"
EMPTY = "Nothing to show yet."
# What Markdown would take for its own in a value; in code, that is the bar alone.
_SPECIAL = re.compile(r"`[^`]*`|[|*]")


class Table:
    """A table that shows itself as the last value of a cell.

    rows      iterables of values, one for each column.
    columns   "TITLE" or "TITLE: FORMAT" of each column, with semicolons between them. A FORMAT is
              one of Python (.1f, .0%), or size (of bytes), time (in seconds), or ranks (which marks
              those that shared cores). With braces, text may stand around it: {:.0f} MB/s. If a
              value is a tuple, each of its parts has braces: {:time} ({:time} to {:time}). Or
              a list of (TITLE, FORMAT with braces).
    measured  the measurement that the values come from: the table then says where that was, and
              which ranks were oversubscribed.
    note      a sentence for below the table.

    A value of None or NaN is shown as –, and a text as it is. Columns of texts are flush left.
    Raises InputError for a row with another number of values, and a format that doesn't fit.
    """

    def __init__(
        self,
        rows: Iterable[Iterable[Any]],
        columns: str | Sequence[tuple[str, str]],
        *,
        measured: Measured = None,
        note: str = "",
    ) -> None:
        words = _Words(measured)
        split = _split(columns) if isinstance(columns, str) else columns
        titles, formats = zip(*split, strict=True)
        values = [tuple(row) for row in rows]
        for row in values:
            if len(row) != len(titles):
                raise InputError(
                    f"a row of {len(row)} values, {row}, for {len(titles)} columns "
                    f"({', '.join(titles)}); give one value for each column"
                )
        self.titles: tuple[str, ...] = titles
        self.rows = [
            [words.of(value, how, title) for value, how, title in zip(*each, strict=True)]
            for each in ((row, formats, titles) for row in values)
        ]
        self.notes = [*_where(measured), *([note] if note else [])]
        self._left = {
            place for place, column in enumerate(zip(*values, strict=True)) if _is_text(column)
        }

    @classmethod
    def grid(
        cls,
        values: Mapping[Any, Any],
        columns: str,
        *,
        across: str,
        cells: str,
        measured: Measured = None,
        note: str = "",
    ) -> "Table":
        """A table of values by two or more keys, the last of which goes from left to right.

        values   {(key, ..., last key): value}
        columns  as for a Table, of all keys but the last one.
        across   the format of the last key, e.g. "P = {}"; cells: that of the values.

        Raises InputError, as a Table does, and for keys that don't fit the columns.
        """
        parts = columns.count(";") + 2
        for key in values:
            if not isinstance(key, tuple) or len(key) != parts:
                raise InputError(
                    f"the key {key!r}: must have {parts} parts: one for each column, and one that "
                    "goes across"
                )
        words, how = _Words(measured), _braced(across)
        heads = list(dict.fromkeys(key[-1] for key in values))
        titles = [words.of(head, how, across) for head in heads]
        rows = [
            (*row, *(values.get((*row, head)) for head in heads))
            for row in dict.fromkeys(key[:-1] for key in values)
        ]
        both = [*_split(columns), *((title, _braced(cells)) for title in titles)]
        return cls(rows, both, measured=measured, note=note)

    def __repr__(self) -> str:
        if not self.rows:
            return EMPTY
        lines = aligned([self.titles, *self.rows], left=self._left)
        return "\n\n".join([lines, "\n".join(self.notes)]) if self.notes else lines

    def _repr_markdown_(self) -> str:
        if not self.rows:
            return EMPTY
        rules = ["---" if place in self._left else "--:" for place in range(len(self.titles))]
        rows = [[_SPECIAL.sub(_escaped, word) for word in row] for row in self.rows]
        lines = [f"| {' | '.join(cells)} |" for cells in (self.titles, rules, *rows)]
        return "\n".join([*lines, *(f"\n{note}" for note in self.notes)])


def _escaped(found: re.Match[str]) -> str:
    return found[0].replace("|", r"\|") if len(found[0]) > 1 else f"\\{found[0]}"


def _split(columns: str) -> list[tuple[str, str]]:
    """[(title, format with braces)] of "TITLE: FORMAT; TITLE"."""
    parts = [column.strip().partition(": ") for column in columns.split(";")]
    return [(title, _braced(how)) for title, _, how in parts]


def _braced(how: str) -> str:
    """A format for str.format: ".1f" -> "{:.1f}"."""
    return how if "{" in how else f"{{:{how}}}" if how else "{}"


def _is_text(column: Sequence[Any]) -> bool:
    """Are the values of a column texts, or do they begin with one?"""
    known = [value for value in column if value is not None]
    firsts = [value[0] if isinstance(value, tuple) else value for value in known]
    return bool(firsts) and all(isinstance(first, str) for first in firsts)


class _Words(string.Formatter):
    """Writes values, also with the formats size, time and ranks."""

    def __init__(self, measured: Measured) -> None:
        self.shared = shared_ranks(measured) if isinstance(measured, np.ndarray) else []

    def of(self, value: Any, how: str, title: str) -> str:
        """A value in words."""
        parts = value if isinstance(value, tuple) else (value,)
        if all(part is None or (isinstance(part, float) and np.isnan(part)) for part in parts):
            return MISSING
        if isinstance(value, str) and "{}" not in how:
            return value
        try:
            return self.vformat(how, parts, {})
        except (ValueError, TypeError, IndexError, KeyError) as error:
            raise InputError(
                f"column {title!r}: {value!r} can't be written as {how!r} ({error}); give another "
                "format"
            ) from None

    def format_field(self, value: Any, format_spec: str) -> str:
        """One value in one pair of braces."""
        if format_spec == "size":
            return byte_size(value)
        if format_spec == "time":
            return MISSING if np.isnan(value) else duration(value)
        if format_spec == "ranks":
            return f"{value:,}" + (f", {OVERSUBSCRIBED}" if value in self.shared else "")
        return str(super().format_field(value, format_spec))


def _where(measured: Measured) -> Sequence[str]:
    if measured is None:
        return []
    if isinstance(measured, OsuTable):
        return [f"Times {measured.where}."] if measured.where else []
    return sentences(measured)
