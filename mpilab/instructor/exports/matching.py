"""Which row of a platform's CSV is which student of ours."""

from collections import defaultdict
from dataclasses import dataclass

from mpilab.errors import InputError

# Names are written in many ways ('Schmidt, Anna', 'schmidtanna'); whatever else is an identifier
# has to be the same to the letter.
NAMES = ("Student", "Full name")


@dataclass(frozen=True)
class Rows:
    """Rows of students in a CSV; `keys` are the columns that say who it is."""

    header: list
    body: list
    keys: tuple
    path: object

    def column(self, name):
        """The place of a key by its name in any case; None where there is none."""
        names = [each.strip().casefold() for each in self.header]
        return names.index(name.casefold()) if name.casefold() in names else None


def find(students, rows, roster=None, match=""):
    """{place of the row: Effective} for all students that a row is found for.

    A student's name is looked for in every column that says who it is, a roster's column in the
    one of the same name ('id' also in 'Identifier'); `match` names the only column to look in.
    Raises InputError where a row fits several students, or a student several rows.
    """
    keys = [name for name in rows.keys if rows.column(name) is not None]
    if match:
        if rows.column(match) is None:
            raise InputError(f"{rows.path}: no column {match!r}; it has {', '.join(rows.header)}")
        keys = [match]
    index = defaultdict(set)  # (column, text) -> places of rows
    for key in keys:
        for place, row in enumerate(rows.body):
            text = _canonical(key, row[rows.column(key)] if rows.column(key) < len(row) else "")
            if text:
                index[key.casefold(), text].add(place)
    found = {}
    for each in students:
        places = _places(each.student, keys, index, (roster or {}).get(each.student, {}))
        if len(places) > 1:
            raise InputError(
                f"{rows.path}: {len(places)} rows fit the student {each.student!r}; say in which "
                "column to look with --match, or who is who with --roster"
            )
        for place in places:
            if place in found:
                other = found[place].student
                raise InputError(
                    f"{rows.path}: the row of {rows.body[place][0]!r} fits both {other!r} and "
                    f"{each.student!r}; say which column to look in with --match"
                )
            found[place] = each
    return found


def _places(student, keys, index, entry):
    """The rows of a student: those of its identifiers in the roster, else those of its name."""
    places = set()
    for key in keys:
        known = entry.get(key.casefold()) or (entry.get("id") if key == "Identifier" else "")
        if known:
            places |= index.get((key.casefold(), _canonical(key, known)), set())
    if not places:
        for key in keys:
            places |= index.get((key.casefold(), _canonical(key, student)), set())
    return places


def _canonical(key, text):
    text = text.strip().removeprefix("'")
    if key in NAMES:
        return "".join(sign for sign in text.casefold() if sign.isalnum())
    return text.removeprefix("Participant ") if key == "Identifier" else text
