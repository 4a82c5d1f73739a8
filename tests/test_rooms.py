"""The rooms of the package: imports point one way, and docs/architecture.md shows them."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import grimp
import pytest
import rooms

# Lines of a module that would be easier to read inside the one that imports it.
SMALL = 80
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


def hidden_imports(path):
    """The lines on which a function of this file, or a block for type checkers, imports a module
    of ours."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = set()
    for block in ast.walk(tree):
        if isinstance(block, ast.If) and "TYPE_CHECKING" not in ast.unparse(block.test):
            continue
        if not isinstance(block, ast.FunctionDef | ast.AsyncFunctionDef | ast.If):
            continue
        for node in ast.walk(block):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0] == "mpilab" for name in names):
                found.add(node.lineno)
    return found


def test_modules_import_ours_at_the_top_and_in_the_open(tmp_path):
    """The command line, which starts faster without them, uses mpilab.util.door.LatePackage."""
    hidden = tmp_path / "hidden.py"
    hidden.write_text(
        "import mpilab\ndef one():\n    if True:\n        from mpilab import plots\n"
        "if TYPE_CHECKING:\n    import mpilab.plots.style\nif FORK:\n    import mpilab.cluster\n"
    )
    assert hidden_imports(hidden) == {4, 6}
    files = sorted((rooms.ROOT / "mpilab").rglob("*.py"))
    assert len(files) > 100
    assert {str(path): lines for path in files if (lines := hidden_imports(path))} == {}


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


DOORS = sorted((rooms.ROOT / "mpilab").glob("*/**/__init__.py"))


@pytest.mark.parametrize("door", DOORS, ids=lambda path: path.parent.name)
def test_each_room_says_at_its_door_what_goes_in_and_out_and_names_its_modules(door):
    words = ast.get_docstring(ast.parse(door.read_text(encoding="utf-8")))
    if door.parent.name != "util":  # helpers of all kinds
        assert re.search(r"^In: .*Out:\s", words, re.MULTILINE | re.DOTALL)
    inside = [path for path in door.parent.iterdir() if not path.name.startswith("__")]
    modules = {path.stem for path in inside if path.suffix == ".py" or path.is_dir()}
    assert {name for name in modules if not re.search(rf"\b{name}\b", words)} == set()


def is_a_program(text):
    """Does this module do something when it is run as a file?"""
    tests = [ast.unparse(node.test) for node in ast.parse(text).body if isinstance(node, ast.If)]
    return "__name__ == '__main__'" in tests


def test_a_small_module_has_several_importers_or_is_a_program():
    graph = grimp.build_graph("mpilab", cache_dir=None)
    wrong = []
    for path in (rooms.ROOT / "mpilab").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if path.name in ("__init__.py", "__main__.py") or len(text.splitlines()) >= SMALL:
            continue
        module = ".".join(path.relative_to(rooms.ROOT).with_suffix("").parts)
        if len(graph.find_modules_that_directly_import(module)) < 2 and not is_a_program(text):
            wrong.append(module)
    assert wrong == [], "merge it with the module that imports it"
