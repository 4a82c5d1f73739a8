"""What a kernel is run with, and what it should leave behind.

`case.Case` describes a call: collective, ranks, elements, datatype and more, and computes the bytes
that every buffer holds before the call and must hold after it. `output.compare` finds differences.
Nothing here runs a kernel.
"""
