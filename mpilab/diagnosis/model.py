"""The Diagnosis of a run or a cell, and wording helpers.

A Diagnosis holds only text and tables, no raw data. It is passed on unchanged, as JSON, from where
it was made (a run, the compiler, the sandbox) through the verdict and the gradebook to the view
that shows it. mpilab.diagnosis.render creates the notebook's panel, the terminal's text and the
part of the feedback page from the same templates.
"""

import operator
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

# Wording helpers: lists of ranks, numbers with their nouns.


def listing(items: Iterable[object], joined: str = "and") -> str:
    """'1', '1 and 2', '1, 2 and 3'."""
    words = [str(item) for item in items]
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {joined} {words[-1]}"


def runs(numbers: Iterable[int], most: int = 8) -> str:
    """'0 to 3, 5 and 7': runs of three or more become one part; at most `most` parts."""
    numbers = sorted(set(numbers))
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    parts = []
    for first, last in spans:
        if last - first >= 2:
            parts.append(f"{first} to {last}")
        else:
            parts += [str(number) for number in range(first, last + 1)]
    if len(parts) > most:
        return f"{', '.join(parts[:most])}, … ({len(numbers)} in all)"
    return listing(parts)


def ranks(numbers: Iterable[int]) -> str:
    """'rank 2', 'ranks 0 and 2', 'ranks 0 to 3'."""
    numbers = set(numbers)
    return f"rank{'s' * (len(numbers) != 1)} {runs(numbers)}"


def number(count: int, noun: str, plural: str = "") -> str:
    """'1 message', '3 messages', '2 copies'."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def capital(sentence: str) -> str:
    """`sentence` with its first letter capitalized."""
    return sentence[:1].upper() + sentence[1:]


# MPI error classes by number, from the mpi.h of Open MPI 5.

_NAMES = """SUCCESS
BUFFER COUNT TYPE TAG COMM RANK REQUEST ROOT GROUP OP TOPOLOGY DIMS ARG UNKNOWN TRUNCATE OTHER
INTERN IN_STATUS PENDING ACCESS AMODE ASSERT BAD_FILE BASE CONVERSION DISP DUP_DATAREP FILE_EXISTS
FILE_IN_USE FILE INFO_KEY INFO_NOKEY INFO_VALUE INFO IO KEYVAL LOCKTYPE NAME NO_MEM NOT_SAME
NO_SPACE NO_SUCH_FILE PORT QUOTA READ_ONLY RMA_CONFLICT RMA_SYNC SERVICE SIZE SPAWN
UNSUPPORTED_DATAREP UNSUPPORTED_OPERATION WIN""".split()
NAMES = {number: f"MPI_ERR_{name}" for number, name in enumerate(_NAMES)}
NAMES |= {
    0: "MPI_SUCCESS",
    68: "MPI_ERR_RMA_RANGE",
    69: "MPI_ERR_RMA_ATTACH",
    70: "MPI_ERR_RMA_FLAVOR",
    71: "MPI_ERR_RMA_SHARED",
    74: "MPI_ERR_PROC_ABORTED",
    75: "MPI_ERR_PROC_FAILED",
    76: "MPI_ERR_PROC_FAILED_PENDING",
    77: "MPI_ERR_REVOKED",
    78: "MPI_ERR_SESSION",
    79: "MPI_ERR_VALUE_TOO_LARGE",
}
NUMBERS = {name: number for number, name in NAMES.items()}
IN_STATUS = NUMBERS["MPI_ERR_IN_STATUS"]
PENDING = NUMBERS["MPI_ERR_PENDING"]


def class_name(number: int) -> str:
    """'MPI_ERR_TRUNCATE' for 15; 'error 99' for a number without a name."""
    return NAMES.get(number, f"error {number}")


DEADLOCK, TIME_OUT, CRASH, TRAP, SANITIZER, MPI_ERROR = (
    "deadlock",
    "time-out",
    "crash",
    "trap",
    "sanitizer",
    "mpi-error",
)
WRONG_RESULT, LEAK, COMPILE_ERROR, COMPILE_WARNING, ERROR = (
    "wrong-result",
    "leak",
    "compile-error",
    "compile-warning",
    "error",
)
KINDS = (
    DEADLOCK,
    TIME_OUT,
    CRASH,
    TRAP,
    SANITIZER,
    MPI_ERROR,
    WRONG_RESULT,
    LEAK,
    COMPILE_ERROR,
    COMPILE_WARNING,
    ERROR,
)


@dataclass(frozen=True)
class Place:
    """A line of the source.

    `label` says what happened there ('rank 0 waits here'), and `column` where in `text` (from 1; 0
    if unknown). `file` is '' for the cell itself."""

    line: int
    text: str = ""
    label: str = ""
    column: int = 0
    file: str = ""


@dataclass(frozen=True)
class Table:
    """A titled table; every row has one entry per column."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | int, ...], ...]


@dataclass(frozen=True)
class Diagnosis:
    """One failure, explained.

    kind      one of KINDS.
    headline  one sentence: what happened, to which ranks.
    pattern   name of the common mistake that it resembles; '' if none is recognized.
    hint      what to check or change, in one to three sentences; '' if unknown.
    ranks     the ranks affected or responsible, the most informative first.
    places    lines of the source (Place), the most informative first.
    cycle     the ranks in a circular wait; () if there is none.
    tables    Table: ranks and what they wait for, last calls, wrong blocks, ...
    notes     further sentences: the smallest failing case, other findings.
    printed   (rank, text): what the kernel printed on each rank.
    log       full output of Open MPI, the compiler or the sanitizer; shown only on demand.
    """

    kind: str
    headline: str
    pattern: str = ""
    hint: str = ""
    ranks: tuple[int, ...] = ()
    places: tuple[Place, ...] = ()
    cycle: tuple[int, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    printed: tuple[tuple[int, str], ...] = ()
    log: str = ""

    @property
    def lines(self) -> tuple[int, ...]:
        """Line numbers of `places` in the cell, in order."""
        return tuple(place.line for place in self.places if not place.file)

    def to_json(self) -> dict[str, Any]:
        """The diagnosis as a dict for JSON, with a key for each field; `from_json` reads it.

        Sandboxes and gradebooks store it. A field may be added if it has a default; names and
        meanings of fields must not change.
        """
        return asdict(self)

    @classmethod
    def from_json(cls, said: Any) -> "Diagnosis":
        """A Diagnosis from `to_json()`, also after json.loads; numbers become Python's own.

        Anything else, whatever its origin, raises TypeError, KeyError or ValueError. Keys unknown
        to this mpilab are ignored.
        """
        if said["kind"] not in KINDS:
            raise ValueError(f"kind {said['kind']!r}: not one of {', '.join(KINDS)}")
        return cls(
            said["kind"],
            _text(said["headline"]),
            _text(said.get("pattern", "")),
            _text(said.get("hint", "")),
            ranks=tuple(map(_whole, said.get("ranks", ()))),
            places=tuple(map(_place, said.get("places", ()))),
            cycle=tuple(map(_whole, said.get("cycle", ()))),
            tables=tuple(map(_table, said.get("tables", ()))),
            notes=tuple(map(_text, said.get("notes", ()))),
            printed=tuple((_whole(rank), _text(text)) for rank, text in said.get("printed", ())),
            log=_text(said.get("log", "")),
        )


def _place(said: Any) -> Place:
    text, label, file = (_text(said.get(name, "")) for name in ("text", "label", "file"))
    return Place(_whole(said["line"]), text, label, _whole(said.get("column", 0)), file)


def _table(said: Any) -> Table:
    rows = tuple(
        tuple(cell if isinstance(cell, str | int) else str(cell) for cell in row)
        for row in said["rows"]
    )
    return Table(_text(said["title"]), tuple(map(_text, said["columns"])), rows)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40}: not a string")
    return value


def _whole(value: Any) -> int:
    """An int, also from one of numpy's; TypeError for other values."""
    return operator.index(value)
