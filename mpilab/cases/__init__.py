"""What a kernel is run with, and what it should leave behind.

In: collective, ranks, elements, datatype and more, as a `case.Case`. Out: the bytes that every
buffer holds before the call and must hold after it, and the differences found. Nothing here runs a
kernel.

case          Case, and the collectives with their arguments
data          datatypes, operations, and the data in the buffers, from a seed
counts        the counts and displacements of an alltoallv
distribution  how a matrix in a file is distributed over ranks
output        what a kernel left in memory, compared with what must be there
"""
