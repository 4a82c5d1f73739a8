"""Matrices in files, the kernels that read them, and Cannon's product."""
