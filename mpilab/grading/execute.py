"""Run a submission's notebook with papermill, in the sandbox: what it shows goes into the feedback.

Nothing that the notebook shows brings or costs points.
"""

from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import nbformat

from mpilab import build
from mpilab.errors import Ungradable
from mpilab.grading.errand import send_inside
from mpilab.grading.notebooks import read, with_outputs
from mpilab.grading.sandbox import Limits

CELL_SECONDS = 45
LIMITS = Limits(wall_seconds=180, processes=400, output_bytes=24 << 20, file_bytes=32 << 20,
                memory=3 << 30)  # fmt: skip
EXECUTED = "executed.ipynb"
ROOT = build.ROOT
# The last one tells which cores are close to each other; it says nothing about users.
READABLE = (ROOT / "mpilab", ROOT / "src_c", ROOT / "data", ROOT / "hostfiles",
            ROOT / "labs" / "checks", build.BUILD, Path("/sys/devices/system/cpu"))  # fmt: skip


@dataclass(frozen=True)
class Execution:
    """The executed notebook (None if it could not be brought out), and what was amiss in words."""

    notebook: object
    note: str = ""


def execute(notebook, parameters, sandbox):
    """Run a trusted notebook with a student's answers in it; Execution. Never raises for what
    the answers do; raises Ungradable where the sandbox itself fails."""
    notebook = deepcopy(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            # An answer that fails must not hide what the cells after it show.
            tags = cell.metadata.setdefault("tags", [])
            tags.append("raises-exception")
    job = {"parameters": parameters, "cell_seconds": CELL_SECONDS}
    outcome = send_inside(
        sandbox,
        "execute",
        job,
        files={"notebook.ipynb": nbformat.writes(notebook).encode()},
        readable=READABLE,
        ranks=4,
        limits=LIMITS,
        collect=[EXECUTED],
    )
    return Execution(_notebook(outcome), _note(outcome))


def _notebook(outcome):
    """What came out, which a cell may have written itself; None if nothing did, or half a file."""
    try:
        return with_outputs(read(outcome.files[EXECUTED], EXECUTED))
    except (KeyError, Ungradable):
        return None


def _note(outcome):
    if outcome.reason:
        return f"Running your notebook was ended: {outcome.reason} was the limit."
    if outcome.returncode != 0:
        said = outcome.stderr.decode(errors="replace").strip().splitlines()
        return f"Your notebook did not run to its end: {said[-1] if said else 'no word'}"
    return ""
