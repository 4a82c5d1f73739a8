"""Run-time rank remapping: which process behaves as which rank, and what that saves.

    SEQ placement, 2 nodes of 4      process      0 1 2 3 | 4 5 6 7
                                     behaves as   0 2 4 6 | 1 3 5 7      as if placed in RR order

An algorithm is written for ranks 0 … P-1, and its pattern determines which of them communicate
most. If that does not fit the placement, processes behave as other ranks of the pattern; no process
moves. `orders.py` does on schedules what the C kernels do (src_c/common/remap/remap.h); `loggp.py`
times the kernels on emulated hosts, and counts what they send.

Source: Álvarez, Díaz, Rico, "Formal modeling and performance evaluation of a run-time rank
remapping technique in Broadcast, Allgather and Allreduce MPI collective operations", TAPEMS 2017:
the two formulas, and the table of the costs of recursive doubling.
"""

from mpilab.remapping.loggp import Line, Row, as_text, lines, published, table
from mpilab.remapping.orders import (
    REMAPPED,
    RR,
    SEQ,
    by_formula,
    by_node,
    chosen,
    crossing,
    dealt,
    placement,
    remapped,
    rr_to_seq,
    seq_to_rr,
)

__all__ = [
    "REMAPPED",
    "RR",
    "SEQ",
    "Line",
    "Row",
    "as_text",
    "by_formula",
    "by_node",
    "chosen",
    "crossing",
    "dealt",
    "lines",
    "placement",
    "published",
    "remapped",
    "rr_to_seq",
    "seq_to_rr",
    "table",
]
