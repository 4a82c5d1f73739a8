# Fault: takes it that all processes get as much from other nodes as the busiest one.
def inter_node_bytes(algorithm, order, M, Q, m):
    """Return (bytes from other nodes to the busiest process, to all processes together)."""
    P = M * Q
    if M == 1:
        return 0, 0
    if algorithm == "ring":
        blocks = P - 1
    else:
        blocks = (M - 1) * Q if order == "SEQ" else M - 1
    return blocks * m, P * blocks * m
