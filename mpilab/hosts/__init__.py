"""Hosts of ranks: hostfiles, cluster descriptions, rank orders, links, Slurm, emulated hosts."""
