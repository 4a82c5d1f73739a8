"""Test what emulated hosts need, as a program for hosts.py.

    python -I -S trial.py IP TC

Prints one line of JSON with fields of Capabilities, and "packets": true if the relay may read and
write raw packets. Everything created ends with this process.
"""

import json
import os
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "util"))
import namespaces  # noqa: E402
from system import namespace_remedy  # noqa: E402


def main(ip: str, tc: str) -> dict:
    """Try as root; if that is not permitted, and for other users, in a user namespace."""
    refused = ""
    for kind in ("root", "rootless") if os.geteuid() == 0 else ("rootless",):
        found = in_a_child(kind, ip, tc)
        if "refused" not in found:
            return {"namespaces": kind, **found}
        refused = refused or found["refused"]
    return {"namespaces": "none", "reason": refused + remedy()}


def remedy(settings: str = "/proc/sys") -> str:
    """The remedy that fits this kernel's settings."""
    return f"; {namespace_remedy(settings, sys.executable)}"


def in_a_child(kind: str, ip: str, tc: str) -> dict:
    """The result of `attempt` in namespaces of this kind, in a child process."""
    parent = os.getpid()
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(told)
        try:
            if kind == "rootless":
                namespaces.become_root_of_a_user_namespace()
            # Only now: new credentials reset it. It does not notice if the parent has ended.
            namespaces.end_with_parent()
            if os.getppid() != parent:
                os._exit(1)
            namespaces.unshare(namespaces.CLUSTER)
            # A PID namespace starts with a child, and ends with it.
            if os.fork() == 0:
                found = attempt(ip, tc)
                os.write(tell, json.dumps(found).encode())
            else:
                os.wait()
        except OSError as error:
            os.write(tell, json.dumps({"refused": str(error)}).encode())
        finally:
            os._exit(0)
    os.close(tell)
    with os.fdopen(told) as file:
        said = file.read()
    os.waitpid(child, 0)
    return json.loads(said) if said else {"refused": "the trial ended without a message"}


def attempt(ip: str, tc: str) -> dict:
    """Mount, create a bridge and a pair of interfaces; try rate, delay and raw packets."""
    namespaces.end_with_parent()
    namespaces.mount(None, "/", None, namespaces.MS_REC | namespaces.MS_SLAVE)
    namespaces.mount("proc", "/proc", "proc")
    namespaces.mount("tmpfs", "/dev/shm", "tmpfs")
    namespaces.set_hostname("trial")
    said = batch(
        ip,
        "link add sw0 type bridge\nlink add left type veth peer name right\n"
        "link set left master sw0 up\n",
    )
    if said:
        return {"refused": f"no network can be created: {said}"}
    return {
        "tbf": not batch(tc, "qdisc add dev left root tbf rate 200mbit burst 20k latency 100ms\n"),
        "netem": not batch(tc, "qdisc add dev right root netem delay 1ms\n"),
        "packets": raw_packets(),
    }


def batch(tool: str, lines: str) -> str:
    """The error message of `ip` or `tc` for these lines; '' if it succeeds."""
    said = subprocess.run(
        [tool, "-batch", "-"],
        input=lines,
        capture_output=True,
        text=True,
        env={"LC_ALL": "C"},
        check=False,
    )
    return " ".join(said.stderr.split()) or f"status {said.returncode}" if said.returncode else ""


def raw_packets() -> bool:
    """True if a raw packet socket can be opened."""
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
