"""System packages: who may install them, and how.

mpilab/util/system.py lists what the kit needs and its name in each distribution. Packages are
installed only on Debian and its derivatives; elsewhere, setup prints the line to type.
"""

import os
import platform
import shutil
import subprocess
import sys

from kit_parts import system
from problem import Problem

install_line, namespace_remedy = system.install_line, system.namespace_remedy

# The commands without which some tests cannot run.
TEST_TOOLS = ("bwrap", "chromium", "clang", "smpicc", "ip", "slurmctld", "munged")
TEST_TOOLS += ("mmdebstrap", "buildah", "npm")


def quietly(command, **options):
    """Run `command` without terminal or questions, with further `options` of subprocess.run.
    Returns its CompletedProcess, whose stdout holds both streams."""
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        **options,
    )


def privilege():
    """The words before a command that make root run it; None if that would ask for a password."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") and quietly(["sudo", "-n", "true"]).returncode == 0:
        return ["sudo", "-n"]
    return None


def hindrance(root_only=False):
    """Why packages cannot be installed here without asking anybody; empty if they can.

    root_only   for root only: passwordless sudo is not permission to install large packages.
    """
    if shutil.which("apt-get") is None:
        return "setup installs packages with apt-get only, which was not found"
    prefix = privilege()
    if prefix is None:
        also = ", and sudo would ask for a password" if shutil.which("sudo") else ""
        return f"only root may install packages{also}"
    if root_only and prefix:
        return "setup installs them for root only"
    return ""


def install(needs):
    """Install `needs`, rows of system-packages.txt, with apt-get. Returns why that failed, or an
    empty string; if `hindrance` gives a reason, that one."""
    why = hindrance()
    if why:
        return why
    apt = [*privilege(), "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-y"]
    apt += ["-o", "DPkg::Lock::Timeout=120"]

    def get(*needs):
        names = dict.fromkeys(name for need in needs for name in system.packages(need, "apt-get"))
        return quietly([*apt, "install", "--no-install-recommends", *names])

    failed = []
    if get(*needs).returncode:
        # A fresh image has no package lists, or old ones.
        failed = [quietly([*apt, "update"])]
        if failed[0].returncode == 0:
            # One by one: a package that this distribution lacks would block the others.
            failed = [run for run in map(get, needs) if run.returncode]
    if not failed:
        return ""
    lines = failed[0].stdout.strip().splitlines() or [f"exit status {failed[0].returncode}"]
    errors = [line for line in lines if line.startswith("E:")] or lines
    return f"apt-get said: {errors[-1]}"


def check_bubblewrap():
    """Raise Problem if bubblewrap is missing, or cannot create a sandbox for a normal user here.

    The grader drops root privileges before it starts bubblewrap, so root also probes as nobody.
    """
    found = shutil.which("bwrap")
    if sys.platform != "linux":
        raise Problem(
            f"bubblewrap is for Linux, and this is {sys.platform}",
            platform.platform(),
            "grade on Linux, or in a Linux virtual machine",
        )
    if found is None:
        raise Problem(
            "bubblewrap (bwrap) was not found: submissions cannot be sandboxed",
            f"PATH={os.environ.get('PATH', '')}",
            install_line("bwrap"),
        )
    nobody = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    run = subprocess.run(
        system.trial(found), capture_output=True, text=True, errors="replace", cwd="/", **nobody
    )
    if run.returncode:
        said = (run.stderr.strip() or f"exit status {run.returncode}").splitlines()[-1]
        remedy = namespace_remedy(program=found)
        if system.is_too_old(run.stderr):
            remedy = f"get bubblewrap {system.OLDEST} or newer: {system.WHERE}"
        raise Problem(f"bubblewrap cannot make a sandbox here: {said}", found, remedy)
