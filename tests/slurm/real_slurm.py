"""A real Slurm for tests: munged, slurmctld and a slurmd for each node, all on this machine.

    python tests/slurm/real_slurm.py [--nodes N] COMMAND ...    run a command in one

A node is a slurmd with separate PID, mount and UTS namespaces (`unshare -umpf`), so that it has its
own name, /dev/shm and processes; files and network are shared, as on a cluster with a common file
system. Each node is on a separate switch: the switches are the groups of its ranks.

Debian's slurm-wlm 22.05 supports several slurmd on one host. Nothing outlives the process that
started it, even if that is killed: every daemon ends with its parent.
"""

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

PMIX = Path(f"/usr/lib/{os.uname().machine}-linux-gnu/pmix2/lib")
TOOLS = ("munged", "slurmctld", "slurmd", "sbatch", "unshare", "setpriv")
UP_S = 120.0
LOOK_S = 0.05
FINAL = {
    "COMPLETED",
    "FAILED",
    "CANCELLED",
    "TIMEOUT",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "BOOT_FAIL",
    "DEADLINE",
}

CONFIGURATION = """\
ClusterName=mpilab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser=root
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
TmpFS={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/log/slurmctld
SlurmdLogFile={folder}/log/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
TopologyPlugin=topology/tree
ReturnToService=2
KillWait=5
MinJobAge=7200
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=100000
{nodes}
PartitionName=debug Nodes={names} Default=YES MaxTime=1-0 OverSubscribe=NO
"""

# In the namespaces of a node. libpmix is found only under an unversioned name, which only Debian's
# development package has. The shell stays, as process 1, which must wait for orphans.
BE_NODE = """\
set -e
hostname "$1"
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount --bind "$3" "$2"
slurmd -D -c -N "$1" &
wait
"""


class SlurmError(Exception):
    """Slurm did not start, or a job did not end as it should; the message contains the logs."""


class RealSlurm:
    """A Slurm whose nodes n1, n2, … have `cores` pretended cores each.

    nodes       their names
    folder      of all its files, removed with it
    environment for its commands: SLURM_CONF directs them here
    up_seconds  until all nodes were idle
    """

    def __init__(self, nodes=2, cores=4):
        self.nodes = tuple(f"n{number}" for number in range(1, nodes + 1))
        self.cores = cores
        self.processes = []
        self.folder = self.environment = None
        self.up_seconds = 0.0

    def __enter__(self):
        started = time.monotonic()
        self.folder = Path(tempfile.mkdtemp(prefix="mpilab-slurm-"))
        self.folder.chmod(0o711)  # munged requires that its clients can access the socket
        outside = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SLURM", "SBATCH", "SRUN", "MPILAB"))
        }
        self.environment = outside | {
            "SLURM_CONF": str(self.folder / "slurm.conf"),
            "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin",
        }
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        self.up_seconds = time.monotonic() - started
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            # When a node's first process ends, so do all others, and unshare notices.
            if process.poll() is None:
                for child in psutil.Process(process.pid).children():
                    child.kill()
        for process in self.processes:
            process.kill()
            process.wait()
        shutil.rmtree(self.folder)

    def _start(self):
        for name in ("state", "spool", "log", "munge", "pmix"):
            (self.folder / name).mkdir()
        (self.folder / "munge").chmod(0o711)
        key = self.folder / "munge" / "key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(1024))
        self._write_configuration()
        for path in [*PMIX.iterdir(), self.folder / "pmix" / "libpmix.so"]:
            source = next(PMIX.glob("libpmix.so.2.*")) if path.name == "libpmix.so" else path
            copy = shutil.copytree if source.is_dir() else shutil.copy
            copy(source, self.folder / "pmix" / path.name)
        munge = {"key-file": key, "socket": "socket", "pid-file": "pid", "seed-file": "seed"}
        self._run(
            "munged",
            "--foreground",
            "--force",
            "--log-file=/dev/stderr",
            *(f"--{what}={self.folder / 'munge' / name}" for what, name in munge.items()),
        )
        self._await("munged", lambda: (self.folder / "munge" / "socket").exists())
        self._run("slurmctld", "-D", "-c")
        for node in self.nodes:
            (self.folder / "spool" / node).mkdir(mode=0o755)
            self._run(
                "unshare",
                "-umpf",
                "--mount-proc",
                "--kill-child",
                "sh",
                "-c",
                BE_NODE,
                "sh",
                node,
                str(PMIX),
                str(self.folder / "pmix"),
            )
        self._await("the nodes", self._all_idle)

    def _write_configuration(self):
        controller_port, *ports = _free_ports(1 + len(self.nodes))
        nodes = "\n".join(
            f"NodeName={node} NodeHostname={node} NodeAddr=localhost Port={port} CPUs={self.cores}"
            for node, port in zip(self.nodes, ports, strict=True)
        )
        (self.folder / "slurm.conf").write_text(
            CONFIGURATION.format(
                host=os.uname().nodename.partition(".")[0],
                folder=self.folder,
                nodes=nodes,
                names=",".join(self.nodes),
                controller_port=controller_port,
            )
        )
        switches = [f"SwitchName=s{n} Nodes={node}" for n, node in enumerate(self.nodes, start=1)]
        top = f"SwitchName=s0 Switches=s[1-{len(self.nodes)}]"
        (self.folder / "topology.conf").write_text("\n".join([*switches, top, ""]))

    def _run(self, program, *arguments):
        log = self.folder / "log" / f"{len(self.processes)}-{program}"
        with log.open("wb") as file:
            self.processes.append(
                subprocess.Popen(
                    ["setpriv", "--pdeathsig", "KILL", "--", program, *arguments],
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=file,
                    cwd="/",
                    start_new_session=True,
                )
            )

    def _await(self, what, is_there):
        """Wait for an event that is not announced; SlurmError, with the logs, if that fails."""
        deadline = time.monotonic() + UP_S
        while not is_there():
            ended = [process.args for process in self.processes if process.poll() is not None]
            if ended or time.monotonic() > deadline:
                why = f"ended: {ended}" if ended else f"not there after {UP_S:g} s"
                raise SlurmError(f"{what} {why}\n{self.logs()}")
            time.sleep(LOOK_S)

    def _all_idle(self):
        said = self.command("sinfo", "-h", "-N", "-t", "idle", "-o", "%N", check=False)
        return sorted(said.split()) == sorted(self.nodes)

    def logs(self):
        """The ends of all logs."""
        return "\n".join(
            f"--- {log.name}\n{log.read_text(errors='replace')[-1500:]}"
            for log in sorted((self.folder / "log").iterdir())
        )

    def command(self, *argv, check=True, **more):
        """The standard output of a command (sinfo, scontrol, …)."""
        done = subprocess.run(
            [*map(str, argv)],
            env=self.environment | more.pop("env", {}),
            capture_output=True,
            text=True,
            timeout=300,
            **more,
        )
        if check and done.returncode:
            raise SlurmError(f"{argv}: {done.stderr or done.stdout}\n{self.logs()}")
        return done.stdout

    def submit(self, *arguments, **more):
        """The number of the job of `sbatch ARGUMENTS`, as text."""
        return self.command("sbatch", "--parsable", *arguments, **more).strip()

    @property
    def jobs(self):
        """How many jobs have been submitted; a task of an array is one."""
        return len(self.command("squeue", "-h", "-r", "-t", "all", "-o", "%i").split())

    def states(self, job):
        """{task or number of the job: its state}, e.g. {"7_1": "RUNNING"}."""
        said = self.command("squeue", "-h", "-r", "-t", "all", "-j", job, "-o", "%i %T")
        return dict(line.split() for line in said.splitlines())

    def wait(self, *jobs, seconds=120.0):
        """{task or job: its final state}, once all have one. (sbatch --wait looks every 10 s.)"""
        deadline = time.monotonic() + seconds
        while True:
            states = {key: state for job in jobs for key, state in self.states(job).items()}
            if set(states.values()) <= FINAL:
                return states
            if time.monotonic() > deadline:
                raise SlurmError(f"jobs {jobs} have not ended: {states}\n{self.logs()}")
            time.sleep(LOOK_S)

    def left(self):
        """What is still visible of this Slurm on the machine: list of str."""
        return traces(self.folder)


def traces(folder):
    """Processes (not those that have ended), mounts and files of a Slurm in `folder`."""
    name = os.fsencode(folder.name)
    found = [str(folder)] if folder.exists() else []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            seen = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            mounts = (process / "mountinfo").read_bytes()
        except OSError:  # it has just ended
            continue
        if int(process.name) != os.getpid() and (name in seen or name in mounts):
            found.append(f"process {process.name}: {seen[:80]!r}")
    return found


def _free_ports(number):
    """Unused port numbers. If another process takes one first, a daemon ends and says so."""
    sockets = [socket.socket() for _ in range(number)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def main():
    """The command line; see above. The exit status is that of the command."""
    parser = argparse.ArgumentParser(description="Run a command in a Slurm on this machine.")
    parser.add_argument("--nodes", type=int, default=2, help="how many (default: %(default)s)")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND")
    options = parser.parse_args()
    with RealSlurm(options.nodes) as slurm:
        return subprocess.run(options.command, env=slurm.environment).returncode


if __name__ == "__main__":
    sys.exit(main())
