"""The tables of docs/scale.md, from the files of data/ that they show.

    python -m mpilab.scale_page docs/scale.md     put them into the page

Each table stands between two marks, <!-- NAME: begin --> and <!-- NAME: end -->.
"""

import sys
from pathlib import Path

from mpilab import measured_distances, measured_scale
from mpilab.build import ROOT
from mpilab.errors import InputError
from mpilab.simulated import against

PAGE = ROOT / "docs" / "scale.md"


def tables():
    """{name: Markdown} of what docs/scale.md shows; InputError where a file cannot be read."""
    scale, distances = measured_scale.read(), measured_distances.read()
    return {
        "scale": f"{_about(scale)}\n\n{measured_scale.as_text(scale)}",
        "distances": f"{_about(distances)}\n\n{measured_distances.as_text(distances)}",
        "against": against.as_text(against.read()),
    }


def _about(rows):
    """When and where rows were measured."""
    found = sorted(set(rows[["date", "machine"]].tolist()))
    return "Measured " + "; ".join(f"{date} on {machine}" for date, machine in found) + "."


def put(text, name, table):
    """`text` with `table` between the marks of that name; InputError where they are missing."""
    begin, end = (f"<!-- {name}: {what} -->" for what in ("begin", "end"))
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise InputError(f"the marks {begin} and {end} are missing; put them into the page")
    return f"{before}{begin}\n{table}\n{end}{after}"


def made(text):
    """The page `text` with all its tables as they are now."""
    for name, table in tables().items():
        text = put(text, name, table)
    return text


def main(arguments):
    """Bring the page up to date."""
    path = Path(arguments[0]) if arguments else PAGE
    try:
        path.write_text(made(path.read_text(encoding="utf-8")), encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read and written: {error.strerror}; give the page, docs/scale.md"
        ) from None


if __name__ == "__main__":
    main(sys.argv[1:])
