"""Emulated hosts for tests, if this machine can create them."""

import pytest
from small_clusters import described

from mpilab.hosts.emulated import EmulatedHosts


@pytest.fixture(scope="module")
def eight(namespaces):
    """Four groups (a to d) of two hosts of two slots: n1 to n8."""
    with EmulatedHosts(described({"a": 2, "b": 2, "c": 2, "d": 2}, rate=1e9, uplink=2e8)) as hosts:
        yield hosts


@pytest.fixture(scope="module")
def pair(namespaces):
    """Two hosts of two slots in one group, n1 and n2."""
    with EmulatedHosts(described({"a": 2})) as hosts:
        yield hosts
