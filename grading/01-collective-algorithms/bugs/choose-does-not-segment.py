def choose(P, m, alpha, beta):
    """Fault: takes the pipeline with a single segment."""
    steps = (P - 1).bit_length()
    times = [
        (P - 1) * (alpha + m * beta),
        steps * (alpha + m * beta),
        (steps + P - 1) * alpha + 2 * (P - 1) / P * m * beta,
        (P - 1) * (alpha + m * beta),
    ]
    return times.index(min(times))
