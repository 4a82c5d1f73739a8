"""Emulated hosts without root: a normal user brings them up and runs ranks on them.

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
from plain_user import NOBODY, plain_user

from mpilab.kernels import openmpi
from mpilab.util.kit import ROOT

pytestmark = pytest.mark.privileged

PROGRAM = """
import json, os, subprocess, sys
from small_clusters import Traces, await_end, described, said
from mpilab.kernels.build import KERNELS
from mpilab.hosts.emulated import EmulatedHosts, attach, probe
from mpilab.cases.case import Case; from mpilab.cases.output import compare
from mpilab.runners.mpirun import run_cases

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


def test_a_plain_user_s_hosts_run_ranks_and_leave_nothing(namespaces, no_hosts):
    # Only root can access pytest's own folders.
    folder = Path(tempfile.mkdtemp(prefix="mpilab-test-"))
    # If the kit belongs to root, such a user's compiled C code is in the user's cache.
    home = Path(tempfile.mkdtemp(prefix="mpilab-home-"))
    try:
        plain_user(home)
        words, python = plain_user(folder)
        packages = next(path for path in sys.path if path.endswith("site-packages"))
        beside = os.path.dirname(openmpi.tool("mpirun"))
        environment = {
            "PATH": f"{beside}:{os.environ['PATH']}",
            "PYTHONPATH": f"{Path(__file__).parent}:{ROOT}:{packages}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "TMPDIR": str(folder),
            "HOME": str(home),
        }
        done = subprocess.run(
            [*words, python, "-c", PROGRAM],
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=200,
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout.splitlines()[-1])
        if found["namespaces"] == "none":
            no_hosts(f"no namespaces for plain users: {found['reason']}")
        user = NOBODY if words else os.geteuid()
        assert found == {
            "user": user,
            "namespaces": "rootless",
            "reason": "",
            "names": ["n1", "n2", "n3", "n4"],
            "owner": user,
            "outcome": "done",
            "detail": "",
            "wrong": 0,
            "left": [],
            "files": [],
            "ended with its parent": True,
        }
    finally:
        shutil.rmtree(folder)
        shutil.rmtree(home)
