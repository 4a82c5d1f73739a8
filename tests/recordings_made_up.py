"""Recordings for tests, as the recorder would write them."""

import numpy as np

from mpilab.trace.recording import HEADER, RECORD


def written(path, rank=0, size=2, records=(), **more):
    """The file of one rank."""
    header = np.zeros(1, HEADER)
    header[["magic", "header_bytes", "record_bytes"]] = (b"MPILABR5", 1640, 104)
    header[["rank", "size", "count", "current"]] = (rank, size, len(records), -1)
    for name, value in more.items():
        header[name] = value
    path.write_bytes(header.tobytes() + np.array(list(records), RECORD).tobytes())
    return path
