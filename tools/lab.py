"""Open labs/START.ipynb in JupyterLab: `.venv/bin/python tools/lab.py [--port N] [more options]`.

More options are passed on to Jupyter. JupyterLab gets the labs' settings on top of the user's own,
which are not changed: the file browser shows the labs but not their sources, and no news
notification appears. Without a port, Jupyter uses 8888 or the next free one; a port requested by
the user is used, or rejected with a remedy.
"""

import argparse
import os
import socket
import sys
from pathlib import Path

from problem import Problem, run

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = ROOT / "mpilab" / "notebook" / "jupyter_config"
START = "START.ipynb"


def is_free(port, host="localhost"):
    """Whether a server could now listen on `port` of this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Like the server that will follow: a port in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def check_port(text, free=is_free):
    """The port number in `text`; raises Problem if it is invalid or in use, according to `free`."""
    try:
        port = int(text)
    except ValueError:
        port = 0
    if not 1 <= port <= 65535:
        raise Problem(
            f"{text!r} is not a port number", "PORT", "give one from 1024 to 65535: PORT=8889"
        )
    if port < 1024 and os.geteuid() != 0:
        raise Problem(f"port {port} is for root only", "PORT", "take one from 1024 up: PORT=8889")
    if not free(port):
        other = next((p for p in range(port + 1, 65536) if free(p)), None)
        hint = f", or this free one: make lab PORT={other}" if other else ""
        raise Problem(
            f"port {port} is taken by another program (another JupyterLab?)",
            f"localhost:{port}, from PORT={port}",
            f"let Jupyter choose: make lab{hint}; 'jupyter server list' names the servers that run",
        )
    return port


def jupyter(port=None, root=False, more=()):
    """The command line that opens JupyterLab in labs/, with the page to start from."""
    command = [sys.executable, "-m", "jupyterlab", f"--LabApp.default_url=/lab/tree/{START}"]
    command += ["--notebook-dir", str(ROOT / "labs")]
    if port is not None:
        command += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    if root:
        command.append("--allow-root")
    return [*command, *more]


def environment(inherited):
    """The variables that JupyterLab gets: `inherited`, the labs' settings, and this environment's
    commands, so that `!mpilab doctor` in a cell is this kit's."""
    folders = {
        "JUPYTER_CONFIG_PATH": str(SETTINGS),
        "PATH": str(Path(sys.executable).parent),
    }
    joined = {
        name: os.pathsep.join(filter(None, (folder, inherited.get(name))))
        for name, folder in folders.items()
    }
    return {**inherited, **joined}


def main(arguments=None):
    """The command line; becomes Jupyter, or returns 1 after reporting a problem."""
    parser = argparse.ArgumentParser(prog="tools/lab.py", description=__doc__.splitlines()[0])
    parser.add_argument("--port", help="listen on this port and no other")
    options, more = parser.parse_known_args(arguments)

    def become_jupyter():
        port = check_port(options.port) if options.port else None
        try:
            # A handout already has the pages, and no docs/ from which to take them.
            if (ROOT / "docs").is_dir():
                from mpilab.course.handout import write_help

                write_help(ROOT / "labs", ROOT / "docs")
        except OSError as error:
            print(f"lab: START's pages of help cannot be written: {error}", file=sys.stderr)
        command = jupyter(port, root=os.geteuid() == 0, more=more)
        os.execve(command[0], command, environment(os.environ))

    return run("lab", become_jupyter)


if __name__ == "__main__":
    sys.exit(main())
