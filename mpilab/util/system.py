"""What the kit needs from the operating system: packages, the command line that installs them here,
and the bubblewrap options that isolate a submission.

    install_line("bwrap", "smpicc")     'sudo apt-get install -y bubblewrap libsimgrid-dev'
    namespace_remedy()                  how to allow a normal user to create namespaces here

Setup loads this file by its path before anything is installed, possibly with a Python too old for
the kit. So it imports only the standard library and is valid Python 3.6. The package names are in
system-packages.txt.
"""

import os
import shutil
import sys

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "system-packages.txt")

# In order of preference: Homebrew may be installed beside the system's own package manager.
MANAGERS = {
    "apt-get": "apt-get install -y",
    "dnf": "dnf install -y",
    "zypper": "zypper install -y",
    "pacman": "pacman -S --needed",
    "apk": "apk add",
    "brew": "brew install",
}

# What the kit needs besides Python, in message order, with its name in messages.
NEEDS = {
    "compiler": "a C compiler with the C library's headers",
    "sanitizers": "the compiler's libasan and libubsan",
    "make": "make",
    "venv": "Python's venv",
    "bwrap": "bubblewrap",
    "smpicc": "SimGrid",
    "jail": "clang for WebAssembly",
    "namespaces": "ip and tc",
}
# The programs that show that a need is met; PATH may lack the last two folders.
PROGRAMS = {
    "compiler": ("cc",),
    "make": ("make",),
    "bwrap": ("bwrap",),
    "smpicc": ("smpicc", "smpirun"),
    "jail": ("clang", "wasm-ld", "wasm2c"),
    "namespaces": ("ip", "tc", "nsenter"),
}
ADMINISTRATORS = ("/usr/sbin", "/sbin")

# What to do if the package manager has no package for a need.
INSTEAD = {
    "smpicc": "SimGrid is packaged by Debian and Ubuntu (libsimgrid-dev), Homebrew on Linux (brew "
    "install simgrid, without root) and Arch's AUR (simgrid); elsewhere use a Debian container or "
    "build it from simgrid.org",
    "jail": "the jail was tested with the clang, lld, wasi-libc and wabt of Debian 12 and 13 only",
}

# Ubuntu 24.04 lets a program create user namespaces only if an AppArmor profile allows it.
APPARMOR = "kernel/apparmor_restrict_unprivileged_userns"
SWITCHES = (
    ("kernel/unprivileged_userns_clone", "0", "1"),
    ("user/max_user_namespaces", "0", "15000"),
)


def manager() -> str:
    """The name of the package manager on PATH; '' if there is none that we support."""
    return next((name for name in MANAGERS if shutil.which(name)), "")


def packages(need: str, of: str) -> list:
    """The names of the packages for `need` in the package manager `of`; empty if it has none."""
    with open(TABLE, encoding="utf-8") as file:
        rows = [
            [cell.strip() for cell in line.split("|")] for line in file if not line.startswith("#")
        ]
    column = rows[0].index(of)
    cell = next(row[column] for row in rows if row[0] == need)
    version = "{}.{}".format(*sys.version_info[:2])
    return [] if cell == "-" else cell.replace("{version}", version).split()


def as_root(command: str) -> str:
    """`command` as typed by a user who wants to run it as root."""
    if os.geteuid() == 0:
        return command
    return f"sudo {command}" if shutil.which("sudo") else f"as root: {command}"


def install_line(*needs: str) -> str:
    """The command line that installs `needs` (rows of system-packages.txt) here, followed by advice
    for those without a package."""
    here = manager()
    found = {need: packages(need, here or "apt-get") for need in needs}
    names = list(dict.fromkeys(name for names in found.values() for name in names))
    said = []
    if names and not here:
        said.append(
            f"with the system's package manager (these are Debian's names): {' '.join(names)}"
        )
    elif names:
        command = f"{MANAGERS[here]} {' '.join(names)}"
        said.append(command if here == "brew" else as_root(command))
    for need in needs:
        if not found[need]:
            said.append(INSTEAD.get(need, f"{here} has no package for {NEEDS.get(need, need)}"))
    return "; ".join(said)


def absent() -> list:
    """The needs whose programs are not on PATH, in the order of NEEDS."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *ADMINISTRATORS])
    programs = dict(PROGRAMS, compiler=(os.environ.get("OMPI_CC", "cc"),))
    return [
        need
        for need, names in programs.items()
        if not all(shutil.which(name, path=path) for name in names)
    ]


def apparmor_profile(program: str) -> str:
    """The line that allows `program` alone to create user namespaces on Ubuntu 24.04."""
    name = os.path.basename(program)
    rules = f"abi <abi/4.0>, profile {name} {program} flags=(unconfined) {{ userns, }}"
    file = f"/etc/apparmor.d/{name}"
    if os.geteuid() != 0 and shutil.which("sudo"):
        return f"echo '{rules}' | sudo tee {file} && sudo apparmor_parser -r {file}"
    return as_root(f"echo '{rules}' > {file} && apparmor_parser -r {file}")


def namespace_remedy(settings: str = "/proc/sys", program: str = "/usr/bin/bwrap") -> str:
    """How to allow a normal user's `program` to create namespaces, given the kernel `settings`."""
    if _setting(settings, APPARMOR) == "1":
        return apparmor_profile(os.path.realpath(program))
    for name, closed, value in SWITCHES:
        if _setting(settings, name) == closed:
            return as_root(f"sysctl -w {name.replace('/', '.')}={value}")
    return "allow user namespaces (a container? docker run --privileged)"


def _setting(settings: object, name: str) -> str:
    """The value of a kernel setting; '' if this kernel does not have it."""
    try:
        with open(os.path.join(str(settings), name)) as file:
            return file.read().strip()
    except OSError:
        return ""


# The bubblewrap options that isolate a submission, for the sandbox and for programs that try it.

USER_ID = 1000  # of a submission, inside the sandbox
OLDEST = "0.8"  # the first bubblewrap with --disable-userns
WHERE = "Debian 12, Ubuntu 24.04 and conda-forge have it"

NAMESPACES = (
    *("--unshare-user", "--disable-userns", "--uid", str(USER_ID), "--gid", str(USER_ID)),
    *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup"),
    *("--hostname", "sandbox", "--die-with-parent", "--new-session"),
)


def sized_folder(path: str, size: int, mode: str = "1777") -> list:
    """The options that create an empty folder in memory, for at most `size` bytes."""
    return ["--perms", mode, "--size", str(size), "--tmpfs", path]


def trial(program: str) -> list:
    """A command that exits with 0 if `program`, a bubblewrap, can isolate as the sandbox does."""
    shown = ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    rest = [*sized_folder("/tmp", 1 << 20), "--remount-ro", "/", "--chdir", "/", "--clearenv"]
    return [program, *NAMESPACES, *shown, *rest, "--", "/bin/true"]


def is_too_old(said: str) -> bool:
    """True if this output of bubblewrap rejects an option that OLDEST has."""
    return "nknown option" in said
