"""Read the tables in data/, and measure them again with `python -m`.

In: a CSV file in data/, or this machine. Out: a structured array, with machine and
date. All of them use `mpilab.measure.dataset.Dataset`.
"""
