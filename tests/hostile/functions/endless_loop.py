# Tries: never to return, and to ignore interrupts
# Stopped by: the limit on processor time, or on wall time; the supervisor kills the whole run
# Status: graded
# Points: 0
# Reason: limit on processor time | limit on wall time
import signal

for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
    signal.signal(number, signal.SIG_IGN)


def placement(hostfile, ranks, policy):
    while True:
        pass
