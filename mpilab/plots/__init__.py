"""Figures and tables of runs, schedules, sweeps, models, networks and file access.

In: data of the packages below. Out: a plotly Figure that works offline and carries a text
alternative (`style`), or a Table. Nothing here measures or runs anything.

timeline, matrix, recording
              one run: calls over time, traffic between ranks, rounds with the buffers of all ranks
failures      a run that failed: who waits for whom, wrong blocks, a space-time diagram
schedule      an algorithm: its tree or circle, and its rounds
sweep, models, distances
              measured times, and what models make of them
clusters      times over the hosts of a cluster, ranks per host and sizes
network       hosts, links, and the traffic on them
file_access   which rank accesses which part of a file
table         tables of a notebook, which say where their times come from
cannon        Cannon's algorithm: its stages, and how they scale
style         the look of all figures, and parts that they share
"""
