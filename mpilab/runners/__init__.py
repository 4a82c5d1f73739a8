"""Run a case to its end: with mpirun, on the engines of a cluster, or in SimGrid.

In: a compiled kernel and a `Case`. Out: a `result.Result`, the same for every runner. `run`
follows a run to its end, and `hang` distinguishes a deadlock from a long computation.
"""
