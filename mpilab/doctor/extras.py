"""What only some labs, or those who work on the kit, need: SimGrid, Slurm, Chromium."""

import os
import re
import shutil

from mpilab.doctor.base import GREETING, HELLO
from mpilab.doctor.check import (
    FAILED,
    MISSING,
    OK,
    WARNING,
    Finding,
    first_line,
    install,
    probe,
    which,
)
from mpilab.programs import trouble

_PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-1" speed="1Gf" bw="125MBps" lat="50us"/>
</platform>
"""


@probe("simgrid", limit=8, alone=True,
       why="simulated ranks, up to thousands, with times that repeat: without it "
           "only as many ranks as this machine bears")  # fmt: skip
def simgrid(around):
    """smpicc compiles, and smpirun simulates two ranks."""
    absent = [name for name in ("smpicc", "smpirun") if not shutil.which(name)]
    if absent:
        return Finding(MISSING, f"not on PATH: {', '.join(absent)}", install("smpicc"))
    version = first_line(around.run(["smpirun", "-version"]).stdout)
    for name, text in (("smpi.c", HELLO), ("c.xml", _PLATFORM), ("hosts", "n0\nn1\n")):
        (around.folder / name).write_text(text)
    said = around.run(["smpicc", "smpi.c", "-o", "smpi"], cwd=around.folder)
    if said.code == 0:
        said = around.run(["smpirun", "-np", "2", "-platform", "c.xml", "-hostfile", "hosts",
                           "--cfg=smpi/simulate-computation:no", "./smpi"],
                          cwd=around.folder)  # fmt: skip
        if said.code == 0 and GREETING in said.stdout:
            return Finding(OK, f"{version}, two simulated ranks run")
    return Finding(FAILED, f"{version}: two simulated ranks do not run: {trouble(said)}",
                   install("smpicc"))  # fmt: skip


@probe("slurm", limit=6, why="labs as jobs of a cluster: sbatch slurm/...; not needed elsewhere")
def slurm(around):
    """sinfo and sbatch are there and a controller answers, with nodes that take jobs."""
    there = [name for name in ("sinfo", "sbatch", "srun", "slurmd", "slurmctld") if which(name)]
    if not {"sinfo", "sbatch"} <= set(there):
        found = f"only {', '.join(there)}" if there else "not installed"
        return Finding(MISSING, found, install("slurm") + ", or work on your cluster's login node")
    version = first_line(around.run(["sinfo", "--version"]).stdout)
    said = around.run(["sinfo", "--noheader", "--format=%P %D %t"])
    if said.code != 0:
        return Finding(FAILED, f"{version} is installed, but no controller answers: "
                       f"{trouble(said, 1)}", "start slurmctld and slurmd, or set SLURM_CONF to "
                       "your cluster's slurm.conf")  # fmt: skip
    states = [line.split() for line in said.stdout.splitlines() if len(line.split()) == 3]
    ready = sum(int(count) for _, count, state in states if re.match(r"idle|mix|alloc", state))
    if not ready:
        return Finding(
            WARNING,
            f"{version} answers, but no node takes jobs: "
            f"{' / '.join(map(' '.join, states)) or 'no nodes'}",
            "scontrol show node tells why; scontrol update NodeName=... State=RESUME",
        )
    partitions = sorted({partition.rstrip("*") for partition, _, _ in states})
    return Finding(OK, f"{version}, {ready} nodes in {', '.join(partitions)}")


@probe("chromium", limit=8, why="the tests of JupyterLab itself (make test); no lab needs it")
def chromium(around):
    """A headless Chromium starts and loads a page."""
    path = which("chromium", "chromium-browser", "google-chrome")
    if path is None:
        return Finding(MISSING, "not on PATH", install("chromium"))
    version = around.run([path, "--version"])
    home = {**os.environ, "HOME": str(around.folder), "XDG_RUNTIME_DIR": str(around.folder)}
    said = around.run(
        [path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--no-first-run", f"--user-data-dir={around.folder / 'chromium'}", "--dump-dom",
         "data:text/html,<p>up</p>"], environment=home)  # fmt: skip
    if said.code != 0 or "<p>up</p>" not in said.stdout:
        return Finding(FAILED, f"{first_line(version.stdout) or path} shows no page: "
                       f"{trouble(said, 1)}", install("chromium"))  # fmt: skip
    return Finding(OK, f"{first_line(version.stdout)}, headless")
