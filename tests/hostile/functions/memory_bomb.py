# Tries: to use all memory of the machine
# Stopped by: the control group
# Status: graded
# Points: 0
# Reason: MemoryError | limit on memory | no answer from the sandbox


def placement(hostfile, ranks, policy):
    held = []
    while True:
        held.append(bytearray(1 << 24))
