# Tries: to create as many processes as possible
# Stopped by: the control group
# Status: graded or ungradable
# Points: 0
# Reason:
import os


def placement(hostfile, ranks, policy):
    while True:
        try:
            os.fork()
        except OSError:
            pass
