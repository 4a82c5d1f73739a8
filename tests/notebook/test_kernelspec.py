"""The kernel that a Jupyter of another environment starts, and what its cells find."""

import json
import os
import subprocess
import sys

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import start_new_kernel

from mpilab import cli


def test_a_kernel_below_a_prefix_runs_the_kits_python_and_finds_its_commands(
    tmp_path, monkeypatch, capsys
):
    assert cli.main(["kernelspec", "install", "--prefix", str(tmp_path)]) == 0
    folder = tmp_path / "share" / "jupyter" / "kernels" / "mpilab"
    assert capsys.readouterr().out == f"kernel: {folder}\n"
    assert json.loads((folder / "kernel.json").read_text())["display_name"] == "mpilab (Python)"
    # Like a hub's: without the kit's folder of commands.
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share" / "jupyter"))
    manager, client = start_new_kernel(kernel_name="mpilab")
    said = []
    try:
        code = "import mpilab, shutil, sys; print(sys.executable, shutil.which('mpilab'))"
        client.execute_interactive(
            code,
            timeout=60,
            output_hook=lambda message: said.append(message["content"].get("text", "")),
        )
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    commands = os.path.dirname(sys.executable)
    assert "".join(said).split() == [sys.executable, os.path.join(commands, "mpilab")]


def test_a_second_install_replaces_the_first(tmp_path, monkeypatch):
    for _ in range(2):
        assert cli.main(["kernelspec", "install", "--prefix", str(tmp_path)]) == 0
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share" / "jupyter"))
    assert "mpilab" in KernelSpecManager().find_kernel_specs()


def test_a_folder_that_cannot_be_written_is_told_with_what_to_do(tmp_path):
    (tmp_path / "share").write_text("a file where a folder is to be")
    command = [sys.executable, "-m", "mpilab", "kernelspec", "install", "--prefix", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "'mpilab' cannot be installed" in done.stderr and str(tmp_path) in done.stderr
    assert "--user" in done.stderr and "Traceback" not in done.stderr
