"""The commands `mpilab hosts`, `hostfile`, `kernelspec`, `new` and `doctor`: this machine and
clusters."""

import argparse
import contextlib
import os
import shlex
from pathlib import Path
from typing import Any

from mpilab.cli.common import (
    Commands,
    add_json,
    add_out,
    add_ranks,
    add_seed,
    mpilab,
    names,
    print_json,
)
from mpilab.errors import InputError, MpilabError
from mpilab.util.kit import is_cached
from mpilab.util.text import suggestion
from mpilab.util.units import RATE, TIME, as_text, seconds

HOSTFILE_DESCRIPTION = """\
Write a hostfile with a line for each rank, for 'mpirun --hostfile FILE --map-by seq'.
"""
NEW_DESCRIPTION = """\
Create a course folder: the notebooks of all labs, hostfiles, scripts for Slurm, data and docs. DIR
must be new or empty. Kernels are compiled when they are first used, into your cache folder
($XDG_CACHE_HOME/mpilab, or ~/.cache/mpilab).
"""
UPDATE_DESCRIPTION = """\
Bring this handout up to the next one, ZIP: add its labs, pages and kernels, and replace files that
you have not changed (to run a notebook changes nothing). What you have changed or added stays;
where ZIP has a newer version of it, that lies beside it, as NAME.new. 'make update ZIP=FILE' calls
this.
"""
HOSTS_DESCRIPTION = """\
Emulate the hosts of a cluster on this machine: each with its own name, network and shared memory,
and links with the bandwidth and latency given in the description.
"""
HOSTS_EXAMPLES = """\
mpilab hosts up two-groups
mpilab hosts run -- mpirun -n 8 ./program
mpilab hosts run --host n2 -- ip addr
mpilab hosts down
"""


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    _add_hosts(commands)
    _add_hostfile(commands)
    _add_kernelspec(commands)
    _add_new(commands)
    _add_update(commands)
    _add_doctor(commands)


# `mpilab hostfile four-groups --order shuffled`: write a hostfile for `mpirun --map-by seq`.


def _add_hostfile(commands: Commands) -> None:
    parser = commands.add_parser(
        "hostfile",
        help="write a hostfile in a given order of ranks",
        description=HOSTFILE_DESCRIPTION,
    )
    parser.add_argument("cluster", help="a cluster description: four-groups, campus, my.toml")
    parser.add_argument(
        "--order",
        default="seq",
        metavar="NAME",
        help="seq (default), rr, rr-groups, shuffled or random",
    )
    add_seed(parser, "the orders shuffled and random")
    add_ranks(parser, "number of ranks (default: all slots)")
    parser.add_argument("--ppn", type=int, metavar="N", help="maximum number of ranks per host")
    parser.add_argument(
        "--hosts", type=int, metavar="N", help="number of hosts, taken from each group in turn"
    )
    add_out(parser, "the hostfile to write (default: print it)")
    parser.set_defaults(call=_hostfile)


def _hostfile(options: argparse.Namespace) -> None:
    """Write the hostfile to a file, or print it."""
    cluster = mpilab.hosts.description.read(options.cluster)
    orders = mpilab.hosts.orders
    hosts = orders.order(
        cluster,
        options.order,
        ranks=options.ranks,
        ppn=options.ppn,
        hosts=options.hosts,
        seed=options.seed,
    )
    if options.out is None:
        print(orders.hostfile_text(hosts, cluster), end="")
        return
    orders.write_hostfile(options.out, hosts, cluster)
    print(f"{len(hosts)} ranks on {len(set(hosts))} hosts: {options.out}")


# `mpilab kernelspec install`: register the kit's kernel with a Jupyter in another environment.


def _add_kernelspec(commands: Commands) -> None:
    parser = commands.add_parser(
        "kernelspec", help="register the kernel 'mpilab (Python)' with Jupyter"
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    install = actions.add_parser("install", help="install the kernel for all users of this machine")
    where = install.add_mutually_exclusive_group()
    where.add_argument("--user", action="store_true", help="install it for this user only")
    where.add_argument(
        "--prefix",
        type=Path,
        metavar="DIR",
        help="install it in DIR/share/jupyter, e.g. the environment of a JupyterHub",
    )
    install.set_defaults(call=_install)


def _install(options: argparse.Namespace) -> None:
    print(f"kernel: {mpilab.notebook.jupyter.install(user=options.user, prefix=options.prefix)}")


# `mpilab new DIR`: create a course folder when the kit is installed or belongs to another user.


def _add_new(commands: Commands) -> None:
    parser = commands.add_parser(
        "new", help="create a course folder with the labs", description=NEW_DESCRIPTION
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="a new or empty folder")
    parser.add_argument(
        "--add",
        action="store_true",
        help="DIR may be a course folder: copy what it lacks, such as new labs; change nothing",
    )
    parser.set_defaults(call=_new)


def _new(options: argparse.Namespace) -> None:
    """Create the folder and print the next steps."""
    folder = mpilab.course.handout.course_folder(options.folder, add=options.add)
    labs = list((folder / "labs").glob("[0-9]*.ipynb"))
    print(f"{folder}: {len(labs)} notebooks in labs/, with hostfiles/, slurm/, data/ and docs/")
    print("\nNext:")
    print("  mpilab doctor    # check this machine")
    print(f"  cd {shlex.quote(str(folder))}")
    print("  jupyter lab labs/START.ipynb    # open the start page of the labs")


# `mpilab update SOURCE`: in a handout, take over what the next one has.


def _add_update(commands: Commands) -> None:
    parser = commands.add_parser(
        "update", help="add the labs of the next handout", description=UPDATE_DESCRIPTION
    )
    parser.add_argument("source", type=Path, metavar="ZIP", help="the next handout: zip or folder")
    parser.set_defaults(call=_update)


def _update(options: argparse.Namespace) -> None:
    done = mpilab.course.handout.update(options.source)
    print(f"labs: {', '.join(done.labs)}")
    print(f"{len(done.added)} new files, {len(done.replaced)} newer, {len(done.removed)} removed")
    for name in done.kept:
        other = f"; the new version is {done.beside[name]}" if name in done.beside else ""
        print(f"yours, and not changed: {name}{other}")
    print("next: make setup")


# `mpilab hosts up|run|list|down`: emulated hosts that stay up.


def _add_hosts(commands: Commands) -> None:
    hosts = commands.add_parser(
        "hosts",
        help="emulate the hosts of a cluster on this machine",
        description=HOSTS_DESCRIPTION,
        epilog=HOSTS_EXAMPLES,
    )
    verbs = hosts.add_subparsers(metavar="VERB", required=True)

    up = verbs.add_parser("up", help="bring hosts up; they run until 'down'")
    up.add_argument("description", help="FILE.toml, or a name from hostfiles/, e.g. two-groups")
    up.add_argument(
        "--name", help="name of the cluster, to tell several apart (default: the file's)"
    )
    up.set_defaults(call=_up)

    run = verbs.add_parser(
        "run",
        help="run a command on a host",
        description="Run a command on a host. Its environment "
        "is set so that a plain mpirun uses the slots of all hosts.",
    )
    run.add_argument(
        "--host", metavar="NAME", help="host on which the command starts (default: the first)"
    )
    run.add_argument("--name", metavar="CLUSTER", help="the cluster, if several are up")
    run.add_argument(
        "--timeout",
        type=seconds,
        metavar="SECONDS",
        help="end the command after this time, with exit status 124",
    )
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND ...")
    run.set_defaults(call=_run)

    up_now = verbs.add_parser("list", help="list the clusters that are up")
    add_json(up_now)
    up_now.set_defaults(call=_list)

    down = verbs.add_parser("down", help="take hosts down, with everything that runs on them")
    down.add_argument(
        "names", nargs="*", metavar="CLUSTER", help="name or directory (default: the only one)"
    )
    down.add_argument("--all", action="store_true", help="all clusters that 'up' started")
    down.set_defaults(call=_down)


def _up(options: argparse.Namespace) -> None:
    hosts = mpilab.hosts.emulated.EmulatedHosts(options.description, name=options.name)
    same = [one for one in mpilab.hosts.emulated.running() if one.name == hosts.name]
    if same:
        # Replacing them would take the hosts away from the notebook or program that uses them.
        owners = [str(one.owner) for one in same if one.owner]
        what = (
            f", of process {' and '.join(owners)}. Give"
            if owners
            else (f". Take it down with 'mpilab hosts down {hosts.name}', or give")
        )
        raise InputError(
            f"hosts {hosts.name!r}: a cluster of this name is up{what} this one another name: "
            f"--name {hosts.name}-2"
        )
    hosts.up(stay=True)
    print(overview(hosts))
    which = "" if len(mpilab.hosts.emulated.running()) == 1 else f" --name {hosts.name}"
    print(
        f"\nmpilab hosts run{which} -- mpirun -n {hosts.description.slots} PROGRAM   runs on them"
        f"\nmpilab hosts down {hosts.name}   takes them down"
    )


def _run(options: argparse.Namespace) -> int:
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise InputError(
            "hosts run: no command; write it after '--', e.g. mpilab hosts run -- mpirun -n 8 "
            "./program"
        )
    hosts = _chosen(options.name)
    line = hosts.command(command, options.host)
    environment = hosts.environment(hosts.description.slots)
    beside = Path(mpilab.kernels.openmpi.tool("mpirun")).parent
    environment["PATH"] = f"{beside}{os.pathsep}{environment.get('PATH', os.defpath)}"
    return mpilab.cluster.processes.follow(line, environment, timeout=options.timeout)


def _list(options: argparse.Namespace) -> None:
    gone = mpilab.hosts.emulated.sweep()
    clusters = mpilab.hosts.emulated.running()
    if options.json:
        print_json([_as_json(hosts) for hosts in clusters])
        return
    for directory in gone:
        print(f"removed {directory}: its hosts had ended because their supervisor was killed")
    if not clusters:
        print("no emulated hosts are up; start some with: mpilab hosts up two-groups")
    for hosts in clusters:
        until = f", until process {hosts.owner} ends" if hosts.owner else ""
        print(f"{overview(hosts)}\n  directory {hosts.directory}{until}")


def _as_json(hosts: Any) -> dict[str, Any]:
    description = hosts.description
    return {
        "name": hosts.name,
        "directory": hosts.directory,
        "owner": hosts.owner or None,
        "slots": description.slots,
        "groups": {
            group: {host.name: host.slots for host in members}
            for group, members in description.groups.items()
        },
    }


def _down(options: argparse.Namespace) -> None:
    if options.names and options.all:
        raise InputError("hosts down: give names or --all, not both")
    if options.all:
        # Hosts owned by a notebook or a running program end with their owner.
        chosen = [hosts for hosts in mpilab.hosts.emulated.running() if not hosts.owner]
    else:
        chosen = [mpilab.hosts.emulated.attach(name) for name in options.names] or [
            _chosen(None, staying=True)
        ]
    for hosts in chosen:
        hosts.down()
        print(f"{hosts.name} is down")
    mpilab.hosts.emulated.sweep()


def _chosen(name: str | None, staying: bool = False) -> Any:
    """The running cluster called `name`; without a name, the only one that `up` started.

    If `up` started none, and not `staying`, the only one that another program owns.
    """
    if name is not None:
        return mpilab.hosts.emulated.attach(name)
    everyone = mpilab.hosts.emulated.running()
    clusters = [hosts for hosts in everyone if not hosts.owner]
    if not clusters and not staying:
        clusters = everyone
    if not clusters and everyone:
        names = ", ".join(f"{hosts.name} with process {hosts.owner}" for hosts in everyone)
        raise InputError(
            "no emulated hosts are up that 'mpilab hosts up' brought up; others end with the "
            f"process that they belong to: {names}"
        )
    if len(clusters) == 1:
        return clusters[0]
    if not clusters:
        raise InputError("no emulated hosts are up; start some, e.g. mpilab hosts up two-groups")
    names = ", ".join(hosts.name for hosts in clusters)
    raise InputError(f"several clusters of emulated hosts are up: {names}; say which one")


def overview(hosts: Any) -> str:
    """A cluster's groups, hosts and slots, and the rate and latency of its links, as text."""
    description = hosts.description
    count = len(description.hosts)
    lines = [f"{hosts.name}: {count} host{'s' * (count != 1)}, {description.slots} slots"]
    for group, members in description.groups.items():
        named = " ".join(f"{host.name}:{host.slots}" for host in members)
        lines.append(f"  {group or 'one group'}: {named}")
    lines.append(f"  host links: {_shape(description.host_link, hosts.latency_by)}")
    if len(description.groups) > 1:
        lines.append(f"  group links: {_shape(description.group_link, hosts.latency_by)}")
    return "\n".join(lines)


def _shape(link: Any, latency_by: str) -> str:
    """A link as text: '1gbit (tbf), latency 500us (relay)'."""
    rate = "unlimited rate"
    if link.rate is not None:
        rate = f"{as_text(link.rate, RATE)} (tbf)"
    if not link.latency:
        return rate
    return f"{rate}, latency {as_text(link.latency, TIME)} ({latency_by})"


# `mpilab doctor`: check this machine.


def _add_doctor(commands: Commands) -> None:
    parser = commands.add_parser(
        "doctor",
        help="check this machine and suggest fixes",
        epilog="Exit status: 0 if everything named by --for works, even with limits; "
        "1 if any of it does not.",
    )
    add_json(parser)
    parser.add_argument(
        "--for",
        dest="uses",
        metavar="USE[,USE...]",
        default="labs,grading",
        help="what must work for exit status 0: labs, grading, hosts, simulation, slurm "
        "(default: %(default)s)",
    )
    parser.set_defaults(call=_doctor)


def _doctor(options: argparse.Namespace) -> int:
    doctor = mpilab.doctor
    uses = names(options.uses)
    unknown = [name for name in uses if name not in doctor.USES]
    if unknown:
        known = f"{', '.join(doctor.USES)}{suggestion(unknown[0], doctor.USES)}"
        raise InputError(f"--for {options.uses}: {unknown[0]!r} is unknown; write some of {known}")
    if is_cached():
        with contextlib.suppress(MpilabError):  # if the build fails, examine() reports why
            mpilab.kernels.build.need(mpilab.kernels.build.KERNELS)
    checks = doctor.examine()
    print(doctor.as_json(checks) if options.json else doctor.table(checks))
    return 0 if doctor.work(doctor.verdicts(checks), uses) else 1
