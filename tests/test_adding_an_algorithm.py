"""Follow the recipe of CONTRIBUTING.md: two files make a new algorithm, and one command tells
whether it is correct."""

import json
import re
import shutil
import subprocess

import pytest
from kit_copies import copy_of_kit, python_in
from test_split import environment

from mpilab.util.kit import ROOT

LIMIT_S = 600
NAME = "ring_copy"
SCHEDULE = '''

def ring_copy(call: Call) -> Plan:
    """Each rank passes the block that it received last to its right neighbor."""
    ranks = call.ranks
    steps = [
        [Transfer(rank, (rank + 1) % ranks, ((rank - lap) % ranks,)) for rank in range(ranks)]
        for lap in range(ranks - 1)
    ]
    return _plan(call, steps)


def ring_copy_cost(call: ModelCall) -> Coefficients:
    """(P-1)(α + mβ)."""
    return call.ranks - 1, (call.ranks - 1) * call.bytes


ALGORITHMS = table(
    Algorithm(ring_copy, ring_copy_cost, Look("#8c7464", "pentagon")),
'''


def recipe():
    """The section of CONTRIBUTING.md."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return text.split("\n## Add an algorithm\n")[1].split("\n## ")[0]


def files_of_recipe():
    """The files that its numbered steps name first, with the name filled in."""
    found = re.findall(r"^\d\. `([^`]+)`", recipe(), re.MULTILINE)
    return [path.replace("NAME", NAME) for path in found]


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    """A copy of the kit, with the tests, that `make` considers set up."""
    folder = copy_of_kit(tmp_path_factory.mktemp("copy") / "kit")
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "CONTRIBUTING.md", folder)
    python_in(folder)
    for stamp in ("mpilab-setup.json", "mpilab-test-tools.json"):
        told = json.loads((ROOT / ".venv" / stamp).read_text(encoding="utf-8"))
        told = told | {"home": str(folder)}
        (folder / ".venv" / stamp).write_text(json.dumps(told, indent=2), encoding="utf-8")
    return folder


def sources(folder):
    """{path: content} of what a contributor edits."""
    places = ("mpilab", "src_c", "tests", "docs", "labs", "grading", "tools")
    paths = [path for place in places for path in (folder / place).rglob("*")]
    paths += folder.glob("*.*")
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in [*paths, folder / "Makefile"]
        if path.is_file() and "__pycache__" not in path.parts
    }


def tell(folder):
    """The result of the recipe's command in a kit: (return code, output)."""
    (command,) = re.findall(r"```sh\n(.*)\n```", recipe())
    done = subprocess.run(
        command.replace("NAME=NAME", f"NAME={NAME}").split(),
        cwd=folder,
        env=environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=LIMIT_S,
    )
    return done.returncode, done.stdout


def test_a_new_allgather_is_as_many_files_as_the_recipe_says(kit):
    before = sources(kit)
    ring = (kit / "src_c" / "allgather" / "ring.c").read_text(encoding="utf-8")
    kernel, module = (kit / path for path in files_of_recipe())
    kernel.write_text(ring.replace("allgather_ring", f"allgather_{NAME}"), encoding="utf-8")

    code, said = tell(kit)
    assert code != 0 and "test_every_kernel_of_ours_has_a_schedule[allgather]" in said, said

    text = module.read_text(encoding="utf-8").replace("\n\nALGORITHMS = table(\n", SCHEDULE)
    module.write_text(text.replace("    Coefficients,\n", "    Coefficients,\n    Look,\n"))
    code, said = tell(kit)
    assert code == 0, said
    assert int(re.search(r"(\d+) passed", said)[1]) > 50

    after = sources(kit)
    changed = [path for path in after if after[path] != before.get(path)]
    assert sorted(changed) == sorted(files_of_recipe())
    assert "An algorithm is two files." in recipe() and len(changed) == 2
