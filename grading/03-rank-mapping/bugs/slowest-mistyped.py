# Fault: the sixth line is no host and no comment.
def slowest():
    """Return the text of a hostfile: line by line, the host of rank 0, 1, …, 7."""
    return "n1\nn2\nn2\nn1\nn2\nn1 rank 5\nn1\nn2\n"
