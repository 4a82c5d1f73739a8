def crossing(way, G, N, Q, m):
    """Fault: counts every block of a gather once, where some go by two leaders."""
    P, M = G * N * Q, G * N
    if way == "flat_rr":
        return [(P - Q) * m, (G - 1) * Q * m]
    if way == "gather_levels":
        return [(P - Q) * m, (P - N * Q) * m]
    return [(M - 1) * m, (G - 1) * m]
