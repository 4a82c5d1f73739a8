def crossover(algorithm, P, alpha, beta):
    """Fault: of two solutions takes the smaller one."""
    L = P.bit_length() - 1
    gained = L - 2 * (P - 1) / P  # messages' worth of bytes
    if algorithm == "scatter_allgather":
        return L / gained * alpha / beta
    if algorithm == "scatter_allgather_ring":
        return (P - 1) / gained * alpha / beta
    # With S = √((P-2) mβ/α) the pipeline takes (√((P-2) α) + √(mβ))². In x = √(mβ/α):
    # (L-1) x² - 2 √(P-2) x + L - (P-2) = 0.
    hops = P - 2
    x = (hops**0.5 - (hops - (L - 1) * (L - hops)) ** 0.5) / (L - 1)
    return x * x * alpha / beta
