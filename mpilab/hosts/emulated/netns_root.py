"""Process 1 of a cluster of emulated hosts: create the network and the hosts, then wait.

It is the supervisor's child (supervisor.py), in separate namespaces. When it ends, the kernel kills
everything in its PID namespace, that is, the cluster. It ends when a host or the relay has ended.
Standard library only.
"""

import json
import os
import signal
import subprocess
import sys

import links
import namespaces

# Settings of each network: congestion control without the history of earlier connections, for
# reproducible measurements; no IPv6, whose announcements would be the only other traffic.
NETWORK_SETTINGS = {
    "ipv4/tcp_congestion_control": "reno",
    "ipv4/tcp_slow_start_after_idle": "0",
    "ipv4/tcp_no_metrics_save": "1",
    "ipv6/conf/all/disable_ipv6": "1",
    "ipv6/conf/default/disable_ipv6": "1",
}

# mpirun in the cluster calls it with a host and a command, instead of ssh.
AGENT = """\
#!/bin/sh
# Run a command on an emulated host, for mpirun: {name} HOST COMMAND...
host=$1
shift
case $host in
{cases}
*) echo "mpilab: no emulated host has the name $host" >&2; exit 255 ;;
esac
exec {nsenter} -t "$process" -m -n -u -i -- \
/bin/sh -c 'cd "$1" || exit 255; shift; eval "$*"' sh "$PWD" "$@"
"""


class _Failed(Exception):
    """The netns root could not be created; the message says where it failed."""


def main(plan: dict, directory: str, report: int) -> None:
    """Create the cluster, write one line of JSON to the descriptor `report`, and wait.

    The line is {"hosts": [process of each host, as seen inside]} or {"error": message}.
    """
    try:
        hosts, others = _make(plan, directory)
        told: dict = {"hosts": [host.process for host in hosts]}
    except (_Failed, OSError) as error:
        told = {"error": str(error)}
    os.write(report, (json.dumps(told) + "\n").encode())
    os.close(report)
    if "error" not in told:
        _stay({host.process for host in hosts} | others)


def tune() -> None:
    """Apply NETWORK_SETTINGS to the current network, as far as this kernel supports them."""
    for name, value in NETWORK_SETTINGS.items():
        try:
            with open(f"/proc/sys/net/{name}", "w") as file:
                file.write(value)
        except OSError as error:
            # A kernel without IPv6, or with a setting that is not per namespace: the hosts still
            # work, and the log shows the difference.
            print(f"mpilab: {name} is unchanged: {error}", flush=True)


def batch(tool: str, lines: list[str]) -> None:
    """Run `ip` or `tc` (a path) on these lines; raise _Failed with its error message."""
    if not lines:
        return
    said = subprocess.run(
        [tool, "-batch", "-"],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        env={"LC_ALL": "C", "PATH": os.defpath},
        check=False,
    )
    if said.returncode:
        name = os.path.basename(tool)
        raise _Failed(f"{name} said: {' '.join(said.stderr.split())}")


def _make(plan: dict, directory: str) -> "tuple[list[_Host], set[int]]":
    """(the _Host of each host, numbers of other processes that must not end)."""
    os.chdir("/")
    # Mounts made outside later appear here too; mounts made here are not visible outside.
    namespaces.mount(None, "/", None, namespaces.MS_REC | namespaces.MS_SLAVE)
    quiet = namespaces.MS_NOSUID | namespaces.MS_NODEV | namespaces.MS_NOEXEC
    namespaces.mount("proc", "/proc", "proc", quiet)
    namespaces.set_hostname("netns-root")
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


def _relay(plan: dict) -> set[int]:
    """Start the relay if links need it: the numbers of the processes started."""
    arguments = links.relayed(plan)
    if not arguments:
        return set()
    relay = subprocess.Popen([plan["tools"]["relay"], *arguments], stdout=subprocess.PIPE)
    assert relay.stdout is not None  # a pipe
    if relay.stdout.readline() != b"ready\n":
        raise _Failed(f"the relay ended with status {relay.wait()}")
    return {relay.pid}


def _write_agent(plan: dict, directory: str, hosts: "list[_Host]") -> None:
    path = os.path.join(directory, "agent")
    cases = "\n".join(f"{host.name}) process={host.process} ;;" for host in hosts)
    with open(path, "w") as file:
        file.write(AGENT.format(name=path, cases=cases, nsenter=plan["tools"]["nsenter"]))
    os.chmod(path, 0o700)


def _stay(needed: set[int]) -> None:
    """Reap orphaned processes, as process 1 must; return when one in `needed` ends."""
    while True:
        process, status = os.wait()
        if process in needed:
            code = os.waitstatus_to_exitcode(status)
            print(f"mpilab: process {process} of the netns root ended with {code}", flush=True)
            return


class _Host:
    """One host: a process that holds its namespaces, and two pipes to synchronize with it."""

    def __init__(self, host: dict, plan: dict, directory: str) -> None:
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
            _be_host(host, plan, directory, tell, told)
        except BaseException:
            sys.excepthook(*sys.exc_info())  # into the log
        finally:
            os._exit(1)

    def expect(self, what: str) -> None:
        """Wait until the host reports this state; raise _Failed with any other message."""
        said = self._heard.readline().strip()
        if said != what:
            raise _Failed(f"host {self.name}: {said or 'its process ended'}")

    def go_on(self) -> None:
        """Tell the host that its link exists."""
        os.write(self._tell, b".")
        os.close(self._tell)


def _be_host(host: dict, plan: dict, directory: str, tell: int, told: int) -> None:
    """In the child: become a host, and wait. `told` is readable once the links exist."""

    def say(words: str) -> None:
        os.write(tell, (" ".join(words.split()) + "\n").encode())

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
    os.close(tell)
    while True:
        signal.pause()
