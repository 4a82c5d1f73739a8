"""What grading needs: a sandbox, and limits for what runs in it."""

import os
import shutil
import sys
from pathlib import Path

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


# In namespaces of its own: a bridge, a pair of interfaces, a limit of speed; then delay.
_NETWORK = """
set -e
ip link set lo up
ip link add sw0 type bridge
ip link add left type veth peer name right
ip link set left master sw0 up
tc qdisc add dev left root tbf rate 200mbit burst 20k latency 100ms && echo tbf || true
tc qdisc add dev right root netem delay 1ms && echo netem || true
mount -t tmpfs shm /dev/shm && echo shm
hostname n1 && echo uts
"""


@probe("emulated-hosts", limit=6,
       why="labs 03 and 04 on several hosts of this machine: without them on one host, or "
           "in SimGrid")  # fmt: skip
def emulated_hosts(around):
    """Namespaces with a network of their own, and links that can be slowed down."""
    tools = [name for name in ("unshare", "nsenter", "ip", "tc") if not _find(name)]
    if tools:
        return Finding(MISSING, f"not found: {', '.join(tools)}", install("namespaces"))
    flags = ["--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child"]
    command = [_find("unshare"), "--user", "--map-root-user", *flags, "sh", "-c", _NETWORK]
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    said = around.run(command, environment={**os.environ, "PATH": path})
    made = said.stdout.split()
    if said.code != 0 or "uts" not in made:
        return Finding(FAILED, f"no namespaces with a network: {trouble(said)}", namespace_remedy())
    if "tbf" not in made:
        return Finding(WARNING, "hosts can be made, but links cannot be slowed down (no tbf)",
                       "a kernel with CONFIG_NET_SCH_TBF: modprobe sch_tbf")  # fmt: skip
    shaping = (
        "speed (tbf) and delay (netem)" if "netem" in made else "speed (tbf); no delay (netem)"
    )
    return Finding(OK, f"user and network namespaces; links of a given {shaping}")


def _find(name):
    """The programs of the system are not on everybody's PATH."""
    beside = (Path(folder) / name for folder in ("/usr/sbin", "/sbin"))
    return shutil.which(name) or next((str(path) for path in beside if path.exists()), None)
