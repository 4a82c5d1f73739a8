"""The process that mpirun starts for each rank: request an engine, and end as the engine ends.

It runs as a file, with only the standard library, so that it starts in 15 ms. It sends the
forkserver its environment, in which mpirun has put its rank, and its process ID, which identifies
its host (an emulated host is a set of namespaces). Then it waits for the engine's exit code or the
number of the signal that ended it, and ends in the same way, so that mpirun sees what it would have
seen if it had started the engine itself.
"""

import json
import os
import resource
import signal
import socket
import sys


def main(forkserver: str) -> None:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(forkserver)
    order = {"environment": dict(os.environ), "directory": os.getcwd(), "process": os.getpid()}
    request = json.dumps(order).encode()
    connection.sendall(len(request).to_bytes(4, "big") + request)
    status = connection.makefile().readline()
    if not status:
        sys.exit(f"rank {os.environ.get('PMIX_RANK')}: the forkserver of the engines has ended")
    end_as(int(status))


def end_as(status: int) -> None:
    """End with an exit code, or by a signal (minus its number)."""
    if status < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the engine has dumped core already
        if -status not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)


if __name__ == "__main__":
    main(*sys.argv[1:])
