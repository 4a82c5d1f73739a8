"""Figures of runs, schedules, sweeps, models, networks and file access."""
