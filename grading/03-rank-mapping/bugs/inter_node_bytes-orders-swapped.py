# Fault: takes RR for SEQ in recursive doubling, and the other way round.
def inter_node_bytes(algorithm, order, M, Q, m):
    """Return (bytes from other nodes to the busiest process, to all processes together)."""
    P = M * Q
    if M == 1:
        return 0, 0
    if algorithm == "ring":
        return (P - 1) * m, (M if order == "SEQ" else P) * (P - 1) * m
    blocks = (M - 1) * Q if order == "RR" else M - 1
    return blocks * m, P * blocks * m
