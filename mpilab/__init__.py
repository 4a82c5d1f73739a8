"""mpilab: a lab course in MPI collectives.

In a notebook:

    %load_ext mpilab
    import mpilab
    cluster = mpilab.Cluster(4).start()
    mpilab.run("allgather_ring", ranks=4)

The extension provides the %%kernel magic: C cells that are compiled and run on the cluster.
"""

import importlib
import sys
from typing import Any

__version__ = "0.1.0"

# The public interface: each name and the module that is imported on first use, so that the referee
# and the command line start without ipyparallel and plotly.
_PUBLIC = {
    "Cluster": "mpilab.cluster.engines",
    "active_cluster": "mpilab.cluster.engines",
    "Case": "mpilab.cases.case",
    "Lab": "mpilab.notebook.lab",
    "predict": "mpilab.notebook.lab",
    "progress": "mpilab.notebook.lab",
    "run": "mpilab.notebook.session",
    "sweep": "mpilab.notebook.session",
}
__all__ = sorted(_PUBLIC)


# Modules that notebooks use by a short name, such as mpilab.explore.trees().
_MODULES = {
    "cluster_sweep": "mpilab.measure.cluster_sweep",
    "distances": "mpilab.measure.distances",
    "emulated": "mpilab.hosts.emulated",
    "explore": "mpilab.notebook.explore",
    "links": "mpilab.hosts.links",
    "matrices": "mpilab.mpiio",
    "models": "mpilab.models",
    "openmpi_rules": "mpilab.tuning",
    "osu": "mpilab.measure.osu",
    "plots": "mpilab.plots",
    "remapping": "mpilab.measure.remapping",
    "schedules": "mpilab.algorithms",
    "simulated": "mpilab.notebook.simulated",
    "sweeps": "mpilab.measure.sweep",
}


def __getattr__(name: str) -> Any:
    _tell_errors_shortly()
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name not in _PUBLIC:
        raise AttributeError(f"module 'mpilab' has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    """The names that tab completion offers."""
    return [*__all__, *_MODULES, "__version__"]


def _tell_errors_shortly() -> None:
    """Hide the kit's tracebacks in a notebook that has not loaded the extension."""
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    if shell is not None:
        importlib.import_module("mpilab.util.faults").install(shell)


def load_ipython_extension(shell: Any) -> None:
    """Register the %%kernel magic (%load_ext mpilab)."""
    importlib.import_module("mpilab.notebook.jupyter").load_ipython_extension(shell)
