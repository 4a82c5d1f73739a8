"""Open JupyterLab in labs/: `.venv/bin/python tools/lab.py [--port N] [more Jupyter options]`.

Without a port Jupyter takes 8888 or the next free one by itself; a port that the user asked for
is taken, or refused with a remedy.
"""

import argparse
import os
import socket
import sys
from pathlib import Path

from problem import Problem

ROOT = Path(__file__).resolve().parents[1]


def is_free(port, host="localhost"):
    """Whether a server could listen on `port` of this machine now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Like the server that will follow: a port in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def check_port(text, free=is_free):
    """The port number in `text`; raises Problem where it is none, or taken. `free` asks."""
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
    """The command line that opens JupyterLab in labs/."""
    command = [sys.executable, "-m", "jupyterlab", "--notebook-dir", str(ROOT / "labs")]
    if port is not None:
        command += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    if root:
        command.append("--allow-root")
    return [*command, *more]


def main(arguments=None):
    """The command line; becomes Jupyter, or returns 1 after it told a problem."""
    parser = argparse.ArgumentParser(prog="tools/lab.py", description=__doc__.splitlines()[0])
    parser.add_argument("--port", help="listen on this port and no other")
    options, more = parser.parse_known_args(arguments)
    try:
        port = check_port(options.port) if options.port else None
    except Problem as problem:
        print(f"lab: {problem}", file=sys.stderr)
        return 1
    command = jupyter(port, root=os.geteuid() == 0, more=more)
    os.execv(command[0], command)


if __name__ == "__main__":
    sys.exit(main())
