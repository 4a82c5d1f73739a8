"""What a machine supports of emulated hosts, and the message if it does not: tested everywhere."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from small_clusters import await_end, described

from mpilab.cluster.location import OnHosts
from mpilab.errors import SetupError
from mpilab.hosts.emulated import EmulatedHosts, hosts, probe
from mpilab.hosts.emulated.hosts import TRIAL, Capabilities

sys.path.insert(0, str(TRIAL.parent))
import trial  # noqa: E402

REFUSING = """
import errno, os, sys
sys.path.insert(0, {folder!r})
import trial, namespaces
def refuse(*names):
    raise PermissionError(errno.EPERM, "unshare: Operation not permitted")
namespaces.unshare = refuse
import json
print(json.dumps(trial.main("/sbin/ip", "/sbin/tc")))
"""


@pytest.fixture
def fresh():
    """The next probe tries again; and so does the one after this test."""
    probe.cache_clear()
    yield
    probe.cache_clear()


def test_a_trial_says_what_there_is_and_leaves_nothing():
    found = probe()
    assert found.namespaces in ("root", "rootless", "none")
    if found.namespaces == "none":
        assert found.reason
    else:
        assert found.reason == ""
        assert set(found.tools) == {"ip", "tc", "nsenter"}
    assert probe() is found


def test_where_namespaces_are_not_allowed_the_system_s_word_and_a_remedy_are_told():
    script = REFUSING.format(folder=str(TRIAL.parent))
    said = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, timeout=300
    )
    found = json.loads(said.stdout)
    assert found["namespaces"] == "none"
    assert "Operation not permitted" in found["reason"]
    assert found["reason"].count(";") == 1


@pytest.mark.parametrize(
    "name, value, remedy",
    [
        ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "apparmor_parser -r"),
        ("user/max_user_namespaces", "0", "user.max_user_namespaces=15000"),
        ("user/max_user_namespaces", "1000", "a container?"),
    ],
)
def test_the_remedy_is_what_this_kernel_has_switched_off(tmp_path, name, value, remedy):
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(f"{value}\n")
    assert remedy in trial.remedy(tmp_path)


def test_missing_programs_are_named_with_the_packages_that_have_them(fresh, monkeypatch):
    monkeypatch.setattr(hosts, "find", lambda name: None if name == "tc" else f"/{name}")
    found = probe()
    assert found.namespaces == "none"
    assert found.reason == (
        "not found: tc; install them, e.g. with 'apt-get install iproute2 util-linux'"
    )


def test_elsewhere_than_on_linux_there_are_none(fresh, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert probe().reason == "namespaces need Linux; this is darwin"


def test_a_trial_that_breaks_is_no_capability(fresh, monkeypatch, tmp_path):
    broken = tmp_path / "trial.py"
    broken.write_text("raise SystemExit('it broke')")
    monkeypatch.setattr(hosts, "TRIAL", broken)
    monkeypatch.setattr(hosts, "find", lambda name: f"/{name}")
    assert probe().reason == "the trial failed: it broke"


def test_without_namespaces_hosts_say_what_to_use_instead(monkeypatch):
    none = Capabilities("none", "unshare: Operation not permitted")
    monkeypatch.setattr("mpilab.hosts.emulated.hosts.probe", lambda: none)
    with pytest.raises(SetupError) as raised:
        EmulatedHosts(described({"a": 1})).up()
    for words in ("Operation not permitted", "mpilab run KERNEL --places", "--privileged"):
        assert words in str(raised.value)


@pytest.mark.parametrize(
    "links, has, words",
    [
        ({"rate": 1e9}, {"relay": True}, "modprobe sch_tbf"),
        ({"uplink": 1e9}, {"netem": True}, "modprobe sch_tbf"),
        ({"latency": 1e-3}, {"tbf": True}, "make build"),
        ({"uplink_latency": 1e-3}, {"tbf": True}, "make build"),
    ],
)
def test_links_that_cannot_be_made_are_refused_with_what_to_do(
    links, has, words, monkeypatch, tmp_path
):
    monkeypatch.setattr(hosts, "RELAY", tmp_path / "relay")
    with pytest.raises(SetupError, match=f"trial: its links have a .*{words}.*or omit"):
        Capabilities("root", **has).need(described({"a": 2}, **links))


@pytest.mark.parametrize(
    "has, sentence",
    [
        (Capabilities("none", "why"), "'docker run --privileged' allows namespaces"),
        (Capabilities("root"), "or omit 'rate'"),
    ],
)
def test_a_notebook_is_told_in_a_sentence_of_its_own_what_to_use(has, sentence, monkeypatch):
    monkeypatch.setattr("mpilab.hosts.emulated.hosts.probe", lambda: has)
    hosts = EmulatedHosts(described({"a": 1}, rate=1e9))
    with pytest.raises(SetupError) as raised:
        OnHosts(hosts, ["n1"], "seq").begin()
    assert f"{sentence}. In a notebook take mpilab.Cluster(1)" in str(raised.value)


def test_who_has_built_the_relay_is_not_told_to_build_it(monkeypatch, tmp_path):
    monkeypatch.setattr(hosts, "RELAY", tmp_path / "relay")
    hosts.RELAY.touch()
    with pytest.raises(SetupError, match="The relay may not send raw packets here") as raised:
        Capabilities("root").need(described({"a": 2}, latency=1e-3))
    assert "make build" not in str(raised.value)


@pytest.mark.privileged
def test_of_a_trial_that_is_killed_nothing_is_left(namespaces, tmp_path):
    fifo = tmp_path / "there"
    os.mkfifo(fifo)
    endless = tmp_path / "ip"
    endless.write_text(f"#!/bin/sh\necho there > {fifo}\nexec sleep 1000\n")
    endless.chmod(0o755)
    command = [sys.executable, "-I", "-S", TRIAL, str(endless), str(endless)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        with open(fifo) as there:
            assert there.readline() == "there\n"
        children = psutil.Process(process.pid).children(recursive=True)
        assert len(children) == 3  # in the middle, process 1 of its namespace, and the program
        try:
            process.kill()
            process.wait()
            assert [child for child in children if not await_end(child.pid)] == []
        finally:
            for child in children:
                if child.is_running():
                    child.kill()


@pytest.mark.parametrize(
    "links, has",
    [
        ({}, {}),
        ({"rate": 1e9}, {"tbf": True}),
        ({"latency": 1e-3}, {"netem": True}),
        ({"latency": 1e-3}, {"relay": True}),
    ],
)
def test_links_that_can_be_made_are_not_refused(links, has):
    assert Capabilities("rootless", **has).need(described({"a": 2}, **links)) is None


def test_netem_is_taken_before_the_relay():
    assert Capabilities("root", netem=True, relay=True).latency_by == "netem"
    assert Capabilities("root", relay=True).latency_by == "relay"
    assert Capabilities("root").latency_by == ""


@pytest.mark.parametrize(
    "found, words",
    [
        (Capabilities("none", "why"), "no emulated hosts: why"),
        (
            Capabilities("root", tbf=True, relay=True),
            "namespaces created by root; rate by tbf; latency by the relay (no netem in this "
            "kernel)",
        ),
        (
            Capabilities("rootless", netem=True),
            "namespaces created without root; no rate limit (no tbf in this kernel); latency by "
            "netem",
        ),
    ],
)
def test_it_is_described_in_a_line(found, words):
    assert found.describe() == words


def test_programs_that_are_not_on_the_path_of_users_are_found(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert hosts.find("sh") in ("/usr/bin/sh", "/bin/sh")
    assert hosts.find("no-such-program") is None
    assert Path(hosts.find("sh")).exists()
