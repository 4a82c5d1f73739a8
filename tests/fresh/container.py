"""Images built from the Dockerfile without a container engine: by buildah, as root.

Images, layers and pip's downloads are kept beside the fresh systems, so that a second build only
does what has changed. The Dockerfile's base image is the base of a fresh system.
"""

import contextlib
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from fresh_system import CERTIFICATES, Trouble, apt_settings, base, cache_folder, locked
from packages import quietly

# What Debian's slim images omit.
NOT_IN_SLIM = ("usr/share/doc", "usr/share/info", "usr/share/locale", "usr/share/man")
SETTINGS = "/etc/apt/apt.conf.d/99fresh", "/etc/pip.conf"
CERTIFICATES_INSIDE = "/run/host-certificates.crt"


def why_not():
    """Why this machine cannot build an image, in words; empty if it can."""
    if shutil.which("buildah") is None:
        return "buildah: not found on PATH; 'make test-fresh' by root installs it"
    return ""


def buildah(*arguments, check=True, timeout=1800, **options):
    """Run buildah with separate storage. Returns its CompletedProcess, both streams in stdout.
    Raises Trouble if it fails, unless `check` is false."""
    folder = cache_folder() / "containers"
    for name in ("storage", "run", "tmp"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    command = ["buildah", "--root", folder / "storage", "--runroot", folder / "run"]
    done = quietly(
        [*command, *arguments],
        timeout=timeout,
        # TMPDIR: where it keeps what `RUN --mount=type=cache` asks for.
        env={**os.environ, "STORAGE_DRIVER": "overlay", "TMPDIR": str(folder / "tmp")},
        **options,
    )
    if check and done.returncode:
        end = "\n".join(done.stdout.splitlines()[-40:])
        raise Trouble(f"buildah {arguments[0]}: exit status {done.returncode}\n{end}")
    return done


def base_image(suite, name):
    """Create the image `name` from the base of `suite`, unless it was created from that base
    already."""
    system = base(suite)
    label = f"made-of={system.parent.name}"
    known = buildah("images", "--quiet", "--filter", f"label={label}", name, check=False)
    if known.returncode == 0 and known.stdout.strip():
        return
    container = buildah("from", "scratch").stdout.split()[-1]
    try:
        mounted = Path(buildah("mount", container).stdout.split()[-1])
        subprocess.run(["cp", "-a", f"{system}/.", mounted], check=True)
        for folder in NOT_IN_SLIM:
            shutil.rmtree(mounted / folder, ignore_errors=True)
        buildah("umount", container)
        buildah("config", "--label", label, container)
        buildah("commit", "--quiet", container, f"localhost/{name}")
    finally:
        buildah("rm", container)


def build(root, tag, *arguments):
    """Build the Dockerfile of the folder `root` as the image `tag`; buildah's further `arguments`.
    Returns what buildah printed."""
    settings = cache_folder() / "containers" / "settings"
    settings.mkdir(parents=True, exist_ok=True)
    with locked(cache_folder() / "containers.lock"):
        base_image("bookworm", "debian:12-slim")
        (settings / "apt.conf").write_text(apt_settings())
        lines = ["[global]", f"timeout = {os.environ.get('PIP_DEFAULT_TIMEOUT', '60')}"]
        if "PIP_INDEX_URL" in os.environ:
            lines.append(f"index-url = {os.environ['PIP_INDEX_URL']}")
        volumes = ["--volume", f"{settings}/apt.conf:{SETTINGS[0]}:ro"]
        if CERTIFICATES.exists():
            # Not over the bundle itself: the package ca-certificates could not replace it.
            lines.append(f"cert = {CERTIFICATES_INSIDE}")
            volumes += ["--volume", f"{CERTIFICATES}:{CERTIFICATES_INSIDE}:ro"]
        (settings / "pip.conf").write_text("\n".join(lines) + "\n")
        volumes += ["--volume", f"{settings}/pip.conf:{SETTINGS[1]}:ro"]
        # --force-rm: a last stage without a step of its own would leave a mounted container.
        command = ["bud", "--layers", "--force-rm", "--isolation", "chroot", "--pull-never"]
        command += volumes
        done = buildah(*command, "--tag", f"localhost/{tag}", *arguments, root)
        buildah("rmi", "--prune", check=False)
    return done.stdout


@dataclass
class Container:
    """A container of an image; `mounted` is the folder with its root file system."""

    name: str
    mounted: Path

    def run(self, *command, timeout=900):
        """Run `command` in it without user namespaces, by buildah. Returns its CompletedProcess."""
        chroot = ("run", "--isolation", "chroot", self.name, "--")
        return buildah(*chroot, *command, check=False, timeout=timeout)


@contextlib.contextmanager
def container(tag):
    """A Container of the image `tag`, which is gone at the end."""
    name = buildah("from", "--pull-never", f"localhost/{tag}").stdout.split()[-1]
    try:
        yield Container(name, Path(buildah("mount", name).stdout.split()[-1]))
    finally:
        buildah("rm", name)


def config(tag):
    """The configuration of the image `tag`: user, environment, entry point, command."""
    told = json.loads(buildah("inspect", "--type", "image", f"localhost/{tag}").stdout)
    return told["OCIv1"]["config"]


def megabytes(tag):
    """The size of the image `tag` in MB (10**6 bytes), unpacked."""
    with container(tag) as made:
        du = ["du", "--summarize", "--one-file-system", "--block-size=1", made.mounted]
        counted = subprocess.run(du, capture_output=True, text=True, check=True)
    return int(counted.stdout.split()[0]) / 1e6
