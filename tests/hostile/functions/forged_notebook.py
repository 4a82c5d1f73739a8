# Tries: its own executed notebook, full of wrong types, instead of papermill's
# Stopped by: only text is taken from it, whatever the types
# Status: graded
# Points: 6
# Reason:
import json
import os
import signal


def placement(hostfile, ranks, policy):
    slots = [int(line.split("slots=")[1]) for line in hostfile.splitlines()]
    if policy == "slot":
        return [host for host, free in enumerate(slots) for _ in range(free)][:ranks]
    turns = range(max(slots))
    return [host for turn in turns for host, free in enumerate(slots) if turn < free][:ranks]


SCRIPT = "<script>document.title = '@MARK@'</script>"
CELL = {"cell_type": "code", "source": [], "metadata": {"tags": 5, "nbgrader": 7}, "id": {}}
OUTPUTS = [
    5,
    {},
    {"output_type": []},
    {"output_type": "stream", "text": {"a": 1}},
    {"output_type": "stream", "name": [SCRIPT], "text": [SCRIPT, 5]},
    {"output_type": "error", "traceback": {"a": 5}},
    {"output_type": "display_data", "data": [SCRIPT]},
    {"output_type": "display_data", "data": {"text/plain": [SCRIPT], "text/html": SCRIPT}},
]
if os.path.exists("notebook.ipynb"):
    with open("executed.ipynb", "w") as file:
        forged = {"nbformat": 4, "nbformat_minor": "x", "metadata": []}
        json.dump({**forged, "cells": [{**CELL, "outputs": OUTPUTS}, {**CELL, "outputs": 5}]}, file)
    os.kill(os.getppid(), signal.SIGKILL)
