"""Read what an OSU micro-benchmark printed: OMB 5 to 7, or our own program."""

import re
from dataclasses import dataclass

import numpy as np

from mpilab.errors import InputError
from mpilab.osu.benchmarks import BENCHMARKS

# OMB's names of columns and ours. 'Latency (us)' of two ranks became 'Avg Latency(us)' in 7.4.
FIELDS = {
    "Size": "size",
    "Latency (us)": "avg_us",
    "Latency(us)": "avg_us",
    "Avg Latency(us)": "avg_us",
    "Avg Latency (us)": "avg_us",
    "Min Latency(us)": "min_us",
    "Max Latency(us)": "max_us",
    "Iterations": "iterations",
    "Validation": "valid",
    "Bandwidth (MB/s)": "mb_per_s",
    "MB/s": "mb_per_s",
    "Messages/s": "messages_per_s",
    "P50 Tail Lat(us)": "p50_us",
    "P90 Tail Lat(us)": "p90_us",
    "P99 Tail Lat(us)": "p99_us",
    "Transmit Size": "transmit_size",
}
_TYPES = {"size": "i8", "iterations": "i8", "transmit_size": "i8", "valid": "?"}
_VALID = {"pass": True, "fail": False}

_PROGRAM = re.compile(r"^#\s*program:\s*(.+?)\s*$")
_TITLE = re.compile(r"^#?\s*OSU (MPI\S*) (.+?) Test(?: v(\S+))?\s*$")
_DATATYPE = re.compile(r"^#?\s*Datatype:\s*(\w+)")
# With a size first, or without one (osu_barrier), then something with a unit.
_COLUMNS = re.compile(r"^#?\s*(?:Size\s.*(?:\(us\)|/s\b)|(?:Avg )?Latency ?\(us\)|Overall\(us\))")
# A known name even where its blanks were lost; else words that are one blank apart.
_COLUMN = re.compile(
    "|".join(map(re.escape, sorted(FIELDS, key=len, reverse=True))) + r"|\S+(?: \S+)*"
)


@dataclass(frozen=True, eq=False)
class OsuTable:
    """A table of an OSU micro-benchmark.

    benchmark  'osu_bcast'; of a benchmark that the kit doesn't run, the title it printed.
    version    of OMB, as printed ('7.3'); '' where it isn't said.
    datatype   'MPI_CHAR'; '' where it isn't said (before OMB 7.1, and osu_barrier).
    columns    the columns as OMB calls them.
    rows       structured array, a row a message size: size (bytes), avg_us, min_us, max_us
               (microseconds), iterations, mb_per_s (10^6 bytes a second), valid, ...: as far as
               the table has them.
    program    who measured, where a line '# program: ...' says it; else ''.
    text       all that was printed.
    """

    benchmark: str
    version: str
    datatype: str
    columns: tuple
    rows: np.ndarray
    program: str = ""
    text: str = ""

    @property
    def all_valid(self):
        """Was every result right? None where none was validated (no -c)."""
        return bool(self.rows["valid"].all()) if "valid" in self.rows.dtype.names else None

    def __repr__(self):
        return self.text.strip("\n") or f"OsuTable({self.benchmark!r}, {len(self.rows)} rows)"


def parse(text):
    """The OsuTable in `text`: what one run of a benchmark has printed, with whatever is around it.

    Raises InputError, with the number of the line, for a text without a table or with several, for
    a row that does not fit its columns or holds what is no number, and for a table without rows.
    """
    found = _Reader()
    for number, line in enumerate(text.splitlines(), start=1):
        found.read(number, line.strip())
    return found.table(text)


class _Reader:
    def __init__(self):
        self.title = self.version = self.datatype = self.program = ""
        self.columns, self.columns_at, self.rows = (), 0, []

    def read(self, number, line):
        if match := _PROGRAM.match(line):
            self.program = match[1]
        elif match := _TITLE.match(line):
            self._once(number, line, self.title)
            self.title, self.version = match[2], match[3] or ""
        elif match := _DATATYPE.match(line):
            self._once(number, line, self.rows)
            self.datatype = match[1]
        elif _COLUMNS.match(line):
            self._once(number, line, self.columns)
            self.columns = tuple(_COLUMN.findall(line.lstrip("# ")))
            self.columns_at = number
        elif self.columns and line[:1].isdigit():
            self.rows.append(self._row(number, line))

    @staticmethod
    def _once(number, line, seen):
        if seen:
            raise InputError(f"line {number}: {line!r} begins a second table; give one "
                             "table at a time")  # fmt: skip

    def _row(self, number, line):
        words = line.split()
        if len(words) != len(self.columns):
            raise InputError(f"line {number}: {line!r} is no row of the columns "
                             f"{', '.join(self.columns)} (line {self.columns_at}); was the output "
                             "cut off?")  # fmt: skip
        row = []
        for column, word in zip(self.columns, words, strict=True):
            kind = _TYPES.get(_field(column), "f8")
            try:
                row.append({"?": lambda w: _VALID[w.lower()], "i8": int, "f8": float}[kind](word))
            except (KeyError, ValueError):
                wanted = {"?": "Pass or Fail", "i8": "a whole number", "f8": "a number"}[kind]
                raise InputError(f"line {number}: {word!r} in the column {column} is not "
                                 f"{wanted}") from None  # fmt: skip
        return tuple(row)

    def table(self, text):
        if not self.columns:
            first = next((line.strip() for line in text.splitlines() if line.strip()), "")
            raise InputError("no line names the columns of an OSU table ('# Size  Avg Latency(us)')"
                             f"; the text begins with {first[:80]!r}")  # fmt: skip
        if not self.rows:
            raise InputError(
                f"line {self.columns_at}: no row follows the columns {', '.join(self.columns)}; "
                "did the benchmark end early?"
            )
        known = {benchmark.title: name for name, benchmark in BENCHMARKS.items()}
        fields = [(_field(column), _TYPES.get(_field(column), "f8")) for column in self.columns]
        return OsuTable(known.get(self.title, self.title), self.version, self.datatype,
                        self.columns, np.array(self.rows, fields), self.program, text)  # fmt: skip


def _field(column):
    """Our name of a column; of one that we don't know, its own in small letters."""
    return FIELDS.get(column) or re.sub(r"\W+", "_", column.lower()).strip("_")
