# Fault: that is the other map; where M = Q they are the same.
def seq_to_rr(p, M, Q):
    """Return the rank that stands, in RR order, where p stands in SEQ order."""
    return (p * Q) % (M * Q) + p // M
