"""A lab for its tests: the student notebook, the solved one, and the output of both."""

import os
import re
import subprocess
from functools import cached_property
from pathlib import Path

import jupytext
import nbformat
import papermill
from kit_copies import objects_for

from mpilab.course.handout import handout
from mpilab.grading.answers import transplant
from mpilab.grading.release import release
from mpilab.judging import rubric
from mpilab.kernels import openmpi

ROOT = Path(__file__).resolve().parents[2]
# Parameters for the solved lab, so that it takes less time.
REDUCED = {
    "00-first-contact": {"SIZES": [1, 64, 4096, 65536], "REPETITIONS": 5, "SIMULATED": 16},
    "01-collective-algorithms": {
        "SIZES": [64, 4096, 16384],
        "REPETITIONS": 3,
        "SIMULATED": [16],
    },
    "02-allgather": {
        "SIZES": [32, 4096],
        "PROCESSES": [2, 4],
        "REPETITIONS": 3,
        "SIMULATED": 16,
    },
    "03-rank-mapping": {"SIZES": [1024, 32768], "REPETITIONS": 3, "SIMULATED": "flat-4x3"},
    "04-topology": {"SIZES": [64, 16384], "REPETITIONS": 2, "SIMULATED": ["groups-2x2x2"]},
    "05-parallel-io": {"SIZES": [64, 128], "REPETITIONS": 2, "GRIDS": [4]},
    "06-tune-and-scale": {
        "SIZES": [64, 65536],
        "REPETITIONS": 2,
        "ITERATIONS": 20,
        "SIMULATED": [4, 16],
        "MESSAGES": [1024, 16384, 262144],
        "CLUSTER": "groups-4x2x2 rr",
    },
}


class LabNotebook:
    """The files of the lab `name`, e.g. "02-allgather"."""

    def __init__(self, name):
        self.name = name
        self.source = ROOT / "labs" / "source" / f"{name}.py"
        self.notebook = ROOT / "labs" / f"{name}.ipynb"
        self.rubric = ROOT / "grading" / name / "rubric.toml"
        self.public = ROOT / "labs" / "checks" / f"{name}.toml"

    @cached_property
    def blank(self):
        """The student version, newly made from the source."""
        return release(self.source)

    @cached_property
    def exercises(self):
        """The exercises of the rubric by their ids."""
        return {exercise.id: exercise for exercise in rubric.load(self.rubric).exercises}

    def solved(self):
        """The lab with the solutions in their cells, as a student could hand it in, and with some
        answer to each prediction."""
        source = jupytext.read(self.source, fmt="py:percent")
        for cell in source.cells:
            first, *body = cell.source.split("\n")
            if first.startswith("%%kernel"):
                cell.source = "\n".join([first, *(line.removeprefix("# ") for line in body)])
        notebook, problems = transplant(self.blank, source)
        assert not problems
        practice = {
            f"%%kernel {each.function}": self.practiced(each.id)
            for each in rubric.load(self.rubric).practice
        }
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.source = _predicted(cell.source)
            first, *_ = cell.source.split("\n")
            if first in practice:
                cell.source = f"{first}\n{practice[first]}"
        return notebook

    def practiced(self, name):
        """The solution of an exercise that is not graded."""
        return (self.rubric.parent / "practice" / f"{name}.c").read_text(encoding="utf-8")

    def handed_out(self, folder, labs=()):
        """The folder labs/ of what students get, put below `folder`, with its C code built: a
        handout of this lab, or of `labs`."""
        given = handout(folder / "handed out", labs or [self.name]).path
        objects_for(given)
        mpicc = os.path.relpath(openmpi.tool("mpicc"), given / "src_c")
        made = subprocess.run(
            ["make", "-s", "-j2", "-C", given / "src_c", f"MPICC={mpicc}"],
            capture_output=True,
            text=True,
        )
        assert made.returncode == 0, made.stderr
        return given / "labs"

    def code_cells(self):
        """The code cells of the student version."""
        return [cell for cell in self.blank.cells if cell.cell_type == "code"]


def _predicted(source):
    """The source of a cell, with a prediction that its form offers in each `predict("", …)`: the
    first choice, or the least number."""

    def with_one(match):
        choices, least = match["choice"], match["least"]
        return match[0].replace('""', choices or f'"{least}"', 1)

    return re.sub(
        r'mpilab\.predict\(\s*"",\s*(?:choices=\[\s*(?P<choice>"[^"]*")|between=\((?P<least>\d+),)',
        with_one,
        source,
    )


def execute(notebook, folder, **parameters):
    """The notebook after papermill has run it from top to bottom; an error in a cell raises."""
    return _execute(notebook, folder, ROOT / "labs", parameters)


def execute_handed_out(lab, folder, monkeypatch, labs=(), **parameters):
    """The student version, run in a handout of this lab, or of `labs`: without the kernels that
    students have to write. Without parameters, it has those of the students."""
    labs = lab.handed_out(folder, labs)
    monkeypatch.setenv("PYTHONPATH", str(labs.parent))  # before the kit under test
    notebook = nbformat.read(labs / lab.notebook.name, as_version=4)
    return _execute(notebook, folder, labs, parameters)


def _execute(notebook, folder, labs, parameters):
    before, after = folder / "before.ipynb", folder / "after.ipynb"
    nbformat.write(notebook, before)
    # Written once, at the end: writing all figures after each cell takes a quarter of the time.
    papermill.execute_notebook(
        before, after, parameters, cwd=labs, progress_bar=False, request_save_on_cell_execute=False
    )
    return nbformat.read(after, as_version=4)


def shown(cell):
    """What a cell has shown and printed, as text."""
    return "\n".join(
        output["data"]["text/plain"] if "data" in output else output.get("text", "")
        for output in cell.outputs
    )


def checks(notebook):
    """What each lab.check showed, by exercise."""
    called = ((re.match(r'lab\.check\("(\w+)"', cell.source), cell) for cell in notebook.cells)
    return {match[1]: shown(cell) for match, cell in called if match}


def on_stderr(notebook):
    """What cells wrote to stderr, including warnings: a list of texts."""
    return [
        output.text
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.get("name") == "stderr"
    ]
