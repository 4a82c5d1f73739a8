"""The ipyparallel cluster of a notebook: start it, watch it, recover it, and end it as a whole."""
