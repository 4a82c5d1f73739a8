def hosts(root, goal):
    """Fault: the best order from rank 0, whatever the root."""
    if goal == "best":
        return ["n1", "n1", "n2", "n2", "n3", "n3", "n4", "n4"]
    return [
        ["n1", "n3", "n2", "n4"][(bin((r - root) % 8).count("1") % 2) + 2 * ((r - root) % 8 // 4)]
        for r in range(8)
    ]
