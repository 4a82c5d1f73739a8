"""Write the scores of each lab, and which items found its mutants, into docs/mutants.md.

    mpilab rubric mutate LAB --json > FILE     judge the mutants of a lab (all: for hours)
    python tools/kills.py FILE ...             replace the tables of these labs

The tables of other labs stay as they are.
"""

import argparse
import json
import re
import sys
from pathlib import Path

from mpilab.errors import InputError
from mpilab.judging.mutation import kills_in_markdown, scores_in_markdown
from mpilab.util.files import atomic_write

PAGE = Path(__file__).resolve().parents[1] / "docs" / "mutants.md"


def replaced(page: str, lab: str, table: str) -> str:
    """The text of the page with this table for a lab; InputError if it has no place for one."""
    begin, end = f"<!-- {lab}: begin -->", f"<!-- {lab}: end -->"
    if page.count(begin) != 1 or page.count(end) != 1:
        raise InputError(f"{PAGE}: needs one '{begin}' and one '{end}'; add them")
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    return pattern.sub(lambda _: f"{begin}\n{table}\n{end}", page)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="of one lab each")
    options = parser.parse_args()
    text = PAGE.read_text(encoding="utf-8")
    for path in options.files:
        found = json.loads(path.read_text(encoding="utf-8"))
        exercises = found["exercises"]
        tables = f"{scores_in_markdown(exercises)}\n\n{kills_in_markdown(exercises)}"
        text = replaced(text, found["lab"], tables)
    atomic_write(PAGE, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
