"""A JupyterHub on one machine, with one shared mpilab for all users: see docs/jupyterhub.md.

jupyterhub -f deploy/jupyterhub/jupyterhub_config.py

MPILAB          the folder with the kit, owned by root; default: the one that this file is in.
MPILAB_COURSE   the course folder in each user's home, made at first login; default: mpilab.
"""

import os
import sys
from pathlib import Path

c = get_config()  # noqa: F821 (JupyterHub defines it)

KIT = Path(os.environ.get("MPILAB", Path(__file__).resolve().parents[2]))
COURSE = os.environ.get("MPILAB_COURSE", "mpilab")

# Users who may log in. The default is PAM: users of this machine, with their passwords.
c.Authenticator.allow_all = True

# Every user's server runs as that user. start-server copies the labs into the home at first login.
c.JupyterHub.spawner_class = "jupyterhub.spawner.LocalProcessSpawner"
c.Spawner.cmd = [str(KIT / "deploy" / "jupyterhub" / "start-server")]
c.Spawner.notebook_dir = f"~/{COURSE}/labs"
c.Spawner.default_url = "/lab/tree/START.ipynb"
c.Spawner.start_timeout = 120
c.Spawner.http_timeout = 120
c.Spawner.environment = {
    "MPILAB": str(KIT),
    "MPILAB_COURSE": COURSE,
    # jupyterhub-singleuser is beside the hub's Python.
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    # The labs' settings for JupyterLab, and the extensions that draw the kit's figures.
    "JUPYTER_CONFIG_PATH": str(KIT / "mpilab" / "notebook" / "jupyter_config"),
    "JUPYTER_PATH": str(KIT / ".venv" / "share" / "jupyter"),
}
# The notebooks ask for "a Python". With only one Jupyter kernel available, they all open with it,
# without a prompt.
c.Spawner.args = [
    "--KernelSpecManager.ensure_native_kernel=False",
    "--KernelSpecManager.allowed_kernelspecs={'mpilab'}",
    "--MultiKernelManager.default_kernel_name=mpilab",
    # An idle kernel is shut down after an hour, and a server two hours after its last kernel.
    "--MappingKernelManager.cull_idle_timeout=3600",
    "--ServerApp.shutdown_no_activity_timeout=7200",
]

# If a whole class logs in at once, this many servers start at a time; the others wait.
c.JupyterHub.concurrent_spawn_limit = 10
