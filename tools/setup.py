"""From a fresh machine to a ready .venv: `python3 tools/setup.py`, as the Makefile calls it.

Standard library only. This file and problem.py must be readable by old Pythons (3.6 and later),
if only to say that they are too old; the other modules are imported after that check.
"""

import argparse
import os
import sys

from problem import Problem

OLDEST = (3, 11)


def check_python(version=sys.version_info, executable=sys.executable):
    """Raise Problem where `version` (a tuple) is older than OLDEST; `executable` names whose."""
    if tuple(version[:2]) >= OLDEST:
        return
    found = ".".join(str(part) for part in version[:3])
    oldest = ".".join(str(part) for part in OLDEST)
    raise Problem(
        f"Python {found} is too old: mpilab needs {oldest} or newer",
        executable,
        f"name a newer one, e.g. 'make PYTHON=python{oldest} setup' "
        f"(Debian 12 and later have it: sudo apt-get install python3 python3-venv)",
    )


def check_system(name=os.name):
    """Raise Problem on Windows, where neither Open MPI nor the other modules here run."""
    if name != "posix":
        raise Problem("mpilab does not run on Windows itself", name, "use WSL2, e.g. with Debian")


def main(arguments=None):
    """The command line. Returns the exit status: 0 ready, 1 a problem was told, 130 interrupted."""
    parser = argparse.ArgumentParser(prog="tools/setup.py", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--with-test-tools",
        action="store_true",
        help="also get the Debian packages that tests need (installed only when run by root)",
    )
    parser.add_argument(
        "--sandbox-flag",
        action="store_true",
        help="print what 'mpilab grade' needs to go on without bubblewrap, or nothing; then end",
    )
    options = parser.parse_args(arguments)
    try:
        check_python()
        check_system()
        import provision

        if options.sandbox_flag:
            provision.print_sandbox_flag()
        else:
            provision.provision(options.with_test_tools)
    except Problem as problem:
        print(f"setup: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nsetup: interrupted; the same command starts it again", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
