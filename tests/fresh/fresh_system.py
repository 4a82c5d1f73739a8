"""A Debian that has just been installed, to run commands in.

    python3 tests/fresh/fresh_system.py SUITE USER COMMAND [--packages "git make"] [--source CLONE]

    python3 tests/fresh/fresh_system.py trixie student --source . \\
        'git clone -q /source.bundle "my lab" && cd "my lab" && make demo'

mmdebstrap creates the root file system of SUITE from scratch (essential packages and apt); what an
administrator installs first is a layer on top of it. Both are kept for a week. A command then runs
on an overlay over these layers, in namespaces of its own except the network's (enter.sh). Nothing
is mounted outside them, so no mount and no process outlives the command.

This needs root, mmdebstrap and util-linux, and a folder for the layers that is not itself on an
overlay (in a container: a volume). The machine's settings for apt and pip (mirror, certificates,
proxies) are present while a command runs, but are not in the layers.
"""

import argparse
import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

SUITES = ("bookworm", "trixie")
# What the README assumes: a way to get a clone, its verbs, and the language of setup.
FEWEST = ("git", "make", "python3")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
OWN_CERTIFICATES = Path("/usr/local/share/ca-certificates")
# In place of a person who configures apt: everything that this machine needs to reach its mirror.
APT_SETTINGS = re.compile(r"^Acquire::(http|https|Check|Max-ValidTime|Retries)")
PASSED_ON = re.compile(r"^(PIP_(CERT|INDEX_URL|EXTRA_INDEX_URL|DEFAULT_TIMEOUT)|.*_PROXY)$", re.I)
ENTER = Path(__file__).with_name("enter.sh")
SOURCES = """\
Types: deb
URIs: http://deb.debian.org/debian
Suites: {0} {0}-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://deb.debian.org/debian-security
Suites: {0}-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""
MADE_ANEW_AFTER = 7  # days
REMOVED_AFTER = 9  # days: any run that began on an old layer has long finished


def cache_folder():
    """Where layers and downloads are kept: `mpilab-fresh` in the user's cache folder."""
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder, "mpilab-fresh")


def why_not():
    """Why this machine cannot create a fresh system, in words; empty if it can."""
    if platform.system() != "Linux":
        return f"root file systems are made on Linux, and this is {platform.system()}"
    if os.geteuid() != 0:
        return "only root can make a root file system"
    missing = [tool for tool in ("mmdebstrap", "unshare", "setpriv") if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)}: not found on PATH; 'make test-fresh' by root installs it"
    return ""


def readme_packages(clone):
    """The packages that the README of `clone` asks an administrator of a Debian to install."""
    readme = Path(clone, "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| Debian.*`apt-get install ([a-z0-9. +-]+)`", readme, re.M)
    if len(lines) != 1:
        raise Trouble(f"{clone}/README.md: {len(lines)} lines '| Debian ... `apt-get install ...`'")
    return lines[0].split()


def apt_settings():
    """The lines of apt's configuration that say how to reach the mirror."""
    run = subprocess.run(["apt-config", "dump"], capture_output=True, text=True)
    lines = [line for line in run.stdout.splitlines() if APT_SETTINGS.match(line)]
    return "\n".join(lines) + "\n"


def apt_sources(suite):
    """The machine's Debian sources, changed to `suite`; Debian's own if it has none."""
    release = dict(
        line.split("=", 1)
        for line in Path("/etc/os-release").read_text().splitlines()
        if "=" in line
    )
    here = release.get("VERSION_CODENAME", "")
    file = Path("/etc/apt/sources.list.d/debian.sources")
    if release.get("ID") != "debian" or not file.exists():
        return SOURCES.format(suite)
    return re.sub(rf"\b{here}\b", suite, file.read_text())


def equip(layer, suite):
    """Copy the machine's settings into the folder `layer`: names, certificates, apt, pip."""
    for folder in ("etc/apt/apt.conf.d", "etc/apt/sources.list.d", "etc/ssl/certs"):
        (layer / folder).mkdir(parents=True, exist_ok=True)
    (layer / "etc/apt/apt.conf.d/99fresh").write_text(apt_settings())
    (layer / "etc/apt/sources.list.d/debian.sources").write_text(apt_sources(suite))
    shutil.copy("/etc/resolv.conf", layer / "etc/resolv.conf")
    (layer / "etc/hosts").write_text("127.0.0.1 localhost fresh\n")
    if Path("/etc/pip.conf").exists():
        shutil.copy("/etc/pip.conf", layer / "etc/pip.conf")
    if CERTIFICATES.exists():
        shutil.copy(CERTIFICATES, layer / CERTIFICATES.relative_to("/"))
    # The package ca-certificates, if a command installs it, rebuilds the bundle from these.
    if OWN_CERTIFICATES.exists():
        shutil.copytree(
            OWN_CERTIFICATES, layer / OWN_CERTIFICATES.relative_to("/"), dirs_exist_ok=True
        )


def forget(layer, suite):
    """Remove from `layer` what `equip` copied there, and apt's lists; leave Debian's own
    sources."""
    for name in ("apt.conf.d/99fresh", "apt.conf.d/99mmdebstrap", "sources.list"):
        (layer / "etc/apt" / name).unlink(missing_ok=True)
    for name in ("pip.conf", "resolv.conf", "hosts"):
        (layer / "etc" / name).unlink(missing_ok=True)
    shutil.rmtree(layer / OWN_CERTIFICATES.relative_to("/"), ignore_errors=True)
    for name in ("var/lib/apt/lists", "var/cache/apt"):
        shutil.rmtree(layer / name, ignore_errors=True)
    (layer / "etc/apt/sources.list.d/debian.sources").write_text(SOURCES.format(suite))


class Trouble(Exception):
    """A fresh system could not be created; the message contains the last output of the tool."""


def must(command, **options):
    """Run `command`; raise Trouble with the end of its output if it fails."""
    run = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        **options,
    )
    if run.returncode:
        said = "\n".join(run.stdout.strip().splitlines()[-15:])
        raise Trouble(f"{shlex.join(map(str, command))}: exit status {run.returncode}\n{said}")


@contextlib.contextmanager
def locked(file):
    """Hold the lock `file`, after waiting for its current holder."""
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def base(suite):
    """The folder with the root file system of `suite`, created if there is none from this week."""
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    with locked(cache / f"{suite}.lock"):
        now = time.time()
        for left in cache.glob("run-*/"):  # by a run that was killed
            if now - left.stat().st_mtime > REMOVED_AFTER * 86400:
                shutil.rmtree(left)
        newest = None
        for folder in cache.glob(f"{suite}-*/"):
            age = (now - folder.stat().st_mtime) / 86400
            if age > REMOVED_AFTER:
                shutil.rmtree(folder)
            elif age < MADE_ANEW_AFTER:
                newest = max(folder, newest or folder)
        if newest is not None:
            return newest / "base"
        with tempfile.TemporaryDirectory(prefix="making-", dir=cache) as making:
            settings, system = Path(making, "apt.conf"), Path(making, "made", "base")
            settings.write_text(apt_settings())
            system.parent.mkdir()
            command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase"]
            command += [f"--aptopt={settings}", suite, system, "-"]
            must(command, input=apt_sources(suite))
            forget(system, suite)
            made = cache / time.strftime(f"{suite}-%Y%m%d-%H%M%S")
            system.parent.rename(made)
        return made / "base"


def layers(suite, packages):
    """The layers of `suite` with `packages` installed, topmost first; created if missing."""
    below = base(suite)
    names = " ".join(sorted(packages))
    if not names:
        return [below]
    layer = below.parent / hashlib.sha256(names.encode()).hexdigest()[:12]
    with locked(cache_folder() / f"{suite}.lock"):
        if not layer.exists():
            with System(suite, [below]) as system:
                done = system.run(
                    "export DEBIAN_FRONTEND=noninteractive\n"
                    "apt-get -qq -y update && "
                    f"apt-get -qq -y install --no-install-recommends {names}",
                    user="root",
                    timeout=1200,
                )
                if done.returncode:
                    raise Trouble(f"apt-get install {names} on {suite}:\n{done.stdout[-2000:]}")
                forget(system.upper, suite)
                system.upper.rename(layer)
    return [layer, below]


@dataclass
class System:
    """Commands run here write to `upper`, and see what earlier ones have written. A context
    manager: at its end everything is deleted.

    below    the read-only layers, topmost first
    source   a git repository whose HEAD lies in /source.bundle there
    """

    suite: str
    below: list
    source: Path | None = None
    work: Path = field(init=False)

    def __enter__(self):
        cache = cache_folder()
        cache.mkdir(parents=True, exist_ok=True)
        self.work = Path(tempfile.mkdtemp(prefix="run-", dir=cache))
        for name in ("upper", "index", "root"):
            (self.work / name).mkdir()
        equip(self.upper, self.suite)
        if self.source is not None:
            bundle = self.upper / "source.bundle"
            must(["git", "-C", self.source, "bundle", "create", "--quiet", bundle, "HEAD"])
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.work)

    @property
    def upper(self):
        """The folder with all that was written."""
        return self.work / "upper"

    def run(self, command, user="student", timeout=900, downloads=True, **variables):
        """Run `command` (for sh) as `user`, in its home folder, with a bare environment and
        `variables`. Returns its CompletedProcess; stdout holds both streams. Raises
        subprocess.TimeoutExpired after `timeout` seconds; nothing of it is running then.

        downloads   packages of pip come from those kept on this machine, if they are there
        """
        home = "/root" if user == "root" else f"/home/{user}"
        mounts = []
        if downloads:
            # Not apt's: if two systems share them, one finds them locked and gives up.
            kept = cache_folder() / "pip" / user
            kept.mkdir(parents=True, exist_ok=True)
            mounts.append((kept, "/var/cache/fresh-pip"))
            variables = {"PIP_CACHE_DIR": "/var/cache/fresh-pip", **variables}
        settings = {
            "PATH": PATH,
            "LANG": "C.UTF-8",
            "HOME": home,
            "USER": user,
            **{name: value for name, value in os.environ.items() if PASSED_ON.match(name)},
            **variables,
        }
        # setpriv: if this process is killed, so is everything that it has started.
        inside = ["setpriv", "--pdeathsig=KILL", "unshare", "--mount", "--uts", "--ipc", "--pid"]
        inside += ["--fork", "--kill-child", "--", "sh", ENTER]
        inside += ["\n".join(f"{here} {there}" for here, there in mounts)]
        inside += [":".join(map(str, self.below)), self.upper, self.work / "index"]
        inside += [self.work / "root", user, command]
        inside += [f"{name}={value}" for name, value in settings.items()]
        with subprocess.Popen(
            inside,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            try:
                said, _ = process.communicate(timeout=timeout)
            except BaseException:
                process.kill()
                process.communicate()  # to the end: by then all who could write have ended
                raise
        return subprocess.CompletedProcess(inside, process.returncode, said)


def fresh(suite, packages=FEWEST, source=None):
    """A System of `suite` on which only `packages` were installed."""
    return System(suite, layers(suite, packages), source)


def main():
    """The command line. Returns the exit status of the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("user", help="root, or a plain user who is made for it")
    parser.add_argument("command", help="for sh, in that user's home folder")
    parser.add_argument(
        "--packages", default=" ".join(FEWEST), help="installed before (default: %(default)s)"
    )
    parser.add_argument("--source", help="a git repository: its HEAD lies in /source.bundle there")
    options = parser.parse_args()
    why = why_not()
    if why:
        print(f"fresh: {why}", file=sys.stderr)
        return 1
    try:
        with fresh(options.suite, options.packages.split(), options.source) as system:
            start = time.monotonic()
            done = system.run(options.command, options.user, timeout=None)
    except Trouble as trouble:
        print(f"fresh: {trouble}", file=sys.stderr)
        return 1
    print(done.stdout, end="")
    took = time.monotonic() - start
    print(f"fresh: exit status {done.returncode} after {took:.1f} s", file=sys.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
