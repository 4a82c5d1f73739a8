"""The relay's command line; test_emulated_hosts tests how it handles frames."""

import subprocess

import pytest

from mpilab.hosts.emulated.hosts import RELAY


def relay(*words):
    return subprocess.run([RELAY, *words], capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("word", ["up0", "up0,dn0", "up0,dn0,x", "up0,dn0,-1", "up0,dn0,inf", ""])
def test_what_is_no_link_is_refused_with_an_example(word):
    said = relay(word)
    assert said.returncode == 2
    assert said.stderr == (
        f"mpilab-relay: '{word}' is not of the form ONE,OTHER,MICROSECONDS, e.g. up0,dn0,250\n"
    )


def test_without_links_it_says_how_it_is_used():
    assert relay().returncode == 2
    assert relay().stderr == "usage: mpilab-relay ONE,OTHER,MICROSECONDS ...\n"


def test_an_interface_that_is_not_there_is_told(namespaces):
    said = relay("no-such-one,no-other,1")
    assert said.returncode == 1
    assert "no-such-one" in said.stderr
    assert said.stdout == ""
