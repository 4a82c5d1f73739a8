"""The ipyparallel cluster of a notebook: start it, watch it, recover it, and end it as a whole.

In: a number of ranks, and where they run: this machine, emulated hosts, the nodes of a Slurm job.
Out: `engines.Cluster`, whose ranks are the processes of one mpirun, in one MPI_COMM_WORLD.

engines       Cluster, which a notebook uses; it can restart after a rank has died
processes     the processes that make a cluster, started and ended together; a command on emulated
              hosts, run to its end
forkserver, roles, rank, supervisor
              the programs of those processes
location      where they run, and how commands are started there
"""
