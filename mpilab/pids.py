"""Process numbers: a process in a PID namespace has one there, and another one outside.

What a program inside of emulated hosts (or of a sandbox) says of its own number means nothing out
here: there it may be the number of a stranger. See pid_namespaces(7).
"""

import os
import sys
from pathlib import Path


def namespace(process):
    """What identifies the PID namespace of a process; None where it has ended, or is not ours."""
    try:
        return os.stat(f"/proc/{process}/ns/pid").st_ino
    except OSError:
        return None


def outside(inside, of):
    """The number here of the process that is `inside` in the PID namespace `of`, or None."""
    if of is None:  # what `namespace` says of an ended process, and of strangers
        return None
    for process in _all():
        if _innermost(process) == inside and namespace(process) == of:
            return process
    return None


def writer(path, number):
    """The process that has the file `path` mapped and calls itself `number`, or None.

    Whatever namespaces it runs in: that it has the file proves who it is. (macOS has neither
    namespaces nor a way to ask.)
    """
    if not sys.platform.startswith("linux"):
        return number
    if _has_mapped(number, path) and _innermost(number) == number:
        return number
    for process in _all():
        if process != number and _innermost(process) == number and _has_mapped(process, path):
            return process
    return None


def _all():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _innermost(process):
    """The number of a process in its own PID namespace; None where it has ended, or is hidden from
    us (/proc mounted with hidepid)."""
    try:
        with open(f"/proc/{process}/status", "rb") as file:
            for line in file:
                if line.startswith(b"NSpid:"):
                    return int(line.split()[-1])
    except OSError:
        return None
    return process  # a kernel without PID namespaces


def _has_mapped(process, path):
    """Has the process this file in its memory? Not where it has ended, or is another user's."""
    wanted = os.fsencode(Path(path).resolve())
    try:
        with open(f"/proc/{process}/maps", "rb") as file:
            return any(line.split(None, 5)[5:] == [wanted + b"\n"] for line in file)
    except OSError:
        return False
