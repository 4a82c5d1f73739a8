"""Create build/jupyterhub, a JupyterHub with its proxy: `python3 tools/jupyterhub_venv.py`.

Students do not need the hub; tests start it, and docs/jupyterhub.md shows how to set it up for a
class. npm installs the proxy, which is a Node.js program.
"""

import subprocess

from extra_venv import ROOT, extra_venv, main

FOLDER = ROOT / "build" / "jupyterhub"
VERSION = "6.1.1"
PROXY_VERSION = "4.6.3"  # the last version that runs on Debian 12's Node.js


def jupyterhub_python(folder=FOLDER):
    """The interpreter of the hub's environment, whose bin/ holds jupyterhub, jupyterhub-singleuser
    and configurable-http-proxy. It is created if it does not exist.

    Raises subprocess.CalledProcessError if pip or npm cannot get the packages, and
    FileNotFoundError without npm.
    """
    python = extra_venv(folder, f"jupyterhub=={VERSION}", "jupyterlab")
    program = folder / "bin" / "configurable-http-proxy"
    if not program.exists():
        command = ["npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "--no-save"]
        command += ["--loglevel=error", f"configurable-http-proxy@{PROXY_VERSION}"]
        subprocess.run(command, check=True)
        program.symlink_to(folder / "node_modules" / ".bin" / "configurable-http-proxy")
    return python


if __name__ == "__main__":
    main(jupyterhub_python)
