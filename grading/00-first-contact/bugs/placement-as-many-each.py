# Fault: takes it that every host has as many slots as the first one.
def placement(hostfile, ranks, policy):
    """Return the host of each rank, by its number."""
    slots = [int(line.split("slots=")[1]) for line in hostfile.splitlines()]
    if policy == "node":
        return [rank % len(slots) for rank in range(ranks)]
    return [rank // slots[0] for rank in range(ranks)]
