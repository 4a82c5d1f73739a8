"""The Diagnosis of a run or a cell, and wording helpers.

A Diagnosis holds only text and tables, no raw data. It leaves the sandbox as JSON, and is shown as
a panel in the notebook and as text on the command line and in the feedback.
"""

from dataclasses import asdict, dataclass

# Wording helpers: lists of ranks, numbers with their nouns.


def listing(items, joined="and"):
    """'1', '1 and 2', '1, 2 and 3'."""
    items = [str(item) for item in items]
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {joined} {items[-1]}"


def runs(numbers, most=8):
    """'0 to 3, 5 and 7': runs of three or more become one part; at most `most` parts."""
    numbers = sorted(set(numbers))
    spans = []
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


def ranks(numbers):
    """'rank 2', 'ranks 0 and 2', 'ranks 0 to 3'."""
    numbers = set(numbers)
    return f"rank{'s' * (len(numbers) != 1)} {runs(numbers)}"


def number(count, noun, plural=""):
    """'1 message', '3 messages', '2 copies'."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def capital(sentence):
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


def class_name(number):
    """'MPI_ERR_TRUNCATE' for 15; 'error 99' for a number without a name."""
    return NAMES.get(number, f"error {number}")


DEADLOCK, TIME_OUT, CRASH, SANITIZER, MPI_ERROR = (
    "deadlock",
    "time-out",
    "crash",
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
    """A titled table; every row has one entry (str or int) per column."""

    title: str
    columns: tuple
    rows: tuple


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
    ranks: tuple = ()
    places: tuple = ()
    cycle: tuple = ()
    tables: tuple = ()
    notes: tuple = ()
    printed: tuple = ()
    log: str = ""

    @property
    def lines(self):
        """Line numbers of `places` in the cell, in order."""
        return tuple(place.line for place in self.places if not place.file)

    def as_json(self):
        """The diagnosis as a dict for JSON; `from_json` reads it back."""
        return asdict(self)

    @classmethod
    def from_json(cls, said):
        """A Diagnosis from `as_json()`; other input raises TypeError, KeyError or ValueError."""
        fields = {name: _tuples(value) for name, value in said.items()}
        fields["places"] = tuple(Place(**place) for place in said.get("places", ()))
        fields["tables"] = tuple(
            Table(str(t["title"]), _tuples(t["columns"]), _tuples(t["rows"]))
            for t in said.get("tables", ())
        )
        if fields.get("kind") not in KINDS:
            raise ValueError(f"kind {fields.get('kind')!r}: not one of {', '.join(KINDS)}")
        return cls(**fields)


def _tuples(value):
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value
