# Fault: a host for each rank: everything crosses, but there are two hosts.
def slowest():
    """Return the text of a hostfile: line by line, the host of rank 0, 1, …, 7."""
    return "\n".join(f"n{rank}" for rank in range(1, 9))
