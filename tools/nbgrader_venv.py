"""Create build/nbgrader, an environment with nbgrader: `python3 tools/nbgrader_venv.py`.

nbgrader pins other package versions than the kit, so it has its own environment. 'mpilab export
--to nbgrader' finds it there, and so do the tests and benchmarks that need it.
"""

from extra_venv import ROOT, extra_venv, main

FOLDER = ROOT / "build" / "nbgrader"
VERSION = "0.9.6"


def nbgrader_python(folder=FOLDER):
    """The interpreter of the environment, which is created if it does not exist.

    Raises subprocess.CalledProcessError if pip cannot get the packages.
    """
    return extra_venv(folder, f"nbgrader=={VERSION}")


if __name__ == "__main__":
    main(nbgrader_python)
