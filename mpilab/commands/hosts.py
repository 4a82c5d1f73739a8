"""`mpilab hosts up|run|list|down`: emulated hosts that stay up."""

import argparse
import os

DESCRIPTION = """\
Emulate the hosts of a cluster on this machine: each with its own name, network and shared memory,
and links as fast and as late as the description says.
"""
EXAMPLES = """\
mpilab hosts up two-groups
mpilab hosts run -- mpirun -n 8 ./program
mpilab hosts run --host n2 -- ip addr
mpilab hosts down
"""


def add(commands):
    """Put the command and its verbs among `commands`, argparse's sub-parsers."""
    hosts = commands.add_parser(
        "hosts", help="emulate the hosts of a cluster on this machine", description=DESCRIPTION,
        epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    verbs = hosts.add_subparsers(metavar="VERB", required=True)

    up = verbs.add_parser("up", help="bring hosts up; they stay until 'down'")
    up.add_argument("description", help="FILE.toml, or a name of hostfiles/: two-groups")
    up.add_argument("--name", help="of the cluster, where there are several (default: the file's)")
    up.set_defaults(call=_up)

    run = verbs.add_parser(
        "run", help="run a command there", description="Run a command on a host. Its environment "
        "is set so that a plain mpirun uses all hosts, by their slots.")  # fmt: skip
    run.add_argument("--host", metavar="NAME", help="where the command starts (default: the first)")
    run.add_argument("--name", metavar="CLUSTER", help="which cluster, where several are up")
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND ...")
    run.set_defaults(call=_run)

    verbs.add_parser("list", help="what is up").set_defaults(call=_list)

    down = verbs.add_parser("down", help="take hosts down, with all that runs on them")
    down.add_argument("names", nargs="*", metavar="CLUSTER",
                      help="name or directory (default: the only one)")  # fmt: skip
    down.add_argument("--all", action="store_true", help="every one that 'up' brought up")
    down.set_defaults(call=_down)


def _up(options):
    from mpilab.emulated import EmulatedHosts, running
    from mpilab.errors import InputError

    hosts = EmulatedHosts(options.description, name=options.name)
    same = [one for one in running() if one.name == hosts.name]
    if same:
        # A notebook or a program that works on its hosts would lose them.
        owners = [str(one.owner) for one in same if one.owner]
        what = f", of process {' and '.join(owners)}. Give" if owners else (
            f". Take it down with 'mpilab hosts down {hosts.name}', or give")  # fmt: skip
        raise InputError(
            f"hosts {hosts.name!r}: a cluster of that name is up{what} this one another name: "
            f"--name {hosts.name}-2"
        )
    hosts.up(stay=True)
    print(overview(hosts))
    which = "" if len(running()) == 1 else f" --name {hosts.name}"
    print(f"\nmpilab hosts run{which} -- mpirun -n {hosts.description.slots} PROGRAM   runs on them"
          f"\nmpilab hosts down {hosts.name}   takes them down")  # fmt: skip


def _run(options):
    from mpilab import openmpi
    from mpilab.errors import InputError

    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise InputError("hosts run: what? Write the command behind '--', "
                         "e.g. mpilab hosts run -- mpirun -n 8 ./program")  # fmt: skip
    hosts = _chosen(options.name)
    line = hosts.command(command, options.host)
    environment = hosts.environment(hosts.description.slots)
    beside = os.path.dirname(openmpi.tool("mpirun"))
    environment["PATH"] = f"{beside}{os.pathsep}{environment.get('PATH', os.defpath)}"
    os.execve(line[0], line, environment)


def _list(options):
    from mpilab.emulated import running, sweep

    for directory in sweep():
        print(f"removed {directory}: its hosts are gone, their keeper was killed")
    clusters = running()
    if not clusters:
        print("no emulated hosts are up; mpilab hosts up two-groups")
    for hosts in clusters:
        until = f", until process {hosts.owner} ends" if hosts.owner else ""
        print(f"{overview(hosts)}\n  directory {hosts.directory}{until}")


def _down(options):
    from mpilab.emulated import attach, running, sweep
    from mpilab.errors import InputError

    if options.names and options.all:
        raise InputError("hosts down: names, or --all; not both")
    if options.all:
        # Those that belong to a notebook or a running program go with that.
        chosen = [hosts for hosts in running() if not hosts.owner]
    else:
        chosen = [attach(name) for name in options.names] or [_chosen(None, staying=True)]
    for hosts in chosen:
        hosts.down()
        print(f"{hosts.name} is down")
    sweep()


def _chosen(name, staying=False):
    """The running cluster of that name, or the only one: of those that `up` brought up; where
    there is none and it need not be `staying`, of those that other programs have."""
    from mpilab.emulated import attach, running
    from mpilab.errors import InputError

    if name is not None:
        return attach(name)
    everyone = running()
    clusters = [hosts for hosts in everyone if not hosts.owner]
    if not clusters and not staying:
        clusters = everyone
    if not clusters and everyone:
        names = ", ".join(f"{hosts.name} with process {hosts.owner}" for hosts in everyone)
        raise InputError(
            f"no emulated hosts are up that 'mpilab hosts up' brought up; others go with what "
            f"they belong to: {names}"
        )
    if len(clusters) == 1:
        return clusters[0]
    if not clusters:
        raise InputError("no emulated hosts are up; bring some up, e.g. mpilab hosts up two-groups")
    names = ", ".join(hosts.name for hosts in clusters)
    raise InputError(f"several clusters of emulated hosts are up: {names}; say which one")


def overview(hosts):
    """What a cluster consists of: groups and hosts with their slots, and how links are shaped."""
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


def _shape(link, latency_by):
    """'1gbit (tbf), 500us later (relay)'."""
    from mpilab import amounts

    rate = "as fast as the machine goes"
    if link.rate is not None:
        rate = f"{amounts.as_text(link.rate, amounts.RATE)} (tbf)"
    if not link.latency:
        return rate
    return f"{rate}, latency {amounts.as_text(link.latency, amounts.TIME)} ({latency_by})"
