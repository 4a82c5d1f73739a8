"""From a fresh machine to a ready .venv: `python3 tools/setup.py`, as the Makefile calls it.

Standard library only. This file, problem.py, kit_parts.py and the part of the kit that it loads
here must be readable by old Pythons (3.6 and later), if only to say that they are too old; the
other modules are imported after that check.
"""

import argparse
import os
import shutil
import sys

from kit_parts import system
from problem import Problem, run

OLDEST = (3, 11)
# The first of these that is on PATH is named to users whose Python is too old.
NEWER = ("python3.11", "python3.12", "python3.13")


def check_python(version=sys.version_info, executable=sys.executable):
    """Raise Problem if `version` (a tuple), that of `executable`, is older than OLDEST."""
    if tuple(version[:2]) >= OLDEST:
        return
    found = ".".join(str(part) for part in version[:3])
    oldest = ".".join(str(part) for part in OLDEST)
    there = next((name for name in NEWER if shutil.which(name)), None)
    name = there or "python" + oldest
    remedy = f"name a newer one, e.g. 'make PYTHON={name} setup'"
    needs = system.absent()
    if there is None:
        needs = ["newer-python"] + needs
    if needs:
        remedy += "; for what is missing here: " + system.install_line(*needs)
    raise Problem(f"Python {found} is too old: mpilab needs {oldest} or newer", executable, remedy)


def check_system(name=os.name):
    """Raise Problem on Windows, where neither Open MPI nor the other modules here run."""
    if name != "posix":
        raise Problem("mpilab does not run on Windows itself", name, "use WSL2, e.g. with Debian")


def main(arguments=None):
    """The command line. Returns the exit status: 0 ready, 1 a problem was reported, 130
    interrupted."""
    parser = argparse.ArgumentParser(prog="tools/setup.py", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--with-test-tools",
        action="store_true",
        help="also get the Python packages of the tests, and for root Debian's that they need",
    )
    parser.add_argument(
        "--conda",
        action="store_true",
        help="make this Python's conda environment ready for the kit instead of a .venv",
    )
    parser.add_argument(
        "--sandbox-flag",
        action="store_true",
        help="print what 'mpilab grade' needs to go on without bubblewrap, or nothing; then end",
    )
    options = parser.parse_args(arguments)

    def set_up():
        check_python()
        check_system()
        import provision

        if options.sandbox_flag:
            provision.print_sandbox_flag()
        else:
            place = provision.conda() if options.conda else provision.VENV_PLACE
            provision.provision(options.with_test_tools, place)

    return run("setup", set_up)


if __name__ == "__main__":
    sys.exit(main())
