"""The figures on grading a class: seconds a submission takes, and the throughput held against what
an instructor would do without mpilab, on the same notebooks in one run.
"""

import json
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from copy import deepcopy
from functools import cache
from pathlib import Path

import nbformat

from mpilab.bench import figure
from mpilab.build import ROOT
from mpilab.errors import MpilabError, SetupError
from mpilab.instructor.exports.nbgrader import OWN, environment_of

LAB = "02-allgather"
CLASS = ROOT / "grading" / "sample-class"
BEST = "ada"  # answers everything
KERNEL = "mpilab-bench"
# No cell of the sample class takes as long; nbgrader's own limit is 30 s.
CELL_SECONDS = 600
CONFIG = f"""c = get_config()
c.ExecutePreprocessor.timeout = {CELL_SECONDS}
c.NbGraderAPI.timestamp = "2026-01-01 00:00:00 UTC"
"""


@figure("s", "≤ 12", "wall time of the whole sample class over its submissions")
def grade_seconds_per_submission(repeats=2):
    """Wall seconds that a submission of the sample class takes."""
    from mpilab.grading.grade import grade

    seconds = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            report = grade(CLASS, LAB, folder, progress=False)
            seconds.append(report.seconds / len(report.verdicts))
    return seconds


@figure("×", "≥ 1.5", "`nbgrader autograde` of the same notebooks, in one run")
def grade_throughput_vs_nbgrader():
    """Submissions a second of `mpilab grade`, over those of nbgrader."""
    return [_nbgrader() / _ours()]


@figure("×", "≥ 1.5", "`papermill` over the same notebooks, one after the other, in one run")
def grade_throughput_vs_papermill():
    """Submissions a second of `mpilab grade`, over those of papermill."""
    return [_papermill() / _ours()]


@cache
def _notebooks():
    """{student: notebook} of the sample class that are notebooks."""
    found = {}
    for path in sorted(CLASS.glob(f"*/{LAB}.ipynb")):
        try:
            found[path.parent.name] = nbformat.read(path, as_version=4)
        except ValueError:  # one of them is not, on purpose
            continue
    return found


@contextmanager
def _submitted(*, kernel=None, deeper=""):
    """A folder with the notebooks, STUDENT/[deeper/]LAB.ipynb, maybe with another kernel."""
    with tempfile.TemporaryDirectory(prefix="mpilab-bench-") as folder:
        for student, notebook in _notebooks().items():
            path = Path(folder) / "submitted" / student / deeper / f"{LAB}.ipynb"
            _write(notebook, path, kernel)
        yield Path(folder)


def _write(notebook, path, kernel):
    notebook = deepcopy(notebook)
    if kernel is not None:
        notebook.metadata["kernelspec"] = {
            "name": kernel, "display_name": kernel, "language": "python"}  # fmt: skip
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)


def _check_executed(path):
    """Raise MpilabError where the notebook of the one who answered all did not run to its end: then
    nothing was measured."""
    for cell in nbformat.read(path, as_version=4).cells:
        failed = [out for out in cell.get("outputs", ()) if out.output_type == "error"]
        if failed or (cell.cell_type == "code" and cell.source and not cell.execution_count):
            raise MpilabError(f"{path}: not executed: {failed or cell.source[:200]}")


@cache
def _ours():
    """Wall seconds of `mpilab grade`."""
    with _submitted() as folder:
        return _seconds([sys.executable, "-m", "mpilab.cli", "grade", folder / "submitted",
                         "--lab", LAB, "--out", folder / "out"])  # fmt: skip


@cache
def _papermill():
    """Wall seconds of papermill."""
    with _submitted() as folder:
        # An answer that raises ends papermill there: that is less work, and counts in its favour.
        seconds = sum(
            _seconds([sys.executable, "-m", "papermill", path, path.with_suffix(".out.ipynb"),
                      "--no-progress-bar"], may_fail=True)
            for path in sorted(folder.glob(f"submitted/*/{LAB}.ipynb"))
        )  # fmt: skip
        _check_executed(folder / "submitted" / BEST / f"{LAB}.out.ipynb")
        return seconds


@cache
def _nbgrader():
    """Wall seconds of `nbgrader autograde`; SetupError where there is no nbgrader."""
    if not OWN.exists():
        raise SetupError(f"{OWN}: no nbgrader; run 'python3 tools/nbgrader_venv.py'")
    with _submitted(kernel=KERNEL, deeper=LAB) as folder:
        source = folder / "source" / LAB / f"{LAB}.ipynb"
        # It puts the kernel of this one into those of the students.
        _write(nbformat.read(ROOT / "labs" / f"{LAB}.ipynb", as_version=4), source, KERNEL)
        (folder / "nbgrader_config.py").write_text(CONFIG)
        spec = folder / "jupyter" / "kernels" / KERNEL / "kernel.json"
        spec.parent.mkdir(parents=True)
        launch = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        spec.write_text(json.dumps({"argv": launch, "display_name": KERNEL, "language": "python"}))
        env = {**environment_of(OWN), "JUPYTER_PATH": str(folder / "jupyter")}
        nbgrader = [OWN, "-m", "nbgrader"]
        _seconds([*nbgrader, "generate_assignment", LAB, "--create"], cwd=folder, env=env)
        seconds = _seconds([*nbgrader, "autograde", LAB, "--create"], cwd=folder, env=env)
        _check_executed(folder / "autograded" / BEST / LAB / f"{LAB}.ipynb")
        return seconds


def _seconds(command, *, may_fail=False, **options):
    """Wall seconds of a command; MpilabError, with its last words, where it fails."""
    began = time.perf_counter()
    ran = subprocess.run(command, capture_output=True, text=True, **options)
    seconds = time.perf_counter() - began
    if ran.returncode and not may_fail:
        said = "\n".join(ran.stderr.strip().splitlines()[-5:])
        raise MpilabError(f"{' '.join(map(str, command))}: exit status {ran.returncode}:\n{said}")
    return seconds
