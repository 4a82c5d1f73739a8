def cost(algorithm, P, m, S, alpha, beta):
    """Fault: rounds the logarithm down."""
    if P == 1:
        return 0.0
    steps = P.bit_length() - 1
    if algorithm == "linear":
        return (P - 1) * (alpha + m * beta)
    if algorithm == "pipeline":
        return (P - 2 + S) * (alpha + m / S * beta)
    if algorithm == "binomial":
        return steps * (alpha + m * beta)
    return (steps + P - 1) * alpha + 2 * (P - 1) / P * m * beta
