"""The lists of packages agree: pyproject.toml, environment.yml, constraints.txt, the imports."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import packages
import pytest
import setup
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())
CONSTRAINTS = (ROOT / "constraints.txt").read_text().splitlines()

# PyPI's name → conda-forge's, if they differ.
CONDA_NAMES = {}
# What comes from the system with pip, and from conda-forge with conda.
CONDA_ONLY = {"python", "pip", "make", "c-compiler", "binutils", "bubblewrap"}
PYTHONS = ("3.11", "3.12", "3.13")


def bounds(requirements):
    """{name: SpecifierSet} of requirement strings; the names are canonical."""
    parsed = map(Requirement, requirements)
    return {canonicalize_name(one.name): one.specifier for one in parsed}


RUNTIME = bounds(PROJECT["dependencies"])
TEST = bounds(PROJECT["optional-dependencies"]["test"])


def pins(python):
    """{name: version} that constraints.txt gives for `python`."""
    lines = [Requirement(line) for line in CONSTRAINTS if not line.startswith("#")]
    chosen = [
        one for one in lines if not one.marker or one.marker.evaluate({"python_version": python})
    ]
    found = {canonicalize_name(one.name): str(one.specifier).removeprefix("==") for one in chosen}
    assert len(found) == len(chosen), "a package with two versions for one Python"
    return found


def test_conda_has_every_runtime_dependency_with_the_same_bounds_and_nothing_else():
    conda = bounds(CONDA["dependencies"])
    ours = {name: bound for name, bound in conda.items() if name not in CONDA_ONLY}
    assert ours == {CONDA_NAMES.get(name, name): bound for name, bound in RUNTIME.items()}
    assert set(conda) >= CONDA_ONLY


def test_conda_takes_conda_forge_only_and_names_the_environment_after_the_kit():
    assert CONDA["name"] == PROJECT["name"] == "mpilab"
    assert CONDA["channels"] == ["conda-forge", "nodefaults"]


def test_whatever_setup_takes_from_the_system_is_in_conda_or_told_to_be_missing_there():
    head = (ROOT / "environment.yml").read_text().partition("\nname:")[0]
    names = {
        "compiler": "c-compiler",
        "sanitizers": "c-compiler",
        "make": "make",
        "venv": "python",
        "bwrap": "bubblewrap",
    }
    for need in packages.system.NEEDS:
        if need in names:
            assert names[need] in bounds(CONDA["dependencies"])
        else:
            assert packages.system.packages(need, "apt-get")[0].removeprefix("lib") in head
    assert bounds(CONDA["dependencies"])["bubblewrap"] == f">={packages.system.OLDEST}"


@pytest.mark.parametrize("manager", ["apt-get", "dnf", "pacman"])
def test_the_readme_asks_an_administrator_for_all_that_setup_needs(manager):
    line = re.search(rf"`({manager} [^`]*)`", (ROOT / "README.md").read_text())[1]
    # util-linux is on every system of these; python3-venv follows the system's python3.
    venv = "python{}.{}-venv".format(*sys.version_info)
    granted = {*line.split(), "util-linux", venv}
    for need in ("python", *packages.system.NEEDS):
        assert set(packages.system.packages(need, manager)) <= granted, need


def test_all_routes_ask_for_the_same_oldest_python():
    oldest = SpecifierSet(">=" + ".".join(map(str, setup.OLDEST)))
    assert SpecifierSet(PROJECT["requires-python"]) == oldest
    assert bounds(CONDA["dependencies"])["python"] == oldest


@pytest.mark.parametrize("name", sorted(RUNTIME | TEST))
def test_every_dependency_has_a_lower_bound_and_the_runtime_ones_an_upper(name):
    operators = {one.operator for one in (RUNTIME | TEST)[name]}
    assert ">=" in operators
    assert name not in RUNTIME or "<" in operators


@pytest.mark.parametrize("python", PYTHONS)
def test_the_constraints_pin_every_dependency_within_its_bounds(python):
    pinned = pins(python)
    for name, bound in (RUNTIME | TEST).items():
        assert name in pinned, f"run 'make constraints': {name} is not pinned for {python}"
        assert pinned[name] in bound, f"run 'make constraints': {name} {pinned[name]} not {bound}"


def test_the_constraints_are_sorted_exact_and_without_urls_or_local_versions():
    header = [line for line in CONSTRAINTS if line.startswith("#")]
    assert any("make constraints" in line for line in header)
    lines = CONSTRAINTS[len(header) :]
    for line in lines:
        exact = r"[a-z0-9-]+==[0-9][0-9a-z.]*(; python_version [<>]=? '3\.\d+'( and .*)?)?"
        assert re.fullmatch(exact, line), line
    assert lines == sorted(lines, key=lambda line: re.split("==|;", line)[:2])


def test_the_constraints_were_resolved_for_debian_12():
    """Some packages need 3.11.5: pins made by a later 3.11 break on Debian 12's 3.11.2."""
    assert "Python 3.11.2, " in CONSTRAINTS[0]


def imported(folder):
    """{top-level module: a file that imports it} of all Python files under `folder`."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(), str(path))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
            else:
                continue
            for name in names:
                found.setdefault(name.split(".")[0], path.relative_to(folder.parent))
    return found


def test_whatever_mpilab_imports_is_declared():
    distributions = packages_distributions()
    own = {"mpilab", *(path.stem for path in (ROOT / "mpilab").rglob("*.py"))}
    for module, path in imported(ROOT / "mpilab").items():
        if module in sys.stdlib_module_names or module in own:
            continue
        if module == "nbgrader":  # of the Python that runs this program
            assert path.name == "nbgrader_writer.py"
            continue
        brought = {canonicalize_name(name) for name in distributions.get(module, [])}
        if module in ("tree_sitter", "tree_sitter_c"):  # of the tools for authors
            assert path.name == "mutation.py" and brought <= set(TEST)
            continue
        assert brought & set(RUNTIME), f"{path} imports {module}, which pyproject.toml lacks"
