def crossing(way, G, N, Q, m):
    """Fault: forgets, in RR order, that messages between groups are those with long steps only."""
    P, M = G * N * Q, G * N
    if way == "flat_rr":
        return [(P - Q) * m, (P - N * Q) * m]
    if way == "gather_levels":
        return [(2 * P - G * Q - N * Q) * m, (P - N * Q) * m]
    return [(M - 1) * m, (G - 1) * m]
