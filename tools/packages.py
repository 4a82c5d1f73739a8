"""The system's packages: what the kit needs, who may install it, and the line to type if not us.

Only Debian and its kin are installed for; on other systems the line names their own tool.
"""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from problem import Problem

VENV_PACKAGE = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"

# What is needed → Debian's packages; other systems' names where they differ.
DEBIAN = {
    "compiler": ["gcc", "libc6-dev"],
    "venv": [VENV_PACKAGE],
    "bwrap": ["bubblewrap"],
    "chromium": ["chromium", "fonts-dejavu-core"],
    "clang": ["clang"],
    "smpicc": ["libsimgrid-dev"],
    "slurm": ["slurm-wlm"],
    "slurmctld": ["slurm-wlm", "libpmix2"],
    "munged": ["munge"],
    "namespaces": ["iproute2", "util-linux"],
    "ip": ["iproute2"],
}
ELSEWHERE = {"compiler": ["gcc"], "venv": ["python3"], "chromium": ["chromium"]}

MANAGERS = {
    "apt-get": "apt-get install -y",
    "dnf": "dnf install -y",
    "zypper": "zypper install -y",
    "pacman": "pacman -S --needed",
    "apk": "apk add",
    "brew": "brew install",
}

# The commands without which some tests cannot run.
TEST_TOOLS = ("bwrap", "chromium", "clang", "smpicc", "ip", "slurmctld", "munged")


def install_line(*needs):
    """The one line to type on this system to get `needs` (keys of DEBIAN)."""
    manager = next((name for name in MANAGERS if shutil.which(name)), "apt-get")
    names = [
        name
        for need in needs
        for name in (DEBIAN[need] if manager == "apt-get" else ELSEWHERE.get(need, DEBIAN[need]))
    ]
    prefix = "" if os.geteuid() == 0 or manager == "brew" else "sudo "
    return f"{prefix}{MANAGERS[manager]} {' '.join(names)}"


def quietly(command):
    """Run `command` without terminal or questions. Returns its CompletedProcess."""
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
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
        return "apt-get was not found"
    prefix = privilege()
    if prefix is None:
        return "only root may install packages, and sudo would ask for a password"
    if root_only and prefix:
        return "set-up installs them for root only"
    return ""


def install(needs):
    """Install `needs` (keys of DEBIAN) with apt-get. Returns why that failed, or an empty string;
    where `hindrance` has something to say, that."""
    why = hindrance()
    if why:
        return why
    apt = [*privilege(), "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-y"]
    apt += ["-o", "DPkg::Lock::Timeout=120"]
    names = [name for need in needs for name in DEBIAN[need]]
    command = [*apt, "install", "--no-install-recommends", *names]
    run = quietly(command)
    if run.returncode:
        # A fresh image has no package lists, or old ones.
        run = quietly([*apt, "update"])
        if run.returncode == 0:
            run = quietly(command)
    if run.returncode == 0:
        return ""
    lines = run.stdout.strip().splitlines() or [f"exit status {run.returncode}"]
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
    probe = [found, "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    run = subprocess.run(
        [*probe, "--", "true"], capture_output=True, text=True, errors="replace", cwd="/", **nobody
    )
    if run.returncode:
        said = (run.stderr.strip() or f"exit status {run.returncode}").splitlines()[-1]
        raise Problem(f"bubblewrap cannot make a sandbox here: {said}", found, namespace_remedy())


def namespace_remedy(settings=Path("/proc/sys")):
    """What lets a plain user make namespaces, by what this kernel says under `settings`."""
    for name, closed, value in (
        ("kernel/unprivileged_userns_clone", "0", "1"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
        ("user/max_user_namespaces", "0", "15000"),
    ):
        path = settings / name
        if path.exists() and path.read_text().strip() == closed:
            return f"sudo sysctl -w {name.replace('/', '.')}={value}"
    return "allow user namespaces; in Docker: docker run --privileged"
