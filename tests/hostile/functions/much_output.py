# Tries: hundreds of megabytes of output; the answer is right
# Stopped by: a limit on the notebook that is brought out, and on streams
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
