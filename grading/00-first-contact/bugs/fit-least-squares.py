# Fault: plain least squares, for which only the largest messages count.
import numpy as np


def fit(table):
    """Return (alpha, beta), in seconds and in seconds per byte."""
    rows = [line.split() for line in table.splitlines() if line and not line.startswith("#")]
    sizes, microseconds, _ = np.array(rows, dtype=float).T
    beta, alpha = np.polyfit(sizes, microseconds * 1e-6, 1)
    return alpha, beta
