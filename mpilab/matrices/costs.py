"""What the headers of read kernels promise: requests to the file, and bytes.

    Requests: pieces(shares, F)        in all
    Busiest:  ceil_div(N, F)           of the rank with most of them
    Read:     N                        bytes in all

A request for no bytes is none. What F is where a case leaves it open, a header's line "Tunables"
says: "buffer_bytes (F; default 4 MiB)".
"""

import re
from dataclasses import dataclass

from mpilab.errors import InputError
from mpilab.formula import evaluate, header_of, names_of
from mpilab.matrices.requests import whole_elements

_LINE = re.compile(r"^ \* (Requests|Busiest|Read): +(.+)$", re.MULTILINE)
_BUFFER = re.compile(r"buffer_bytes \(F; default (\d+) (KiB|MiB)\)")
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20}


@dataclass(frozen=True)
class ReadCost:
    """What a read kernel's header promises, as formulas.

    buffer   bytes of F where the case says nothing; 0 for readers without.
    """

    requests: str
    busiest: str
    read: str
    buffer: int = 0

    def at(self, case):
        """(requests, requests of the busiest rank, bytes) of one call as in `case`."""
        names = names_of(case)
        if self.buffer:
            names["F"] = whole_elements(case.buffer or self.buffer)
        formulas = (self.requests, self.busiest, self.read)
        return tuple(evaluate(formula, **names) for formula in formulas)


def read_cost_of(kernel):
    """The ReadCost in the header of a read kernel of ours, e.g. read_cost_of("read_sieving").

    Raises InputError for a kernel that we do not have, or a header without the three lines.
    """
    path, header = header_of(kernel)
    found = dict(_LINE.findall(header))
    for name in ("Requests", "Busiest", "Read"):
        if name not in found:
            raise InputError(f"{path}: no line '{name}:' in its header")
    told = _BUFFER.search(header)
    buffer = int(told[1]) * _UNITS[told[2]] if told else 0
    return ReadCost(found["Requests"], found["Busiest"], found["Read"], buffer)
