"""Make build/nbgrader, an environment with nbgrader: `python3 tools/nbgrader_venv.py`.

nbgrader pins other packages than the kit, so it gets an environment of its own. 'mpilab export --to
nbgrader' finds it there, and so do the tests and benchmarks that need it.
"""

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "nbgrader"
VERSION = "0.9.6"


def nbgrader_python(folder=FOLDER):
    """The interpreter of the environment, which is made first where there is none.

    Raises subprocess.CalledProcessError where pip cannot get the packages.
    """
    python, ready = folder / "bin" / "python", folder / f"nbgrader-{VERSION}"
    if not ready.exists():
        venv.create(folder, clear=True, with_pip=True)
        command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        command += ["-c", ROOT / "constraints.txt", f"nbgrader=={VERSION}"]
        subprocess.run(command, check=True)
        ready.touch()  # last: an environment that was left half-made has no such file
    return python


if __name__ == "__main__":
    try:
        print(nbgrader_python())
    except subprocess.CalledProcessError as error:
        sys.exit(f"nbgrader_venv: pip ended with {error.returncode}; see what it said above")
