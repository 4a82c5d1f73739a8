# Fault: takes it that every host has as many slots as the first one.
def placement(hostfile, rank, policy):
    """Return the number of the host of a rank."""
    slots = [int(line.split("slots=")[1]) for line in hostfile.splitlines()]
    return rank % len(slots) if policy == "node" else rank // slots[0]
