"""What is known of a cluster that is up, and where: DIRECTORY/state.json.

The directory is the cluster's own and only its user may enter it. The file is there once the
cluster is up, and gone with it.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from mpilab.descriptions import Description, Link
from mpilab.emulated.namespaces import begun_at
from mpilab.hosts import Host

PREFIX = "mpilab-hosts-"
FILE = "state.json"
FORMAT = 1  # of the file; to be changed with it


@dataclass(frozen=True)
class State:
    """A cluster that is, or was, up.

    name, directory, description   see EmulatedHosts
    processes    {name: (number, begun_at)} of "keeper", "fabric", and of each host, the latter as
                 "host NAME"
    latency_by   see Capabilities
    owner        the process that it ends with; 0 for none
    """

    name: str
    directory: Path
    description: Description
    processes: dict
    latency_by: str = ""
    owner: int = 0

    @property
    def is_up(self):
        """Is its process 1 there?"""
        number, begun = self.processes["fabric"]
        return begun is not None and begun_at(number) == begun

    def write(self):
        """Put it into its directory, whole or not at all."""
        told = {"format": FORMAT, **asdict(self), "directory": str(self.directory)}
        partial = self.directory / "state.partial"
        partial.write_text(json.dumps(told), encoding="utf-8")
        os.replace(partial, self.directory / FILE)


def read(directory):
    """The State of the cluster in `directory`; None where there is none, not yet, or one that
    another version of the kit brought up."""
    try:
        told = json.loads(Path(directory, FILE).read_text(encoding="utf-8"))
    except OSError:
        return None
    if told.pop("format", None) != FORMAT:
        return None
    described = told.pop("description")
    description = Description(
        **described
        | {
            "hosts": tuple(Host(**host) for host in described["hosts"]),
            "host_link": Link(**described["host_link"]),
            "group_link": Link(**described["group_link"]),
        }
    )
    processes = {name: tuple(pair) for name, pair in told.pop("processes").items()}
    return State(**told | {"directory": Path(told["directory"]), "description": description,
                           "processes": processes})  # fmt: skip
