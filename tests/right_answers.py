"""What the rubrics compare Python answers with: grading/LAB/answers.py, outside of the package."""

import runpy
from types import SimpleNamespace

from mpilab.util.kit import ROOT


def answers_of(lab):
    """The names in the answers of `lab`, as attributes."""
    return SimpleNamespace(**runpy.run_path(str(ROOT / "grading" / lab / "answers.py")))
