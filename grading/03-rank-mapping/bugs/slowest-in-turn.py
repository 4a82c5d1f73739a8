# Fault: RR order, in which messages between even ranks stay on a host.
def slowest():
    """Return the text of a hostfile: line by line, the host of rank 0, 1, …, 7."""
    return "n1\nn2\n" * 4
