"""A separate JupyterHub for the test, set up as in docs/jupyterhub.md, and its users."""

import contextlib
import json
import os
import pwd
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

from browsing import SETTINGS, free_ports, served

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "deploy" / "jupyterhub" / "jupyterhub_config.py"


@contextlib.contextmanager
def users(*names):
    """Users of this machine, created for the test and removed after it; the folder with their
    homes.

    Only root can access pytest's own folders, and a home must be accessible to its owner.
    """
    folder = Path(tempfile.mkdtemp(prefix="mpilab-hub-"))
    folder.chmod(0o755)
    made = []
    try:
        for name in names:
            command = ["useradd", "--base-dir", folder, "--create-home", "--no-log-init"]
            subprocess.run([*command, "--shell", "/bin/sh", name], check=True, capture_output=True)
            made.append(name)
            _settings(pwd.getpwnam(name))
        yield folder
    finally:
        for name in made:
            subprocess.run(["userdel", name], check=True, capture_output=True)
        shutil.rmtree(folder)


def _settings(user):
    """Settings that the user has made in JupyterLab before: every cell stays in the page."""
    name = "notebook-extension/tracker"
    home = Path(user.pw_dir)
    path = home / f".jupyter/lab/user-settings/@jupyterlab/{name}.jupyterlab-settings"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(SETTINGS[name]))
    for each in (home / ".jupyter", *(home / ".jupyter").rglob("*")):
        os.chown(each, user.pw_uid, user.pw_gid)


@contextlib.contextmanager
def hub(python, folder):
    """The hub of the environment that `python` is of, with its files in `folder`; its address.

    All that it starts ends with it: it is the first process of a PID namespace.
    """
    public, internal, proxy = free_ports(3)
    address = f"http://127.0.0.1:{public}"
    command = [*reachable([ROOT, Path(sys.base_prefix)], folder), str(python), "-m", "jupyterhub"]
    command += ["-f", str(CONFIG), "--ip=127.0.0.1", f"--port={public}"]
    command += [f"--JupyterHub.hub_port={internal}", "--JupyterHub.authenticator_class=dummy"]
    command += [f"--ConfigurableHTTPProxy.api_url=http://127.0.0.1:{proxy}"]
    environment = {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)
    folder.mkdir(mode=0o700)
    with served(command, f"{address}/hub/api", folder, environment, ends_s=10):
        yield address


def reachable(paths, folder):
    """The words before a command that start it in separate namespaces, in which every user can
    access `paths`: a clone or a Python in root's home would otherwise be inaccessible to other
    users.

    There, each folder on the way that is closed to others contains only the way to `paths`.
    """
    lines, closed = [], {}
    for path in paths:
        first = next((each for each in (*reversed(path.parents), path) if not _is_open(each)), None)
        if first is not None:
            closed.setdefault(first, []).append(path)
    for place, inside in closed.items():
        stages = [Path(tempfile.mkdtemp(dir=folder.parent)) for _ in inside]
        for path, stage in zip(inside, stages, strict=True):
            lines.append(shlex.join(["mount", "--bind", str(path), str(stage)]))
        lines.append(shlex.join(["mount", "-t", "tmpfs", "-o", "mode=755", "none", str(place)]))
        for path, stage in zip(inside, stages, strict=True):
            lines.append(shlex.join(["mkdir", "-p", str(path)]))
            lines.append(shlex.join(["mount", "--move", str(stage), str(path)]))
    script = "\n".join(["set -e", *lines, 'exec "$@"'])
    spaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return [*spaces, "--", "sh", "-c", script, "sh"]


def writable(user, paths, folder):
    """The first file or folder below `paths` to which `user` may write; "" if there is none."""
    found = pwd.getpwnam(user)
    drop = ["setpriv", f"--reuid={found.pw_uid}", f"--regid={found.pw_gid}", "--clear-groups", "--"]
    search = ["find", *map(str, paths), "!", "-type", "l", "-writable", "-print", "-quit"]
    command = [*reachable(paths, folder), *drop, *search]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd="/").stdout


def _is_open(path):
    return bool(path.stat().st_mode & stat.S_IXOTH)
