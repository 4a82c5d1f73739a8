"""What mpirun starts for each rank: asks the nursery for an engine and ends as the engine ends.

It is run as a file, with the standard library only, so that it starts in 15 ms. It hands over its
environment, in which mpirun has put who this rank is, and its process id, which tells the host that
it runs on (an emulated one is a set of namespaces); and then waits for the engine's fate: the
exit code, or the number of the signal that ended it, which it then repeats, so that mpirun sees
what it would have seen had it started the engine itself.
"""

import json
import os
import resource
import signal
import socket
import sys


def main(nursery):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(nursery)
    order = {"environment": dict(os.environ), "directory": os.getcwd(), "process": os.getpid()}
    request = json.dumps(order).encode()
    connection.sendall(len(request).to_bytes(4, "big") + request)
    fate = connection.makefile().readline()
    if not fate:
        sys.exit(f"rank {os.environ.get('PMIX_RANK')}: the nursery of the engines is gone")
    end_as(int(fate))


def end_as(status):
    """End with an exit code, or by a signal (minus its number)."""
    if status < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the engine itself has dumped core
        if -status not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)


if __name__ == "__main__":
    main(*sys.argv[1:])
