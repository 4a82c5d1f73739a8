"""What grading needs: a sandbox, and limits for what runs in it."""

import os
import shutil
import sys

from mpilab.build import ROOT
from mpilab.doctor.check import (
    FAILED,
    MISSING,
    OK,
    WARNING,
    Finding,
    first_line,
    install,
    namespace_remedy,
    probe,
)
from mpilab.programs import trouble

GRADING = "mpilab grade keeps submissions apart from your account"


@probe("bubblewrap", limit=6, why=f"{GRADING}; without it only --unsafe-no-sandbox grades")
def bubblewrap(around):
    """bwrap is there, and makes a sandbox for a plain user."""
    path = shutil.which("bwrap")
    if sys.platform != "linux":
        return Finding(MISSING, f"bubblewrap is for Linux, this is {sys.platform}",
                       "grade on Linux, in WSL2 or in a container")  # fmt: skip
    if path is None:
        return Finding(MISSING, "bwrap is not on PATH", install("bwrap"))
    version = first_line(around.run([path, "--version"]).stdout)
    # The grader gives up root's rights before it starts bubblewrap: so does the probe.
    command = [path, "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
               "--", "true"]  # fmt: skip
    if os.geteuid() == 0:
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", *command]
    said = around.run(command, cwd="/")
    if said.code != 0:
        return Finding(FAILED, f"{version} makes no sandbox: {trouble(said)}", namespace_remedy())
    return Finding(OK, f"{version}, {path}")


@probe("grading-limits", limit=8, why=f"{GRADING}, and bounds their memory and processes")
def grading_limits(around):
    """What the sandbox of the grader would use here, by the grader's own probe."""
    script = "from mpilab.grading.sandbox import open_sandbox; print(open_sandbox().description)"
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    said = around.run([sys.executable, "-c", script], environment=environment)
    if said.code != 0:
        return Finding(FAILED, f"no sandbox: {trouble(said, 1)}", "see bubblewrap above")
    description = first_line(said.stdout)
    if "watchdog" in description:
        return Finding(WARNING, description, "run the grader as root, or in a session of systemd "
                       "(systemd-run --user works), for limits that hold")  # fmt: skip
    return Finding(OK, description)
