# Tries: hundreds of megabytes of output; the answer is correct
# Stopped by: limits on streams and on the size of the notebook that is brought out
# Status: graded
# Points: 6
# Reason:
import sys

for _ in range(120):
    sys.stdout.write("x" * (1 << 20) + "\n")


def placement(hostfile, ranks, policy):
    slots = [int(line.split("slots=")[1]) for line in hostfile.splitlines()]
    if policy == "slot":
        return [host for host, free in enumerate(slots) for _ in range(free)][:ranks]
    turns = range(max(slots))
    return [host for turn in turns for host, free in enumerate(slots) if turn < free][:ranks]
