"""The network between emulated hosts, as lines for `ip -batch` and `tc -batch`.

    n1 (eth0)─────h0┐                                    ┌h2─────(eth0) n3
                    sw0 (up0)─────(dn0) core (dn1)─────(up1) sw1
    n2 (eth0)─────h1┘                                    └h3─────(eth0) n4
       host link              group link           (sw, core: bridges; ─: a pair of interfaces)

tbf limits what leaves an interface to the link's rate, so each direction has its own limit. netem
adds latency if the kernel has it. Otherwise a link consists of two pairs, and the relay forwards
packets between them after the latency:

    n1 (eth0)─────e0r » relay « h0r─────h0 sw0

These functions only produce text. A plan is a dictionary that was serialized as JSON:

    hosts        [{"name", "group" (number of its switch), "address"}]
    groups       number of switches
    host_link, group_link   {"rate": bits per second or None, "latency": seconds}
    latency_by   "netem" or "relay"
"""

# Frame size, with a bucket for two frames: a smaller bucket reduces the rate, a larger one lets
# whole messages through unshaped.
MTU = 9000
BURST_BYTES = 20_000
# Packets that would wait longer are dropped, as at a real switch; TCP resends them.
QUEUE_MS = 100
NETEM_PACKETS = 100_000
# Initial congestion window in segments: short messages need not wait for acknowledgments, as on a
# warm connection.
INITIAL_WINDOW = 64
NETWORK = "10.77.0.0/16"
HOSTS_A_BLOCK = 250


def address(number: int) -> str:
    """The address of the host with this number, from 0."""
    return f"10.77.{number // HOSTS_A_BLOCK}.{number % HOSTS_A_BLOCK + 1}"


def switches(plan: dict, processes: list[int]) -> list[str]:
    """Lines for ip: bridges and links. processes[i] is the process that holds host i."""
    lines = ["link set lo up"]
    for group in range(plan["groups"]):
        lines += _bridge(f"sw{group}")
    if plan["groups"] > 1:
        lines += _bridge("core")
        for group in range(plan["groups"]):
            up, down = f"up{group}", f"dn{group}"
            lines += _cable((up, down), plan, plan["group_link"])
            lines += [f"link set {up} master sw{group} up", f"link set {down} master core up"]
    for number, host in enumerate(plan["hosts"]):
        lines += _cable((f"h{number}", f"e{number}"), plan, plan["host_link"], processes[number])
        lines.append(f"link set h{number} master sw{host['group']} up")
    return lines


def shaping(plan: dict) -> list[str]:
    """Lines for tc: shape what leaves the switches. Hosts shape what they send (host_shaping)."""
    lines = []
    for number in range(len(plan["hosts"])):
        lines += _shape(f"h{number}", plan, plan["host_link"])
    if plan["groups"] > 1:
        for group in range(plan["groups"]):
            for end in f"up{group}", f"dn{group}":
                lines += _shape(end, plan, plan["group_link"])
    return lines


def host_network(host: dict) -> list[str]:
    """Lines for ip, inside a host."""
    return [
        "link set lo up",
        f"link set eth0 mtu {MTU} up",
        f"addr add {host['address']}/16 dev eth0",
        f"route replace {NETWORK} dev eth0 initcwnd {INITIAL_WINDOW} initrwnd {INITIAL_WINDOW}",
    ]


def host_shaping(plan: dict) -> list[str]:
    """Lines for tc, inside a host."""
    return _shape("eth0", plan, plan["host_link"])


def relayed(plan: dict) -> list[str]:
    """The relay's arguments: 'INTERFACE,INTERFACE,MICROSECONDS' for each relayed link."""
    found = []
    if _is_relayed(plan, plan["group_link"]) and plan["groups"] > 1:
        found += [(f"up{g}", f"dn{g}", plan["group_link"]) for g in range(plan["groups"])]
    if _is_relayed(plan, plan["host_link"]):
        found += [(f"h{n}", f"e{n}", plan["host_link"]) for n in range(len(plan["hosts"]))]
    return [f"{one}r,{other}r,{link['latency'] * 1e6:.3f}" for one, other, link in found]


def etc_hosts(plan: dict) -> str:
    """The text of /etc/hosts on all hosts."""
    lines = [f"{host['address']} {host['name']}" for host in plan["hosts"]]
    return "\n".join(["127.0.0.1 localhost", *lines]) + "\n"


def _bridge(name: str) -> list[str]:
    return [f"link add {name} type bridge", f"link set {name} up"]


def _cable(ends: tuple[str, str], plan: dict, link: dict, process: int | None = None) -> list[str]:
    """Link two interfaces; the second is eth0 of the host of `process`, if given."""
    near, far = ends
    if not _is_relayed(plan, link):
        return [_pair(near, far, process)]
    up = [f"link set {end}r up" for end in ends]
    return [_pair(near, f"{near}r"), _pair(f"{far}r", far, process), *up]


def _pair(near: str, far: str, process: int | None = None) -> str:
    peer = far if process is None else f"eth0 netns {process}"
    return f"link add {near} mtu {MTU} type veth peer name {peer} mtu {MTU}"


def _is_relayed(plan: dict, link: dict) -> bool:
    return link["latency"] > 0 and plan["latency_by"] == "relay"


def _shape(interface: str, plan: dict, link: dict) -> list[str]:
    rate = None
    if link["rate"] is not None:
        rate = f"tbf rate {link['rate']:.0f}bit burst {BURST_BYTES} latency {QUEUE_MS}ms"
    if link["latency"] > 0 and plan["latency_by"] == "netem":
        delay = f"netem delay {link['latency'] * 1e6:.3f}us limit {NETEM_PACKETS}"
        # tc-netem(8), "Rate control": netem outside, tbf inside.
        lines = [f"qdisc add dev {interface} root handle 1: {delay}"]
        if rate:
            lines.append(f"qdisc add dev {interface} parent 1:1 handle 10: {rate}")
        return lines
    return [f"qdisc add dev {interface} root {rate}"] if rate else []
