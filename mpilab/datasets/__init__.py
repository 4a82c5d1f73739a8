"""Read the tables in data/, and measure them again with `python -m mpilab.datasets.…`."""
