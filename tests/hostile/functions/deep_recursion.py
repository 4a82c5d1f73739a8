# Tries: to exhaust the stack
# Stopped by: the sandbox: only its own process ends
# Status: ungradable or graded
# Points: 0
# Reason:
import sys

sys.setrecursionlimit(1 << 30)


def placement(hostfile, ranks, policy):
    return placement(hostfile, ranks + 1, policy)
