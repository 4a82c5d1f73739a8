"""Hosts of ranks: which there are, how they are linked, and which rank runs on which.

In: a hostfile, a cluster description, a platform, an order, or the allocation of a Slurm job. Out:
the place of each rank, as a list on which all other modules rely.

hostfile      Open MPI's hostfiles, and mappings by slot and by node
description   clusters with groups, and the speed of their links; platforms: simulated ones
orders        seq, rr, rr-groups, shuffled, random: which host each rank is on
places        node and group of each rank, and which pairs cross them
links         the bytes on each link
mapping       mpirun as in a terminal, and where it places ranks
slurm         the nodes of a Slurm job
emulated/     a cluster out of Linux namespaces on this machine
"""
