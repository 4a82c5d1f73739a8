"""The rooms of the package: imports point one way, and docs/architecture.md shows them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import rooms

LINTER = Path(sys.executable).with_name("lint-imports")


def lint_imports(root):
    return subprocess.run(
        [LINTER, "--no-cache"], cwd=root, capture_output=True, text=True, check=False
    )


@pytest.fixture
def scratch(tmp_path):
    """A copy of the package's modules and of the contracts on what they import."""
    shutil.copytree(
        rooms.ROOT / "mpilab", tmp_path / "mpilab", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(rooms.ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_rooms_import_only_rooms_below_them_and_no_modules_import_each_other():
    done = lint_imports(rooms.ROOT)
    assert done.returncode == 0, done.stdout


def test_an_import_of_a_room_above_is_told_even_inside_a_function(scratch):
    with open(scratch / "mpilab" / "trace" / "recording.py", "a") as file:
        file.write("\n\ndef upwards():\n    from mpilab.plots import matrix\n    return matrix\n")
    done = lint_imports(scratch)
    assert done.returncode == 1
    assert "mpilab.trace.recording -> mpilab.plots.matrix" in " ".join(done.stdout.split())


def test_two_modules_that_import_each_other_are_told(scratch):
    with open(scratch / "mpilab" / "util" / "units.py", "a") as file:
        file.write("\n\nfrom mpilab.util.kit import ROOT\n")
    with open(scratch / "mpilab" / "util" / "kit.py", "a") as file:
        file.write("\n\nfrom mpilab.util.units import byte_size\n")
    done = lint_imports(scratch)
    assert done.returncode == 1 and "No cycles are allowed in mpilab.util" in done.stdout


def test_a_room_without_a_place_in_the_order_is_told(scratch):
    (scratch / "mpilab" / "attic").mkdir()
    (scratch / "mpilab" / "attic" / "__init__.py").write_text("")
    done = lint_imports(scratch)
    assert done.returncode == 1 and "attic" in done.stdout


def test_the_page_shows_the_rooms_as_they_are():
    page = rooms.PAGE.read_text(encoding="utf-8")
    assert rooms.filled(page) == page, "run 'make refresh'"
