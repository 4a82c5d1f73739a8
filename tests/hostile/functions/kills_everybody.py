# Tries: signals to its parent, to the sandbox, and to everything that it can see
# Stopped by: a PID namespace: only its own run is there
# Status: graded or ungradable
# Points: 0
# Reason:
import os
import signal

for pid in (os.getppid(), 1, 2, -1):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


def placement(hostfile, ranks, policy):
    return []
