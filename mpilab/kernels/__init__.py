"""Compile kernels, choose Open MPI's settings, and check which functions an answer calls.

In: C source. Out: a shared object with the recorder in it, which every runner can load.

build         for Open MPI, with or without sanitizers
simgrid       for simulation
jail          as WebAssembly, which can access nothing but the functions offered
symbols       what an answer may call
openmpi       every setting of Open MPI, and where its programs are
"""
