"""Times, traffic and distances on this machine, or simulated: sweeps, OSU benchmarks, ping-pongs.

In: kernels and what to vary. Out: structured arrays with a row for each repetition.

sweep, sweep_table     our kernels and Open MPI's algorithms over ranks and sizes, and their table
cluster_sweep          the same over the hosts of a cluster and the ranks on each
origin                 where times come from: machine, cores, ranks, and which ranks shared cores
guard, openmpi_traffic
                       which of Open MPI's algorithms really ran, by the messages below MPI
osu                    the OSU micro-benchmarks, or our own, also with IMB's tables
distances              messages between two ranks that are near or far
timing                 kernels on the hosts of a cluster, in several orders
inter_node             bytes between nodes and groups, declared and recorded
remapping              what run-time rank remapping saves

dataset                the form of the tables in data/. Some modules measure one of them as a
                       program (`python -m mpilab.measure.by_level`):
by_level, level_costs  kernels, and single messages, within a host, a group and between groups
crossover, scale       simulated: where another algorithm becomes better, and up to 4096 ranks
against                those measured and simulated, compared
"""
