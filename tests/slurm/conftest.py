"""A Slurm of two nodes, n1 and n2, for the tests of this folder, if the machine supports it."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from real_slurm import PMIX, TOOLS, RealSlurm

ROOT = Path(__file__).resolve().parents[2]
# Four ranks that belong to two nodes share the available cores, so they must not spin.
YIELDING = {
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_threads_pthreads_yield_strategy": "nanosleep",
    "OMPI_MCA_threads_pthreads_nanosleep_time": "20000",
}
# One of several workers runs the tests, and the process that started it prints.
TIMES = ROOT / "out" / "slurm-tests.json"
BEGUN = time.time()


def _hindrance():
    """Why this machine cannot run a Slurm; "" if it can."""
    if os.geteuid() != 0:
        return "only root may start slurmd in namespaces of its own"
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [tool for tool in TOOLS if shutil.which(tool, path=path) is None]
    missing += [] if PMIX.is_dir() else ["libpmix2"]
    if missing:
        return (
            f"not found: {', '.join(missing)}; 'make test' run by root installs them, or "
            "apt-get install slurm-wlm munge libpmix2"
        )
    probe = ["unshare", "-umpf", "--mount-proc", "sh", "-c", "hostname probe"]
    said = subprocess.run(probe, capture_output=True, text=True)
    return f"no namespaces: {said.stderr.strip()}" if said.returncode else ""


@pytest.fixture(scope="session")
def slurm():
    """A running RealSlurm. If there can be none, tests are skipped; in CI, for root, they fail."""
    why = _hindrance()
    if why and os.geteuid() == 0 and os.environ.get("CI", "").lower() in ("1", "true", "yes"):
        pytest.fail(why)
    if why:
        pytest.skip(f"NOT TESTED: no Slurm on this machine: {why}")
    started = time.monotonic()
    with RealSlurm() as running:
        running.environment |= YIELDING | {
            "MPILAB_KIT": str(ROOT),
            "PATH": f"{Path(sys.executable).parent}:{running.environment['PATH']}",
        }
        yield running
        told = {"nodes": len(running.nodes), "jobs": running.jobs, "up_seconds": running.up_seconds}
    told["all_seconds"] = time.monotonic() - started
    TIMES.parent.mkdir(exist_ok=True)
    TIMES.write_text(json.dumps(told) + "\n")
    assert running.left() == []


def pytest_terminal_summary(terminalreporter):
    """Print the time of the Slurm tests, including start and end of Slurm, whichever worker ran
    them."""
    if TIMES.exists() and TIMES.stat().st_mtime > BEGUN:
        told = json.loads(TIMES.read_text())
        terminalreporter.write_line(
            f"slurm: {told['nodes']} nodes up in {told['up_seconds']:.1f} s; {told['jobs']} jobs; "
            f"{told['all_seconds']:.0f} s from nothing to nothing"
        )
