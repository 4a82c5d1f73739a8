"""The system's packages: who may install them, and how.

What the kit needs and how each distribution calls it is in mpilab/util/system.py. Only Debian and
its kin are installed for; elsewhere set-up prints the line to type.
"""

import os
import platform
import shutil
import subprocess
import sys

import kit_parts
from kit_parts import system
from problem import Problem

isolation = kit_parts.load("grading", "isolation.py")
install_line, namespace_remedy = system.install_line, system.namespace_remedy

# The commands without which some tests cannot run.
TEST_TOOLS = ("bwrap", "chromium", "clang", "smpicc", "ip", "slurmctld", "munged")
TEST_TOOLS += ("mmdebstrap", "buildah", "npm", "wasm-ld", "wasm2c")


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
    """The words before a command that make root run it; None where that would ask a password."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") and quietly(["sudo", "-n", "true"]).returncode == 0:
        return ["sudo", "-n"]
    return None


def hindrance(root_only=False):
    """Why packages cannot be installed here without asking anybody; empty where they can.

    root_only   for root only: sudo without a password is no licence for large packages.
    """
    if shutil.which("apt-get") is None:
        return "set-up installs packages with apt-get only, which was not found"
    prefix = privilege()
    if prefix is None:
        also = ", and sudo would ask for a password" if shutil.which("sudo") else ""
        return f"only root may install packages{also}"
    if root_only and prefix:
        return "set-up installs them for root only"
    return ""


def install(needs):
    """Install `needs`, rows of system-packages.txt, with apt-get. Returns why that failed, or an
    empty string; where `hindrance` has something to say, that."""
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
            # One by one: a package that this distribution lacks would keep the others out.
            failed = [run for run in map(get, needs) if run.returncode]
    if not failed:
        return ""
    lines = failed[0].stdout.strip().splitlines() or [f"exit status {failed[0].returncode}"]
    errors = [line for line in lines if line.startswith("E:")] or lines
    return f"apt-get said: {errors[-1]}"


def check_bubblewrap():
    """Raise Problem where bubblewrap is missing, or cannot make a sandbox for a plain user here.

    The grader drops root before it starts bubblewrap, so root probes as nobody too.
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
            "bubblewrap (bwrap) was not found: submissions cannot be kept apart from this account",
            f"PATH={os.environ.get('PATH', '')}",
            install_line("bwrap"),
        )
    nobody = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    run = subprocess.run(
        isolation.trial(found), capture_output=True, text=True, errors="replace", cwd="/", **nobody
    )
    if run.returncode:
        said = (run.stderr.strip() or f"exit status {run.returncode}").splitlines()[-1]
        remedy = namespace_remedy(program=found)
        if isolation.is_too_old(run.stderr):
            remedy = f"get bubblewrap {isolation.OLDEST} or newer: {isolation.WHERE}"
        raise Problem(f"bubblewrap cannot make a sandbox here: {said}", found, remedy)
