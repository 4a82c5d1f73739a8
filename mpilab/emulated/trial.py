"""Try what emulated hosts need, for capabilities.py: this file as a program.

    python -I -S trial.py IP TC

Prints one line of JSON with fields of Capabilities, and "packets": may the relay read and write
raw packets? What is tried ends with this process.
"""

import json
import os
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import namespaces  # noqa: E402

SETTINGS = (  # sysctl, the value that forbids, the remedy
    ("kernel/unprivileged_userns_clone", "0", "1"),
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
    ("user/max_user_namespaces", "0", "15000"),
)


def main(ip, tc):
    """As root directly; if that may not be, and for other users, in a user namespace."""
    refused = ""
    for kind in ("root", "rootless") if os.geteuid() == 0 else ("rootless",):
        found = in_a_child(kind, ip, tc)
        if "refused" not in found:
            return {"namespaces": kind, **found}
        refused = refused or found["refused"]
    return {"namespaces": "none", "reason": refused + remedy()}


def remedy(settings="/proc/sys"):
    """What to do about it, by what this kernel says."""
    for name, closed, value in SETTINGS:
        try:
            with open(os.path.join(settings, name)) as file:
                if file.read().strip() == closed:
                    return f"; allow them: sudo sysctl -w {name.replace('/', '.')}={value}"
        except FileNotFoundError:
            continue
    return "; user namespaces are not allowed for you (a container?)"


def in_a_child(kind, ip, tc):
    """What can be done in namespaces of this kind, tried in a child of our own."""
    parent = os.getpid()
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(told)
        try:
            if kind == "rootless":
                namespaces.become_root_of_a_user_namespace()
            # With other rights this would be forgotten; and it tells of no end before it.
            namespaces.end_with_parent()
            if os.getppid() != parent:
                os._exit(1)
            namespaces.unshare(namespaces.CLUSTER)
            # A PID namespace begins with a child, and ends with it.
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
    return json.loads(said) if said else {"refused": "the trial ended without a word"}


def attempt(ip, tc):
    """Mount, make a bridge and a pair of interfaces; try rate, delay and raw packets."""
    namespaces.end_with_parent()
    namespaces.mount(None, "/", None, namespaces.MS_REC | namespaces.MS_SLAVE)
    namespaces.mount("proc", "/proc", "proc")
    namespaces.mount("tmpfs", "/dev/shm", "tmpfs")
    namespaces.set_hostname("trial")
    said = batch(ip, "link add sw0 type bridge\nlink add left type veth peer name right\n"
                 "link set left master sw0 up\n")  # fmt: skip
    if said:
        return {"refused": f"no network can be made: {said}"}
    return {
        "tbf": not batch(tc, "qdisc add dev left root tbf rate 200mbit burst 20k latency 100ms\n"),
        "netem": not batch(tc, "qdisc add dev right root netem delay 1ms\n"),
        "packets": raw_packets(),
    }


def batch(tool, lines):
    """What `ip` or `tc` has to say against these lines; '' where it does them."""
    said = subprocess.run([tool, "-batch", "-"], input=lines, capture_output=True, text=True,
                          env={"LC_ALL": "C"}, check=False)  # fmt: skip
    return " ".join(said.stderr.split()) or f"status {said.returncode}" if said.returncode else ""


def raw_packets():
    """Can a socket for raw packets be opened?"""
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
