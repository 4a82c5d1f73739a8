"""Environments below build/ for programs that cannot share the kit's: made once, when asked for."""

import subprocess
import sys
import venv
from pathlib import Path

from problem import Problem, run

ROOT = Path(__file__).resolve().parents[1]


def extra_venv(folder, *requirements):
    """The interpreter of the environment `folder`, which is made first where there is none.

    Packages that the kit uses, too, get the versions of constraints.txt. Raises
    subprocess.CalledProcessError where pip cannot get the packages.
    """
    python = folder / "bin" / "python"
    ready = folder / "-".join([*requirements, "ready"]).replace("==", "-")
    if not ready.exists():
        venv.create(folder, clear=True, with_pip=True)
        command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        command += ["-c", ROOT / "constraints.txt", *requirements]
        subprocess.run(command, check=True)
        ready.touch()  # last: an environment that was left half-made has no such file
    return python


def main(make):
    """Print what `make()` gives; end with a message where that fails."""

    def printed():
        try:
            print(make())
        except subprocess.CalledProcessError as error:
            program = Path(error.cmd[0]).name
            raise Problem(
                f"{program} ended with {error.returncode}",
                str(ROOT / "build"),
                f"read the words of {program} above; then give the same command again",
            ) from error

    sys.exit(run(Path(sys.argv[0]).stem, printed))
