"""Run a case to its end: with mpirun, on the engines of a cluster, or in SimGrid.

In: a compiled kernel and a `Case`. Out: a `result.Result`, the same for every runner.

mpirun, engines, simgrid
              the three runners
run           what they share: follow a run to its end
hang          distinguishes a deadlock from a long computation
result        Result, and how a run can end
"""
