# Fault: on a single node, its ring goes over the network.
def inter_node_bytes(algorithm, order, M, Q, m):
    """Return (bytes from other nodes to the busiest process, to all processes together)."""
    P = M * Q
    if algorithm == "ring":
        return (P - 1) * m, (M if order == "SEQ" else P) * (P - 1) * m
    blocks = (M - 1) * Q if order == "SEQ" else M - 1
    return blocks * m, P * blocks * m
