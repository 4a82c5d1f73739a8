"""What slurm/ tells users to type fits the labs that it names; tests/slurm tests the jobs
themselves."""

import ast
import json
import re

import pytest

from mpilab.util.kit import ROOT

LAB = re.compile(r"labs/([\w-]+\.ipynb)")
OPTION = re.compile(r"-p (\w+) \S+")
FILES = ("README.md", "notebook.sbatch")


def examples(text):
    """[(notebook, name of a parameter)] in the text, each with the lab that was named last."""
    labs = [(lab.start(), lab[1]) for lab in LAB.finditer(text)]
    return [
        (max((lab for lab in labs if lab[0] < option.start()), default=(0, ""))[1], option[1])
        for option in OPTION.finditer(text)
    ]


def parameters(notebook):
    """The names that papermill can set: those of the cell with the tag "parameters"."""
    cells = json.loads((ROOT / "labs" / notebook).read_text(encoding="utf-8"))["cells"]
    (cell,) = (c for c in cells if "parameters" in c["metadata"].get("tags", []))
    tree = ast.parse("".join(cell["source"]))
    return {name.id for node in tree.body if isinstance(node, ast.Assign) for name in node.targets}


@pytest.mark.parametrize("file", FILES)
def test_every_parameter_of_an_example_is_one_of_the_lab_s(file):
    found = examples((ROOT / "slurm" / file).read_text(encoding="utf-8"))
    assert found
    for notebook, name in found:
        assert notebook, f"slurm/{file}: -p {name}, and no lab is named before it"
        assert name in parameters(notebook), f"slurm/{file}: {notebook} has no {name}"
