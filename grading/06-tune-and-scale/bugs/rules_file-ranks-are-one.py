def rules_file(points, alpha, beta, most):
    """Fault: the rules of the fewest ranks are those of all."""
    wanted = {}
    for point in points.split(","):
        _, ranks, size = point.split()
        wanted.setdefault(int(ranks), set()).add(int(size))
    lines = [1, 7, len(wanted)]
    wanted = {min(wanted): set().union(*wanted.values())}
    lines[2] = 1
    for ranks in sorted(wanted):
        rules, before = [], None
        for size in sorted(wanted[ranks]):
            choice = cheapest(ranks, size, alpha, beta)
            if choice != before:
                rules.append((size if rules else 0, *choice))
                before = choice
        lines.append(f"{ranks} {len(rules)}")
        lines += [" ".join(map(str, rule)) for rule in rules]
    return "\n".join(map(str, lines)) + "\n"


def cheapest(P, m, alpha, beta):
    """(number, fan-out, segment) of what costs least."""
    up, down = (P - 1).bit_length(), P.bit_length() - 1  # log2 of P, rounded up and down
    costs = {(6, 0, 0): up * (alpha + m * beta)}
    if m >= P:
        fold = up - down  # 1 where P is no power of two
        costs[8, 0, 0] = (2 * down + fold) * alpha + (2 * (1 - 0.5**down) + fold) * m * beta
    for power in range(9, 21):
        s = 1 << power
        costs[3, 0, s] = (P - 2 + max(1, -(-m // s))) * (alpha + min(s, m) * beta)
        if m >= 2 * s:
            passed = 2 * down - 2 + 2 * -(-m // (2 * s))
            costs[4, 0, s] = passed * (alpha + s * beta) + alpha + m / 2 * beta
    return min(costs, key=costs.get)
