"""Read the tables in data/, and measure them again with `python -m`.

In: a CSV file in data/, or this machine. Out: a structured array, with who measured it where and
when. `mpilab.measure.dataset.Dataset` is what all have in common.
"""
