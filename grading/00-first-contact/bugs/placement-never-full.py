# Fault: goes on dealing ranks to hosts that are full.
def placement(hostfile, rank, policy):
    """Return the number of the host of a rank."""
    slots = [int(line.split("slots=")[1]) for line in hostfile.splitlines()]
    if policy == "node":
        return rank % len(slots)
    return next(host for host in range(len(slots)) if rank < sum(slots[: host + 1]))
