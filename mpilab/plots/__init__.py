"""Figures of runs, schedules, sweeps, models, networks and file access.

In: data of the packages below. Out: a plotly Figure that works offline and carries a text
alternative (`style`). Nothing here measures or runs anything.
"""
