"""Write which items found the mutants of each lab into docs/mutants.md.

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
from mpilab.judging.mutation import kills_in_markdown
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
        judged = sum(len(one["judged"]) for one in exercises)
        killed = sum(each["outcome"] == "killed" for one in exercises for each in one["judged"])
        head = f"{judged} mutants were judged, and {killed} of them killed."
        text = replaced(text, found["lab"], f"{head}\n\n{kills_in_markdown(exercises)}")
    atomic_write(PAGE, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
