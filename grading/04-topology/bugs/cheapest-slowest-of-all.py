def cheapest(G, N, Q, m, S, alpha, between_groups, between_nodes, within):
    """Fault: takes the link between groups for the slowest, where there is one group."""
    betas = [between_groups, between_nodes, within]
    steps = [(number - 1).bit_length() for number in (G, N, Q)]
    shared = [Q * between_groups, Q * between_nodes, within]
    hops = [G - 1, N - 1, steps[2]]
    flat = sum(k * (alpha + m * b) for k, b in zip(steps, shared, strict=False))
    levels = sum(k * (alpha + m * b) for k, b in zip(steps, betas, strict=False))
    chains = sum(k * (alpha + m / S * b) for k, b in zip(hops, betas, strict=False))
    chains += (S - 1) * (alpha + m / S * max(betas))
    return [flat, levels, chains].index(min(flat, levels, chains))
