"""What a JupyterHub runs at each login: deploy/jupyterhub/start-server."""

import os
import subprocess

from mpilab.util.kit import ROOT

SCRIPT = ROOT / "deploy" / "jupyterhub" / "start-server"


def log_in(home, *words):
    """Run the script as at a login, with a server that says how it was called; what it printed."""
    server = home / "bin" / "jupyterhub-singleuser"
    server.parent.mkdir(parents=True, exist_ok=True)
    server.write_text('#!/bin/sh\necho "server $*"\n')
    server.chmod(0o755)
    env = {
        **os.environ,
        "HOME": str(home),
        "PATH": f"{server.parent}:{os.environ['PATH']}",
        "MPILAB": str(ROOT),
        "MPILAB_COURSE": "mpilab",
    }
    ran = subprocess.run(["sh", SCRIPT, *words], env=env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == f"server {' '.join(words)}"
    return ran


def test_each_login_adds_new_labs_and_leaves_what_is_there(tmp_path):
    log_in(tmp_path, "--port=1")
    labs = tmp_path / "mpilab" / "labs"
    names = sorted(path.name for path in labs.glob("[0-9]*.ipynb"))
    assert names == sorted(path.name for path in (ROOT / "labs").glob("[0-9]*.ipynb"))
    (labs / names[0]).write_text("mine")
    (labs / names[1]).unlink()  # as if it had come later
    log_in(tmp_path)
    assert (labs / names[0]).read_text() == "mine"
    assert (labs / names[1]).read_bytes() == (ROOT / "labs" / names[1]).read_bytes()


def test_a_folder_that_cannot_be_added_to_does_not_keep_the_user_out(tmp_path):
    (tmp_path / "mpilab").mkdir()
    (tmp_path / "mpilab" / "notes.txt").write_text("not a course")
    said = log_in(tmp_path).stderr
    assert "is not a course folder" in said and "has no new labs, because of the error" in said
