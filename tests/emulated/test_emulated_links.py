"""The lines that build the network of emulated hosts: tested without any network."""

import re

import pytest

from mpilab.hosts.emulated import links


def plan(sizes=(2, 2), *, rate=1e9, uplink=2e8, latency=0.0, uplink_latency=0.0, by="relay"):
    groups = [group for group, size in enumerate(sizes) for _ in range(size)]
    return {
        "hosts": [
            {"name": f"n{i + 1}", "group": group, "address": links.address(i)}
            for i, group in enumerate(groups)
        ],
        "groups": len(sizes),
        "host_link": {"rate": rate, "latency": latency},
        "group_link": {"rate": uplink, "latency": uplink_latency},
        "latency_by": by,
    }


def masters(lines):
    """{interface: bridge} of the lines that connect them."""
    return dict(
        re.match(r"link set (\S+) master (\S+) up", line).groups()
        for line in lines
        if " master " in line
    )


def test_every_host_hangs_on_its_switch_and_every_switch_on_the_core():
    lines = links.switches(plan((2, 1)), [11, 12, 13])
    assert masters(lines) == {
        "up0": "sw0",
        "dn0": "core",
        "up1": "sw1",
        "dn1": "core",
        "h0": "sw0",
        "h1": "sw0",
        "h2": "sw1",
    }
    assert "link add h2 mtu 9000 type veth peer name eth0 netns 13 mtu 9000" in lines


def test_one_group_needs_no_core():
    lines = links.switches(plan((3,)), [11, 12, 13])
    assert not [line for line in lines if "core" in line or "up0" in line]
    assert links.relayed(plan((3,), uplink_latency=1e-3)) == []


def test_each_direction_of_each_link_is_held_to_its_rate():
    lines = links.shaping(plan())
    rates = dict(
        re.match(r"qdisc add dev (\S+) root tbf rate (\d+)bit burst 20000 ", line).groups()
        for line in lines
    )
    assert {name: float(rate) for name, rate in rates.items()} == {
        **dict.fromkeys(("h0", "h1", "h2", "h3"), 1e9),
        **dict.fromkeys(("up0", "dn0", "up1", "dn1"), 2e8),
    }
    assert links.host_shaping(plan()) == [lines[0].replace("h0", "eth0")]


def test_a_link_without_a_rate_is_left_alone():
    free = plan(rate=None, uplink=None)
    assert links.shaping(free) == links.host_shaping(free) == []


def test_a_link_with_latency_is_two_pairs_with_the_relay_between():
    late = plan((1, 1), latency=5e-4, uplink_latency=2e-3)
    lines = links.switches(late, [11, 12])
    assert "link add h1 mtu 9000 type veth peer name h1r mtu 9000" in lines
    assert "link add e1r mtu 9000 type veth peer name eth0 netns 12 mtu 9000" in lines
    assert {"link set h1r up", "link set e1r up", "link set dn1r up"} <= set(lines)
    assert masters(lines) == masters(links.switches(plan((1, 1)), [11, 12]))
    assert links.relayed(late) == [
        "up0r,dn0r,2000.000",
        "up1r,dn1r,2000.000",
        "h0r,e0r,500.000",
        "h1r,e1r,500.000",
    ]


def test_with_netem_there_is_no_relay_and_the_rate_is_inside_of_the_delay():
    late = plan((1, 1), latency=5e-4, by="netem")
    assert links.relayed(late) == []
    assert links.switches(late, [1, 2]) == links.switches(plan((1, 1)), [1, 2])
    outer, inner = links.host_shaping(late)
    assert outer == "qdisc add dev eth0 root handle 1: netem delay 500.000us limit 100000"
    assert inner.startswith("qdisc add dev eth0 parent 1:1 handle 10: tbf rate 1000000000bit ")


def test_addresses_are_all_different_and_interface_names_fit_the_kernel():
    addresses = [links.address(number) for number in range(1200)]
    assert len(set(addresses)) == 1200
    assert all(1 <= int(part) <= 254 for one in addresses for part in one.split(".")[3:])
    large = plan((600, 600), latency=1e-3, uplink_latency=1e-3)
    names = {word for line in links.switches(large, range(1200)) for word in line.split()}
    assert max(map(len, names - {"forward_delay"})) <= 15


@pytest.mark.parametrize("name, address", [("n1", "10.77.0.1"), ("n4", "10.77.0.4")])
def test_every_host_knows_the_address_of_every_other(name, address):
    lines = links.etc_hosts(plan()).splitlines()
    assert lines[0] == "127.0.0.1 localhost"
    assert f"{address} {name}" in lines
