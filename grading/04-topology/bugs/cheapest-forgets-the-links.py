def cheapest(G, N, Q, m, S, alpha, between_groups, between_nodes, within):
    """Fault: in RR order, forgets that Q messages share a link: flat and levels are equal."""
    betas = [between_groups, between_nodes, within]
    steps = [(number - 1).bit_length() for number in (G, N, Q)]
    hops = [G - 1, N - 1, steps[2]]
    flat = levels = sum(k * (alpha + m * b) for k, b in zip(steps, betas, strict=False))
    used = [b for k, b in zip(hops, betas, strict=False) if k]
    chains = 0
    if used:
        chains = sum(k * (alpha + m / S * b) for k, b in zip(hops, betas, strict=False))
        chains += (S - 1) * (alpha + m / S * max(used))
    return [flat, levels, chains].index(min(flat, levels, chains))
