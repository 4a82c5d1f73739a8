"""The table of a sweep: a tidy CSV file with one row for each repetition, and its options beside.

A point (one algorithm, number of ranks and size) is written in one piece when it is finished. A
sweep that was killed leaves at most one torn point at the end, which `Store` removes and the next
run does again.
"""

import csv
import io
import json
import os
from collections import Counter
from pathlib import Path

import numpy as np

from mpilab.errors import InputError
from mpilab.whole_file import write_whole

# span_s: last exit - first entry of a call. mean_s, max_s, min_s: over the ranks, of each one's
# own duration (OMB averages mean_s over the repetitions). Seconds.
ROW = np.dtype(
    [
        ("collective", "U16"), ("library", "U8"), ("algorithm", "U40"), ("number", "i4"),
        ("ranks", "i4"), ("bytes", "i8"), ("segment", "i8"), ("fanout", "i4"), ("radix", "i4"),
        ("repetition", "i4"), ("span_s", "f8"), ("mean_s", "f8"), ("max_s", "f8"), ("min_s", "f8"),
    ]
)  # fmt: skip
NAMES = ROW.names
HEADER = ",".join(NAMES) + "\n"


def rows_of(plan, point, outputs):
    """The rows of a point, from the Output of each rank that was timed."""
    spans = np.stack([output.spans_ns for output in outputs])  # [rank, repetition, begin and end]
    lasted = (spans[:, :, 1] - spans[:, :, 0]) / 1e9
    rows = np.empty(spans.shape[1], ROW)
    rows["collective"], rows["library"] = plan.collective, point.algorithm.library
    rows["algorithm"], rows["number"] = point.algorithm.name, point.algorithm.number
    rows["ranks"], rows["bytes"] = point.ranks, point.bytes
    for name in ("segment", "fanout", "radix"):
        rows[name] = getattr(plan, name)
    rows["repetition"] = np.arange(len(rows))
    rows["span_s"] = (spans[:, :, 1].max(axis=0) - spans[:, :, 0].min(axis=0)) / 1e9
    rows["mean_s"], rows["max_s"], rows["min_s"] = (
        lasted.mean(axis=0), lasted.max(axis=0), lasted.min(axis=0))  # fmt: skip
    return rows


def key_of(row):
    """What names the point of a row, as `mpilab.sweeps.plan.Point.key`."""
    return (str(row["library"]), str(row["algorithm"]), int(row["ranks"]), int(row["bytes"]))


def text_of(rows):
    """Rows as lines of CSV."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    for row in rows.tolist():
        writer.writerow(row)  # numbers with all their digits
    return lines.getvalue()


def read(path):
    """A CSV file of a sweep as a structured array of ROW.

    Raises InputError, with the line, where it is not one; a last line without its end is left out.
    """
    return _parse(path, _text(path))[0]


def _text(path):
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; make one with mpilab sweep -o {path}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is no text; name a CSV file of mpilab sweep") from None


def _parse(path, text):
    """(rows, their lines); see `read`."""
    lines = text.splitlines(keepends=True)
    if not HEADER.startswith(text) and lines[0] != HEADER:
        raise InputError(f"{path}:1: not a table of mpilab sweep; its first line is {HEADER}")
    whole = [line for line in lines[1:] if line.endswith("\n")]
    rows = [_row(path, number, line) for number, line in enumerate(whole, start=2)]
    return np.array(rows, ROW), whole


def _row(path, number, line):
    values = next(csv.reader([line]), [])
    try:
        return tuple(
            value if ROW[name].kind == "U" else ROW[name].type(value)
            for name, value in zip(NAMES, values, strict=True)
        )
    except (ValueError, OverflowError):
        raise InputError(
            f"{path}:{number}: {line.strip()!r} is no row of a sweep; delete the line, and run the "
            "sweep again: it does what is missing"
        ) from None


class Store:
    """A CSV file that a sweep fills, point by point.

    path     the file; it may be there already, then only what is missing has to be done.
    options  dict of what must not differ between the rows of one file, kept in PATH.json.
    repetitions   a function of (ranks, bytes): a point with another number of rows is done again.

    Raises InputError for a file that was made with other options, or by something else.
    """

    def __init__(self, path, options, repetitions):
        self.path, self.options = Path(path), options
        self.beside = self.path.with_name(self.path.name + ".json")
        self.rows = np.empty(0, ROW)
        if self.path.exists() and self.path.stat().st_size:
            self._compare()
            self._take(repetitions)
        else:
            write_whole(self.beside, json.dumps(options, indent=1, ensure_ascii=False) + "\n")
            write_whole(self.path, HEADER)

    def _compare(self):
        remedy = f"write to another file with -o, or delete {self.path}"
        try:
            before = json.loads(self.beside.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            raise InputError(
                f"{self.path}: how it was made is not known, {self.beside.name} is missing or "
                f"damaged; {remedy}"
            ) from None
        for name in {**before, **self.options}:
            was, is_now = before.get(name), self.options.get(name)
            if was != is_now:
                raise InputError(
                    f"{self.path}: was made with {name} {_shown(was)}, not {_shown(is_now)}; rows "
                    f"of both don't belong in one table: {remedy}"
                )

    def _take(self, repetitions):
        """Take over the points that are whole; what is torn is removed from the file."""
        text = _text(self.path)
        rows, lines = _parse(self.path, text)
        keys = [key_of(row) for row in rows]
        counted = Counter(keys)
        whole = [i for i, key in enumerate(keys) if counted[key] == repetitions(*key[2:])]
        kept = HEADER + "".join(lines[i] for i in whole)
        if kept != text:
            write_whole(self.path, kept)
        self.rows = rows[whole]

    @property
    def done(self):
        """The keys of all points that are in the file."""
        return {key_of(row) for row in self.rows}

    def add(self, rows):
        """Write the rows of one finished point."""
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(text_of(rows))
            file.flush()
            os.fsync(file.fileno())
        self.rows = np.concatenate([self.rows, rows])


def _shown(value):
    return "its default" if value is None else f"{value!r}" if isinstance(value, str) else value
