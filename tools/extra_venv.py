"""Environments below build/ for programs that cannot share the kit's: created once, on request."""

import fcntl
import subprocess
import sys
import venv
from pathlib import Path

from problem import Problem, run

ROOT = Path(__file__).resolve().parents[1]


def extra_venv(folder, *requirements):
    """The interpreter of the environment `folder`, which is created if it does not exist, by one
    process: others that need it wait.

    Packages that the kit also uses get the versions in constraints.txt. Raises
    subprocess.CalledProcessError if pip cannot get the packages.
    """
    python = folder / "bin" / "python"
    ready = folder / "-".join([*requirements, "ready"]).replace("==", "-")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            venv.create(folder, clear=True, with_pip=True)
            command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            command += ["-c", ROOT / "constraints.txt", *requirements]
            subprocess.run(command, check=True)
            ready.touch()  # last: an incomplete environment has no such file
    return python


def main(make):
    """Print the result of `make()`; exit with a message if that fails."""

    def printed():
        try:
            print(make())
        except subprocess.CalledProcessError as error:
            program = Path(error.cmd[0]).name
            raise Problem(
                f"{program} ended with {error.returncode}",
                str(ROOT / "build"),
                f"read the output of {program} above; then run the same command again",
            ) from error

    sys.exit(run(Path(sys.argv[0]).stem, printed))
