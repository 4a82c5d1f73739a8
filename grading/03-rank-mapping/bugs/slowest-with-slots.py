# Fault: a hostfile for --map-by slot: a line for each host, not for each rank.
def slowest():
    """Return the text of a hostfile: line by line, the host of rank 0, 1, …, 7."""
    return "n1 slots=4\nn2 slots=4\n"
