def cost(algorithm, P, m):
    """Fault: rounds the logarithm down."""
    steps = P.bit_length() - 1
    if P == 1:
        return 0, 0, 0
    if algorithm == "nonblocking_gather_bcast":
        return 2, 2 * (P - 1), (P - 1) * P * m
    if algorithm == "nonblocking_all":
        return 1, P * (P - 1), (P - 1) * m
    if algorithm in ("pairwise", "bruck", "recursive_doubling"):
        return steps, P * steps, (P - 1) * m
    if algorithm == "neighbor_exchange" and P % 2 == 0:
        return P // 2, P * (P // 2), (P - 1) * m
    return P - 1, P * (P - 1), (P - 1) * m  # ring
