"""A JupyterHub on one machine, with one shared mpilab for all users: see docs/jupyterhub.md.

jupyterhub -f deploy/jupyterhub/jupyterhub_config.py

MPILAB          the folder with the kit, owned by root; by default the one that this file is in.
MPILAB_COURSE   the course folder in each user's home, made at first login; by default mpilab.
"""

import os
import sys
from pathlib import Path

c = get_config()  # noqa: F821 (JupyterHub defines it)

KIT = Path(os.environ.get("MPILAB", Path(__file__).resolve().parents[2]))
COURSE = os.environ.get("MPILAB_COURSE", "mpilab")

# Who may come in. The default is PAM: users of this machine, with their passwords.
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
    # jupyterhub-singleuser lies beside the hub's Python.
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    # The labs' settings of JupyterLab, and what its pages need to draw the kit's figures.
    "JUPYTER_CONFIG_PATH": str(KIT / "mpilab" / "notebook" / "jupyter_config"),
    "JUPYTER_PATH": str(KIT / ".venv" / "share" / "jupyter"),
}
# The notebooks ask for "a Python". With one kernel to choose from they all get that one, and nobody
# is asked.
c.Spawner.args = [
    "--KernelSpecManager.ensure_native_kernel=False",
    "--KernelSpecManager.allowed_kernelspecs={'mpilab'}",
    "--MultiKernelManager.default_kernel_name=mpilab",
    # An idle kernel is ended after an hour, and a server that has had none for two.
    "--MappingKernelManager.cull_idle_timeout=3600",
    "--ServerApp.shutdown_no_activity_timeout=7200",
]

# A class that starts at the same minute: this many servers at a time, the others wait.
c.JupyterHub.concurrent_spawn_limit = 10
