# Fault: that is the other map; where M = Q they are the same.
def rr_to_seq(p, M, Q):
    """Return the rank that stands, in SEQ order, where p stands in RR order."""
    return (p * M) % (M * Q) + p // Q
