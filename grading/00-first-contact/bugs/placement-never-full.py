# Fault: goes on dealing ranks to hosts that are full.
def placement(hostfile, ranks, policy):
    """Return the host of each rank, by its number."""
    slots = [int(line.split("slots=")[1]) for line in hostfile.splitlines()]
    if policy == "node":
        return [rank % len(slots) for rank in range(ranks)]
    return [host for host, number in enumerate(slots) for _ in range(number)][:ranks]
