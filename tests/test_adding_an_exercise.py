"""Follow the recipe of CONTRIBUTING.md: two files and a list of bugs make a new exercise, and one
command tells whether it is correct."""

import re
import subprocess
import sys

import nbformat
import pytest
from kit_copies import copy_of_kit
from test_split import environment

from mpilab.judging.rubric import load
from mpilab.util.kit import ROOT

LIMIT_S = 300
LAB, NAME = "02-allgather", "bruck_rounds"
METADATA = (
    '{"grade": true, "grade_id": "bruck_rounds", "locked": false, "points": 2, '
    '"schema_version": 3, "solution": true, "task": false, "cell_type": "code"}'
)
CELLS = f'''
# %% [markdown]
# ## The rounds of Bruck (2 points)

# %% nbgrader={METADATA}
def bruck_rounds(P):
    """Rounds of Bruck's algorithm on P ranks."""
    ### BEGIN SOLUTION
    # STUB: raise NotImplementedError("your code here")
    return (P - 1).bit_length()
    ### END SOLUTION


# %%
lab.check("bruck_rounds", bruck_rounds)
'''
EXERCISE = """
[[exercise]]
id = "bruck_rounds"
title = "The rounds of Bruck"
kind = "python"
function = "bruck_rounds"

[[exercise.item]]
id = "any"
title = "Any number of ranks"
points = 2
expected = "mpilab.algorithms.formula:ceil_log2"
arguments = [[3], [5]]
public = { arguments = [[4]] }
"""
BUG_NAME = "bruck_rounds-once-too-often.py"
BUG = f"""
["{BUG_NAME}"]
fault = "Has one round too many for powers of two."
kind = "off by one"
loses = "all"
edit = [{{ replace = "(P - 1).bit_length()", by = "P.bit_length()" }}]
"""


def recipe():
    """The section of CONTRIBUTING.md."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return text.split("\n## Add an exercise\n")[1].split("\n## ")[0]


def files_of_recipe():
    """The files that its numbered steps name first, with the lab filled in."""
    found = re.findall(r"^\d\. `([^`]+)`", recipe(), re.MULTILINE)
    return [path.replace("LAB", LAB) for path in found]


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    return copy_of_kit(tmp_path_factory.mktemp("copy") / "kit")


def mpilab(kit, *words):
    """(return code, output) of an mpilab command in a copy of the kit."""
    done = subprocess.run(
        [sys.executable, "-m", "mpilab", *words],
        cwd=kit,
        env=environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=LIMIT_S,
    )
    return done.returncode, done.stdout


def tell(kit):
    """The result of the recipe's command in a kit: (return code, output)."""
    (command,) = re.findall(r"```sh\nmpilab (.*)\n```", recipe())
    return mpilab(kit, *command.replace("LAB", LAB).replace("NAME", NAME).split(), "--no-progress")


def add(path, text):
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


def test_a_new_exercise_is_the_files_of_the_recipe_and_its_command_tells_what_is_wrong(kit):
    source, rubric, bugs = (kit / path for path in files_of_recipe())
    add(source, CELLS)
    code, said = tell(kit)
    assert code != 0 and "exercise 'bruck_rounds': not in lab 02-allgather" in said, said

    text = rubric.read_text(encoding="utf-8")
    last = text.rindex("points = 3, text")  # a criterion of the last item, which has 7 points
    rubric.write_text(
        text[:last].replace("points = 7\ncriteria", "points = 5\ncriteria")
        + text[last:].replace("points = 3", "points = 1")
        + EXERCISE,
        encoding="utf-8",
    )
    assert sum(exercise.points for exercise in load(rubric).exercises) == 100
    add(bugs, BUG)
    code, said = tell(kit)
    assert code != 0 and f"{BUG_NAME}: any is pass, but should be fail" in said, said

    text = rubric.read_text(encoding="utf-8")
    rubric.write_text(text.replace("[[3], [5]]", "[[3], [5], [8]]"), encoding="utf-8")
    code, said = tell(kit)
    assert code == 0, said
    assert "1 references, 1 blanks, 1 seeded bugs" in said


def test_what_is_made_of_it_has_its_stub_and_what_is_public(kit):
    code, said = mpilab(kit, "release", LAB)
    assert code == 0, said
    checks = load(kit / "labs" / "checks" / f"{LAB}.toml")
    assert checks.exercise(NAME).items[0].arguments == ((4,),)
    notebook = nbformat.read(kit / "labs" / f"{LAB}.ipynb", as_version=4)
    (cell,) = (cell for cell in notebook.cells if "def bruck_rounds(" in cell.source)
    assert "raise NotImplementedError" in cell.source and "bit_length" not in cell.source
