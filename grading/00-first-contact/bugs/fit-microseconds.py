# Fault: returns microseconds.
import numpy as np


def fit(table):
    """Return (alpha, beta), in seconds and in seconds per byte."""
    rows = [line.split() for line in table.splitlines() if line and not line.startswith("#")]
    sizes, microseconds, spreads = np.array(rows, dtype=float).T
    beta, alpha = np.polyfit(sizes, microseconds, 1, w=1 / spreads)
    return alpha, beta
