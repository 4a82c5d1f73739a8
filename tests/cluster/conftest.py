"""A cluster of eight ranks on emulated hosts, for the tests that need one."""

import pytest

from mpilab.cluster import engines
from mpilab.cluster.engines import Cluster
from mpilab.errors import SetupError
from mpilab.hosts import description
from mpilab.hosts.emulated import EmulatedHosts


@pytest.fixture(scope="module")
def hosts(no_hosts):
    """Emulated hosts, two-groups, that stay up from test to test."""
    hosts = EmulatedHosts(description.read("two-groups"))
    try:
        hosts.up()
    except SetupError as error:
        no_hosts(error)
    yield hosts
    hosts.down()


@pytest.fixture(scope="module")
def shared_cluster_on_hosts(hosts):
    with Cluster(hosts=hosts, progress=False) as cluster:
        yield cluster


@pytest.fixture
def cluster_on_hosts(shared_cluster_on_hosts):
    """A running cluster of eight on `hosts`, in the order "seq", and the active one.

    If a test breaks it, this fixture restarts it.
    """
    cluster = shared_cluster_on_hosts
    if not cluster.running or cluster._unfinished:
        cluster.restart()
    engines._active = cluster
    return cluster
