"""Compile kernels, choose Open MPI's settings, and check which functions an answer calls."""
