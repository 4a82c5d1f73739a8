"""Emulated hosts without root: a plain user brings them up and runs ranks on them.

Run by root, as in CI, this becomes such a user first.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from mpilab import openmpi
from mpilab.build import ROOT

pytestmark = pytest.mark.privileged

NOBODY = 65534
PROGRAM = """
import json, os, subprocess, sys
from small_clusters import Traces, await_end, described, said
from mpilab.build import KERNELS
from mpilab.emulated import EmulatedHosts, attach, probe
from mpilab.harness import Case, compare
from mpilab.launch import run_cases

found = {"user": os.geteuid(), "namespaces": probe().namespaces, "reason": probe().reason}
if found["namespaces"] != "none":
    late = {"latency": 1e-3} if probe().latency_by else {}
    description = described({"a": 2, "b": 2}, rate=1e9, uplink=2e8, **late)
    with EmulatedHosts(description) as hosts:
        traces = Traces(hosts)
        other = attach(hosts.directory)
        found["names"] = [said(other, ["hostname"], name).strip() for name in hosts.names]
        file = hosts.directory / "of-a-host"
        said(hosts, ["touch", str(file)])
        found["owner"] = file.stat().st_uid
        case = Case("bcast", 8, 1000)
        names = [hosts.names[i % 4] for i in range(8)]
        (result,) = run_cases(KERNELS, "bcast_node_group", [case], hosts=hosts, names=names,
                              limit=100.0)
        found["outcome"], found["detail"] = result.outcome, result.detail
        found["wrong"] = len(compare(case, result.outputs or ())) if result.outputs else None
        script = "import subprocess, sys; subprocess.run(sys.argv[1:])"
        endless = hosts.command(["sh", "-c", "echo $$; exec sleep 1000"], "n3")
        parent = subprocess.Popen([sys.executable, "-c", script, *endless],
                                  stdout=subprocess.PIPE)
        process = hosts.host_pid(int(parent.stdout.readline()))
        parent.kill()
        parent.wait()
        found["ended with its parent"] = await_end(process)
    found["left"] = traces.left()
    found["files"] = os.listdir(os.environ["TMPDIR"])
print(json.dumps(found))
"""


def plain_user(folder):
    """The words before a command that make it a plain user's, and a Python that such a user may
    start: root's own may be in root's home."""
    if os.geteuid() != 0:
        return [], sys.executable
    os.chown(folder, NOBODY, NOBODY)
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
    # It has to be able to start itself again, too: setpriv's own start may have rights left.
    trial = (
        "import subprocess, sys; subprocess.run([sys.executable, '-c', ''], check=True); "
        f"assert sys.version_info[:2] == {sys.version_info[:2]}"
    )
    for python in sys.executable, "/usr/bin/python3", f"/usr/bin/python3.{sys.version_info[1]}":
        tried = subprocess.run([*drop, python, "-c", trial], capture_output=True, cwd="/")
        if tried.returncode == 0:
            return drop, python
    pytest.skip("NOT TESTED: a plain user may not start this Python, nor is there another one of "
                f"its version in /usr/bin: {sys.executable}")  # fmt: skip


def test_a_plain_user_s_hosts_run_ranks_and_leave_nothing(namespaces, no_hosts):
    # pytest's own folders are for root only.
    folder = Path(tempfile.mkdtemp(prefix="mpilab-test-"))
    try:
        words, python = plain_user(folder)
        packages = next(path for path in sys.path if path.endswith("site-packages"))
        beside = os.path.dirname(openmpi.tool("mpirun"))
        environment = {
            "PATH": f"{beside}:{os.environ['PATH']}",
            "PYTHONPATH": f"{Path(__file__).parent}:{ROOT}:{packages}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "TMPDIR": str(folder),
            "HOME": str(folder),
        }
        done = subprocess.run([*words, python, "-c", PROGRAM], env=environment, cwd=folder,
                              capture_output=True, text=True, timeout=200)  # fmt: skip
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout.splitlines()[-1])
        if found["namespaces"] == "none":
            no_hosts(f"no namespaces for plain users: {found['reason']}")
        user = NOBODY if words else os.geteuid()
        assert found == {
            "user": user, "namespaces": "rootless", "reason": "", "names": ["n1", "n2", "n3", "n4"],
            "owner": user, "outcome": "done", "detail": "", "wrong": 0, "left": [], "files": [],
            "ended with its parent": True,
        }  # fmt: skip
    finally:
        shutil.rmtree(folder)
