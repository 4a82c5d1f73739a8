"""Platforms as SimGrid reads them: XML, and the options of SMPI that make a message cost what
mpilab.simulated.platforms says.

https://simgrid.org/doc/v3.32/XML_reference.html, Configuring_SimGrid.html
"""

from xml.sax.saxutils import quoteattr

from mpilab.simulated import platforms

# MPI_Send of fewer bytes returns at once (eager), as Open MPI's does over TCP: its
# btl_tcp_eager_limit.
EAGER_BYTES = 65536
_HEAD = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
"""


def options(platform):
    """Settings of SMPI, {name: value}: plain latencies and rates, where SMPI by itself would scale
    them by factors that were fitted to one cluster of 2013."""
    overhead = f"0:{platform.overhead:.12g}:0"  # from 0 bytes on: seconds, seconds a byte
    return {
        "smpi/simulate-computation": "no",
        "smpi/bw-factor": "0:1",
        "smpi/lat-factor": "0:1",
        "network/TCP-gamma": "0",  # no window: a rate does not depend on the latency
        "network/crosstraffic": "no",  # the two directions of a link do not disturb each other
        "smpi/os": overhead,
        "smpi/ois": overhead,
        "smpi/or": overhead,
        "smpi/send-is-detached-thresh": str(EAGER_BYTES),
        # A poll takes so long that a loop of them comes to an end, and too little to be seen.
        "smpi/test": "1e-7",
        "smpi/iprobe": "1e-7",
        "smpi/grow-injected-times": "no",
        "contexts/guard-size": "64",  # pages: a rank's endless recursion must not reach another's
    }


def xml(platform):
    """The text of a platform file."""
    if platform.wiring == platforms.SWITCHES:
        return f"{_HEAD}{_switches(platform)}</platform>\n"
    return f"{_HEAD}{_cluster(platform)}</platform>\n"


def _cluster(platform):
    """SimGrid's own tag for hosts that are all alike."""
    hosts = platform.description.hosts
    topology = {
        platforms.FLAT: lambda: {},
        platforms.FAT_TREE: lambda leaves, each: {
            "topology": "FAT_TREE", "topo_parameters": f"2;{each},{leaves};1,{each};1,1"},
        platforms.TORUS: lambda *lengths: {
            "topology": "TORUS", "topo_parameters": ",".join(map(str, lengths))},
        platforms.DRAGONFLY: lambda groups, routers, each: {
            "topology": "DRAGONFLY", "topo_parameters": f"{groups},1;1,1;{routers},1;{each}"},
    }[platform.wiring](*platform.shape)  # fmt: skip
    values = {
        "id": "cluster", "prefix": "n", "suffix": "", "radical": f"0-{len(hosts) - 1}",
        "speed": "1Gf", "sharing_policy": "SPLITDUPLEX",
        "bw": _rate(platform.host_link), "lat": _seconds(platform.host_link),
        "loopback_bw": _rate(platform.memory), "loopback_lat": _seconds(platform.memory),
        **topology,
    }  # fmt: skip
    return f"<cluster {_attributes(values)}/>\n"


def _switches(platform):
    """A zone for each group, with its switch; links of the switches to one in the middle."""
    groups = platform.description.groups
    lines = ['<zone id="world" routing="Floyd">']
    for number, hosts in enumerate(groups.values()):
        lines += _group(platform, number, hosts)
    if len(groups) > 1:
        ups = [f"up{number}" for number in range(len(groups))]
        lines.append('<zone id="middle" routing="Full"><router id="switch-middle"/></zone>')
        lines += [_link(up, platform.group_link, "SPLITDUPLEX") for up in ups]
        lines += [
            f'<zoneRoute src="group{number}" dst="middle" gw_src="switch{number}" '
            f'gw_dst="switch-middle"><link_ctn id="{up}" direction="UP"/></zoneRoute>'
            for number, up in enumerate(ups)
        ]
    return "\n".join([*lines, "</zone>\n"])


def _group(platform, number, hosts):
    """The lines of a group. SimGrid wants hosts, routers, links and routes in this order."""
    names = [host.name for host in hosts]
    yield f'<zone id="group{number}" routing="Floyd">'
    yield from (f'<host id="{name}" speed="1Gf"/>' for name in names)
    yield f'<router id="switch{number}"/>'
    for name in names:
        yield _link(f"link-{name}", platform.host_link, "SPLITDUPLEX")
        yield _link(f"memory-{name}", platform.memory, "FATPIPE")
    for name in names:
        yield (f'<route src="{name}" dst="{name}" symmetrical="NO">'
               f'<link_ctn id="memory-{name}"/></route>')  # fmt: skip
        yield (f'<route src="{name}" dst="switch{number}">'
               f'<link_ctn id="link-{name}" direction="UP"/></route>')  # fmt: skip
    yield "</zone>"


def _link(name, link, policy):
    values = {"id": name, "bandwidth": _rate(link), "latency": _seconds(link),
              "sharing_policy": policy}  # fmt: skip
    return f"<link {_attributes(values)}/>"


def _rate(link):
    return f"{link.rate / 8:.12g}Bps"


def _seconds(link):
    return f"{link.latency:.12g}s"


def _attributes(values):
    return " ".join(f"{name}={quoteattr(value)}" for name, value in values.items())
