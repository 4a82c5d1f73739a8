# Fault: says on which node, and not where there.
def rr_to_seq(p, M, Q):
    """Return the rank that stands, in SEQ order, where p stands in RR order."""
    return p % M * Q
