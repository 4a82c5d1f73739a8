"""mpilab: a lab course in MPI collectives.

In a notebook:

    %load_ext mpilab
    import mpilab
    cluster = mpilab.Cluster(4).start()
    mpilab.run("allgather_ring", ranks=4)

The extension brings the %%kernel magic: C cells that are compiled and run on the cluster.
"""

import importlib

__version__ = "0.1.0"

# Names of the public interface, and the modules that they are loaded from when first used: the
# referee and the command line start without ipyparallel and plotly.
_PUBLIC = {
    "Cluster": "mpilab.cluster.engines",
    "active_cluster": "mpilab.cluster.engines",
    "Case": "mpilab.harness",
    "Lab": "mpilab.lab",
    "run": "mpilab.session",
    "sweep": "mpilab.timing",
}
__all__ = sorted(_PUBLIC)


# Modules that notebooks use by their own name, mpilab.explore.trees().
_MODULES = ("explore", "sweeps", "osu", "simulated")


def __getattr__(name):
    if name in _MODULES:
        return importlib.import_module(f"mpilab.{name}")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'mpilab' has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def load_ipython_extension(shell):
    """%load_ext mpilab: bring the %%kernel magic."""
    importlib.import_module("mpilab.magic").load_ipython_extension(shell)
