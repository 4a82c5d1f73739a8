"""Write constraints.txt anew: `make constraints`, or `python3 tools/constraints.py`.

Each Python resolves pyproject.toml separately, because markers and wheels differ. The oldest goes
first, and the newer ones use its versions where possible, so that most lines apply to all. Only a
bare environment is installed for each Python, in a temporary folder.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from problem import Problem, run

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.11", "3.12", "3.13")
# Debian 12's Python, the oldest one that must be able to install every line.
FLOOR = (3, 11, 2)
WHICH = "import ensurepip, sys; print(list(sys.version_info[:3]))"
HEADER = """\
# Every package of the kit with its exact version, resolved by Python {}.
# Made by 'make constraints' from pyproject.toml; do not edit.
"""


def requirements(pyproject):
    """The requirement strings of `pyproject`, with those of the test extra."""
    project = tomllib.loads(pyproject.read_text())["project"]
    return [*project["dependencies"], *project["optional-dependencies"]["test"]]


def find_python(version):
    """The oldest interpreter of `version` ("3.12") on PATH and in pyenv, as (its full version as
    a tuple, path). Raises Problem.

    The oldest, because a package may require more than a minor version: some need 3.11.5, and
    Debian 12 has 3.11.2.
    """
    folders = os.environ.get("PATH", "").split(os.pathsep)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = [Path(folder, f"python{version}") for folder in folders]
    candidates += pyenv.glob(f"versions/{version}.*/bin/python")
    found = []
    for candidate in candidates:
        if not os.access(candidate, os.X_OK):
            continue
        asked = subprocess.run([candidate, "-c", WHICH], capture_output=True, text=True)
        if asked.returncode == 0:
            found.append((tuple(json.loads(asked.stdout)), candidate))
    floor = FLOOR if version == VERSIONS[0] else (99,)
    if not found or min(found)[0] > floor:
        wanted = ".".join(map(str, FLOOR)) if found else version
        raise Problem(
            f"no Python {wanted} that can make a virtual environment",
            f"PATH={os.environ.get('PATH', '')}, {pyenv}",
            f"pyenv install {wanted}",
        )
    return min(found)


def resolve(python, wanted, pins=()):
    """The versions that `python` would install for `wanted` under `pins`: {name: version}, or None
    if nothing fits."""
    with tempfile.TemporaryDirectory() as folder:
        venv, report, held = Path(folder, "venv"), Path(folder, "report"), Path(folder, "held")
        subprocess.run([python, "-m", "venv", venv], check=True)
        held.write_text("".join(f"{name}=={version}\n" for name, version in dict(pins).items()))
        command = [venv / "bin/python", "-m", "pip", "install", "--dry-run", "--quiet"]
        command += ["--disable-pip-version-check", "--report", report, "-c", held, *wanted]
        if subprocess.run(command).returncode:
            return None
        installed = json.loads(report.read_text())["install"]
    found = {}
    for item in installed:
        name = re.sub(r"[-_.]+", "-", item["metadata"]["name"]).lower()
        found[name] = item["metadata"]["version"].split("+")[0]
    return found


def lines(resolved):
    """The lines of constraints.txt from `resolved`: {"3.11": {name: version}, …}, oldest first.

    A version that does not apply to every Python gets a marker with the range to which it applies;
    the newest range is open, so that it covers newer Pythons.
    """
    pythons = list(resolved)
    out = []
    for name in sorted(set().union(*resolved.values())):
        held = [resolved[python].get(name) for python in pythons]
        start = 0
        for i in range(1, len(held) + 1):
            if i < len(held) and held[i] == held[start]:
                continue
            if held[start] is not None:
                bounds = [f"python_version >= '{pythons[start]}'"] if start else []
                bounds += [f"python_version < '{pythons[i]}'"] if i < len(held) else []
                marker = f"; {' and '.join(bounds)}" if bounds else ""
                out.append(f"{name}=={held[start]}{marker}")
            start = i
    return out


def main():
    """Resolve and write."""
    pythons = [(version, *find_python(version)) for version in VERSIONS]
    wanted = requirements(ROOT / "pyproject.toml")
    resolved, pins = {}, {}
    for version, _, python in pythons:
        print(f"constraints: resolving for Python {version} ({python})", flush=True)
        found = resolve(python, wanted, pins)
        if found is None and pins:
            print(f"constraints: {version} cannot take the pins of older Pythons; its own")
            found = resolve(python, wanted)
        if found is None:
            raise Problem(
                f"pip finds no set of packages for Python {version}",
                str(ROOT / "pyproject.toml"),
                "read pip's words above; loosen a bound, or wait for the network",
            )
        resolved[version] = found
        pins = pins or found
    written = lines(resolved)
    by = ", ".join(".".join(map(str, full)) for _, full, _ in pythons)
    (ROOT / "constraints.txt").write_text(HEADER.format(by) + "\n".join(written) + "\n")
    print(f"constraints: {len(written)} lines in {ROOT / 'constraints.txt'}")


if __name__ == "__main__":
    sys.exit(run("constraints", main))
