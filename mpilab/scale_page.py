"""The tables of docs/scale.md, from the files of data/ that they show.

python -m mpilab.scale_page docs/scale.md     put them into the page
"""

import sys

from mpilab import measured_distances, measured_scale
from mpilab.build import ROOT
from mpilab.simulated import against
from mpilab.tables_in_pages import update

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


def main(arguments):
    """Bring the page up to date."""
    update(arguments[0] if arguments else PAGE, tables())


if __name__ == "__main__":
    main(sys.argv[1:])
