#!/usr/bin/env python3
"""Gradescope runs this as run_autograder, once for each submission: hand out its results.

`mpilab feedback --to gradescope` puts it into autograder.zip, together with students.json, which
maps the address of each student to the results that `mpilab grade` has come to. It runs in
Gradescope's container, where mpilab is not installed, and runs nothing that students wrote. If
there is no result, it writes none: Gradescope then shows a failed autograder, and no score.
"""

from __future__ import annotations  # for the Python of older images

import json
import os
import shutil
import sys
from pathlib import Path

# Where Gradescope puts everything; another folder for tests.
HOME = Path(os.environ.get("MPILAB_AUTOGRADER", "/autograder"))


def main() -> str | None:
    """Copy the results of the submission's authors to the place where Gradescope looks for them."""
    source = HOME / "source"
    known = json.loads((source / "students.json").read_text(encoding="utf-8"))
    submission = json.loads((HOME / "submission_metadata.json").read_text(encoding="utf-8"))
    authors = [user["email"] for user in submission["users"]]
    found = [source / known[email.casefold()] for email in authors if email.casefold() in known]
    if len(found) < len(authors) or not found:
        missing = ", ".join(email for email in authors if email.casefold() not in known)
        return f"There are no marks for {missing or 'nobody'} yet."
    if len({file.read_bytes() for file in found}) > 1:
        return f"The marks of {', '.join(authors)} differ: they cannot be those of one group."
    (HOME / "results").mkdir(exist_ok=True)
    shutil.copyfile(found[0], HOME / "results" / "results.json")
    return None


if __name__ == "__main__":
    sys.exit(main())
