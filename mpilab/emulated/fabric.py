"""Process 1 of a cluster of emulated hosts: it makes the network and the hosts, and stays.

It is the keeper's child (keeper.py), in namespaces of its own. Whatever runs in the cluster ends
when it does, by the rules of PID namespaces; it ends itself when a host or the relay has ended.
Standard library only.
"""

import json
import os
import signal
import subprocess
import sys

import links
import namespaces

# Of each network: congestion control without the memory of former connections, so that a
# measurement can be repeated; no IPv6, whose announcements would be the only other traffic.
NETWORK_SETTINGS = {
    "ipv4/tcp_congestion_control": "reno",
    "ipv4/tcp_slow_start_after_idle": "0",
    "ipv4/tcp_no_metrics_save": "1",
    "ipv6/conf/all/disable_ipv6": "1",
    "ipv6/conf/default/disable_ipv6": "1",
}

# Started by mpirun, inside of the cluster, with a host and a command: what ssh is elsewhere.
AGENT = """\
#!/bin/sh
# Run a command on an emulated host, for mpirun: {name} HOST COMMAND...
host=$1
shift
case $host in
{cases}
*) echo "mpilab: no emulated host is called $host" >&2; exit 255 ;;
esac
exec {nsenter} -t "$process" -m -n -u -i -- \
/bin/sh -c 'cd "$1" || exit 255; shift; eval "$*"' sh "$PWD" "$@"
"""


class _Failed(Exception):
    """The fabric could not be made; the message says at what."""


def main(plan, directory, report):
    """Make the cluster, write one line of JSON to the file `report`, and stay.

    The line is {"hosts": [process of each host, as seen inside]} or {"error": words}.
    """
    try:
        hosts, others = _make(plan, directory)
        told = {"hosts": [host.process for host in hosts]}
    except (_Failed, OSError) as error:
        told = {"error": str(error)}
    report.write(json.dumps(told) + "\n")
    report.close()
    if "error" not in told:
        _stay({host.process for host in hosts} | others)


def tune():
    """Apply NETWORK_SETTINGS to the network that we are in, as far as this kernel has them."""
    for name, value in NETWORK_SETTINGS.items():
        try:
            with open(f"/proc/sys/net/{name}", "w") as file:
                file.write(value)
        except OSError as error:
            # A kernel without IPv6, or one that keeps a setting to itself: the hosts work all the
            # same, and the log says how they differ.
            print(f"mpilab: {name} stays as it is: {error}", flush=True)


def batch(tool, lines):
    """Run `ip` or `tc` (a path) over these lines; raises _Failed with what it said."""
    if not lines:
        return
    said = subprocess.run(
        [tool, "-batch", "-"], input="\n".join(lines) + "\n", capture_output=True, text=True,
        env={"LC_ALL": "C", "PATH": os.defpath}, check=False)  # fmt: skip
    if said.returncode:
        name = os.path.basename(tool)
        raise _Failed(f"{name} said: {' '.join(said.stderr.split())}")


def _make(plan, directory):
    """(the _Host of each host, process numbers of what else must not end)."""
    os.chdir("/")
    # What is mounted outside later on appears here too; what is mounted here stays here.
    namespaces.mount(None, "/", None, namespaces.MS_REC | namespaces.MS_SLAVE)
    quiet = namespaces.MS_NOSUID | namespaces.MS_NODEV | namespaces.MS_NOEXEC
    namespaces.mount("proc", "/proc", "proc", quiet)
    namespaces.set_hostname("fabric")
    names = os.path.join(directory, "etc-hosts")
    with open(names, "w") as file:
        file.write(links.etc_hosts(plan))
    namespaces.mount(names, "/etc/hosts", None, namespaces.MS_BIND)
    tune()

    hosts = [_Host(host, plan, directory) for host in plan["hosts"]]
    for host in hosts:
        host.expect("has its namespaces")
    batch(plan["tools"]["ip"], links.switches(plan, [host.process for host in hosts]))
    batch(plan["tools"]["tc"], links.shaping(plan))
    others = _relay(plan)
    for host in hosts:
        host.go_on()
    for host in hosts:
        host.expect("has its network")
    _write_agent(plan, directory, hosts)
    return hosts, others


def _relay(plan):
    """Start the relay where links need it: the numbers of the processes that were started."""
    arguments = links.relayed(plan)
    if not arguments:
        return set()
    relay = subprocess.Popen([plan["tools"]["relay"], *arguments], stdout=subprocess.PIPE)
    if relay.stdout.readline() != b"ready\n":
        raise _Failed(f"the relay ended with status {relay.wait()}")
    return {relay.pid}


def _write_agent(plan, directory, hosts):
    path = os.path.join(directory, "agent")
    cases = "\n".join(f"{host.name}) process={host.process} ;;" for host in hosts)
    with open(path, "w") as file:
        file.write(AGENT.format(name=path, cases=cases, nsenter=plan["tools"]["nsenter"]))
    os.chmod(path, 0o700)


def _stay(needed):
    """Wait for processes that have lost their parent, as process 1 has to; leave when one that is
    `needed` ends."""
    while True:
        process, status = os.wait()
        if process in needed:
            code = os.waitstatus_to_exitcode(status)
            print(f"mpilab: process {process} of the fabric ended with {code}", flush=True)
            return


class _Host:
    """One host: a process that holds its namespaces, and two pipes to agree with it."""

    def __init__(self, host, plan, directory):
        self.name = host["name"]
        heard, tell = os.pipe()
        told, self._tell = os.pipe()
        self.process = os.fork()
        if self.process:
            os.close(tell)
            os.close(told)
            self._heard = os.fdopen(heard)
            return
        try:
            os.close(self._tell)
            os.close(heard)
            _be_host(host, plan, directory, os.fdopen(tell, "w"), told)
        except BaseException:
            sys.excepthook(*sys.exc_info())  # into the log
        finally:
            os._exit(1)

    def expect(self, what):
        """Wait until the host says that it is as far as this; raises _Failed with what it said."""
        said = self._heard.readline().strip()
        if said != what:
            raise _Failed(f"host {self.name}: {said or 'its process ended'}")

    def go_on(self):
        """Its cable is there."""
        os.write(self._tell, b".")
        os.close(self._tell)


def _be_host(host, plan, directory, tell, told):
    """In the child: become a host, and stay. `told` ends when the cables are there."""

    def say(words):
        tell.write(" ".join(words.split()) + "\n")
        tell.flush()

    try:
        namespaces.end_with_parent()
        namespaces.unshare(namespaces.HOST)
        namespaces.set_hostname(host["name"])
        for folder in "/dev/shm", os.path.join(directory, "tmp"):
            namespaces.mount("tmpfs", folder, "tmpfs", namespaces.MS_NOSUID | namespaces.MS_NODEV)
        tune()
        say("has its namespaces")
        os.read(told, 1)
        batch(plan["tools"]["ip"], links.host_network(host))
        batch(plan["tools"]["tc"], links.host_shaping(plan))
        say("has its network")
    except (_Failed, OSError) as error:
        say(str(error))
        return
    tell.close()
    while True:
        signal.pause()
