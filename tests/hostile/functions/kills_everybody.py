# Tries: to send signals to its parent, the sandbox and everything that it can see
# Stopped by: a PID namespace: it contains only the run itself
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
