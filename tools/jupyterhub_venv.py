"""Make build/jupyterhub, a JupyterHub with its proxy: `python3 tools/jupyterhub_venv.py`.

The hub is no part of what a student needs; tests start it, and docs/jupyterhub.md shows how it is
set up for a class. npm brings the proxy, which is a node program.
"""

import subprocess

from extra_venv import ROOT, extra_venv, main

FOLDER = ROOT / "build" / "jupyterhub"
VERSION = "6.1.1"
PROXY_VERSION = "4.6.3"  # the last that runs on the node of Debian 12


def jupyterhub_python(folder=FOLDER):
    """The interpreter of the hub's environment, whose bin/ holds jupyterhub, jupyterhub-singleuser
    and configurable-http-proxy. It is made first where there is none.

    Raises subprocess.CalledProcessError where pip or npm cannot get the packages, and
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
