"""What is wrong with a run or a cell, in the form in which everybody shows it.

A Diagnosis holds words and tables only, no raw data: it travels as JSON out of the sandbox, and is
shown as a panel in the notebook, as text on the command line and in the feedback.
"""

from dataclasses import asdict, dataclass

DEADLOCK, TIME_OUT, CRASH, SANITIZER, MPI_ERROR = (
    "deadlock", "time-out", "crash", "sanitizer", "mpi-error")  # fmt: skip
WRONG_RESULT, LEAK, COMPILE_ERROR, COMPILE_WARNING, ERROR = (
    "wrong-result", "leak", "compile-error", "compile-warning", "error")  # fmt: skip
KINDS = (DEADLOCK, TIME_OUT, CRASH, SANITIZER, MPI_ERROR, WRONG_RESULT, LEAK, COMPILE_ERROR,
         COMPILE_WARNING, ERROR)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """A line of the source: `label` says what happened there ('rank 0 waits here'), `column` (from
    1, 0 where unknown) where in `text`. `file` is empty for the cell itself."""

    line: int
    text: str = ""
    label: str = ""
    column: int = 0
    file: str = ""


@dataclass(frozen=True)
class Table:
    """A titled table; every row has one entry (str or int) a column."""

    title: str
    columns: tuple
    rows: tuple


@dataclass(frozen=True)
class Diagnosis:
    """One failure, explained.

    kind      one of KINDS.
    headline  one sentence: what happened, to which ranks.
    pattern   name of the common mistake that it looks like, '' where none is recognised.
    hint      what to look at or to change, in one to three sentences; '' where nobody knows.
    ranks     the ranks that it happened to or that caused it, the most telling first.
    places    lines of the source, the most telling first.
    cycle     ranks that wait for one another in a circle; () where there is none.
    tables    Table: ranks and what they wait for, last calls, wrong blocks, ...
    notes     further sentences: the smallest failing case, what else was found.
    printed   (rank, text) of what the kernel printed on each rank.
    log       what Open MPI itself said, unabridged; shown only on demand.
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
        """Line numbers of `places` in the cell, in their order."""
        return tuple(place.line for place in self.places if not place.file)

    def as_json(self):
        """The diagnosis as JSON can hold it; `from_json` takes it back."""
        return asdict(self)

    @classmethod
    def from_json(cls, said):
        """A Diagnosis from `as_json()`. Raises TypeError, KeyError or ValueError for another."""
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
