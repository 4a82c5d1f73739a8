"""Emulated hosts: namespaces, and links that can be slowed down."""

from mpilab.doctor.check import (
    FAILED,
    MISSING,
    OK,
    WARNING,
    Finding,
    install,
    namespace_remedy,
    probe,
)
from mpilab.emulated import capabilities


@probe("emulated-hosts", limit=8,
       why="labs 03 and 04 on several hosts of this machine (mpilab hosts): without them on one "
           "host whose ranks pretend to be on several")  # fmt: skip
def emulated_hosts(around):
    """What mpilab.emulated finds out by trying, and what of it is missing."""
    found = capabilities.probe()
    if found.namespaces == "none":
        if found.missing:
            return Finding(MISSING, f"not found: {', '.join(found.missing)}", install("namespaces"))
        return Finding(FAILED, found.reason, namespace_remedy())
    if not found.tbf:
        return Finding(WARNING, found.describe(), "a kernel with CONFIG_NET_SCH_TBF: modprobe "
                       "sch_tbf")  # fmt: skip
    if not found.latency_by:
        return Finding(WARNING, found.describe(), "make build, which makes the relay")
    return Finding(OK, found.describe())
