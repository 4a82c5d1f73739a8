"""An unprivileged user, for tests that root runs."""

import os
import subprocess
import sys

import pytest

NOBODY = 65534


def start_as(user):
    """The words before a command that run it under the user id `user`."""
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--"]


def python_for(user):
    """A Python that such a user can start: root's own may be in root's home."""
    # It must also be able to start itself again: when setpriv starts it, some rights may remain.
    trial = (
        "import subprocess, sys; subprocess.run([sys.executable, '-c', ''], check=True); "
        f"assert sys.version_info[:2] == {sys.version_info[:2]}"
    )
    for python in sys.executable, "/usr/bin/python3", f"/usr/bin/python3.{sys.version_info[1]}":
        command = [*start_as(user), python, "-c", trial]
        if subprocess.run(command, capture_output=True, cwd="/").returncode == 0:
            return python
    pytest.skip(
        "NOT TESTED: a plain user may not start this Python, nor is there another one of its "
        f"version in /usr/bin: {sys.executable}"
    )


def plain_user(folder):
    """The words before a command that run it as a normal user, who then owns `folder`, and a Python
    that such a user can start."""
    if os.geteuid() != 0:
        return [], sys.executable
    os.chown(folder, NOBODY, NOBODY)
    return start_as(NOBODY), python_for(NOBODY)
