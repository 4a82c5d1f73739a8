"""The notebook's side of the kit: %%kernel, runs, sweeps, public checks, progress, the kernelspec.

magic             the cell magic %%kernel
session           mpilab.run, and the kernels that the notebook has defined
simulated         the same on simulated clusters
timing            mpilab.sweep
lab               mpilab.Lab with the public checks, and mpilab.progress
panel             the panel that shows a diagnosis, and the logs it links
explore           controls and figures for the schedules of algorithms
kernelspec        the kernel "mpilab (Python)", for a Jupyter outside the kit's environment
jupyter_config/   JupyterLab settings for the labs, used through JUPYTER_CONFIG_PATH by 'make lab'
                  and by a JupyterHub. They extend the user's own settings.
"""

from pathlib import Path

JUPYTER_CONFIG = Path(__file__).resolve().parent / "jupyter_config"
