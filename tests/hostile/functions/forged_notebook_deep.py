# Tries: an executed notebook that is nested too deeply to read
# Stopped by: a reader that copes with any depth
# Status: graded
# Points: 6
# Reason:
import os
import signal


def placement(hostfile, ranks, policy):
    slots = [int(line.split("slots=")[1]) for line in hostfile.splitlines()]
    if policy == "slot":
        return [host for host, free in enumerate(slots) for _ in range(free)][:ranks]
    turns = range(max(slots))
    return [host for turn in turns for host, free in enumerate(slots) if turn < free][:ranks]


if os.path.exists("notebook.ipynb"):
    with open("executed.ipynb", "w") as file:
        file.write('{"nbformat": 4, "cells": ' + "[" * 100_000)
    os.kill(os.getppid(), signal.SIGKILL)
