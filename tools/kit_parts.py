"""Parts of the kit that setup needs before the package mpilab can be imported.

They import only the standard library, and so does this file, which Python 3.6 can read.
"""

import importlib.util
import os

MPILAB = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "mpilab")


def load(*path):
    """The module in the file `path` below mpilab/, loaded without its package."""
    file = os.path.join(MPILAB, *path)
    spec = importlib.util.spec_from_file_location("mpilab_" + path[-1][: -len(".py")], file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


system = load("util", "system.py")
