"""The ipyparallel cluster of a notebook: start it, watch it, recover it, and end it as a whole.

In: a number of ranks, and where they run: this machine, emulated hosts, the nodes of a Slurm job.
Out: `engines.Cluster`, whose ranks are the processes of one mpirun, in one MPI_COMM_WORLD.

engines       Cluster: what a notebook holds; it starts again where a rank has died
processes     the processes that make a cluster, started and ended together
forkserver, roles, rank, supervisor
              the programs of those processes
location      where they run, and how a command gets there
followed      one command on emulated hosts, run to its end
"""
