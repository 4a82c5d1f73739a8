def hosts(root, goal):
    """Fault: takes RR order for the worst, in which messages stay within a group all the same."""
    if goal == "best":
        return [f"n{(rank - root) % 8 // 2 + 1}" for rank in range(8)]
    return ["n1", "n2", "n3", "n4"] * 2
