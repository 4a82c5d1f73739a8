"""What a kernel is run with, and what it should leave behind.

`case.Case` describes a call: collective, ranks, elements, datatype and more. `expected` computes
the bytes that every buffer holds before the call and must hold after it, and finds differences
(`compare`). Nothing here runs a kernel.
"""
