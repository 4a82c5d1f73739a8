"""Run Open MPI's collectives with a rules file, and without it, in one mpirun."""

import os
from pathlib import Path

from mpilab import openmpi
from mpilab.errors import InputError
from mpilab.harness import Case
from mpilab.openmpi_rules.vocabulary import element_bytes

# What the user may have set, and what then comes before the file.
_DECIDERS = ("OMPI_MCA_coll", "OMPI_MCA_coll_tuned_use_dynamic_rules")


def settings(path):
    """Settings of an mpirun that decides by the rules file `path`, and counts messages.

    Raises InputError where the user has set another file, which would win.
    """
    path = Path(path).resolve()
    wished = os.environ.get(openmpi.RULES_FILE)
    if wished and Path(wished).resolve() != path:
        raise InputError(f"{openmpi.RULES_FILE}={wished} is set, and comes before {path}; unset it")
    return openmpi.CHOOSING | {openmpi.RULES_FILE: str(path)}


def environment_lines(path):
    """What a person sets so that Open MPI decides by a file: lines for a shell."""
    return [
        f"export {openmpi.RULES_FILE}={Path(path).resolve()}",
        "export OMPI_MCA_coll_tuned_use_dynamic_rules=true",
        "export OMPI_MCA_coll=^han    # across hosts, coll/han comes before coll/tuned",
    ]


def case(collective, ranks, size, **more):
    """The Case of Open MPI's collective with `size` bytes of a block, or of the whole message.

    By default no algorithm is set (openmpi=-1), so that the file decides as in any program.
    """
    element = element_bytes(collective)
    usual = {"record": False, "dump": False, "function": f"{collective}_openmpi"}
    return Case(collective, ranks, size // element, "int" if element == 4 else "byte",
                **usual | more)  # fmt: skip


def deciders(collective):
    """What the user has set that may come before a rules file: 'NAME=value' each."""
    names = (*_DECIDERS, f"OMPI_MCA_coll_tuned_{collective}_algorithm")
    return [f"{name}={os.environ[name]}" for name in names if os.environ.get(name)]
