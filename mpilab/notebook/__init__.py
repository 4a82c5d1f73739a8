"""The notebook's side of the kit: %%kernel, runs, sweeps, public checks, progress.

In: cells and calls of a student. Out: runs, tables, results of checks, panels and figures.

jupyter           the cell magic %%kernel, completion and inspection in its cells, and the kernel
                  "mpilab (Python)" for a Jupyter in another environment
session           mpilab.run, mpilab.sweep, and the kernels that the notebook has defined
simulated         runs and sweeps on simulated clusters
lab               mpilab.Lab with the public checks, mpilab.predict and mpilab.progress
panel             the panel that shows a diagnosis, and the logs to which it links
explore           controls and figures for the schedules of algorithms
jupyter_config/   JupyterLab settings for the labs, used through JUPYTER_CONFIG_PATH by 'make lab'
                  and by a JupyterHub. They extend the user's own settings.
labextension/     an extension of JupyterLab that shows %%kernel cells as C, with marks at errors,
                  and predictions as forms
nbconvert/        settings that let nbconvert draw the figures of a notebook
mpi_calls.json    what completion and inspection know of MPI; made by tools/mpi_calls.py
"""
